"""Measurements typed as a line: `gamma=3 404.25 tok/s tau=2.8981`."""

from __future__ import annotations

import re
from dataclasses import replace
from math import isfinite
from typing import TYPE_CHECKING

from specplan.models.acceptance import tokens_per_round_from_alpha
from specplan.scenarios.errors import Fault, ScenarioError, nearest
from specplan.scenarios.importers.costs_points import AGREE, Point, completed, with_gap
from specplan.scenarios.units import UnitError, parse_duration, parse_fraction, parse_rate

if TYPE_CHECKING:
    from collections.abc import Callable

_CLOCK = re.compile(r"(?:(\d+):)?(\d+):(\d{2})(?:[.,](\d+))?")
_SPEED = re.compile(r"(?<![\w.=])([0-9][0-9.eE+]*)\s*(?:tok(?:ens)?|t)\s*/\s*s(?:ec)?(?!\w)")
_PAIR = re.compile(r"([A-Za-z_+]+)\s*=\s*((?:[^\s=]+(?:\s+(?:ns|us|µs|ms|s|min|h|%|/s)(?!\S))?))")


def parse_clock(text: str) -> float:
    """Read a duration: with a unit, or as a stopwatch shows it, with decimal point or comma.

    Raises UnitError as `units.parse_duration`.

    >>> parse_clock("3:12,19"), parse_clock("1:02:03.5"), parse_clock("20 ms")
    (192.19, 3723.5, 0.02)
    """
    found = _CLOCK.fullmatch(text.strip())
    if found is None:
        return parse_duration(text)
    hours, minutes, seconds, rest = found.groups()
    return int(hours or 0) * 3600 + int(minutes) * 60 + float(f"{seconds}.{rest or 0}")


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise UnitError(f"`{text}` is not a number", "a number") from None
    if not isfinite(value):
        raise UnitError(f"`{text}` is not finite", "a number, 0 or more")
    if value < 0:
        raise UnitError(f"`{text}` is below 0", "0 or more")
    return value


def _count(text: str) -> float:
    value = _number(text)
    if value < 1:
        raise UnitError(f"`{text}` is less than one sequence", "1 or more")
    return value


def _time(text: str) -> float:
    value = parse_clock(text)
    if value <= 0:
        raise UnitError(f"`{text}` is not a measured time", "above 0")
    return value


# Key of a line: what it is read as, and what it states.
_KEYS: dict[str, tuple[Callable[[str], float], str]] = {
    "gamma": (_number, "γ, drafted tokens of a round; 0 is plain decoding"),
    "batch": (_count, "sequences decoded together (1)"),
    "context": (_number, "cached tokens of a sequence"),
    "tau": (_number, "tokens of a round, with the bonus token"),
    "accepted_per_round": (_number, "accepted drafts of a round, without the bonus token"),
    "rate": (parse_fraction, "accepted/drafted"),
    "alpha": (parse_fraction, "iid acceptance of one position"),
    "drafted": (_number, "drafted tokens of the run"),
    "accepted": (_number, "accepted tokens of the run"),
    "tokens": (_number, "output tokens of the run"),
    "rounds": (_number, "rounds of the run"),
    "round": (_time, "time of a round"),
    "tpot": (_time, "time per output token"),
    "itl": (_time, "gap between chunks: a round in vLLM, a token in SGLang"),
    "ttft": (_time, "time to the first token"),
    "draft": (parse_clock, "one draft step; 0 for n-gram"),
    "draft_round": (parse_clock, "drafting of a whole round"),
    "verify": (_time, "one verify pass"),
    "total": (_time, "time of the whole job"),
    "offered": (parse_rate, "offered requests: 4/s"),
    "served": (parse_rate, "served requests: 2.1/s"),
    "speedup": (_number, "speedup as stated"),
}
_ALIASES = {
    "k": "gamma",
    "n_max": "gamma",
    "γ": "gamma",
    "al": "tau",
    "τ": "tau",
    "b": "batch",
    "ctx": "context",
}
_WORDS = ("label", "engine")


