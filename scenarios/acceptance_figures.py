"""From `name=text` pairs to `models.evidence.Evidence`: the input side of `acceptance convert`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

from specplan.models.counts import Counts, Warned
from specplan.models.evidence import Evidence
from specplan.models.extrapolation import Rule
from specplan.models.statements import ENGINES, LENGTHS, LISTS, SHARES, Figure
from specplan.scenarios.acceptance_lists import SWEEPS, from_counts_per_position, from_sweeps
from specplan.scenarios.engines import engine_name
from specplan.scenarios.errors import Fault, ScenarioError, by_nearness, nearest
from specplan.scenarios.shares import (
    read_count,
    read_counts,
    read_number,
    read_share,
    read_shares,
    read_whole,
    shown,
)
from specplan.scenarios.units import UnitError, parse_duration

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SHARE_NAMES = (*SHARES, "rate")
LENGTH_NAMES = (*LENGTHS, "length")
LIST_NAMES = (*LISTS, "positions")
COUNT_NAMES = ("accepted", "drafted", "drafts", "emitted", "requests")
COUNT_LISTS = ("histogram", "accepted_per_position", "drafted_per_position")
TIMES = ("itl", "tpot", "speedup", "round_cost", "tokens_per_s")
MIXTURE = ("speedups", "token_shares")
PLAIN = ("gamma", "block_size", "engine", "fill", "dataset", "batch", "draft_probability")

LARGEST = 1e9
"""Largest ratio or speed that is taken, and its inverse the smallest: beyond is a slip."""

_READ = (PLAIN, LENGTH_NAMES, SHARE_NAMES, LIST_NAMES, COUNT_NAMES, COUNT_LISTS, SWEEPS, TIMES)
NAMES: tuple[str, ...] = sum(_READ, ()) + MIXTURE
"""Every name that can be stated, in the order in which help shows them."""


@dataclass(frozen=True)
class Stated:
    """Evidence, what its text needed to be warned about, and the figures that are no acceptance.

    speedup over plain decoding, round_cost = R/T, tokens_per_s of one stream, batch of sequences
    that an engine keeps in step; None if not stated. draft_probability: share of rounds that draft.
    """

    evidence: Evidence
    warnings: tuple[Warned, ...] = ()
    speedup: float | None = None
    round_cost: float | None = None
    tokens_per_s: float | None = None
    dataset: str | None = None
    batch: int | None = None
    draft_probability: float = 1.0


def stated_texts(arguments: Sequence[str]) -> tuple[dict[str, str], str | None]:
    """Split command-line words into name → text, and the scenario named among them, if any.

    A figure is `--gamma 4`, `--gamma=4` or `gamma=4`; what is neither is a scenario.
    Raises ScenarioError for an option without a value and for what is stated twice.

    >>> stated_texts(["--gamma", "4", "acceptance-length=3.3"])
    ({'gamma': '4', 'acceptance_length': '3.3'}, None)
    """
    texts: dict[str, str] = {}
    scenarios: list[str] = []
    words = iter(arguments)
    for word in words:
        name, equals, text = word.removeprefix("--").partition("=")
        if word.startswith("--") and not equals:
            text = next(words, "--")
            if text.startswith("--"):
                raise ScenarioError(Fault("has no value", f"{word} VALUE", field=word))
        elif not equals:
            scenarios.append(word)
            continue
        name = name.replace("-", "_")
        if name in texts:
            wrong = f"is stated twice, as {texts[name]} and {text}"
            raise ScenarioError(Fault(wrong, "once", field=name))
        texts[name] = text
    if len(scenarios) > 1 or (scenarios and texts):
        wrong = f"`{scenarios[-1]}` is a scenario beside other input"
        raise ScenarioError(Fault(wrong, "one scenario, or figures as --name VALUE"))
    return texts, scenarios[0] if scenarios else None


def read_stated(texts: Mapping[str, str]) -> Stated:
    """Read what somebody states; raises ScenarioError with every fault found.

    >>> read_stated({"length": "3.72", "gamma": "3"}).evidence.figures
    {'length': Figure(value=3.72, rounding=0.005)}
    """
    unknown = [name for name in texts if name not in NAMES]
    if unknown:
        raise ScenarioError([Fault("is no acceptance figure", _hint(n), field=n) for n in unknown])
    gamma = _gamma(texts)
    warnings: list[Warned] = []
    figures: dict[str, Figure] = {}
    for name in texts:
        if name in LENGTH_NAMES:
            figures[name] = read_number(texts[name], name)
        elif name in SHARE_NAMES:
            figures[name], found = read_share(texts[name], name)
            warnings += found
    times = {name: _positive(texts[name], name) for name in TIMES[2:] if name in texts}
    engine = engine_name(texts["engine"], ENGINES) if "engine" in texts else None
    figures |= _from_times(texts, times, engine, warnings)
    lists = {name: _shares(texts[name], name, warnings) for name in LIST_NAMES if name in texts}
    lists |= from_counts_per_position(texts)
    lists |= from_sweeps(texts, warnings)
    counts = {name: read_count(texts[name], name) for name in COUNT_NAMES if name in texts}
    try:
        evidence = Evidence(
            gamma=gamma,
            figures=figures,
            lists=lists,
            histogram=read_counts(texts["histogram"], "histogram")
            if "histogram" in texts
            else None,
            counts=Counts(**counts),
            engine=engine,
            fill=_one_of(texts, "fill", get_args(Rule)),
        )
    except ValueError as error:
        raise ScenarioError(Fault(str(error), field="counts")) from error
    batch = read_whole(texts["batch"], "batch") if "batch" in texts else None
    _positive(texts.get("batch", "1"), "batch")
    if counts and "draft_probability" in texts:
        right = "counters alone: drafts, and emitted for all rounds"
        raise ScenarioError(Fault("is stated beside counters", right, field="draft_probability"))
    share, found = read_share(texts.get("draft_probability", "1"), "draft_probability")
    return Stated(
        evidence,
        (*warnings, *found),
        **times,
        dataset=texts.get("dataset"),
        batch=batch,
        draft_probability=share.value,
    )


def read_mixture(texts: Mapping[str, str]) -> tuple[list[float], list[float] | None]:
    """Read the speedups of several kinds of text and their shares of the tokens.

    Raises ScenarioError when other figures stand beside them.

    >>> read_mixture({"speedups": "9.84,1.003", "token_shares": "10%,90%"})
    ([9.84, 1.003], [0.1, 0.9])
    """
    others = sorted(texts.keys() - set(MIXTURE))
    if others or "speedups" not in texts:
        wrong = "speedups of kinds of text stand alone with token_shares"
        raise ScenarioError(Fault(wrong, "speedups=2.1,1.1 token_shares=.4,.6", field="speedups"))
    parts = [part for part in re.split(r"[,\s]+", texts["speedups"].strip()) if part]
    speedups = [_positive(part, "speedups") for part in parts]
    if "token_shares" not in texts:
        return speedups, None
    return speedups, [f.value for f in read_shares(texts["token_shares"], "token_shares")[0]]


def _hint(name: str) -> str:
    close = nearest(name, NAMES)
    return f"did you mean {close}?" if close else f"one of {', '.join(by_nearness(name, NAMES))}"


def _one_of(texts: Mapping[str, str], name: str, valid: tuple[str, ...]) -> Any:
    if name in texts and texts[name] not in valid:
        raise ScenarioError(
            Fault(shown(texts[name]), " | ".join(by_nearness(texts[name], valid)), field=name)
        )
    return texts.get(name)


def _gamma(texts: Mapping[str, str]) -> int | None:
    gamma = read_whole(texts["gamma"], "gamma") if "gamma" in texts else None
    if "block_size" not in texts:
        return gamma
    block = read_whole(texts["block_size"], "block_size")
    if block < 1 or (gamma is not None and gamma != block - 1):
        wrong = f"{block} is the verify width and means gamma {block - 1}"
        right = "at least 1" if gamma is None else f"gamma {gamma} is stated too: drop one"
        raise ScenarioError(Fault(wrong, right, field="block_size"))
    return block - 1


def _positive(text: str, name: str) -> float:
    value = read_number(text, name).value
    if value <= 0:
        raise ScenarioError(Fault(f"{shown(text)} is not above 0", "a positive number", field=name))
    if not 1 / LARGEST <= value <= LARGEST:
        right = f"from {1 / LARGEST:g} to {LARGEST:g}"
        raise ScenarioError(Fault(f"{shown(text)} is out of any range", right, field=name))
    return value


def _shares(text: str, name: str, warnings: list[Warned]) -> tuple[Figure, ...]:
    figures, found = read_shares(text, name)
    warnings += found
    return figures


def _from_times(
    texts: Mapping[str, str],
    times: Mapping[str, float],
    engine: str | None,
    warnings: list[Warned],
) -> dict[str, Figure]:
    """τ from clocks: ITL/TPOT, or speedup × round cost.

    vLLM streams one chunk a round and its ITL is the gap between chunks; SGLang divides that gap by
    the tokens of the chunk, so that its ITL is about its TPOT at any τ (FORMATS.md A3, A7).
    """
    found = {}
    if "itl" in texts or "tpot" in texts:
        if not {"itl", "tpot"} <= texts.keys():
            missing = "tpot" if "itl" in texts else "itl"
            raise ScenarioError(
                Fault("is missing", "itl and tpot together give tokens per round", field=missing)
            )
        if engine == "sglang":
            wrong = (
                "SGLang divides the gap between chunks by their tokens: no tokens per round in it"
            )
            raise ScenarioError(Fault(wrong, "its accept len, as acceptance_length", field="itl"))
        if engine is None:
            told = (
                "itl/tpot is tokens per round where ITL is the gap between chunks, as in vLLM;"
                " SGLang's is that gap divided by the tokens"
            )
            warnings.append(("itl_is_a_round", told))
        itl, tpot = (_duration(texts[name], name) for name in ("itl", "tpot"))
        relative = itl.rounding / itl.value + tpot.rounding / tpot.value
        tau = itl.value / tpot.value
        found["itl/tpot"] = Figure(tau, tau * relative)
    if {"speedup", "round_cost"} <= times.keys():
        tau = times["speedup"] * times["round_cost"]
        found["speedup*round_cost"] = Figure(tau, 0.01 * tau)
    return found


def _duration(text: str, name: str) -> Figure:
    """Read a duration as ms; bare numbers are ms, as benchmarks print ITL and TPOT."""
    match = re.fullmatch(r"\s*([0-9.]+)\s*([a-zµμ]*)\s*", text)
    number = read_number(match[1] if match else text, name)
    unit = match[2] if match else ""
    try:
        scale = parse_duration(f"1 {unit or 'ms'}") / parse_duration("1 ms")
    except UnitError as error:
        raise ScenarioError(Fault(error.wrong, error.right, field=name)) from error
    if number.value <= 0:
        raise ScenarioError(Fault(f"{shown(text)} is not above 0", "a measured time", field=name))
    return Figure(number.value * scale, number.rounding * scale)
