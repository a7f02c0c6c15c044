"""Results of serving benchmarks as measured points: which of their times is a round, which a token.

The readers of `importers` have put the tools' names right already: `round_s` is vLLM's ITL and
SGLang's ITL · accept length, `token_s` is without TTFT (guidellm's inter-token latency) and rebuilt
where a tool reports it wrongly (inference-perf).
"""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

from specplan.models.diagnosis import Warned
from specplan.scenarios.importers.costs_points import Point, completed

if TYPE_CHECKING:
    from specplan.scenarios.importers.evidence import Evidence

#: ITL/TPOT up to which a run is plain decoding: every chunk is one token.
ONE_TOKEN = 1.05


def is_plain(evidence: Evidence) -> bool | None:
    """Return whether the run decoded plainly, None where nothing in the file tells.

    It says so, or its chunks are single tokens.
    """
    if evidence.gamma == 0:
        return True
    if evidence.says_acceptance:
        return False
    latency = evidence.latency
    if latency.round_s and latency.token_s and "vllm" in evidence.source.kind:
        return latency.round_s <= ONE_TOKEN * latency.token_s
    return None


def point_of(evidence: Evidence, *, baseline: bool = False) -> Point | None:
    """Return the measured point of one run, None where it holds no time of a token or a round.

    γ = 0 for plain decoding, which `baseline` states where the file does not. The batch is the
    concurrency, 1 where it is not stated.
    """
    latency = evidence.latency
    if latency.round_s is None and latency.token_s is None:
        return None
    source = evidence.source
    plain = baseline or is_plain(evidence) is True
    gamma = 0 if plain else evidence.gamma
    tau = 1.0 if plain else evidence.tokens_per_round
    label, variant = _label(evidence)
    where = ", ".join(filter(None, (source.kind, source.where, variant)))
    drafted = None
    if evidence.drafted_tokens and evidence.drafting_rounds:
        rounds = evidence.drafting_rounds + (evidence.draftless_rounds or 0.0)
        drafted = evidence.drafted_tokens / rounds
    round_s = latency.round_s
    if plain and latency.token_s:
        round_s = latency.token_s
    return completed(
        Point(
            f"{PurePath(source.file).name} ({where})",
            label=label,
            gamma=gamma,
            batch=max(latency.concurrency or 1.0, 1.0),
            tokens_per_round=tau,
            round_s=round_s,
            token_s=latency.token_s,
            drafted_per_round=0.0 if plain else drafted or gamma,
            draft_s=latency.draft_round_s,
            draft_step_s=latency.draft_step_s,
            verify_s=latency.verify_round_s,
            ttft_s=latency.ttft_s,
            acceptance_rate=evidence.acceptance_rate,
            unconditional=evidence.unconditional,
            warnings=_warnings(evidence),
        )
    )


def _label(evidence: Evidence) -> tuple[str, str]:
    """Return what the run is compared within, and its name there.

    AMUSD's labels are strategies on one machine, of which one drafts on a second GPU meanwhile;
    llama.cpp collections write platform, backend and then the method.
    """
    if evidence.source.kind == "amusd":
        return ("parallel" if evidence.label == "amusd" else ""), ""
    if evidence.source.kind == "llamacpp-timings":
        label, _, variant = evidence.label.rpartition(" ")
        return label, variant
    return evidence.label, ""


def _warnings(evidence: Evidence) -> tuple[Warned, ...]:
    found = []
    latency = evidence.latency
    if latency.concurrency is None:
        found.append(Warned("batch_unknown", "the file states no concurrency: batch 1 is assumed"))
    if latency.statistic != "mean":
        says = f"times are {latency.statistic}s: τ · time per token is only about a round"
        found.append(Warned("not_means", says))
    return tuple(found)