def parse_point(text: str) -> Point:
    """Read one line; what it does not state but implies is worked out (τ from counts, R = τ·TPOT).

    Raises ScenarioError: a key that does not exist, a number without its unit, or statements that
    contradict each other, with both values.

    >>> point = parse_point("gamma=3 404.25 tok/s tau=2.8981")
    >>> round(1e3 * point.round_s, 3)
    7.169
    """
    values, words = _statements(text)
    gamma = values.get("gamma")
    tau = _tokens_per_round(text, values)
    drafted = _drafted_per_round(text, values, tau)
    steps = drafted if drafted is not None else gamma
    draft_s = values.get("draft_round")
    if draft_s is None and "draft" in values and steps is not None:
        draft_s = values["draft"] * steps
    batch = values.get("batch", 1.0)
    token_s = values.get("tpot")
    if "speed" in values:
        token_s = _same(text, "tok/s", batch / values["speed"], "tpot", token_s)
    elif token_s is None and "total" in values and "tokens" in values:
        token_s = values["total"] / values["tokens"]
    point = Point(
        text,
        label=words.get("label", ""),
        gamma=gamma,
        batch=batch,
        context=values.get("context"),
        tokens_per_round=tau,
        round_s=values.get("round"),
        token_s=token_s,
        chunk_gap_s=values.get("itl"),
        drafted_per_round=drafted,
        draft_s=draft_s,
        draft_step_s=values.get("draft"),
        verify_s=values.get("verify"),
        ttft_s=values.get("ttft"),
        total_s=values.get("total"),
        offered_per_s=values.get("offered"),
        served_per_s=values.get("served"),
        acceptance_rate=_rate(values),
        stated_speedup=values.get("speedup"),
    )
    return completed(with_gap(point, words.get("engine", "")))


def parse_baseline(text: str) -> Point:
    """Read a plain step: a duration, a speed, or a whole line.

    >>> parse_baseline("5.264 ms").round_s, parse_baseline("50 tok/s").round_s
    (0.005264, 0.02)
    """
    line = text.strip()
    if not _SPEED.search(line) and not _PAIR.match(line):
        line = f"tpot={line}"
    try:
        point = parse_point(line if re.search(r"\b(gamma|k)\s*=", line) else f"gamma=0 {line}")
    except ScenarioError as error:
        named = [
            replace(one, wrong=one.wrong.removeprefix(f"{line}: "), field=f"--baseline {text}")
            for one in error.faults
        ]
        raise ScenarioError(named) from None
    if not point.is_baseline:
        right = "plain decoding: gamma=0, or no gamma"
        wrong = f"a baseline of γ = {point.gamma:g}"
        raise ScenarioError(Fault(wrong, right, field=f"--baseline {text}"))
    return replace(point, source=text)


def _statements(text: str) -> tuple[dict[str, float], dict[str, str]]:
    """Return numbers and words by key; everything in the line must be one of them."""
    values: dict[str, float] = {}
    words: dict[str, str] = {}
    faults: list[Fault] = []
    speed = _SPEED.search(text)
    rest = text
    if speed:
        values["speed"] = float(speed[1])
        rest = text[: speed.start()] + " " + text[speed.end() :]
    for key, value in _PAIR.findall(rest):
        name = _ALIASES.get(key.lower(), key.lower())
        if name in values or name in words:
            faults.append(Fault(f"{name} is stated twice", "once", field=text))
        elif name in _WORDS:
            words[name] = value
        elif name not in _KEYS:
            known = nearest(name, [*_KEYS, *_WORDS])
            keys = f"{', '.join((*_KEYS, *_WORDS))} or a number of tok/s"
            right = f"did you mean `{known}`?" if known else keys
            faults.append(Fault(f"`{key}` is not known", right, field=text))
        else:
            try:
                values[name] = _KEYS[name][0](value)
            except UnitError as error:
                wrong = f"{name}={value}: {error.wrong}"
                faults.append(Fault(wrong, error.right, field=text))
    left = _PAIR.sub(" ", rest).strip(" ,;\t\n")
    if left:
        right = "gamma=3 404.25 tok/s tau=2.9; a time has a name: tpot=5 ms, round=14 ms"
        faults.append(Fault(f"`{left}` says nothing", right, field=text))
    if not values and not faults:
        faults.append(Fault("an empty line", "gamma=3 404.25 tok/s tau=2.9", field=text))
    if values.get("speed") == 0:
        faults.append(Fault("0 tok/s", "a speed above 0", field=text))
    if faults:
        raise ScenarioError(faults)
    return values, words


