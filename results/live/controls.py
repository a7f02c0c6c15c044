"""What can be moved on the live page: each slider is one field of the scenario, as in `--set`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from specplan.models.conversions import conditional_from_unconditional
from specplan.scenarios.units import (
    format_duration,
    format_rate,
    parse_duration,
    parse_fraction,
    parse_rate,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from specplan.scenarios.schema import Scenario
    from specplan.scenarios.schema_costs import CostBlock

DEEPEST = 12  # γ as far as the slider goes
POSITIONS = 8  # draft positions with a slider of their own
LARGEST = 1_000_000  # requests of one simulation, so that it fits into memory
BY_HAND = "changed on the live page"


@dataclass(frozen=True)
class Control:
    """One slider.

    - path: the field it sets, the key in the URL; `shown` of `group` alone decides which of several
      alternatives holds (α or per position; streams or rate)
    - least, most, step, start: in the unit of the slider, ms for durations
    - write: number to the text of `--set`; read: the other way, raises ValueError
    - also: further settings that go with it once it is moved
    """

    path: str
    label: str
    least: float
    most: float
    step: float
    start: float
    write: Callable[[float], str]
    read: Callable[[str], float]
    group: str = ""
    also: tuple[str, ...] = ()


def write_ms(value: float) -> str:
    """Write milliseconds as a duration.

    >>> write_ms(15.175)
    '15.175 ms'
    """
    return format_duration(float(f"{value * 1e-3:.12g}"))


def write_whole(value: float) -> str:
    """Write a whole number; raises ValueError for anything else."""
    if value != int(value):
        raise ValueError(f"{value:g} is not a whole number")
    return str(int(value))


def _read_ms(text: str) -> float:
    return float(f"{parse_duration(text) * 1e3:.12g}")


def _read_whole(text: str) -> float:
    if not text.strip().isdecimal() or len(text) > 12:
        raise ValueError(f"`{text}` is not a whole number of 0 or more")
    return float(text)


def controls(scenario: Scenario) -> tuple[Control, ...]:
    """List the sliders that mean something for a scenario, at its own values."""
    found = [*_costs(scenario), *_load(scenario)]
    if scenario.gamma:
        found += _speculation(scenario)
    return tuple(found)


def own_group(scenario: Scenario, group: str) -> str:
    """Name the alternative that a scenario itself states, or `file` for one without a slider.

    >>> from specplan.scenarios.load import load
    >>> own_group(load("toy-20ms"), "acceptance"), own_group(load("toy-20ms"), "load")
    ('alpha', 'streams')
    """
    if group == "load":
        kind = scenario.workload.arrivals.kind
        return kind if kind in ("streams", "rate") else "file"
    stated = scenario.speculation.acceptance
    return "alpha" if stated is not None and stated.kind == "alpha" else "file"


def deepest(scenario: Scenario, acceptance: str) -> int:
    """Largest γ that a kind of acceptance covers: the file's own, one α, or one a position."""
    if acceptance == "positions":
        return POSITIONS
    if acceptance == "alpha":
        return DEEPEST
    return int(min(DEEPEST, scenario.stated_positions))


def _costs(scenario: Scenario) -> list[Control]:
    found = []
    block, width = scenario.target.round, scenario.verify_width
    pass_ms = 1e3 * float(scenario.target_round().seconds(1, width))
    if scenario.gamma and scenario.speculation.method != "ngram":
        step_ms = 1e3 * float(scenario.draft_step().seconds(1, 1))
        found.append(_cost("draft.step", "Draft step", scenario.draft.step, step_ms, 3))
    if scenario.target.step is not None:
        step_ms = 1e3 * float(scenario.target_step().seconds(1, 1))
        found.append(_cost("target.step", "Plain decode step", scenario.target.step, step_ms, 2))
    found.append(_cost("target.round", "Verify pass, base", block, pass_ms, 2))
    growth_ms = 1e3 * block.linear.per_token if block.linear else 0.0
    found.append(
        _milliseconds("target.round.per_token", "Verify growth, each position", growth_ms,
                      max(4 * growth_ms, pass_ms / 100), _provenance("target.round", block))
    )  # fmt: skip
    if scenario.gamma:
        overhead_ms = 1e3 * scenario.speculation.overhead
        found.append(
            _milliseconds("speculation.overhead", "Overhead of a round", overhead_ms,
                          max(3 * overhead_ms, pass_ms / 2))
        )  # fmt: skip
    return found


