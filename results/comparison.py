"""Two scenarios simulated on the same luck, and what differs between them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Group
from rich.text import Text

from specplan.results import metrics, store
from specplan.results.answer import Answer
from specplan.results.intervals import Interval, paired_difference, ratio_interval
from specplan.results.tables import columns, number
from specplan.results.warmup import counted
from specplan.scenarios.errors import Fault, ScenarioError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from specplan.results.replications import Replicated, Replications
    from specplan.scenarios.schema import Scenario
    from specplan.sim.records import Run

OFF = ("speculation.method=none",)


@dataclass(frozen=True)
class Difference:
    """One figure of two runs: A, B, and B − A with its paired 95 % interval."""

    name: str
    unit: str
    a: float
    b: float
    difference: Interval
    more_is_better: bool

    @property
    def key(self) -> str:
        """The figure's name in the JSON of a run: `mean_ttft_ms`, `output_throughput`."""
        if self.unit == "ms":
            return f"{self.name.replace(' ', '_').lower()}_ms"
        return f"{self.name}_throughput"

    @property
    def ratio(self) -> float:
        """How many times better B is than A: above 1 in B's favour, below 1 in A's."""
        better, worse = (self.b, self.a) if self.more_is_better else (self.a, self.b)
        return better / worse if worse > 0 else float("nan")

    @property
    def verdict(self) -> str:
        """B `better`, `worse`, `no difference`, or `too few requests` for an interval."""
        if not self.difference.known:
            return "too few requests"
        if self.difference.low <= 0 <= self.difference.high:
            return "no difference"
        return "better" if (self.difference.mean > 0) == self.more_is_better else "worse"


def differences(a: Run, b: Run) -> list[Difference]:
    """Mean TTFT, TPOT, ITL and E2EL and output throughput of both runs, paired request by request.

    Only requests that both runs completed are paired; the throughput is paired in blocks of equally
    many completions. Latencies in ms, throughput in tokens/s.
    """
    both = (a.requests["status"] == 0) & (b.requests["status"] == 0) & counted(a) & counted(b)
    rows_a, rows_b = (_completed(run, both) for run in (a, b))
    found = []
    for name, top, bottom in (
        ("mean TTFT", "ttft_s", None),
        ("mean TPOT", "tpot_s", None),
        ("mean ITL", "gap_s", "gaps"),
        ("mean E2EL", "e2el_s", None),
    ):
        pair = [
            (rows[top] * 1e3, None if bottom is None else rows[bottom]) for rows in (rows_a, rows_b)
        ]
        if bottom is None:
            kept = np.isfinite(pair[0][0]) & np.isfinite(pair[1][0])
            pair = [(values[kept], None) for values, _ in pair]
        difference = paired_difference(pair[0], pair[1])
        means = [ratio_interval(above, below).mean for above, below in pair]
        found.append(Difference(name, "ms", means[0], means[1], difference, more_is_better=False))
    return [*found, _throughput(a, b, rows_a, rows_b)]


def _completed(run: Run, both: NDArray[np.bool_]) -> dict[str, NDArray[np.float64]]:
    done = (run.requests["status"] == 0) & counted(run)
    return {name: values[both[done]] for name, values in metrics.latencies(run).items()}


def _throughput(
    a: Run,
    b: Run,
    rows_a: dict[str, NDArray[np.float64]],
    rows_b: dict[str, NDArray[np.float64]],
) -> Difference:
    pair = []
    for rows in (rows_a, rows_b):
        order = np.argsort(rows["finish_s"], kind="stable")
        between = np.diff(rows["finish_s"][order], prepend=0.0)
        pair.append((rows["output_tokens"][order], between))
    per_second = [
        float(rows["output_tokens"].sum()) / run.duration_s if run.duration_s > 0 else np.nan
        for run, rows in ((a, rows_a), (b, rows_b))
    ]
    difference = paired_difference(pair[0], pair[1])
    centred = Interval(per_second[1] - per_second[0], difference.half_width, difference.batches)
    return Difference("output", "tok/s", per_second[0], per_second[1], centred, more_is_better=True)


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
    notes = []
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
    if both.interrupted:
        notes.append(f"interrupted: {len(both.seeds)} of {how.count} seeds were complete by then")
    if output is not None:
        with store.new_folder(output, force=force) as folder:
            store.write_json(folder / store.MARK, value)
        notes.append(f"written to {output}")
    text = _text(value["verdict"], list(pair), found, summaries)
    return Answer(value, text, notes, exit_code=130 if both.interrupted else 0)


def differences_over_seeds(both: Replicated) -> list[Difference]:
    """Differences of the figures of `differences`, one a seed: B − A with its t interval."""
    from specplan.results.replications import difference

    found = []
    for name, unit, key in (
        ("mean TTFT", "ms", "mean_ttft_ms"),
        ("mean TPOT", "ms", "mean_tpot_ms"),
        ("mean ITL", "ms", "mean_itl_ms"),
        ("mean E2EL", "ms", "mean_e2el_ms"),
        ("output", "tok/s", "output_throughput"),
    ):
        a, b = (float(np.mean(both.values(which, key))) for which in (0, 1))
        interval = difference(both, key)
        found.append(Difference(name, unit, a, b, interval, more_is_better=unit == "tok/s"))
    return found


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
                number(d.difference.half_width, 2) if d.difference.known else "—",
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
