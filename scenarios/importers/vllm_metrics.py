"""Prometheus scrapes of vLLM (and of llama.cpp's server, which uses the same names).

One scrape of a fresh server, or two with their difference. Counters are summed over engines
before anything is divided; `_created` gauges only tell a restart.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING

from prometheus_client.parser import text_string_to_metric_families

from specplan.scenarios.errors import Fault, ScenarioError
from specplan.scenarios.importers.evidence import Evidence, Latency, Source, checked

if TYPE_CHECKING:
    from collections.abc import Sequence

KIND = "vllm-metrics"

_ROUNDS = "spec_decode_num_drafts_total"
_DRAFTED = "spec_decode_num_draft_tokens_total"
_ACCEPTED = "spec_decode_num_accepted_tokens_total"
_BY_POSITION = "spec_decode_num_accepted_tokens_per_pos_total"
_COUNTERS = (_ROUNDS, _DRAFTED, _ACCEPTED, _BY_POSITION)
_GAP = "inter_token_latency_seconds"
_TOKEN = ("request_time_per_output_token_seconds", "time_per_output_token_seconds")
_PREFIX = re.compile(r"^(vllm|llamacpp)[:_]")

Series = tuple[str, str, str]
"""(engine, name without prefix, position)."""


@dataclass(frozen=True, slots=True)
class Scrape:
    """The samples of one model that matter here, by engine, and their creation times."""

    file: str
    values: dict[Series, float]
    created: dict[Series, float]
    models: tuple[str, ...]
    kind: str = KIND
    line: int | None = None

    def total(self, name: str) -> float | None:
        """Return the sum over engines, None where the name is absent."""
        found = [value for (_, known, _), value in self.values.items() if known == name]
        return sum(found) if found else None

    def positions(self) -> dict[int, float]:
        """Return accepted tokens by position, summed over engines."""
        totals: dict[int, float] = {}
        for (_, name, position), value in self.values.items():
            if name == _BY_POSITION:
                totals[int(position)] = totals.get(int(position), 0.0) + value
        return totals


def read_scrape(text: str, file: str, model: str = "") -> Scrape:
    """Return the samples of one model.

    Raises ScenarioError: text that is no exposition, or several models and none chosen.
    """
    values: dict[Series, float] = {}
    created: dict[Series, float] = {}
    models: dict[str, None] = {}
    kind = KIND
    try:
        families = list(text_string_to_metric_families(_ours(text)))
    except (ValueError, IndexError, KeyError, AttributeError, TypeError) as error:
        raise ScenarioError(_broken_line(text, file, str(error))) from error
    for family in families:
        for sample in family.samples:
            found = _PREFIX.match(sample.name)
            if not found or not isinstance(sample.labels, dict):
                continue
            name = sample.name[found.end() :]
            kind = f"{found[1]}-metrics"
            owner = sample.labels.get("model_name", "")
            models[owner] = None
            if model and owner != model:
                continue
            position = sample.labels.get("position", sample.labels.get("pos", ""))
            engine = sample.labels.get("engine", "")
            replica = sample.labels.get("instance", sample.labels.get("pod", ""))
            key = (f"{replica}/{engine}/{owner}", name, position)
            if name.endswith("_created"):
                created[(key[0], name.removesuffix("_created"), position)] = sample.value
            elif not name.endswith("_bucket"):
                _check_value(text, file, name, position, sample.value)
                values[key] = values.get(key, 0.0) + sample.value
    names = tuple(owner for owner in models if owner)
    if model and model not in names:
        known = ", ".join(names) or "none"
        raise ScenarioError(Fault(f"no model {model!r} in the scrape", f"models: {known}", file))
    if not model and len(names) > 1 and values:
        raise ScenarioError(
            Fault(f"{len(names)} models in one scrape", f"--model: {', '.join(names)}", file)
        )
    return Scrape(
        file, values, created, (model,) if model else names, kind, _line_of(text, _ROUNDS)
    )


def _ours(text: str) -> str:
    """Return the samples of the engine alone: a scrape may hold a thousand others."""
    lines = [line for line in text.split("\n") if _PREFIX.match(line) and "_bucket{" not in line]
    return "\n".join(lines) + "\n"


def _line_of(text: str, name: str) -> int | None:
    """Return the line on which the first sample of this name stands."""
    found = re.search(rf"^(?:vllm|llamacpp)[:_]{name}[{{ ]", text, re.MULTILINE)
    return text.count("\n", 0, found.start()) + 1 if found else None


def _check_value(text: str, file: str, name: str, position: str, value: float) -> None:
    if name not in _COUNTERS:
        return
    line = _line_of(text, name)
    if not isfinite(value) or value < 0:
        raise ScenarioError(Fault(f"counter is {value:g}", "0 or more", file, line, field=name))
    if name == _BY_POSITION and not (position.isdecimal() and int(position) < 4096):
        raise ScenarioError(
            Fault(f"position {position!r}", "a position from 0", file, line, field=name)
        )


def _broken_line(text: str, file: str, reason: str) -> Fault:
    """Return the fault at the first line that does not parse alone."""
    for number, line in enumerate(text.split("\n"), start=1):
        if line.startswith("#") or not line.strip():
            continue
        try:
            list(text_string_to_metric_families(line + "\n"))
        except (ValueError, IndexError, KeyError, AttributeError, TypeError):
            return Fault("not a Prometheus sample", "name{labels} value", file, number)
    return Fault(f"not a Prometheus exposition: {reason[:80]}", "the text of /metrics", file)


def subtract(before: Scrape, after: Scrape) -> tuple[Scrape, tuple[str, ...]]:
    """Return what happened between two scrapes, and the warnings.

    A counter that fell, or whose `_created` changed, means a restart: the second scrape alone is
    what happened since. Where `_created` is the same and the counters fell, the order is wrong.
    """
    fell = [
        key
        for key, value in before.values.items()
        if key[1] in _COUNTERS and value > after.values.get(key, 0.0)
    ]
    moved = [key for key, at in before.created.items() if after.created.get(key, at) != at]
    same = [key for key, at in before.created.items() if after.created.get(key) == at]
    if fell and same and not moved:
        raise ScenarioError(
            Fault(
                f"counters fall from {before.file} to this scrape without a restart",
                "the earlier scrape first",
                after.file,
                field=fell[0][1],
            )
        )
    if fell or any(key[1] + "_total" in _COUNTERS for key in moved):
        return after, (
            "counter_reset: the server restarted between the scrapes, so the second one is used "
            "alone",
        )
    values = {key: value - before.values.get(key, 0.0) for key, value in after.values.items()}
    return Scrape(after.file, values, after.created, after.models, after.kind, after.line), ()


def evidence(
    scrape: Scrape, *, delta_from: str = "", warnings: Sequence[str] = ()
) -> list[Evidence]:
    """Return the evidence of one scrape or difference."""
    source = Source(
        scrape.file,
        scrape.kind,
        where=f"minus {delta_from}" if delta_from else "one scrape",
        line=scrape.line,
    )
    rounds, drafted = scrape.total(_ROUNDS), scrape.total(_DRAFTED)
    accepted, positions = scrape.total(_ACCEPTED), scrape.positions()
    if rounds is None:
        _refuse_without_rounds(scrape, source)
        return [Evidence(source, model=_one(scrape.models), latency=_latency(scrape), gamma=0)]
    if accepted is None or drafted is None:
        missing = _ACCEPTED if accepted is None else _DRAFTED
        raise source.fault("the scrape is cut short: the counter is absent", "all four", missing)
    gaps = scrape.total(f"{_GAP}_count")
    notes = list(warnings)
    if not delta_from:
        notes.append(
            "counters since the start of the server, warm-up and all: two scrapes with "
            "--delta leave it out"
        )
    draftless = None
    if gaps is not None and rounds <= gaps * 1.005:
        draftless = max(gaps - rounds, 0.0)
    elif gaps is not None:
        notes.append(
            f"{rounds:.0f} rounds drafted but only {gaps:.0f} gaps between outputs (no streaming, "
            "or aborted requests): rounds without a draft cannot be counted"
        )
    if not rounds and not draftless:
        raise source.fault("0 rounds with a draft", "a scrape after some traffic", _ROUNDS)
    gamma = max(positions) + 1 if positions else None
    if positions and set(positions) != set(range(gamma or 0)):
        raise source.fault("positions are missing", f"0 to {max(positions)}", _BY_POSITION)
    rates = tuple(positions[i] / rounds for i in sorted(positions)) if rounds else ()
    if positions and abs(sum(positions.values()) - accepted) > 0.5 + 1e-9 * accepted:
        raise source.fault(
            f"accepted per position add up to {sum(positions.values()):.0f} but the counter of "
            f"accepted tokens is {accepted:.0f}",
            "the two must agree",
        )
    return [
        checked(
            Evidence(
                source,
                model=_one(scrape.models),
                gamma=gamma,
                drafting_rounds=rounds,
                draftless_rounds=draftless,
                drafted_tokens=drafted,
                accepted_tokens=accepted,
                unconditional=rates,
                acceptance_length=1 + accepted / rounds if rounds else None,
                latency=_latency(scrape),
                warnings=tuple(notes),
            )
        )
    ]


def _refuse_without_rounds(scrape: Scrape, source: Source) -> None:
    """Refuse scrapes that hold no V1 counters of rounds, except plain ones with latencies."""
    gauge = scrape.total("spec_decode_draft_acceptance_rate")
    if gauge is not None or scrape.total("spec_decode_efficiency") is not None:
        efficiency = scrape.total("spec_decode_efficiency")
        shown = "" if efficiency is None else f" and spec_decode_efficiency {efficiency:.3f}"
        raise source.fault(
            "counters of the V0 engine (vLLM 0.9 and older): they add up cumulative counts and "
            "hold no rounds",
            "use the gauges: "
            + ("" if gauge is None else f"spec_decode_draft_acceptance_rate {gauge:.3f}")
            + f"{shown}; tokens per round = efficiency · (K + 1), for "
            "`specplan acceptance convert`",
            "spec_decode_num_accepted_tokens_total",
        )
    if scrape.total("diffusion_num_drafts_total") is not None:
        raise source.fault(
            "a diffusion model's scrape: vllm:diffusion_num_* has no rates per position",
            "vllm:spec_decode_* counters",
        )
    if scrape.total(f"{_GAP}_count") is None and all(
        scrape.total(f"{name}_count") is None for name in _TOKEN
    ):
        raise source.fault(
            "no vllm:spec_decode_* counters in the scrape",
            "/metrics of a vLLM server that runs with --speculative-config",
        )


def _latency(scrape: Scrape) -> Latency:
    return Latency(
        round_s=_mean(scrape, _GAP),
        token_s=next((value for name in _TOKEN if (value := _mean(scrape, name))), None),
        ttft_s=_mean(scrape, "time_to_first_token_seconds"),
        e2e_s=_mean(scrape, "e2e_request_latency_seconds"),
        requests=scrape.total("request_generation_tokens_count"),
        prompt_tokens=_mean(scrape, "request_prompt_tokens"),
        output_tokens=_mean(scrape, "request_generation_tokens"),
    )


def _mean(scrape: Scrape, histogram: str) -> float | None:
    total, count = scrape.total(f"{histogram}_sum"), scrape.total(f"{histogram}_count")
    if not total or not count or not (isfinite(total) and isfinite(count)):
        return None
    return total / count if total > 0 and count > 0 else None


def _one(models: Sequence[str]) -> str:
    return models[0] if len(models) == 1 else ""
