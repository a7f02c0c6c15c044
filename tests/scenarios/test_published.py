"""Published measurements: the block refuses what proves nothing, and every file says its source."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from specplan.scenarios.closed_form import predict
from specplan.scenarios.errors import ScenarioError
from specplan.scenarios.load import load, published
from specplan.scenarios.schema_measured import Measured, MeasuredSeries

NAMES = sorted(published())
ROWS = [{"value": 4.37, "gamma": 2, "tau": 2.1, "role": "fit"}, {"value": 4.29, "gamma": 3}]
SERIES: dict[str, Any] = {
    "name": "a", "quantity": "tpot", "unit": "ms", "fit": "rounds", "tolerance": 0.05, "rows": ROWS,
}  # fmt: skip
BLOCK: dict[str, Any] = {
    "source": "a paper, Table 1", "read": "typed in", "digitisation_error": 0.01,
    "series": [SERIES],
}  # fmt: skip


def refused(changes: dict[str, Any]) -> str:
    with pytest.raises(ValidationError) as caught:
        MeasuredSeries.model_validate(SERIES | changes)
    return str(caught.value)


@pytest.mark.parametrize("name", NAMES)
def test_a_published_scenario(name: str) -> None:
    scenario = load(name)
    assert scenario.name == name
    assert scenario.record.gaps() == []
    assert scenario.measured is not None
    assert scenario.measured.source
    assert float(predict(scenario).tpot_s) > 0


def test_there_are_forty_points_of_ten_sources() -> None:
    blocks = [load(name).measured for name in NAMES]
    tested = [
        row
        for block in blocks
        if block
        for series in block.series
        for row in series.rows
        if row.role == "test" and not series.simulated
    ]
    assert len(tested) >= 40
    assert len(NAMES) >= 10


@pytest.mark.parametrize("missing", ["source", "read", "digitisation_error"])
def test_a_block_without_source_or_reading_is_refused(missing: str) -> None:
    Measured.model_validate(BLOCK)
    with pytest.raises(ValidationError, match=missing):
        Measured.model_validate({key: value for key, value in BLOCK.items() if key != missing})
    with pytest.raises(ValidationError, match="source"):
        Measured.model_validate(BLOCK | {"source": ""})


def test_a_series_without_unit_is_refused() -> None:
    with pytest.raises(ValidationError, match="unit"):
        MeasuredSeries.model_validate({k: v for k, v in SERIES.items() if k != "unit"})
    assert "no unit of tpot" in refused({"unit": "tok/s"})
    assert "no unit of tpot" in refused({"unit": "furlongs"})


def test_a_fit_row_that_is_tested_too_is_refused() -> None:
    twice = [*ROWS, {"value": 4.37, "gamma": 2, "tau": 2.1, "role": "test"}]
    assert "fitted and tested, too" in refused({"rows": twice})


def test_fit_rows_and_what_is_fitted_go_together() -> None:
    assert "role fit" in refused({"fit": "nothing"})
    assert "role fit" in refused({"rows": ROWS[1:]})
    assert "solves" in refused({"fit": "solve"})
    assert "rate needs gamma" in refused({"rows": [ROWS[0], {"value": 4, "rate": 0.5}]})
    empty = {"value": 4, "role": "fit", "solves": {"field": "seed", "between": [2, 1]}}
    assert "is empty" in refused({"fit": "solve", "rows": [empty, ROWS[1]]})


def test_the_fault_stands_at_its_line(tmp_path: Path) -> None:
    text = Path(published()["eagle1-llama3-8b-vllm"]).read_text(encoding="utf-8")
    path = tmp_path / "mine.yaml"
    path.write_text(text.replace("      unit: ms\n", ""), encoding="utf-8")
    with pytest.raises(ScenarioError, match=r"mine\.yaml:\d+:\d+: measured\.series\.0\.unit"):
        load(path)
