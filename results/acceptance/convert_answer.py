"""`specplan acceptance convert`: any acceptance figure in, all others out, each reading named."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from rich.text import Text

from specplan.models.evidence import Evidence
from specplan.models.extrapolation import extrapolate
from specplan.models.long_run import tokens_per_synchronized_round
from specplan.models.mixing import mixed_speedup
from specplan.models.quantities import quantities
from specplan.models.readings import Reading, interpret
from specplan.models.statements import Figure
from specplan.results.acceptance.convert_text import convert_text
from specplan.results.answer import Answer
from specplan.scenarios.acceptance_figures import (
    MIXTURE,
    Stated,
    read_mixture,
    read_stated,
    stated_texts,
)
from specplan.scenarios.errors import Fault, ScenarioError
from specplan.scenarios.extrapolated import remarks
from specplan.scenarios.load import load
from specplan.scenarios.synthetic import wanted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from specplan.scenarios.schema import Scenario

RANDOM_TEXT_FACTOR = 1.23
"""SPEED-Bench: random-token prompts overestimate speculative throughput by about 23 %."""

RANDOM_DATASETS = ("random", "synthetic", "random_ids", "sonnet")

_SETTLES = {
    "length": "whether it counts the bonus token: accepted/drafted, counts or a per-position list"
    " of the same run settles it",
    "rate": "what was divided by what: counts (accepted, drafted, drafts), or the acceptance"
    " length of the same run with gamma, settles it",
    "positions": "whether each rate is given that the one before was accepted: the acceptance"
    " length of the same run settles it",
}


def convert_answer(texts: Mapping[str, str]) -> Answer:
    """Turn stated figures (`acceptance_figures.NAMES` → text) into every quantity of MODEL.md §2.

    With one reading left the object holds its quantities; with several, `ambiguous` is true and
    `readings` lists the quantities under each, the usual one first, with what would settle it.
    Raises ScenarioError for contradictions (both numbers shown) and for impossible figures.

    >>> convert_answer({"conditional": ".85,.78,.72,.65"}).json["acceptance_length"]
    3.300644
    """
    if MIXTURE[0] in texts or MIXTURE[1] in texts:
        return _mixture_answer(texts)
    stated = read_stated(texts)
    _refuse_speedup_alone(stated)
    return _answer(stated)


def convert_words_answer(words: Sequence[str], sets: Sequence[str] = ()) -> Answer:
    """Answer the words of a command line: figures, or one scenario with `PATH=VALUE` settings.

    >>> convert_words_answer(["toy-20ms"], ["speculation.gamma=3"]).json["acceptance_length"]
    1.875
    """
    texts, scenario = stated_texts(words)
    if scenario is not None:
        return convert_scenario_answer(load(scenario, sets))
    if sets:
        raise ScenarioError(Fault("changes a scenario, and none is named", "", field="--set"))
    return convert_answer(texts)


def convert_scenario_answer(scenario: Scenario) -> Answer:
    """Turn the acceptance of a scenario, pooled over its requests, into every quantity.

    >>> from specplan.scenarios.load import load
    >>> convert_scenario_answer(load("toy-20ms")).json["acceptance_length"]
    1.75
    """
    what = wanted(scenario)
    listed = tuple(Figure(float(rate)) for rate in what.unconditional)
    evidence = Evidence(gamma=what.gamma, lists={"scenario": listed})
    answer = _answer(Stated(evidence, draft_probability=what.draft_probability))
    notes = [*answer.notes, *what.left_out, *remarks(scenario, what.gamma)]
    return replace(answer, notes=notes)


def _mixture_answer(texts: Mapping[str, str]) -> Answer:
    """Speedups of several kinds of text into the one to plan with."""
    speedups, shares = read_mixture(texts)
    try:
        mixed = mixed_speedup(speedups, shares)
    except ValueError as error:
        raise ScenarioError(Fault(str(error), field="speedups")) from error
    by = "equal" if shares is None else "the stated"
    text = Text(
        f"speedup {mixed.token_weighted:.4g} for {by} shares of tokens (times add)\n"
        f"worst kind {mixed.worst:.4g}; geometric mean {mixed.geometric_mean:.4g} and arithmetic"
        f" mean {mixed.arithmetic_mean:.4g} ignore how many tokens each kind has"
    )
    return Answer({"speedups": speedups, "token_shares": shares, **asdict(mixed)}, text)


def _answer(stated: Stated) -> Answer:
    try:
        readings = interpret(stated.evidence)
    except ValueError as error:
        raise ScenarioError(Fault(str(error.args[0]))) from error
    rows = [_row(reading, stated) for reading in readings]
    if len(rows) == 1:
        json: dict[str, Any] = {"ambiguous": False, **rows[0]}
    else:
        json = {
            "ambiguous": True,
            "usual_reading": rows[0]["reading"],
            "settle_with": _settle(readings, stated.evidence.engine),
            "readings": rows,
        }
    return Answer(json, convert_text(rows), _notes(rows, json))


def _refuse_speedup_alone(stated: Stated) -> None:
    evidence = stated.evidence
    nothing = not (evidence.figures or evidence.lists or evidence.histogram or evidence.counts)
    if stated.speedup is not None and nothing:
        wrong = f"{stated.speedup:g} alone says nothing about acceptance: it contains the costs too"
        right = (
            "state round_cost (R/T, a round in plain steps) as well: tokens per round = speedup ×"
            " round_cost; (speedup − 1)/gamma is not an acceptance"
        )
        raise ScenarioError(Fault(wrong, right, field="speedup"))


def _row(reading: Reading, stated: Stated) -> dict[str, Any]:
    row: dict[str, Any] = {
        "reading": dict(reading.chosen),
        **quantities(reading, stated.draft_probability),
        "disagreement": reading.disagreement,
        "extrapolation": (further := _extrapolation(reading, stated)),
        "acceptance_block": _block(reading, further),
    }
    tau = row["tokens_per_round"]
    if tau is not None:
        row |= _clock_figures(tau, stated)
    if stated.batch and reading.unconditional is not None:
        slowest, fastest = tokens_per_synchronized_round(reading.unconditional, stated.batch)
        row |= {"tokens_per_round_in_step": float(slowest), "most_tokens_in_step": float(fastest)}
    warnings = [*stated.warnings, *reading.warnings, *_own_warnings(reading, row, stated)]
    row["missing"] = _missing(row)
    if stated.batch and reading.unconditional is None:
        row["missing"].append(
            "acceptance by position: a batch kept in step needs it (gamma, a list)"
        )
    row["warnings"] = [{"code": code, "text": text} for code, text in warnings]
    return row


def _extrapolation(reading: Reading, stated: Stated) -> dict[str, Any] | None:
    """Say what a list shorter than γ may become: τ at both ends of its band, and the warnings."""
    evidence, gamma = stated.evidence, reading.gamma
    for statement in reading.statements:
        listed = len(evidence.lists.get(statement.name, ()))
        if gamma is not None and evidence.fill and 0 < listed < gamma:
            known = statement.lists(listed)
            found = extrapolate(known, gamma, evidence.fill)
            low, _, high = found.tokens_per_round
            return {
                "stated_positions": listed,
                "rule": evidence.fill,
                "acceptance_length": [low, high],
                "warnings": list(found.warnings),
            }
    return None


def _clock_figures(tau: float, stated: Stated) -> dict[str, float]:
    """Combine τ with a clock: round cost R/T = τ/speedup, round time = τ/(tokens/s)."""
    found = {}
    if stated.speedup is not None and stated.round_cost is None:
        found["implied_round_cost_ratio"] = tau / stated.speedup
    if stated.round_cost is not None and stated.speedup is None:
        found["speedup"] = tau / stated.round_cost
    if stated.tokens_per_s is not None:
        found["round_s"] = tau / stated.tokens_per_s
    return found


def _block(reading: Reading, further: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return the `speculation.acceptance` block of a scenario that says the same."""
    if reading.acceptance_length is None or reading.unconditional is None:
        return None
    if further is not None:  # what was stated, and the rule beside it: the band goes on with it
        known = reading.unconditional[: further["stated_positions"]]
        return {"unconditional": [float(value) for value in known], "extend": further["rule"]}
    if reading.positions_from == "stated":
        return {"unconditional": [float(value) for value in reading.unconditional]}
    if reading.statements[0].reading == "alpha":
        return {"alpha": reading.statements[0].figures[0].value}
    return {"acceptance_length": reading.acceptance_length, "at_gamma": reading.gamma}


