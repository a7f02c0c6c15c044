"""Two scenarios simulated on the same luck, and what differs between them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.text import Text

from specplan.results import metrics, store
from specplan.results.answer import Answer
from specplan.results.differences import Difference, differences, differences_over_seeds
from specplan.results.tables import columns, number
from specplan.scenarios.batch import batch_notes
from specplan.scenarios.errors import Fault, ScenarioError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from specplan.results.replications import Replications
    from specplan.scenarios.schema import Scenario

OFF = ("speculation.method=none",)


def compare_answer(
    a: str,
    b: str | None,
    sets: Sequence[str],
    *,
    without_speculation: bool,
    output: Path | None,
    force: bool,
    how: Replications | None = None,
) -> Answer:
    """Simulate A and B on one seed; `without_speculation` compares A with its own baseline.

    With `how` both run on several seeds, and each difference has its interval across them.

    Raises ScenarioError unless exactly one of `b` and `without_speculation` is given, or when the
    two scenarios have different seeds or numbers of requests and so cannot share their luck.
    """
    from specplan.scenarios.load import load

    if (b is None) != without_speculation:
        wrong = (
            "no B to compare with" if b is None else "B and --without-speculation are both given"
        )
        raise ScenarioError(Fault(wrong, "`compare A B`, or `compare A --without-speculation`"))
    if output is not None:
        store.check_folder(output, force=force)
    if b is None:
        speculative = load(a, sets)
        named = f"name={json.dumps(f'{speculative.name}, plain')}"  # told apart in later reports
        pair = {"plain": load(a, [*sets, *OFF, named]), "speculative": speculative}
    else:
        one, two = load(a, sets), load(b, sets)
        names = (
            (one.name, two.name) if one.name != two.name else (f"{one.name} (A)", f"{two.name} (B)")
        )
        pair = dict(zip(names, (one, two), strict=True))
    _check_common_luck(*pair.values())
    if how is not None and how.count > 1:
        return _over_seeds(pair, how, output, force=force)
    return _on_one_seed(pair, output, force=force)


def _on_one_seed(pair: dict[str, Scenario], output: Path | None, *, force: bool) -> Answer:
    from specplan.results.progress import reporting
    from specplan.sim.simulate import simulate

    runs = []
    for name, scenario in pair.items():
        with reporting(f"simulating {name}") as progress:
            runs.append(simulate(scenario, progress))
        if runs[-1].interrupted:  # half a run has no luck in common with the other
            raise KeyboardInterrupt
    found = differences(*runs)
    summaries = [metrics.summary(run) for run in runs]
    value = _json(list(pair), found, summaries)
    notes = _batch_notes(pair)
    if output is not None:
        from specplan.results.runs import write_run

        with store.new_folder(output, force=force) as folder:
            store.write_json(folder / store.MARK, value)
            for part, run, figures in zip(("a", "b"), runs, summaries, strict=True):
                (folder / part).mkdir()
                write_run(folder / part, run, figures)
        notes.append(f"written to {output}")
    return Answer(value, _text(value["verdict"], list(pair), found, summaries), notes)


def _over_seeds(
    pair: dict[str, Scenario], how: Replications, output: Path | None, *, force: bool
) -> Answer:
    from specplan.results.replications import aggregated, replicated

    both = replicated(list(pair.values()), how)
    found = differences_over_seeds(both)
    summaries = [aggregated(both, which) for which in (0, 1)]
    value = {**_json(list(pair), found, summaries), "seeds": list(both.seeds)}
    notes = [f"{len(both.seeds)} seeds; intervals are Student's t across them"]
    notes += _batch_notes(pair)
    if both.interrupted:
        notes.append(f"interrupted: {len(both.seeds)} of {how.count} seeds were complete by then")
    if output is not None:
        with store.new_folder(output, force=force) as folder:
            store.write_json(folder / store.MARK, value)
        notes.append(f"written to {output}")
    text = _text(value["verdict"], list(pair), found, summaries)
    return Answer(value, text, notes, exit_code=130 if both.interrupted else 0)


def _batch_notes(pair: dict[str, Scenario]) -> list[str]:
    """Say what keeps the load from mattering, in both or in the one it is about."""
    said: dict[str, list[str]] = {}
    for name, scenario in pair.items():
        for note in batch_notes(scenario):
            said.setdefault(note, []).append(name)
    both = len(pair)
    return [note if len(of) == both else f"{of[0]}: {note}" for note, of in said.items()]


def _json(
    names: Sequence[str], found: Sequence[Difference], summaries: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    return {
        "verdict": verdict(found, names, [bool(figures["saturated"]) for figures in summaries]),
        "a": names[0],
        "b": names[1],
        "seed": summaries[0]["seed"],
        "differences": {
            d.key: {
                "a": d.a,
                "b": d.b,
                "difference": d.difference.mean,
                "difference_ci95": d.difference.ends(),
                "times_better": d.ratio,
                "verdict": d.verdict,
            }
            for d in found
        },
        "runs": dict(zip(names, summaries, strict=True)),
    }


def verdict(found: Sequence[Difference], names: Sequence[str], saturated: Sequence[bool]) -> str:
    """Say in one sentence which run is faster per token, by how much and how surely."""
    tpot = next(d for d in found if d.name == "mean TPOT")
    subject = f"{names[1]} against {names[0]}"
    for name, full in zip(names, saturated, strict=True):
        if full:
            other = names[1] if name == names[0] else names[0]
            if not all(saturated):
                return f"{name} is saturated at this load and {other} is not: no latency to compare"
            return (
                f"both are saturated at this load: compare throughput ({_throughput_words(found)})"
            )
    if tpot.verdict == "too few requests":
        return f"{subject}: too few requests for an interval (100 or more completed in both)"
    if tpot.verdict == "no difference":
        return f"{subject}: no difference in time per token that this run can see"
    word = "faster" if tpot.verdict == "better" else "slower"
    low, high = tpot.difference.low, tpot.difference.high
    return (
        f"{subject}: {word} per token, {tpot.ratio:.3g}x "
        f"({tpot.a:.4g} to {tpot.b:.4g} ms, difference {low:+.3g} to {high:+.3g} ms)"
    )


def _throughput_words(found: Sequence[Difference]) -> str:
    d = next(d for d in found if d.name == "output")
    return f"{d.a:,.0f} to {d.b:,.0f} tokens/s, {d.ratio:.3g}x"


def _check_common_luck(a: Scenario, b: Scenario) -> None:
    faults = [
        Fault(f"{in_a} in A and {in_b} in B", "the same in both", field=name)
        for name, in_a, in_b in (
            ("seed", a.seed, b.seed),
            ("workload.requests", a.workload.requests, b.workload.requests),
        )
        if in_a != in_b
    ]
    if faults:
        raise ScenarioError(faults)


def _spread(d: Difference) -> float:
    """Half width of the interval, 0 where it is nothing but rounding of the sums."""
    half_width = d.difference.half_width
    return half_width if half_width > 1e-9 * max(abs(d.a), abs(d.b)) else 0.0


def _text(
    says: str,
    names: Sequence[str],
    found: Sequence[Difference],
    summaries: Sequence[dict[str, Any]],
) -> Group:
    table = columns(
        ("", *names, "difference", "± 95 %", "verdict"),
        [
            (
                f"{d.name} ({d.unit})",
                number(d.a),
                number(d.b),
                _signed(d.difference.mean),
                number(_spread(d), 2) if d.difference.known else "—",
                d.verdict,
            )
            for d in found
        ],
    )
    tail = columns(
        ("", *names),
        [
            (label, *[number(s[key]) for s in summaries])
            for label, key in (
                ("p99 TTFT (ms)", "p99_ttft_ms"),
                ("p99 TPOT (ms)", "p99_tpot_ms"),
                ("completed", "completed"),
                ("requests/s", "request_throughput"),
                ("acceptance length", "acceptance_length"),
                ("preemptions", "preemptions"),
            )
        ],
    )
    return Group(Text(says, style="bold"), Text(), table, Text(), tail)


def _signed(value: float) -> str:
    return ("−" if value < 0 else "+") + number(abs(value))
