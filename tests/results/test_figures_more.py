"""Figures about load, memory, a request's time, and the marks on the closed form's curves."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from specplan.results.attainment import Attained
from specplan.results.closed_curves import curves
from specplan.results.export import Section
from specplan.results.figures import images
from specplan.results.figures.acceptance import acceptance_by_position, tokens_per_round
from specplan.results.figures.closed import speedup_by_gamma
from specplan.results.figures.load import slo_attainment
from specplan.results.figures.memory import memory_bar
from specplan.results.figures.palette import HIGHER, LOWER, PHASES, PLAIN
from specplan.results.figures.request import token_time
from specplan.results.figures.run import gap_steps
from specplan.results.intervals import Interval
from specplan.results.memory.parts import held
from specplan.results.recorded import record
from specplan.scenarios.errors import ScenarioError
from specplan.scenarios.load import load

if TYPE_CHECKING:
    from pathlib import Path

GIB = 2**30


def named(figure: Any) -> dict[str, Any]:
    return {trace["name"]: trace for trace in figure["data"]}


def test_a_draft_takes_its_weights_and_its_keys_and_values() -> None:
    """(50 GiB − 0.8 GB) / (132 KiB · 16) = 24,454.3 blocks of 16; alone 50 GiB / 2 MiB = 25,600."""
    figure = memory_bar(held(load("llama31-8b-eagle3-h100")))
    assert figure is not None
    traces = named(figure)
    assert list(traces["KV of the target"]["text"]) == ["409,600 tokens", "391,264 tokens"]
    rows = np.array([trace["x"] for trace in figure["data"]], dtype=float)
    assert rows[:, 0] == pytest.approx([0, 0, 50])
    assert rows[0, 1] == pytest.approx(0.8e9 / GIB)
    assert rows[:, 1].sum() == pytest.approx(50, abs=132 * 16 / 2**20)


def test_no_memory_no_picture_of_it() -> None:
    assert memory_bar(held(load("toy-20ms"))) is None
    assert memory_bar(held(load("toy-20ms", ["kv_cache.blocks=100"]))) is None


def test_a_requests_time_adds_up(make_run: Any) -> None:
    """No queue, 200 ms for 4 tokens; draft to verify as 1 to 2; 1/3 of the drafts thrown away."""
    traces = named(token_time([record(make_run())]))
    parts = {name: trace["x"][0] for name, trace in traces.items()}
    assert "queue" not in parts  # nobody waited
    assert parts["verify"] == pytest.approx(50 * 2 / 3)
    assert parts["draft, kept"] == pytest.approx(50 / 3 * 2 / 3)
    assert parts["thrown away"] == pytest.approx(50 / 3 / 3)
    assert sum(parts.values()) == pytest.approx(50)


def test_attainment_has_its_intervals() -> None:
    rows = [Attained(1.0, Interval(0.9, 0.05, 5)), Attained(2.0, Interval(0.5, float("nan"), 1))]
    figure = slo_attainment({"plain decoding": rows, "<b>γ</b>": rows})
    plain, other = figure["data"]
    assert list(plain["y"]) == [0.9, 0.5]
    assert list(plain["error_y"]["array"]) == [0.05, 0.0]
    assert other["name"] == "&lt;b&gt;γ&lt;/b&gt;"
    assert plain["line"]["color"] != other["line"]["color"]


def test_the_border_between_stated_and_extrapolated() -> None:
    stated = ["speculation.acceptance.conditional=[.8, .7, .6]", "speculation.gamma=2"]
    figure = speedup_by_gamma(curves(load("toy-20ms", stated)))
    assert "acceptance extrapolated" not in named(figure)
    extended = [*stated, "speculation.acceptance.extend=last_ratio"]
    traces = named(speedup_by_gamma(curves(load("toy-20ms", extended))))
    assert list(traces["closed form"]["x"]) == [0, 1, 2, 3]
    assert list(traces["acceptance extrapolated"]["x"])[:2] == [3, 4]


def test_counted_rounds_give_intervals() -> None:
    """50 of 100 rounds: Wilson's interval is 0.4038 … 0.5962 (Wilson 1927)."""
    sets = ["speculation.acceptance.histogram=[50, 50]", "speculation.gamma=1"]
    figure = acceptance_by_position(curves(load("toy-20ms", sets)))
    bars = figure["data"][0]["error_y"]
    assert [bars["array"][0], bars["arrayminus"][0]] == pytest.approx([0.0962, 0.0962], abs=5e-5)
    assert "error_y" not in acceptance_by_position(curves(load("toy-20ms")))["data"][0]


def test_images_without_kaleido_or_browser_are_refused_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    images.check_images(())
    monkeypatch.setattr(images, "find_spec", lambda _: None)
    with pytest.raises(ScenarioError, match=r"pip install 'specplan\[images\]'"):
        images.check_images(["png"])


def test_images_without_a_browser_are_refused_first(monkeypatch: pytest.MonkeyPatch) -> None:
    chromium = pytest.importorskip("choreographer.browsers.chromium", reason="needs kaleido")
    monkeypatch.delenv("BROWSER_PATH", raising=False)
    monkeypatch.setattr(chromium.Chromium, "find_browser", classmethod(lambda *_, **__: None))
    with pytest.raises(ScenarioError, match="images need Chrome or Chromium, and none is found"):
        images.check_images(["svg"])


