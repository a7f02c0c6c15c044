"""`specplan memory`: what fits on the GPUs of one engine, and what the draft costs there."""

from __future__ import annotations

import copy
from math import ceil
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.text import Text

from specplan.results import store
from specplan.results.answer import Answer
from specplan.results.inputs import evidence
from specplan.results.memory.parts import SPECULATION, held
from specplan.results.tables import bars, columns, facts, heading, percent
from specplan.scenarios.errors import Fault, ScenarioError
from specplan.scenarios.load import load, validated
from specplan.scenarios.offered import offered
from specplan.scenarios.source import Source

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from specplan.models.memory import GpuShare, Memory
    from specplan.results.memory.parts import Held
    from specplan.scenarios.schema import Scenario

USUAL_CONTEXT = 8192
GB = 1e9
# What the options and --set are about where no scenario is named: costs play no part in memory.
_BARE: dict[str, Any] = {
    "name": "one engine",
    "target": {"round": "1 ms"},
    "speculation": {"method": "draft_model", "gamma": 0, "acceptance": {"alpha": 0.7}},
    "workload": {"arrivals": {"streams": 1}, "output_tokens": 1},
    "scheduler": {"max_num_seqs": 1},
}


def memory_answer(
    name: str | None = None,
    *,
    contexts: Sequence[int] = (),
    sets: Sequence[str] = (),
    html: Path | None = None,
    force: bool = False,
) -> Answer:
    """Say how many sequences fit, plain and with the draft; `html` gets a page with the bar.

    The exit code is 1 where not one sequence of a length fits. Raises ScenarioError: no kv_cache, a
    GPU or model that is not known, weights that leave nothing.
    """
    if html is not None:
        store.check_file(html, force=force)
    if wrong := [one for one in contexts if one < 1]:
        raise ScenarioError(Fault(f"is {wrong[0]}", "1 token or more", field="--context"))
    scenario = load(name, sets) if name else _bare(sets)
    found = held(scenario)
    if not found:
        right = "`kv_cache: {model: config.json}` with `target: {gpu: h100-sxm}`, or `tokens`"
        raise ScenarioError(Fault("there is no kv_cache, so no limit", right, field=scenario.name))
    lengths = list(contexts) or [_usual(scenario) if name else USUAL_CONTEXT]
    fits = [_fits(found, tokens, scenario.gamma) for tokens in lengths]
    value = {
        "scenario_name": scenario.name,
        "gpus": scenario.cluster.gpus_per_replica,
        "lookahead_tokens": scenario.gamma,
        "ways": [_way(one) for one in found],
        "max_concurrency": fits,
        "draft_costs": _draft_costs(found),
        "evidence": evidence(scenario).get("kv_cache", "stated by the scenario"),
    }
    notes = []
    if html is not None:
        store.write_text(html, _page(value, found), force=force)
        notes.append(f"written to {html}: open it in a browser")
    none = any(0 in row.values() for row in fits)
    return Answer(value, _text(value, found, scenario), notes, 1 if none else 0)


def _bare(sets: Sequence[str]) -> Scenario:
    if not sets:
        right = "a scenario with kv_cache, or `--gpu h100-sxm --model config.json`"
        raise ScenarioError(Fault("nothing says whose memory", right))
    return validated(Source("", copy.deepcopy(_BARE)), sets)


def _usual(scenario: Scenario) -> int:
    load = offered(scenario)
    return max(1, ceil(load.prompt_tokens + load.output_tokens))


def _way(one: Held) -> dict[str, Any]:
    """Give one way to decode as plain JSON, sizes in bytes of the fullest GPU."""
    memory = one.pool.memory if one.pool else None
    return {
        "name": one.name,
        "blocks": one.pool.blocks if one.pool else 0,
        "block_tokens": one.pool.block_tokens if one.pool else None,
        "kv_tokens": one.pool.tokens if one.pool else 0,
        "bytes": {name.lower().replace(" ", "_"): size for name, size in one.parts.items()},
        "kv_bytes_per_token": _fullest(memory).kv_bytes_per_token if memory else None,
        "limiting_gpu": memory.limiting_gpu if memory else None,
        "usable_bytes": _fullest(memory).usable_bytes if memory else None,
        "refused": one.refused or None,
    }


def _fullest(memory: Memory) -> GpuShare:
    return memory.shares[memory.limiting_gpu]


def _fits(found: Sequence[Held], context: int, lookahead: int) -> dict[str, int]:
    """Count the sequences of a length that fit at once; a round writes γ slots beyond them."""
    at_once = {"context": context}
    for one in found:
        ahead = lookahead if one.name == SPECULATION else 0
        key = one.name.replace(" ", "_")
        at_once[key] = one.pool.max_concurrency(context, ahead) if one.pool else 0
    return at_once


