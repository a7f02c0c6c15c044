"""Requests as they are asked for: moments of arrivals, shares of classes, lengths, luck."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from specplan.sim.luck import request_keys, request_uniforms

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from specplan.sim.records import Run

SHORT = ("speculation.method=none", "workload.output_tokens=1", "target.round=1 us",
         "target.step=1 us")  # fmt: skip
MANY = 40_000  # more than two of the chunks in which requests are made


@pytest.mark.parametrize("burstiness", [0.25, 1.0, 4.0])
def test_gamma_arrivals(run: Callable[..., Run], burstiness: float) -> None:
    """Gaps of mean 1/λ and squared coefficient of variation 1/k, as `vllm bench serve` has them."""
    done = run(
        *SHORT,
        f"workload.arrivals={{rate: 8/s, burstiness: {burstiness}}}",
        f"workload.requests={MANY}",
    )
    gaps_s = np.diff(done.requests["arrival_s"], prepend=0.0)
    variance = 1 / (64 * burstiness)
    assert gaps_s.mean() == pytest.approx(1 / 8, abs=4.5 * np.sqrt(variance / MANY))
    fourth = variance**2 * (3 + 6 / burstiness)
    error = 4.5 * np.sqrt((fourth - variance**2) / MANY)
    assert gaps_s.var() == pytest.approx(variance, abs=error)
    assert abs(np.corrcoef(gaps_s[1:], gaps_s[:-1])[0, 1]) < 4.5 / np.sqrt(MANY)


def test_on_and_off(run: Callable[..., Run]) -> None:
    done = run(
        *SHORT,
        "workload.arrivals={on_off: {rate: 20/s, on: 2 s, off: 3 s}}",
        f"workload.requests={MANY}",
    )
    arrival_s = done.requests["arrival_s"]
    assert np.all(np.diff(arrival_s) >= 0)
    assert np.all(arrival_s % 5 <= 2)
    counts = np.bincount((arrival_s // 5).astype(int))[:-1]  # Poisson with mean 40 a period
    assert counts.mean() == pytest.approx(40, abs=4.5 * np.sqrt(40 / len(counts)))
    assert counts.var() == pytest.approx(40, rel=4.5 * np.sqrt(2 / len(counts)) + 0.02)


def test_interval_and_everything_at_once(run: Callable[..., Run]) -> None:
    done = run(*SHORT, "workload.arrivals={interval: 250 ms}", "workload.requests=5")
    assert done.requests["arrival_s"].tolist() == [0, 0.25, 0.5, 0.75, 1.0]
    done = run(*SHORT, "workload.arrivals={rate: inf}", "workload.requests=5")
    assert done.requests["arrival_s"].tolist() == [0] * 5


def test_time_of_a_trace_is_scaled(run: Callable[..., Run], tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text(
        "TIMESTAMP,ContextTokens,GeneratedTokens\r\n2023-11-16 18:15:46.6805900,374,44\r\n"
        "2023-11-16 18:15:50.9951690,396,109\r\n2023-11-16 18:15:51.2225670,879,55\r\n"
    )
    done = run(
        f"workload.arrivals={{trace: {path}, time_scale: 2}}",
        "workload.requests=null",
        "workload.prompt_tokens=null",
        "workload.output_tokens=null",
        "target.prefill={per_token: 0 us}",
    )
    assert done.requests["arrival_s"] == pytest.approx([0, 2 * 4.314579, 2 * 4.541977])
    assert done.requests["prompt_tokens"].tolist() == [374, 396, 879]
    assert done.requests["output_tokens"].tolist() == [44, 109, 55]


def test_shares_and_lengths_of_classes(run: Callable[..., Run]) -> None:
    done = run(
        *SHORT,
        "workload.classes={chat: {weight: 3}, code: {weight: 1, output_tokens: "
        "{lognormal: {mean: 40, sigma: 0.5}}}, long: {weight: 1, output_tokens: {choice: [7, 9]}}}",
        "workload.output_tokens={uniform: [1, 5]}",
        "workload.requests=20000",
    )
    cls, output = done.requests["cls"], done.requests["output_tokens"]
    shares = np.bincount(cls) / 20000
    assert shares == pytest.approx([0.6, 0.2, 0.2], abs=4.5 * np.sqrt(0.24 / 20000))
    assert set(output[cls == 0]) == {1, 2, 3, 4, 5}
    assert set(output[cls == 2]) == {7, 9}
    code = output[cls == 1]
    assert code.mean() == pytest.approx(40, abs=4.5 * code.std() / np.sqrt(len(code)))
    assert np.log(code).std() == pytest.approx(0.5, rel=0.03)


def test_luck_is_uniform_and_purposes_are_unrelated() -> None:
    numbers = np.arange(100_000)
    drawn = [request_uniforms(7, numbers, purpose) for purpose in (1, 2, 3)]
    drawn.append(request_uniforms(8, numbers, 1))
    for one in drawn:
        assert one.min() >= 0
        assert one.max() < 1
        counts = np.bincount((one * 100).astype(int), minlength=100)
        chi_squared = ((counts - 1000) ** 2 / 1000).sum()
        assert 40 < chi_squared < 190  # 99 degrees of freedom: mean 99, deviation 14
        assert abs(np.corrcoef(one[1:], one[:-1])[0, 1]) < 4.5 / np.sqrt(len(numbers))
    related = np.corrcoef(drawn) - np.eye(len(drawn))
    assert np.abs(related).max() < 4.5 / np.sqrt(len(numbers))
    assert len(np.unique(request_keys(7, numbers))) == len(numbers)


def test_rounds_of_one_request_are_unrelated(run: Callable[..., Run]) -> None:
    """γ 1, α .5: a request of n tokens is n − 1 fair coins; rounds have the variance of coins.

    Rounds to commit n with steps of 1 or 2 at 1/2 each: variance of a renewal count, n σ²/τ³.
    """
    made = run(
        "speculation.gamma=1", "workload.output_tokens=3000", "workload.requests=400"
    ).requests["rounds"]
    assert made.mean() == pytest.approx(
        3000 / 1.5, abs=4.5 * np.sqrt(3000 * 0.25 / 1.5**3 / 400) + 0.4
    )
    assert made.var() == pytest.approx(3000 * 0.25 / 1.5**3, rel=4.5 * np.sqrt(2 / 400))