@pytest.mark.parametrize("named", ["/no/such/chrome", "/etc"])
def test_a_browser_that_is_named_and_not_there_is_refused_first(
    monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    monkeypatch.setenv("BROWSER_PATH", named)
    with pytest.raises(ScenarioError, match=f"BROWSER_PATH={named} is no program"):
        images.check_images(["png"])


def test_a_browser_that_fails_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import plotly.io

    def fails(**_: object) -> None:
        raise RuntimeError(("The browser seemed to close.", "You may try another."))

    monkeypatch.setattr(plotly.io, "write_images", fails)
    section = Section("Which γ?", figure=speedup_by_gamma(curves(load("toy-20ms"))))
    with pytest.raises(ScenarioError, match="cannot be made: The browser seemed to close "):
        images.write_images([section], tmp_path / "drawn", ["png"], force=False)
    assert not (tmp_path / "drawn").exists()


def test_images_are_written(tmp_path: Path) -> None:
    pytest.importorskip("kaleido", reason="needs kaleido")
    try:
        images.check_images(["svg"])
    except ScenarioError as error:
        pytest.skip(str(error))
    section = Section("Which γ?", figure=speedup_by_gamma(curves(load("toy-20ms"))))
    names = images.write_images([section], tmp_path / "drawn", ["svg"], force=False)
    assert names == ["01-which-gamma.svg"]
    assert (tmp_path / "drawn" / names[0]).read_text(encoding="utf-8").startswith("<svg")


def counted_run(make_run: Any, reached: list[float], *sets: str) -> Any:
    """Make a run whose rounds kept at least 1, 2, … drafts in these shares."""
    found = record(make_run(sets=sets))
    figures = {
        **found.figures,
        "spec_decode_per_position_acceptance_rates": reached,
        "spec_decode_num_drafts": 400,
    }
    return dataclasses.replace(found, figures=figures)


def test_a_runs_rounds_stand_beside_the_law(make_run: Any) -> None:
    """Half of 400 rounds kept one draft or more, a fifth both: 1, 2, 3 tokens in .5, .3, .2."""
    run, law = counted_run(make_run, [0.5, 0.2]), curves(load("toy-20ms"))
    bars = named(tokens_per_round(law, run))
    assert list(bars["simulated"]["y"]) == pytest.approx([0.5, 0.3, 0.2])
    assert list(bars["closed form"]["y"]) == pytest.approx([0.5, 0.25, 0.25])
    points = named(acceptance_by_position(law, run))["unconditional, simulated"]
    assert list(points["y"]) == [0.5, 0.2]
    # Wilson (1927), n = 400, p = 1/2: 0.5 ± 0.04876
    assert points["error_y"]["array"][0] == pytest.approx(0.04876, abs=1e-5)
    assert set(named(acceptance_by_position(law))) == set(
        named(acceptance_by_position(law, counted_run(make_run, [])))
    )


def test_no_interval_where_the_rounds_of_a_request_are_alike(make_run: Any) -> None:
    mixed = ["speculation.acceptance={alpha: 0.5, concentration: 2}"]
    law = curves(load("toy-20ms", mixed))
    points = named(acceptance_by_position(law, counted_run(make_run, [0.5, 0.2])))
    assert "error_y" not in points["unconditional, simulated"]


def test_acceptance_shows_where_it_is_extrapolated() -> None:
    stated = ["speculation.acceptance.conditional=[.8, .7, .6]", "speculation.gamma=2"]
    extended = [*stated, "speculation.acceptance.extend=last_ratio"]
    assert not acceptance_by_position(curves(load("toy-20ms", stated)))["layout"]["shapes"]
    (border,) = acceptance_by_position(curves(load("toy-20ms", extended)))["layout"]["shapes"]
    assert border["x0"] == 3.5


def test_a_share_has_no_interval_beyond_all_requests() -> None:
    rows = [Attained(1.0, Interval(0.9, 0.2, 5)), Attained(2.0, Interval(0.05, 0.2, 5))]
    (trace,) = slo_attainment({"plain decoding": rows})["data"]
    assert list(trace["error_y"]["array"]) == pytest.approx([0.1, 0.2])
    assert list(trace["error_y"]["arrayminus"]) == pytest.approx([0.2, 0.05])


def test_a_step_that_is_rounding_is_not_drawn(make_run: Any) -> None:
    found = record(make_run())
    explained = {"closed_form_alone_s": 0.03, "clipping_s": -7e-18, "batch_growth_s": 0.01,
                 "prefill_s": 0.0, "rest_s": 0.001, "simulated_s": 0.041}  # fmt: skip
    figure = gap_steps(
        dataclasses.replace(found, figures={**found.figures, "closed_form": explained})
    )
    assert figure is not None
    (trace,) = figure["data"]
    assert trace["y"] == ["closed form alone", "batch growth", "rest", "simulated"]
    assert trace["measure"] == ["absolute", "relative", "relative", "total"]
    assert trace["x"] == pytest.approx([30, 10, 1, 41])


def test_what_is_no_phase_has_the_colour_of_none() -> None:
    assert not {LOWER, HIGHER} & {*PHASES.values(), PLAIN}
