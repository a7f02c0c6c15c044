"""Pages: self-contained, escaped, and with the values of the tables."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go
import pytest

from specplan.results import prediction
from specplan.results.closed_curves import crossover, curves
from specplan.results.export import Section, page
from specplan.results.figures import acceptance as figures_acceptance
from specplan.results.figures import closed as figures_closed
from specplan.results.figures import request as figures_request
from specplan.results.figures import run as figures_run
from specplan.results.figures.layout import packed
from specplan.results.figures.maps import heat_map, speedup_map, staircase
from specplan.results.figures.palette import PHASES, PLAIN, SCENARIOS, TEXT
from specplan.results.live.state import start
from specplan.results.live.view import Base, View
from specplan.results.recorded import record
from specplan.results.report import report_sections, verdict
from specplan.results.sections import load_sections, measured_sections
from specplan.scenarios.load import bundled, load
from specplan.sim.axes import parse_axis

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from specplan.results.recorded import Recorded
    from specplan.sim.records import Run

HOSTILE = "<script>alert(1)</script>"


def test_page_shows_html_as_text() -> None:
    text = page(HOSTILE, HOSTILE, [Section(HOSTILE, (HOSTILE,), table=((HOSTILE,), (HOSTILE,)))])
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(1)" in text


def test_page_asks_for_nothing() -> None:
    text = page("t", "v", [Section("f", figure=figures_closed.tornado(curves(load("toy-20ms"))))])
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None
    assert "default-src 'none'" in policy[1]
    outside_script = re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)
    assert not re.search(r'(src|href)="(?!data:)', outside_script)


def test_report_of_a_run_is_small_and_complete(make_run: Callable[..., Run]) -> None:
    hostile = make_run(sets=(f"name={json.dumps(HOSTILE)}", "scheduler.max_num_seqs=8"))
    text = page("t", "v", report_sections([record(hostile)]))
    assert len(text.encode()) < 6_000_000
    assert "<script>alert" not in text
    assert text.count('<figure aria-label="') >= 12
    assert "no real model; constant pass of 100 ms" in text  # the record, shown in every report


def test_gaps_of_the_record_are_named(make_run: Callable[..., Run]) -> None:
    run = make_run(sets=("record={notes: nothing}",))
    said = " ".join(s for one in report_sections([record(run)]) for s in one.sentences)
    assert "Not stated" in said
    assert "the draft mechanism and its revision; the acceptance rule" in said


def test_speedup_by_gamma_draws_the_table() -> None:
    """γ 2, α .5, T = V = 100, d = 20: τ/R·T = (1, 1.5/1.2, 1.75/1.4, 1.875/1.6, …)."""
    figure = figures_closed.speedup_by_gamma(curves(load("toy-20ms")))
    line, mark = figure["data"]
    assert line["y"][:4] == pytest.approx([1, 1.25, 1.25, 1.171875])
    assert mark["name"] == "as set, γ = 2"
    assert (mark["x"][0], mark["y"][0]) == (2, pytest.approx(1.25))


def test_a_sweeps_map_draws_break_even_at_one() -> None:
    """γ = 0 is 1.0x by definition and no border; a map on one side of 1 has none in its legend."""
    gammas, steps = parse_axis("speculation.gamma=0,1"), parse_axis("draft.step=1ms,2ms")
    z = np.array([[1.0, 0.5], [1.0, 2.0]])
    contour = speedup_map(gammas, steps, [("", z)])["data"][1]
    assert (contour["contours"]["start"], contour["contours"]["end"]) == (1.0, 1.0)
    assert np.isnan(contour["z"][:, 0]).all()
    assert contour["z"][1, 1] == 2.0
    assert contour["showlegend"]
    assert not speedup_map(gammas, steps, [("", 1 + z)])["data"][1]["showlegend"]


def test_a_border_joins_the_crossings_of_the_rows() -> None:
    along, over = staircase(np.array([3.0, 2.0, -1.0]), np.array([1, 2, 3]), 0.0, 5.0)
    assert along.tolist()[:4] == [3, 3, 2, 2]
    assert over.tolist()[:4] == [0.5, 1.5, 1.5, 2.5]
    assert np.isnan(along[5])  # the third row is slower throughout: no line along the rim


@pytest.mark.parametrize("at", [[9.0, 8.0], [-1.0, 0.0]])
def test_rows_on_one_side_have_no_border(at: list[float]) -> None:
    border = staircase(np.array(at), np.array([1, 2]), 0.0, 5.0)
    assert [len(part) for part in border] == [0, 0]
    drawn = heat_map(np.arange(2), np.arange(2), np.full((2, 2), 2.0), border, x="x", y="y")
    assert [trace["type"] for trace in drawn["data"]] == ["heatmap"]


def test_the_draft_map_has_the_break_even_of_each_gamma() -> None:
    """Toy: V + γ d = τ T, so d = 50 ms at γ = 1 and 37.5 ms at γ = 2, for all of their cells."""
    border = figures_closed.speedup_by_draft_step(curves(load("toy-20ms")))["data"][1]
    assert border["name"] == "break-even, 1.0x"
    assert border["y"][:4] == pytest.approx([50, 50, 37.5, 37.5])
    assert border["x"][:4] == pytest.approx([0.5, 1.5, 1.5, 2.5])


def test_the_draft_map_reaches_the_break_even_of_a_fast_draft() -> None:
    """37.5 ms is 7.5 times 5 ms, beyond the three times that are drawn at least."""
    made = curves(load("toy-20ms", ["draft.step=5 ms"]))
    assert made.break_even_factors()[1] == pytest.approx(7.5)
    assert made.draft_factors()[-1] == pytest.approx(1.25 * 7.5)


def test_break_even_draft_step_is_where_the_map_crosses_one() -> None:
    """Toy: V + 2 d = 1.75 T at d = 37.5 ms."""
    made = curves(load("toy-20ms"))
    factors = np.array([37.4, 37.6]) / 20
    above, below = made.speedup_by_draft_step(factors)[:, 2]
    assert below < 1 < above


def test_crossover_by_batch() -> None:
    """V = 10 + b·w ms against T = 10 + b: γ 1, α .5: 1.5 (10 + b) = 10 + 2 b + 0 at b = 10."""
    made = curves(
        load(
            "toy-20ms",
            [
                "target={round: {linear: {base: 10 ms, per_token: 1 ms}}}",
                "draft.step=0 ms", "speculation.gamma=1", "scheduler.max_num_seqs=64",
            ],
        )
    )  # fmt: skip
    batches = np.arange(1.0, 65.0)
    tpot, plain = made.by_batch(batches, 1)
    assert crossover(batches, plain / tpot) == pytest.approx(10, abs=0.02)


def test_tornado_moves_one_input_at_a_time() -> None:
    """Verify ±20 %: 1.75/(1.4 ∓ .2) of 100 ms; acceptance ±20 %: 1 + .75 f over 1.4."""
    rows = {name: (low, high) for name, low, high in curves(load("toy-20ms")).tornado()}
    assert rows["verify pass"] == pytest.approx((1.75 / 1.2, 1.75 / 1.6))
    assert rows["acceptance"] == pytest.approx((1.6 / 1.4, 1.9 / 1.4))
    assert rows["draft step"] == pytest.approx((1.75 / 1.32, 1.75 / 1.48))


def test_tokens_per_round_law() -> None:
    """A = (.5, .25): 1, 2, 3 tokens with chance .5, .25, .25."""
    figure = figures_acceptance.tokens_per_round(curves(load("toy-20ms")))
    assert list(figure["data"][0]["y"]) == pytest.approx([0.5, 0.25, 0.25])


def test_latency_marks_are_the_percentiles(make_run: Callable[..., Run]) -> None:
    run = make_run(requests={"first_token_s": 0.2 * np.arange(200) + np.arange(200) / 1e3})
    marks = figures_run.latency_ecdf([record(run)], "ttft")["data"][1]
    assert list(marks["x"]) == pytest.approx(np.percentile(np.arange(200.0), [50, 90, 99]))


def test_itl_quantiles_come_from_the_histogram(make_run: Callable[..., Run]) -> None:
    line = figures_run.latency_ecdf([record(make_run())], "itl")["data"][0]
    assert set(np.round(line["x"], 9)) == {100.0}


def test_replicas_are_summed_over_time(make_run: Callable[..., Run]) -> None:
    samples = {
        "replica": np.array([0, 1, 0]),
        "time_s": np.array([0.0, 1.0, 2.0]),
        "running": np.array([2, 3, 1]),
    }
    time_s, total = figures_run.summed(record(make_run(samples=samples)), "running")
    assert (time_s.tolist(), total.tolist()) == ([0.0, 1.0, 2.0], [2.0, 5.0, 4.0])


def test_plotly_accepts_every_figure(make_run: Callable[..., Run]) -> None:
    """No figure is checked when it is made: `go.Figure` raises for what plotly.js does not know."""
    sets = ("scheduler.max_num_seqs=8",)
    sections = report_sections([record(make_run(sets=sets)), record(make_run(sets=sets))])
    for name in bundled():
        base = Base.read(name)
        if base.scenario.workload.arrivals.trace is None:
            sections += View(base, start(base.scenario, base.controls)).sections
    drawn = [section.figure for section in sections if section.figure is not None]
    for figure in drawn:
        go.Figure(packed(figure))
        assert all("title" in figure["layout"][axis] for axis in ("xaxis", "yaxis"))
    assert len(drawn) > 50


def contrast(colour: str) -> float:
    """Contrast with white: 1.05 / (L + 0.05), L the relative luminance (WCAG 2.1)."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 1.05 / (0.05 + sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True)))