def _cost(path: str, label: str, block: CostBlock, alone_ms: float, reach: float) -> Control:
    """Make the slider of a cost: its constant, the base of its sum, or what replaces a table."""
    stated = block.linear is not None or block.constant is not None
    start_ms = 1e3 * block.linear.base if block.linear else alone_ms
    return _milliseconds(
        f"{path}.base" if block.linear or path == "target.round" else path,
        label if stated else f"{label} (replaces the {block.kind})",
        start_ms,
        max(reach * start_ms, 1.0),
        _provenance(path, block),
    )


def _milliseconds(
    path: str, label: str, start: float, reach: float, also: tuple[str, ...] = ()
) -> Control:
    most = _round_up(reach)
    own = float(f"{start:.12g}")
    return Control(path, label, 0.0, most, most / 100, own, write_ms, _read_ms, also=also)


def _provenance(path: str, block: CostBlock) -> tuple[str, ...]:
    """Say that a cost moved by hand is no longer what somebody measured."""
    if block.evidence in (None, "assumed") and not block.source:
        return ()
    return (f"{path}.evidence=assumed", f"{path}.source={BY_HAND}")


def _speculation(scenario: Scenario) -> list[Control]:
    if scenario.speculation.method == "tree":
        return []
    own = scenario.acceptance(int(min(scenario.stated_positions, POSITIONS)))
    pooled = own.weight @ own.unconditional
    conditional = conditional_from_unconditional(pooled)
    alpha = scenario.speculation.acceptance
    start = alpha.alpha if alpha and alpha.alpha is not None else _equivalent_alpha(scenario)
    found = [
        Control("speculation.gamma", "γ, drafted tokens a round", 0, DEEPEST, 1,
                float(scenario.gamma), write_whole, _read_whole),
        Control("speculation.acceptance.alpha", "Acceptance α", 0.0, 1.0, 0.01, start,
                "{:.4g}".format, parse_fraction, group="acceptance:alpha"),
    ]  # fmt: skip
    for position in range(1, POSITIONS + 1):
        here = float(conditional[min(position, len(conditional)) - 1])
        found.append(
            Control(f"speculation.acceptance.conditional.{position}",
                    f"Acceptance at position {position}", 0.0, 1.0, 0.01, float(f"{here:.4g}"),
                    "{:.4g}".format, parse_fraction, group="acceptance:positions")
        )  # fmt: skip
    return found


def _equivalent_alpha(scenario: Scenario) -> float:
    from specplan.models.conversions import alpha_from_tokens_per_round

    tokens = float(scenario.acceptance(scenario.gamma).tokens_per_round(scenario.gamma))
    return float(f"{float(alpha_from_tokens_per_round(tokens, scenario.gamma)):.4g}")


def _load(scenario: Scenario) -> list[Control]:
    arrivals, seats = scenario.workload.arrivals, scenario.scheduler.max_num_seqs
    streams = float(arrivals.streams or scenario.cluster.replicas)
    rate = arrivals.rate if arrivals.rate and math.isfinite(arrivals.rate) else 1.0
    most = _round_up(4 * rate)
    requests = scenario.workload.requests or 1000
    return [
        Control("scheduler.max_num_seqs", "Batch, most sequences at once", 1,
                max(256, 2 * seats), 1, float(seats), write_whole, _read_whole),
        Control("workload.arrivals.streams", "Load: concurrent streams", 1,
                max(256.0, 4 * streams), 1, streams, write_whole, _read_whole,
                group="load:streams"),
        Control("workload.arrivals.rate", "Load: requests per second", most / 100, most,
                most / 100, rate, format_rate, parse_rate, group="load:rate"),
        Control("workload.requests", "Requests to simulate", 100,
                min(LARGEST, max(20_000, 2 * requests)), 100, float(min(requests, LARGEST)),
                write_whole, _read_whole),
    ]  # fmt: skip


def _round_up(value: float) -> float:
    """Round up to 1, 2 or 5 times a power of ten.

    >>> _round_up(60.0), _round_up(0.084)
    (100.0, 0.1)
    """
    power = 10.0 ** math.floor(math.log10(value))
    return float(f"{next(n for n in (1, 2, 5, 10) if n * power >= value * (1 - 1e-9)) * power:g}")
