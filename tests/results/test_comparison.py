"""Two runs on the same luck: what differs, how surely, and in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from specplan.results import metrics
from specplan.results.compare.differences import differences
from specplan.results.compare.ranking import Compared, verdict

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from specplan.sim.records import Run


def _faster(n: int = 200) -> dict[str, Any]:
    """The run of `make_run` with its second round at 80 ms instead of 100 ms."""
    arrival = 0.2 * np.arange(n)
    return {"first_token_s": arrival + 0.1, "finish_s": arrival + 0.18}


def test_differences_are_b_minus_a(make_run: Callable[..., Run]) -> None:
    found = {d.name: d for d in differences(make_run(), make_run(requests=_faster()))}
    assert found["mean TPOT"].difference.mean == pytest.approx(-20 / 3)  # 20 ms over 3 tokens
    assert found["mean E2EL"].difference.mean == pytest.approx(-20)
    assert found["mean TTFT"].difference.mean == pytest.approx(0, abs=1e-9)
    assert found["mean TPOT"].ratio == pytest.approx(100 / 80)
    assert found["mean TPOT"].verdict == "better"
    assert found["mean TTFT"].verdict == "no difference"


def test_verdict_in_words(make_run: Callable[..., Run]) -> None:
    found = differences(make_run(), make_run(requests=_faster()))
    assert verdict(found, ("plain", "eagle"), (False, False)).startswith(
        "eagle against plain: faster per token, 1.25x (33.33 to 26.67 ms"
    )
    back = differences(make_run(requests=_faster()), make_run())
    assert "slower per token, 0.8x" in verdict(back, ("eagle", "plain"), (False, False))


def test_equal_runs_do_not_differ(make_run: Callable[..., Run]) -> None:
    found = differences(make_run(), make_run())
    says = verdict(found, "AB", (False, False), "20 replications")
    assert says == "B against A: no difference in time per token that 20 replications can see"


def test_few_requests_decide_nothing(make_run: Callable[..., Run]) -> None:
    found = differences(make_run(20), make_run(20, requests=_faster(20)))
    assert "too few requests" in verdict(found, "AB", (False, False))


def test_saturation_is_said_first(make_run: Callable[..., Run]) -> None:
    found = differences(make_run(), make_run())
    assert verdict(found, ("plain", "eagle"), (True, False)) == (
        "plain is saturated at this load and eagle is not: no latency to compare"
    )
    assert "compare throughput" in verdict(found, "AB", (True, True))


def test_only_requests_that_both_completed_are_paired(make_run: Callable[..., Run]) -> None:
    status = np.zeros(200, np.int64)
    status[::2] = 1
    finish = np.where(status == 1, np.nan, 0.2 * np.arange(200) + 0.2)
    found = differences(make_run(), make_run(requests={"status": status, "finish_s": finish}))
    assert next(d for d in found if d.name == "mean E2EL").difference.mean == pytest.approx(
        0, abs=1e-9
    )


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["toy-20ms"], "no B to compare with"),
        (["toy-20ms", "toy-50ms", "--without-speculation"], "both given"),
    ],
)
def test_exactly_one_other_side(
    specplan_cli: Callable[..., Any], arguments: list[str], says: str
) -> None:
    found = specplan_cli("compare", *arguments)
    assert found.code == 2
    assert says in found.err


def _ranked(*runs: Run, names: str) -> Compared:
    return Compared(
        tuple(names),
        tuple(metrics.summary(run) for run in runs),
        (1,),
        "one run of 200 requests",
        lambda a, b: differences(runs[a], runs[b]),
    )


def _slower(n: int = 200) -> dict[str, Any]:
    """The run of `make_run` with its second round at 120 ms instead of 100 ms."""
    arrival = 0.2 * np.arange(n)
    return {"first_token_s": arrival + 0.1, "finish_s": arrival + 0.22}


def test_more_than_two_are_ranked_and_ties_share_a_rank(make_run: Callable[..., Run]) -> None:
    """TPOT 40, 100/3, 100/3 and 80/3 ms: D, then A and C, then B."""
    runs = make_run(), make_run(requests=_slower()), make_run(), make_run(requests=_faster())
    made = _ranked(*runs, names="ABCD")
    assert [(one.rank, one.name, one.tied) for one in made.ranking] == [
        (1, "D", False),
        (2, "A", False),
        (2, "C", True),
        (4, "B", False),
    ]
    assert made.summary().startswith("fastest per token: D; D against A: faster per token, 1.25x")
    assert "slower per token, 0.833x" in made.verdict(1)
    value = made.json()
    assert value["baseline"] == "A"
    tpot = value["comparisons"]["B"]["differences"]["mean_tpot_ms"]
    assert tpot["difference"] == pytest.approx(20 / 3)
    assert "differences" not in value  # of two only, where there is no doubt between which


def test_a_tie_for_the_first_rank_is_no_winner(make_run: Callable[..., Run]) -> None:
    made = _ranked(make_run(), make_run(), make_run(requests=_slower()), names="ABC")
    assert made.summary() == (
        "fastest per token: A and B (no difference that one run of 200 requests can see)"
    )


def test_the_saturated_are_ranked_last_by_throughput(make_run: Callable[..., Run]) -> None:
    late = {"finish_s": 0.2 * np.arange(200) + 0.25}
    made = _ranked(
        make_run(saturated=True),
        make_run(requests=_slower()),
        make_run(saturated=True),
        make_run(saturated=True, requests=late, duration_s=80.0),
        names="ABCD",
    )
    assert [one.name for one in made.ranking] == ["B", "A", "C", "D"]
    assert "A is saturated at this load and B is not" in made.summary()


SMALL = ("--set", "workload.requests=200", "--set", "workload.output_tokens=40")


def test_three_scenarios_and_their_page(specplan_cli: Callable[..., Any], tmp_path: Path) -> None:
    """20 and 50 ms of draft and 114.2857 ms at 50 ms: 80 ms a token against 114 (MODEL.md § 3)."""
    out = tmp_path / "out"
    words = ("compare", "toy-50ms", "toy-20ms", "toy-20ms", *SMALL)
    said = specplan_cli(*words, "--json", "-o", out)
    assert said.code == 0
    assert [(r["rank"], r["scenario"]) for r in said.json["ranking"]] == [
        (1, "toy-20ms (B)"),
        (1, "toy-20ms (C)"),
        (3, "toy-50ms"),
    ]
    page = (out / "compare.html").read_text(encoding="utf-8")
    assert "toy-20ms (B) against toy-50ms: faster per token" in page
    assert sorted(path.name for path in out.iterdir() if path.is_dir()) == ["a", "b", "c"]
    text = specplan_cli(*words).out
    assert max(map(len, text.splitlines())) <= 80
    assert "fastest per token: toy-20ms (B) and toy-20ms (C)" in text.replace("\n", " ")


def test_the_number_of_replications_is_said(specplan_cli: Callable[..., Any]) -> None:
    words = ("compare", "toy-20ms", "toy-20ms", *SMALL, "--replications", "3", "--workers", "1")
    assert "that 3 replications can see" in specplan_cli(*words).out.replace("\n", " ")


def test_luck_in_common_is_asked_of_all(specplan_cli: Callable[..., Any], tmp_path: Path) -> None:
    other = tmp_path / "other.yaml"
    other.write_text("""\
name: other
seed: 9
target: {round: 100 ms}
workload: {arrivals: {streams: 1}, requests: 1000, output_tokens: 128}
""")
    said = specplan_cli("compare", "toy-20ms", "toy-50ms", other)
    assert said.code == 2
    assert "seed: 1 in A and 9 in C" in said.err