def _own_warnings(
    reading: Reading, row: Mapping[str, Any], stated: Stated
) -> list[tuple[str, str]]:
    found = []
    for name, figures in stated.evidence.lists.items():
        if reading.gamma is not None and len(figures) != reading.gamma:
            how = "cut" if len(figures) > reading.gamma else f"extended by {stated.evidence.fill}"
            text = f"{name} has {len(figures)} positions: {how} to gamma {reading.gamma}"
            found.append(("positions_changed", text))
    if row["extrapolation"]:
        low, high = row["extrapolation"]["acceptance_length"]
        text = f"extrapolated: tokens per round may lie between {low:.4g} and {high:.4g}"
        found += [("band", text)]
        found += [("extrapolation", text) for text in row["extrapolation"]["warnings"]]
    if reading.disagreement > 1e-9:
        found.append(
            (
                "figures_disagree",
                f"the figures disagree by {reading.disagreement:.1%} in tokens per round, beyond"
                f" their printed digits; {reading.statements[0]} is the one converted",
            )
        )
    if reading.acceptance_length == 1 and reading.gamma:
        found.append(
            (
                "nothing_accepted",
                "no draft token is ever accepted: speculation only costs time; 0 at every position"
                " is usually a setup error (wrong draft, tokenizer or template)",
            )
        )
    if stated.dataset is not None and stated.dataset.lower() in RANDOM_DATASETS:
        stated_tau = row["tokens_per_round"] or 1.0
        derated = max(1.0, stated_tau / RANDOM_TEXT_FACTOR)
        found.append(
            (
                "synthetic_acceptance",
                f"acceptance on {stated.dataset} text overstates real text (by about 23 % in"
                f" SPEED-Bench): plan with {derated:.3g} … {stated_tau:.3g} tokens per round",
            )
        )
    return found