def _draft_costs(found: Sequence[Held]) -> dict[str, Any] | None:
    """Compare both ways: tokens that no longer fit, and how full an engine may be told to run.

    An engine that sizes its cache from the target alone still loads the draft: it needs the draft's
    weights beyond its share, so its utilization must stay below 1 − draft/memory of the GPU.
    """
    plain, drafting = found[0].pool, found[-1].pool
    if len(found) < 2 or plain is None or drafting is None:
        return None
    lost = plain.tokens - drafting.tokens
    memory, parts = drafting.memory, found[-1].parts
    weights = parts.get("draft")
    return {
        "weights_bytes": weights,
        "kv_tokens": lost,
        "kv_share": lost / plain.tokens if plain.tokens else None,
        "utilization_if_not_counted": 1 - weights / memory.gpu_bytes
        if memory and weights
        else None,
    }


def _text(value: dict[str, Any], found: Sequence[Held], scenario: Scenario) -> Group:
    parts: list[RenderableType] = [Text(_verdict(value, scenario), style="bold")]
    if found[0].parts:
        names = [part for part in found[0].parts if any(one.parts.get(part) for one in found)]
        rows = [(part, *(_gb(one.parts.get(part)) for one in found)) for part in names]
        where = "a GPU" if "target" in names else "the KV cache"
        parts += [Text(), columns((f"GB of {where}", *(one.name for one in found)), rows)]
    rows = [
        ("tokens of KV cache", *(f"{way['kv_tokens']:,}" for way in value["ways"])),
        *(
            (
                f"sequences of {row['context']:,}",
                *(f"{row[key]:,}" for key in row if key != "context"),
            )
            for row in value["max_concurrency"]
        ),
    ]
    parts += [Text(), columns(("at once", *(one.name for one in found)), rows)]
    for one in found:
        if one.parts:
            total = sum(one.parts.values())
            parts += [heading(one.name.capitalize())]
            parts.append(bars([(n, b, f"{_gb(b)} GB", percent(b / total)) for n, b in
                               one.parts.items() if b]))  # fmt: skip
    return Group(*parts, Text(), facts(_facts(value, found, scenario.scheduler.max_num_seqs)))


def _gb(size: float | None) -> str:
    return f"{size / GB:,.2f}" if size else ""


def _verdict(value: dict[str, Any], scenario: Scenario) -> str:
    says = []
    for row in value["max_concurrency"]:
        plain, drafting = row["plain_decoding"], row.get(SPECULATION)
        many = "sequence" if plain == 1 else "sequences"
        text = f"{plain:,} {many} of {row['context']:,} tokens fit at once"
        if drafting is not None:
            text += f", {drafting:,} with the draft"
        says.append(text)
    return f"{scenario.name}: {'; '.join(says)}"


def _facts(
    value: dict[str, Any], found: Sequence[Held], max_num_seqs: int
) -> list[tuple[str, str]]:
    rows = [("With the draft", one.refused) for one in found if one.refused]
    costs = value["draft_costs"]
    if costs:
        weights = costs["weights_bytes"]
        says = f"{_gb(weights)} GB of weights and " if weights else ""
        says += f"its keys and values take {costs['kv_tokens']:,} tokens"
        if costs["kv_share"] is not None:
            says += f", {percent(costs['kv_share'])} of the cache"
        rows.append(("The draft costs", says))
    memory = found[-1].pool.memory if found[-1].pool else None
    if memory is not None and len({share.kv_tokens for share in memory.shares}) > 1:
        says = f"GPU {memory.limiting_gpu} of 0 to {len(memory.shares) - 1} limits all pools"
        rows.append(("Fullest GPU", says))
    if costs and costs["utilization_if_not_counted"]:
        most = percent(costs["utilization_if_not_counted"])
        says = f"an engine that sizes its cache without the draft runs out of it above {most}"
        rows.append(("GPU memory", says))
    rows += [
        (f"Token, {way['name']}", f"{way['kv_bytes_per_token']:,.0f} bytes a GPU")
        for way in value["ways"]
        if way["kv_bytes_per_token"]
    ]
    if memory is not None:
        rows += _bounds(memory, max_num_seqs)
    return [*rows, ("Numbers are", value["evidence"])]


def _bounds(memory: Memory, max_num_seqs: int) -> list[tuple[str, str]]:
    """Name what the tokens of the pool, which a simulation runs with, leave out or take off."""
    models = [one for one in (memory.target, memory.draft) if one is not None]
    rows = []
    if any(layer.attention.window for model in models for layer in model.layers):
        says = "the tokens of the pool are as if every layer kept all; sequences at once are exact"
        rows.append(("Sliding window", says))
    if any(model.state_bytes() for model in models):
        says = f"those of max_num_seqs = {max_num_seqs} sequences are taken off the pool"
        rows.append(("Recurrent states", says))
    return rows


def _page(value: dict[str, Any], found: Sequence[Held]) -> str:
    from specplan.results.export import Section, page
    from specplan.results.figures.memory import memory_bar

    header = ("tokens of a sequence", *(one.name for one in found))
    rows = tuple(
        tuple(f"{number:,}" for number in row.values()) for row in value["max_concurrency"]
    )
    sections = [Section("Sequences at once", table=(header, *rows))]
    figure = memory_bar(found)
    if figure is not None:
        sections.append(Section("Where the memory goes", figure=figure))
    name = value["scenario_name"]
    return page(f"{name}: memory of one engine", f"Numbers are {value['evidence']}.", sections)