def _tokens_per_round(text: str, values: dict[str, float]) -> float | None:
    """Find τ from whatever states it: itself, accepted per round, counts, a rate or α with γ.

    A rate beside a τ may be of rounds that drafted fewer than γ, never of more. Raises
    ScenarioError, with both values, for statements that contradict each other.
    """
    gamma = values.get("gamma")
    said: dict[str, float] = {}
    if "tau" in values:
        said["tau"] = values["tau"]
    if "accepted_per_round" in values:
        said["accepted_per_round"] = 1 + values["accepted_per_round"]
    if "accepted" in values and (rounds := _rounds(text, values)):
        said["accepted"] = 1 + values["accepted"] / rounds
    if gamma and "alpha" in values:
        said["alpha"] = float(tokens_per_round_from_alpha(values["alpha"], int(gamma)))
    by_rate = 1 + gamma * values["rate"] if gamma and "rate" in values else None
    if by_rate is not None and (not said or next(iter(said.values())) > by_rate):
        said["rate"] = by_rate
    if gamma == 0:
        said = {"gamma": 1.0, **said}
    if not said:
        return None
    (first, tau), *others = said.items()
    for other, value in others:
        if abs(value / tau - 1) > AGREE:
            wrong = f"{first} says τ = {tau:.4g}, {other} {value:.4g}"
            raise ScenarioError(Fault(wrong, "one of them, or both of one run", field=text))
    return tau


def _rate(values: dict[str, float]) -> float | None:
    """Return accepted/drafted, stated or from the counts."""
    if "rate" in values:
        return values["rate"]
    drafted, accepted = values.get("drafted"), values.get("accepted")
    return accepted / drafted if drafted and accepted is not None else None


def _rounds(text: str, values: dict[str, float]) -> float | None:
    """Count rounds: stated, tokens − 1 (prefill) − accepted, or drafted/γ where whole.

    Every request has a token of its prefill, so that the tokens leave up to twice the rounds of
    the drafts; more than that are rounds that drafted nothing. Raises ScenarioError for fewer.
    """
    if "rounds" in values:
        return values["rounds"]
    gamma, drafted = values.get("gamma"), values.get("drafted")
    by_drafts = drafted / gamma if gamma and drafted and drafted % gamma == 0 else None
    if "tokens" not in values:
        return by_drafts
    by_tokens = max(values["tokens"] - 1 - values["accepted"], 0.0)
    if by_drafts is None or by_tokens > 2 * by_drafts:
        return by_tokens
    if by_tokens < by_drafts * (1 - AGREE) - 1:
        wrong = (
            f"{values['tokens']:g} tokens, {values['accepted']:g} of them accepted, are "
            f"{by_tokens:g} rounds, {drafted:g} drafted at γ = {gamma:g} are {by_drafts:g}"
        )
        raise ScenarioError(Fault(wrong, "counts of one run", field=text))
    return by_drafts


def _drafted_per_round(text: str, values: dict[str, float], tau: float | None) -> float | None:
    if values.get("gamma") == 0:
        return 0.0
    rounds = _rounds(text, values) if "accepted" in values else values.get("rounds")
    if rounds and "drafted" in values:
        return values["drafted"] / rounds
    gamma = values.get("gamma")
    if tau and "tau" in values and values.get("rate"):
        mean = (tau - 1) / values["rate"]
        return mean if gamma is None or mean < gamma * (1 - AGREE) else gamma
    return gamma


def _same(text: str, name: str, value: float, other: str, stated: float | None) -> float:
    """Return the value, after checking that the other statement of it agrees."""
    if stated is not None and abs(stated / value - 1) > AGREE:
        wrong = f"{name} says {1e3 * value:.4g} ms a token, {other} {1e3 * stated:.4g} ms"
        raise ScenarioError(Fault(wrong, "one of them, or both of one run", field=text))
    return value
