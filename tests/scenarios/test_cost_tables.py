"""Reading measured tables: three formats, one meaning, and every fault with its line."""

import json
from pathlib import Path

import pandas as pd
import pytest

from specplan.scenarios.closed_form import predict
from specplan.scenarios.cost_tables import read_cost_table
from specplan.scenarios.errors import ScenarioError
from specplan.scenarios.importers.costs_files import read_pass_times
from specplan.scenarios.load import load

GOOD = "batch,width,ms\n1,1,10\n1,5,12\n8,1,14\n8,5,20\n"


def written(folder: Path, text: str, name: str = "costs.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def faults(path: Path) -> list[str]:
    with pytest.raises(ScenarioError) as error:
        read_cost_table(path)
    return [str(fault).removeprefix(str(path)) for fault in error.value.faults]


def test_csv_json_and_parquet_agree(tmp_path: Path) -> None:
    rows = [
        {"batch": b, "width": w, "verify_us": us}
        for b, w, us in ((1, 1, 10_000), (1, 5, 12_000), (8, 1, 14_000), (8, 5, 20_000))
    ]
    pd.DataFrame(rows).to_parquet(tmp_path / "costs.parquet")
    paths = [
        written(tmp_path, GOOD),
        written(tmp_path, json.dumps(rows), "costs.json"),
        tmp_path / "costs.parquet",
    ]
    for path in paths:
        priced = read_cost_table(path)
        assert priced.seconds(1, 3) == pytest.approx(0.011)
        assert (priced.provenance, priced.source) == ("measured", str(path))


def test_context_axis_and_order_of_rows(tmp_path: Path) -> None:
    text = "latency_s,context_tokens,width,batch\n2,1000,1,1\n1,0,1,1\n"
    assert read_cost_table(written(tmp_path, text)).seconds(1, 1, 500) == 1.5


def test_rules_are_passed_on(tmp_path: Path) -> None:
    path = written(tmp_path, GOOD)
    assert read_cost_table(path, pads_batch=True).seconds(2, 1) == pytest.approx(0.014)
    with pytest.warns(UserWarning, match="rule 'hold'"):
        read_cost_table(path, outside="hold").seconds(9, 1)


def test_numbers_that_are_none_and_times_not_positive(tmp_path: Path) -> None:
    text = "batch,width,ms\n1,1,0\nx,2,3\n0,1,3\n1,3,-1\n"
    assert faults(written(tmp_path, text)) == [
        ":2: ms: is '0' (a time above 0)",
        ":3: batch: is 'x' (a number, 1 or more)",
        ":4: batch: is '0' (a number, 1 or more)",
        ":5: ms: is '-1' (a time above 0)",
    ]


def test_duplicates_and_holes(tmp_path: Path) -> None:
    text = "batch,width,ms\n1,1,10\n1,5,12\n1,1,11\n8,1,14\n"
    assert faults(written(tmp_path, text)) == [
        ":4: batch 1, width 1, context 0 is there already, on line 2 "
        "(each point once: take the median)",
        ": batch 8, width 5, context 0 is not measured (every batch with every width)",
    ]


def test_many_holes_are_counted(tmp_path: Path) -> None:
    text = "batch,width,ms\n" + "".join(f"{n},{n},1\n" for n in range(1, 5))
    says = faults(written(tmp_path, text))
    assert len(says) == 6
    assert says[-1].startswith(": 7 more points are not measured")


def test_units_and_columns(tmp_path: Path) -> None:
    assert faults(written(tmp_path, "batch,width,latency\n1,1,10\n")) == [
        ":1: column latency has no unit (a column named latency_ms, _us, _ns or _s)"
    ]
    assert faults(written(tmp_path, "tokens,x\n1,1\n")) == [
        ":1: column batch is missing (a column named batch or batch_size or sequences)",
        ":1: column width is missing (a column named width or tokens_per_sequence or query_len)",
        ":1: no column holds a time (a column named pass_ms, _us, _ns or _s)",
    ]
    assert faults(written(tmp_path, "batch,width,mean_ms,p99_ms\n1,1,1,2\n")) == [
        ":1: columns mean_ms, p99_ms are all times (one column of times)"
    ]


def test_times_per_token_are_refused(tmp_path: Path) -> None:
    text = "batch,width,ms\n1,1,1\n1,2,0.605\n"
    says = "at batch 1 width 1 takes 1 ms and width 2 0.605 ms (times of whole passes"
    assert says in faults(written(tmp_path, text))[0]


def test_report_c24_a_curve_per_token(tmp_path: Path) -> None:
    # per-token cost relative to width 1, with 1 ms for it: 1, .605, .473 …, .32 at width 8
    curve = (1, 0.605, 0.473, 0.408, 0.374, 0.351, 0.334, 0.32)
    rows = "".join(f"1,{width},{value}\n" for width, value in enumerate(curve, start=1))
    cost = read_cost_table(written(tmp_path, "batch,width,ms_per_token\n" + rows))
    assert float(cost.seconds(1, 8) / cost.seconds(1, 1)) == pytest.approx(2.56, rel=0.01)
    assert float(cost.seconds(1, 2)) == pytest.approx(1.21e-3)


def test_another_separator_and_decimal_commas(tmp_path: Path) -> None:
    assert faults(written(tmp_path, "batch;width;ms\n1;1;10\n")) == [
        ":1: columns are separated by ';' (commas, and decimal points)"
    ]
    assert faults(written(tmp_path, 'batch,width,ms\n1,1,"10,5"\n')) == [
        ":2: ms: is '10,5' (a time above 0, with a decimal point)"
    ]


def test_leaving_the_table_names_its_file_and_the_field(tmp_path: Path) -> None:
    path = written(tmp_path, GOOD)
    sets = ["workload.arrivals.streams=16", "scheduler.max_num_seqs=16"]
    whole = load("toy-20ms", [*sets, f"target.round={{table: {path}}}", "target.step=10 ms"])
    draft = load("toy-20ms", [*sets, f"draft.step={{table: {path}}}"])
    for scenario, field in ((whole, "target.round"), (draft, "draft.step")):
        with pytest.raises(ScenarioError) as error:
            predict(scenario)
        assert f"{field}: {path}: batch 16, width " in str(error.value)
        assert "is outside the cost table: batch 1 to 8, width 1 to 5 (" in str(error.value)


def test_files_that_are_no_table(tmp_path: Path) -> None:
    assert faults(tmp_path / "none.csv") == [
        ": cannot be read: No such file or directory (a table of pass times)"
    ]
    assert "has no rows" in faults(written(tmp_path, "batch,width,ms\n"))[0]
    assert "is not a table: not a list of objects" in faults(written(tmp_path, "{}", "a.json"))[0]
    assert ".xlsx ending is not known" in faults(written(tmp_path, "", "a.xlsx"))[0]


def test_rows_of_json_are_named_by_number(tmp_path: Path) -> None:
    text = json.dumps([{"batch": 1, "width": 1, "ms": 1}, {"batch": 1, "width": 2, "ms": None}])
    assert faults(written(tmp_path, text, "a.json")) == [": row 2 ms: is None (a time above 0)"]


# Report C24 (ggml-org/llama.cpp#17034): one curve, as totals of a pass and per token of it.
TOTALS = "batch,width,relative\n1,1,1\n1,2,1.21\n1,4,1.63\n1,8,2.56\n"
PER_TOKEN = "batch,width,relative_per_token\n1,1,1\n1,2,0.605\n1,4,0.408\n1,8,0.32\n"


@pytest.mark.parametrize("text", [TOTALS, PER_TOKEN])
def test_ratios_to_a_plain_step(tmp_path: Path, text: str) -> None:
    path = written(tmp_path, text)
    cost = read_cost_table(path, step_s=0.040)
    assert float(cost.seconds(1, 8)) == pytest.approx(2.56 * 0.040, rel=0.01)
    assert float(cost.seconds(1, 1)) == 0.040
    scenario = load("toy-20ms", [f"target.round={{table: {path}, relative_to: 40 ms}}"])
    assert float(scenario.target_round().seconds(1, 2)) == pytest.approx(1.21 * 0.040)
    ((passes,), _) = read_pass_times([path], step_s=0.040)
    assert passes.verify_ratios()[-1] == pytest.approx((1, 8, 2.56))
    assert passes.notes == ("ratios, counted in plain steps of 40 ms",)


def test_ratios_without_a_step_and_a_step_without_ratios(tmp_path: Path) -> None:
    path = written(tmp_path, TOTALS)
    with pytest.raises(ScenarioError, match="the ratios are to a plain step, and none is stated"):
        read_cost_table(path)
    with pytest.raises(ScenarioError, match="relative_to, and no ratios to count"):
        read_cost_table(written(tmp_path, "batch,width,ms\n1,1,10\n1,2,11\n"), step_s=0.04)
    falling = written(tmp_path, PER_TOKEN.replace("_per_token", ""))
    with pytest.raises(ScenarioError, match="times of whole passes"):
        read_cost_table(falling, step_s=0.04)
