"""Scenarios that no engine could run are refused before anything runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from specplan.scenarios.errors import ScenarioError
from specplan.sim.simulate import simulate

if TYPE_CHECKING:
    from collections.abc import Callable

    from specplan.scenarios.schema import Scenario


@pytest.mark.parametrize(
    ("sets", "named"),
    [
        (("scheduler.max_num_batched_tokens=2",), r"2 tokens.*γ \+ 1 = 3"),
        # The schedule may raise γ to 20, whatever it begins with: the loop would stand still there.
        (
            ("speculation.policy=hf_heuristic", "scheduler.max_num_batched_tokens=20"),
            r"20 tokens.*γ \+ 1 = 21",
        ),
        (("kv_cache={blocks: 4, block_tokens: 16}",), "hold not even one request"),
        (("draft.placement=shared",), "needs the delay between draft and target GPU"),
        (("draft.placement=dedicated",), "needs the delay between draft and target GPU"),
        (("draft.gpus=2",), "2 draft GPUs with placement colocated"),
        (("speculation.policy={by_batch: [[1, 3, 2], [5, 9, 0]]}",), "does not follow on"),
        (
            ("cluster.engines_per_gpu=2", "draft.placement=dedicated", "draft.transfer=0 ms"),
            "take turns on one GPU",
        ),
    ],
)
def test_contradictions(toy: Callable[..., Scenario], sets: tuple[str, ...], named: str) -> None:
    with pytest.raises(ScenarioError, match=named):
        toy(*sets)


def test_more_requests_than_memory_are_refused(toy: Callable[..., Scenario]) -> None:
    with pytest.raises(ScenarioError, match=r"10,000,000,000 requests would take .* --no-requests"):
        simulate(toy("workload.requests=10000000000"))
