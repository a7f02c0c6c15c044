"""What names a point: the scenario with all it reads, so that nothing stale is taken for it."""

from pathlib import Path

from specplan.scenarios.load import load
from specplan.sim.ledger import scenario_hash


def test_a_changed_trace_is_another_scenario(tmp_path: Path) -> None:
    trace = tmp_path / "trace.csv"
    rows = "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,374,44\n"
    trace.write_text(rows)
    lengths = "workload.prompt_tokens=trace", "workload.output_tokens=trace"
    scenario = load("toy-20ms", [f"workload.arrivals={{trace: '{trace}'}}", *lengths])
    before = scenario_hash(scenario)
    trace.write_text(rows + "2023-11-16 18:15:50.9951690,396,109\n")
    assert scenario_hash(scenario) != before