def _missing(row: Mapping[str, Any]) -> list[str]:
    missing = []
    if row["acceptance_length"] is None:
        missing.append("gamma, or drafts (rounds that drafted): tokens per round needs one of them")
    elif row["gamma"] is None:
        missing.append("gamma: acceptance rate, alpha and per-position rates need it")
    if not {"speedup", "implied_round_cost_ratio"} & row.keys():
        missing.append("baseline: a speedup needs the times of a plain step and of a round")
    return missing


def _settle(readings: tuple[Reading, ...], engine: str | None) -> list[str]:
    open_names = [
        name
        for name in readings[0].chosen
        if len({reading.chosen[name] for reading in readings}) > 1
    ]
    asked = [name for name in open_names if name in _SETTLES]
    if len(readings[0].chosen) > 1 and readings[0].gamma is not None:
        return [f"{name}: the other figures fit each of them; counts settle it" for name in asked]
    beside = ", and so does --engine" if engine is None else f" ({engine} prints either)"
    return [f"{name}: {_SETTLES[name]}{beside}" for name in asked]


def _notes(rows: list[dict[str, Any]], json: Mapping[str, Any]) -> list[str]:
    told: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        for warning in row["warnings"]:
            told.setdefault(warning["text"], []).append(row)
    notes = []
    for text, under in told.items():
        readings = " or ".join(_named(row, rows) for row in under)
        notes.append(text if len(under) == len(rows) else f"{readings}: {text}")
    if json["ambiguous"]:
        notes += [f"more than one reading fits. {line}" for line in json["settle_with"]]
    return notes


def _named(row: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> str:
    """Name one reading of several by what is read differently in them."""
    return ", ".join(
        f"{name} = {chosen}"
        for name, chosen in row["reading"].items()
        if any(other["reading"].get(name) != chosen for other in rows)
    )
