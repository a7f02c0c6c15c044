"""Contradictions: fields that are right alone and wrong together."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

from specplan.scenarios.checks_memory import memory_contradictions
from specplan.scenarios.errors import nearest
from specplan.scenarios.gpus import gpu_name, gpu_table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from specplan.scenarios.schema import Scenario
    from specplan.scenarios.schema_acceptance import AcceptanceBlock
    from specplan.scenarios.schema_costs import CostBlock
    from specplan.scenarios.schema_speculation import Speculation
    from specplan.scenarios.schema_workload import Lengths

Path_ = tuple[str, ...]
Contradiction = tuple[Path_, str, str]  # path of the field, what is wrong, what is right


def contradictions(scenario: Scenario) -> list[Contradiction]:
    """Find everything in a scenario that contradicts itself, field by field."""
    found = [*_costs(scenario), *_lengths(scenario), *_budget(scenario)]
    found += [*_gpus(scenario), *memory_contradictions(scenario)]
    cluster = scenario.cluster
    if cluster.engines_per_gpu > cluster.replicas:
        wrong = f"{cluster.engines_per_gpu} engines on a GPU, and there are {cluster.replicas}"
        found.append((("cluster", "engines_per_gpu"), wrong, "at most the replicas"))
    if scenario.speculation.method != "none":
        found += [*_tree(scenario), *_placement(scenario), *_policy(scenario)]
        found += _acceptance(scenario)
    elif "method" not in scenario.speculation.model_fields_set:
        found += _no_method(scenario.speculation)
    return found


def _no_method(speculation: Speculation) -> Iterator[Contradiction]:
    """Refuse to take what is said about drafting as plain decoding."""
    said = [name for name in ("gamma", "acceptance", "tree") if getattr(speculation, name)]
    if said:
        wrong = f"is missing, and {' and '.join(said)} stated"
        right = "`draft_model`, `one_pass`, `ngram` or `tree`; `none` is plain decoding"
        yield ("speculation", "method"), wrong, right


def _costs(scenario: Scenario) -> Iterator[Contradiction]:
    for name, block in (("round", scenario.target.round), ("step", scenario.target.step)):
        if block is not None and _free(block):
            yield ("target", name), "a pass of the target that costs nothing", "above 0 ms"


def _gpus(scenario: Scenario) -> Iterator[Contradiction]:
    table = gpu_table()
    for path, name in _named_gpus(scenario):
        if gpu_name(name) not in table:
            close = nearest(name.lower(), table)
            hint = f"did you mean `{close}`?" if close else ", ".join(table)
            yield path, f"there is no GPU `{name}` in the bundled table", hint
    together, placement = scenario.cluster.engines_per_gpu, scenario.draft.placement
    if together > 1 and scenario.gamma and placement in ("dedicated", "parallel"):
        wrong = f"{together} engines take turns on one GPU and placement is {placement}"
        yield ("cluster", "engines_per_gpu"), wrong, "`placement: colocated` or `shared`, or 1"


def _named_gpus(scenario: Scenario) -> Iterator[tuple[Path_, str]]:
    if scenario.target.gpu is not None:
        yield ("target", "gpu"), scenario.target.gpu
    for place, owner in (("target", scenario.target), ("draft", scenario.draft)):
        for name in ("round", "step", "prefill"):
            block = getattr(owner, name, None)
            if block is not None and block.roofline is not None:
                yield (place, name, "roofline", "gpu"), block.roofline.gpu


def _tree(scenario: Scenario) -> Iterator[Contradiction]:
    speculation = scenario.speculation
    method = speculation.method
    if method == "tree" and speculation.tree is None:
        yield (
            ("speculation", "tree"),
            "method is tree and no tree is given",
            "`{width: 2, depth: 3}`, or `{budget: 64}` for the best of 64 nodes",
        )
    if method != "tree" and speculation.tree is not None:
        wrong = f"a tree is given and method is {method}"
        yield ("speculation", "tree"), wrong, "`method: tree`, or no tree"
    levels = speculation.tree_levels
    if method == "tree" and speculation.tree and not levels:
        yield _unspent(speculation)
        return
    if method == "tree" and speculation.tree and speculation.gamma not in (None, 0, levels):
        wrong = f"gamma is {speculation.gamma} and the tree has {levels} levels"
        yield ("speculation", "gamma"), wrong, f"leave gamma out, or write {levels}"
    if method != "tree" and speculation.gamma is None:
        yield ("speculation", "gamma"), "is missing", "tokens proposed in a round, such as `4`"
    most = levels if method == "tree" and speculation.tree else math.inf
    if scenario.deepest_gamma > most:
        wrong = f"may choose γ {scenario.deepest_gamma} and the tree has {most} levels"
        yield ("speculation", "policy"), wrong, f"at most {most}"


def _unspent(speculation: Speculation) -> Contradiction:
    """Tell why no tree can be chosen for a budget."""
    block = speculation.acceptance
    right = "`acceptance: {ranks: [0.6, 0.2]}`, or a tree by its `nodes` or by `width` and `depth`"
    if block is not None and block.mixture and any(part.ranks for part in block.mixture):
        wrong = "is spent by one list of ranks, and no one tree is the best for every kind"
        right = "a tree by its `nodes` or by `width` and `depth`"
    elif block is None or block.ranks is None:
        stated = f"is stated by {block.kind}" if block else "is not stated"
        wrong = f"needs the acceptance of each rank, and speculation.acceptance {stated}"
    else:
        wrong = "has nothing to be spent on: every rank has acceptance 0"
        right = "a rank above 0, or `method: none`"
    return ("speculation", "tree", "budget"), wrong, right


def _placement(scenario: Scenario) -> Iterator[Contradiction]:
    draft, method = scenario.draft, scenario.speculation.method
    if draft.placement in ("dedicated", "shared") and draft.transfer is None:
        wrong = f"placement {draft.placement} needs the delay between draft and target GPU"
        yield ("draft", "transfer"), wrong, "`transfer: 50 us`, or `0 ms` if it costs nothing"
    if draft.ping_pong and draft.placement != "dedicated":
        wrong = f"ping_pong does not apply to placement {draft.placement}"
        yield ("draft", "ping_pong"), wrong, "only to `placement: dedicated`"
    if draft.ping_pong and scenario.scheduler.max_num_seqs < 2:
        wrong = "two half batches need two sequences, and max_num_seqs is 1"
        yield ("draft", "ping_pong"), wrong, "`max_num_seqs: 2` or more, or no ping_pong"
    if draft.gpus > 1 and draft.placement not in ("dedicated", "shared"):
        wrong = f"{draft.gpus} draft GPUs with placement {draft.placement}"
        yield ("draft", "gpus"), wrong, "`placement: shared` or `dedicated`"
    if method == "ngram" and draft.placement != "colocated":
        wrong = f"an n-gram lookup has no GPU, placement is {draft.placement}"
        yield ("draft", "placement"), wrong, "`placement: colocated`"
    for name, free in (("step", _free(draft.step)), ("per_round", draft.per_round == 0)):
        if method == "ngram" and not free:
            wrong = "an n-gram lookup has no draft to price"
            yield ("draft", name), wrong, "`0 ms`; what a lookup costs is speculation.overhead"
    if method != "ngram" and scenario.speculation.proposal_lengths:
        wrong = f"does not apply to method {method}, which always proposes γ tokens"
        yield ("speculation", "proposal_lengths"), wrong, "only to `method: ngram`"


def _free(block: CostBlock) -> bool:
    """Whether a pass costs nothing, however much it does."""
    if block.kind not in ("constant", "linear"):  # measured and computed times are above 0
        return False
    terms = [block.constant] if block.linear is None else block.linear.model_dump().values()
    return not any((*terms, block.launch_floor, block.overhead))


def _policy(scenario: Scenario) -> Iterator[Contradiction]:
    speculation, gamma = scenario.speculation, scenario.gamma
    policy = speculation.policy
    path = ("speculation", "policy", policy.kind)
    schedule = policy.hf_heuristic or policy.hf_transient
    if schedule and gamma and not schedule.min <= gamma <= schedule.max:
        wrong = f"γ stays in {schedule.min} … {schedule.max} and gamma, the start, is {gamma}"
        yield path, wrong, "a gamma within the bounds"
    if policy.goodput and gamma and policy.goodput.min > scenario.deepest_gamma:
        wrong = f"min is {policy.goodput.min} and max is {scenario.deepest_gamma}"
        yield path, wrong, "min up to max (gamma, where no max is given)"
    if speculation.confidence_stop and speculation.method != "draft_model":
        wrong = f"does not apply to method {speculation.method}, which drafts in one go"
        yield ("speculation", "confidence_stop"), wrong, "only to `method: draft_model`"


def _or_a_rule(path: Path_, block: AcceptanceBlock, gamma: int, deepest: int) -> str:
    """Name the other ways out of too few positions; what is replayed has no rule."""
    for index, part in enumerate(block.mixture or ()):
        if part.covers(gamma) < deepest:
            return _or_a_rule((*path, "mixture", str(index)), part, gamma, deepest)
    if block.kind not in block.belongs["extend"]:
        return "or a smaller γ"
    return f"a smaller γ, or a rule: `--set {'.'.join(path)}.extend=last_ratio`"


def _acceptance(scenario: Scenario) -> Iterator[Contradiction]:
    gamma, deepest = scenario.gamma, scenario.deepest_gamma
    blocks: list[tuple[Path_, AcceptanceBlock | None]]
    blocks = [(("speculation", "acceptance"), scenario.speculation.acceptance)]
    blocks += [
        (("workload", "classes", kind.name, "acceptance"), kind.acceptance)
        for kind in scenario.workload.classes
        if kind.acceptance is not None
    ]
    own = scenario.workload.classes and all(kind.acceptance for kind in scenario.workload.classes)
    for path, block in blocks:
        if block is None:
            if gamma and not own:
                yield path, "is missing", "how many tokens are kept: `{alpha: 0.7}`"
            continue
        covered = block.covers(gamma)
        if covered < deepest:
            by = f"gamma is {gamma}" if deepest == gamma else f"the policy may choose γ {deepest}"
            wrong = f"states {covered:g} draft positions and {by}"
            others = _or_a_rule(path, block, gamma, deepest)
            yield (*path, block.kind), wrong, f"{deepest} positions, {others}"
        yield from _ranks(scenario, (*path, block.kind), block)
        yield from _replayed(scenario, path, block)
        tau, measured = block.acceptance_length, block.at_gamma or gamma
        if gamma and tau is not None and tau > measured + 1:
            wrong = f"{tau:g} tokens per round with {measured} drafted"
            yield (
                (*path, block.kind),
                wrong,
                f"at most γ + 1 = {measured + 1}, bonus token included",
            )


def _ranks(scenario: Scenario, path: Path_, block: AcceptanceBlock) -> Iterator[Contradiction]:
    paths = scenario.speculation.tree_paths
    if block.ranks is not None and paths:
        widest = 1 + max(max(node) for node in paths)
        if widest > len(block.ranks):
            wrong = f"states {len(block.ranks)} ranks and the tree has nodes of rank {widest}"
            yield path, wrong, f"{widest} numbers, or a narrower tree"
    elif block.ranks is not None and scenario.speculation.tree is None:
        wrong = f"does not apply to method {scenario.speculation.method}"
        yield path, wrong, "only to `method: tree`"
    if scenario.speculation.proposal_lengths and (
        block.kind.startswith("recorded") or block.concentration
    ):
        what = "a spread of alpha" if block.concentration else "a record of accepted lengths"
        wrong = f"{what} does not say how it goes with proposal_lengths"
        yield path, wrong, "`unconditional` or `histogram`, of all rounds that draft"


def _replayed(scenario: Scenario, path: Path_, block: AcceptanceBlock) -> Iterator[Contradiction]:
    """Refuse a record, one sequence of rounds, beside anything that draws requests or rounds."""
    where = (*path, block.kind)
    for part in block.mixture or (block,):
        if not part.kind.startswith("recorded"):
            continue
        if block.mixture:
            yield where, "replays one record in order, and a mixture draws its kinds", _law(part)
        elif scenario.workload.accepts_by_class:
            yield where, "replays one record in order, and classes have their own laws", _law(part)
        elif scenario.speculation.draft_probability < 1:
            yield where, "replays every round, and draft_probability leaves some out", "one of them"


def _law(block: AcceptanceBlock) -> str:
    """Give the law of a record as a block of its own, where that is short."""
    counts = Counter(block.recorded or ())
    if not counts or max(counts) > 16:
        return "its `histogram`"
    return f"`histogram: {[counts[kept] for kept in range(max(counts) + 1)]}`, its law"


def _lengths(scenario: Scenario) -> Iterator[Contradiction]:
    workload = scenario.workload
    from_file = workload.arrivals.trace or workload.lengths
    stated = [("prompt_tokens", scenario.prompt_tokens), ("output_tokens", scenario.output_tokens)]
    for name, lengths in stated:
        if lengths.trace and not from_file:
            given = getattr(workload, name) is not None
            wrong = "is `trace` and there is no trace" if given else "is missing"
            yield ("workload", name), wrong, "a length such as `128`, or `arrivals: {trace: FILE}`"
    for kind in () if from_file else workload.classes:
        for name in ("prompt_tokens", "output_tokens"):
            if (own := getattr(kind, name)) is not None and own.trace:
                own_path = ("workload", "classes", kind.name, name)
                yield own_path, "is `trace` and there is no trace", "a length such as `128`"
    used = [scenario.prompt_tokens, scenario.output_tokens]
    used += [own for kind in workload.classes if (own := kind.prompt_tokens) is not None]
    used += [own for kind in workload.classes if (own := kind.output_tokens) is not None]
    if workload.lengths and not any(lengths.trace for lengths in used):
        yield ("workload", "lengths"), "is read by no lengths", "`output_tokens: trace`"
    outputs: list[tuple[Path_, Lengths]]
    outputs = [(("workload", "output_tokens"), scenario.output_tokens)]
    outputs += [
        (("workload", "classes", kind.name, "output_tokens"), kind.output_tokens)
        for kind in workload.classes
        if kind.output_tokens is not None
    ]
    for path, lengths in outputs:
        if lengths.smallest is not None and lengths.smallest < 1:
            yield path, "a request of 0 output tokens", "at least 1"
    unpriced = scenario.target.prefill is None and scenario.target.round.kind == "constant"
    if unpriced and _has_prompts(scenario):
        wrong = "is missing: requests have prompts and a constant round cannot price them"
        yield ("target", "prefill"), wrong, "`prefill: {per_token: 20 us}`"


def _has_prompts(scenario: Scenario) -> bool:
    own = [kind.prompt_tokens for kind in scenario.workload.classes]
    return any(lengths and lengths.fixed != 0 for lengths in (scenario.prompt_tokens, *own))


def _budget(scenario: Scenario) -> Iterator[Contradiction]:
    budget = scenario.scheduler.max_num_batched_tokens
    width = max(scenario.verify_width, scenario.deepest_gamma + 1)
    if budget < width:
        wrong = f"{budget} tokens, and one round of one sequence may take γ + 1 = {width}"
        yield ("scheduler", "max_num_batched_tokens"), wrong, f"at least {width}"
    longest = scenario.prompt_tokens.largest
    if not scenario.scheduler.chunked_prefill and longest is not None and longest > budget:
        wrong = f"{budget} tokens, and prompts of {longest} are not chunked"
        right = f"at least {longest}, or `chunked_prefill: true`"
        yield ("scheduler", "max_num_batched_tokens"), wrong, right
