"""Two runs on the same luck: what differs, how surely, and in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from specplan.results.comparison import verdict
from specplan.results.differences import differences

if TYPE_CHECKING:
    from collections.abc import Callable

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
    assert "no difference" in verdict(differences(make_run(), make_run()), "AB", (False, False))


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