def test_colours_are_seen_on_white() -> None:
    assert contrast("#000000") == pytest.approx(21)
    assert contrast(TEXT) > 4.5
    assert all(contrast(colour) >= 3 for colour in (*SCENARIOS, PLAIN))
    assert len(set(PHASES.values())) == len(PHASES)


def test_measurements_of_a_scenario_are_drawn_beside_their_predictions() -> None:
    scenario = load("chinchilla")
    assert scenario.measured is not None
    (section,) = measured_sections([scenario, load("toy-20ms")])
    assert section.title == "Predicted against measured, chinchilla"
    assert section.figure is not None
    tested = [row for series in scenario.measured.series for row in series.rows
              if row.role == "test"]  # fmt: skip
    marks = [x for trace in section.figure["data"] if trace["mode"] == "markers"
             for x in trace["x"]]  # fmt: skip
    assert sorted(marks) == sorted(row.value for row in tested)


def test_report_never_overwrites(specplan_cli: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text("mine")
    found = specplan_cli("report", "toy-20ms", "-o", str(tmp_path / "a.html"))
    assert found.code == 2
    assert "exists already" in found.err
    assert (tmp_path / "a.html").read_text() == "mine"


def test_no_name_at_all(specplan_cli: Callable[..., Any], tmp_path: Path) -> None:
    found = specplan_cli("report", "", "-o", str(tmp_path / "a.html"))
    assert (found.code, found.err.strip()) == (
        2, "the name of the scenario is empty (a file or a bundled name)"
    )  # fmt: skip


def test_foreign_folder(specplan_cli: Callable[..., Any], tmp_path: Path) -> None:
    found = specplan_cli("report", str(tmp_path), "-o", str(tmp_path / "a.html"))
    assert found.code == 2
    assert "is not a result folder" in found.err
    assert not (tmp_path / "a.html").exists()


def test_a_map_ends_with_its_cells() -> None:
    """A border that reaches the rim makes no room beyond it: γ 0 … 12, batches 1 … 256 as log."""
    made = curves(load("llama31-8b-eagle3-h100"))
    drawn = figures_closed.speedup_by_batch(made)["layout"]
    assert drawn["yaxis"]["range"] == [-0.5, 5.5]
    low, high = drawn["xaxis"]["range"]
    assert low == pytest.approx(-np.log10(2) / 2)  # batches 1 and 2: half a cell before 1
    assert high > np.log10(256)
    steps = figures_closed.speedup_by_draft_step(made)["layout"]
    assert steps["xaxis"]["range"] == [-0.5, 5.5]
    half = made.draft_factors()[1] * 1e3 * made.draft_step_s / 2
    assert steps["yaxis"]["range"][0] == pytest.approx(-half)


def test_no_button_sends_a_figure_elsewhere() -> None:
    text = page("t", "v", [Section("f", figure=figures_closed.tornado(curves(load("toy-20ms"))))])
    assert '"showSendToCloud": false' in text.rpartition("Plotly.newPlot")[2].partition("</s")[0]


def test_long_paths_in_a_sentence_may_break() -> None:
    table = (("what",), ("look further: --set speculation.acceptance.extend=last_ratio, 1.5x",))
    text = page("t", "v", [Section("s", table=table)])
    assert "speculation.<wbr>acceptance.<wbr>extend=<wbr>last_<wbr>ratio, 1.5x" in text


def test_the_draft_step_is_that_of_the_batch_in_every_place() -> None:
    """0.9 ms and 8 µs a sequence, 16 sequences: 1.028 ms is what a break-even is compared with."""
    sets = ["draft.step={base: 0.9 ms, per_token: 8 us}", "scheduler.max_num_seqs=16"]
    scenario = load("toy-20ms", [*sets, "workload.arrivals.streams=16"])
    made = curves(scenario)
    assert prediction.now(scenario, made.found, made.point)[1] == pytest.approx(1.028e-3)
    assert made.draft_step_s == pytest.approx(1.028e-3)


def compared(make_run: Callable[..., Run], tpot_ms: float, *sets: str) -> Recorded:
    found = record(make_run(sets=sets))
    ends = (tpot_ms - 1.0, tpot_ms + 1.0)
    figures = {**found.figures, "mean_tpot_ms": tpot_ms, "mean_tpot_ms_ci95": ends}
    return replace(found, figures=figures)


def test_several_runs_are_compared_first(make_run: Callable[..., Run]) -> None:
    """Means whose intervals do not meet are told apart; 10 ± 1 and 11.5 ± 1 ms are not."""
    runs = [compared(make_run, ms, f"name={name}") for name, ms in
            (("a", 10.0), ("b", 20.0), ("c", 11.5))]  # fmt: skip
    lines = verdict(runs).splitlines()
    assert lines[0] == "Simulated, b is slower per token than a, 20 against 10 ms."
    assert "c is not told apart from a" in lines[1]
    assert lines[2].startswith("a: faster than plain decoding, 1.25x")
    assert len(lines) == 5
    assert page("t", "\n".join(lines), []).count('class="verdict"') == 5


def test_headings_name_the_run_of_the_closed_form(make_run: Callable[..., Run]) -> None:
    runs = [record(make_run(sets=(f"name={name}",))) for name in "ab"]
    titles = [one.title for one in report_sections(runs)]
    assert "Which γ, a" in titles
    assert "Which γ, b" not in titles
    assert "Which γ" in [one.title for one in report_sections(runs[:1])]


def test_plain_decoding_verifies_nothing(make_run: Callable[..., Run]) -> None:
    run = record(make_run(sets=("speculation.gamma=0",)))
    for figure in (figures_run.gpu_phases([run]), figures_request.token_time([run])):
        bars = {trace["name"]: trace["marker"]["color"] for trace in figure["data"]}
        assert "verify" not in bars
        assert bars["plain step"] == PLAIN


def test_percentiles_of_several_runs_are_told_in_words(make_run: Callable[..., Run]) -> None:
    runs = [record(make_run(sets=(f"name={name}",))) for name in "ab"]
    marks = figures_run.latency_ecdf(runs, "ttft")["data"][1]
    assert marks["mode"] == "markers"
    assert figures_run.marked(runs, "ttft")[0] == "a: p50 100, p90 100, p99 100 ms."


def test_a_run_with_limits_says_how_many_kept_them(make_run: Callable[..., Run]) -> None:
    """TTFT 100 ms of a limit of 150 ms: all; of 50 ms: none."""
    for limit, share in (("150 ms", "100.0 %"), ("50 ms", "0.0 %")):
        run = record(make_run(sets=(f"slo.ttft={limit}",)))
        (section,) = load_sections([run], ["runs/a"])
        assert f"{share} of the completed requests" in section.sentences[0]
        assert section.sentences[1] == "Over other loads: specplan report runs/a/scenario.yaml"
    assert list(load_sections([record(make_run())], ["runs/a"])) == []
