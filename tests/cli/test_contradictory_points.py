"""`specplan calibrate`: measurements that cannot all be true are refused with both numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    Cli = Callable[..., Any]

FIRST = "gamma=3 404.25 tok/s tau=2.8981"  # a round of 7.169 ms


def _calibrate(cli: Cli, *points: str, baseline: str = "5.264 ms") -> Any:
    words = [word for point in points for word in ("--point", point)]
    return cli("calibrate", "--baseline", baseline, *words)


def _refused(found: Any) -> str:
    assert (found.code, found.out) == (2, "")
    assert len(found.err.splitlines()) == 1
    return str(found.err)


def test_two_rounds_at_one_gamma(specplan_cli: Cli) -> None:
    says = _refused(_calibrate(specplan_cli, FIRST, "gamma=3 300 tok/s tau=2.8"))
    assert "γ = 3" in says
    assert "7.169 ms" in says
    assert "9.333 ms" in says  # 2.8 / 300


def test_repeats_within_the_scatter_are_averaged_and_named(specplan_cli: Cli) -> None:
    out = " ".join(_calibrate(specplan_cli, FIRST, "gamma=3 380 tok/s tau=2.8").out.split())
    assert "constant: 7.26875 ms" in out  # (2.8981 / 404.25 + 2.8 / 380) / 2
    assert "acceptance_length: 2.84905" in out
    assert "mean of 2 measured points: gamma=3 404.25" in out


def test_rounds_alike_of_another_acceptance_are_not_averaged(specplan_cli: Cli) -> None:
    out = " ".join(_calibrate(specplan_cli, FIRST, "gamma=3 280 tok/s tau=2").out.split())
    assert "source: >- 1 measured point: gamma=3 404.25 tok/s tau=2.8981 step" in out
    assert "the fastest point stands here, not gamma=3 280 tok/s tau=2" in out


def test_two_baselines(specplan_cli: Cli) -> None:
    says = _refused(_calibrate(specplan_cli, FIRST, "gamma=0 300 tok/s", baseline="5 ms"))
    assert "3.333 ms" in says
    assert "5 ms" in says
    alike = _calibrate(specplan_cli, FIRST, "gamma=0 200 tok/s", baseline="5.1 ms")
    assert alike.code == 0


def test_a_round_shorter_than_a_step(specplan_cli: Cli) -> None:
    found = _calibrate(specplan_cli, "gamma=3 800 tok/s tau=2.8", baseline="5 ms")
    assert found.code == 1
    assert "γ = 3 impossible" in " ".join(found.out.split())
    assert "pays:" not in found.out
    (last,) = found.err.splitlines()
    assert "3.5 ms is shorter than a plain step of 5 ms" in last


@pytest.mark.parametrize(
    ("baseline", "point", "words"),
    [
        ("5 ms", "gamma=3 300 tok/s tau=4.8", "τ = 4.8 is above γ + 1 = 4"),
        ("5 ms", "gamma=3 300 tok/s tau=nan", "tau=nan: `nan` is not finite"),
        ("5 ms", "gamma=3 300 tok/s tau=-1", "tau=-1: `-1` is below 0"),
        ("5 ms", "gamma=3 300 tok/s tau=2 batch=0", "batch=0: `0` is less than one sequence"),
        ("0 ms", FIRST, "--baseline 0 ms: "),
        ("fast", FIRST, "--baseline fast: "),
    ],
)
def test_bad_input(specplan_cli: Cli, baseline: str, point: str, words: str) -> None:
    assert words in _refused(_calibrate(specplan_cli, point, baseline=baseline))


def test_no_residual_is_minus_zero(specplan_cli: Cli) -> None:
    points = (FIRST, "gamma=5 300 tok/s tau=1.5")
    assert "-0.0 %" not in _refused(_calibrate(specplan_cli, *points))


@pytest.mark.parametrize(
    ("point", "words"),
    [
        # 1.9 of at most 3 · 0.3 = 0.9 accepted
        ("gamma=3 404 tok/s tau=2.9 rate=.3", "tau says τ = 2.9, rate 1.9"),
        # 1 + .7 + .49 + .343
        ("gamma=3 404 tok/s tau=2.9 alpha=.7", "tau says τ = 2.9, alpha 2.533"),
        ("gamma=2 404 tok/s tau=2 accepted_per_round=1.2", "accepted_per_round 2.2"),
        ("gamma=2 404 tok/s tau=2 rounds=100 drafted=200 accepted=50", "τ = 2, accepted 1.5"),
        ("gamma=2 404 tok/s rate=.4 alpha=.9", "alpha says τ = 2.71, rate 1.8"),
    ],
)
def test_two_statements_of_acceptance(specplan_cli: Cli, point: str, words: str) -> None:
    assert words in _refused(_calibrate(specplan_cli, point))


def test_plain_decoding_yields_one_token(specplan_cli: Cli) -> None:
    says = _refused(_calibrate(specplan_cli, "gamma=0 200 tok/s tau=2"))
    assert "gamma says τ = 1, tau 2" in says


def test_a_rate_of_rounds_that_stopped_early_is_no_contradiction(specplan_cli: Cli) -> None:
    out = " ".join(_calibrate(specplan_cli, "gamma=3 404 tok/s tau=2.9 rate=.9").out.split())
    assert "drafted 2.11 of γ = 3 in a mean round" in out  # 1.9 / 0.9
    assert "iid α" not in out


def test_a_baseline_of_another_batch_gives_no_speedup(specplan_cli: Cli) -> None:
    point = "gamma=3 1204 tok/s tau=2.9 batch=8"
    found = _calibrate(specplan_cli, point, baseline="12 ms")
    assert found.code == 1
    out = " ".join(found.out.split())
    assert "pays" not in out
    assert "state batch=8 in it" in out
    alike = _calibrate(specplan_cli, point, baseline="12ms batch=8")
    assert "1.806x" in alike.out  # 12 ms · 1204 / 8
    assert alike.code == 0


def test_a_mean_gamma_is_diagnosed_and_gives_no_scenario(specplan_cli: Cli) -> None:
    found = _calibrate(specplan_cli, "gamma=3.5 404 tok/s tau=2.9")
    assert found.code == 1
    assert "γ = 3.5 pays" in " ".join(found.out.split())
    assert "γ = 3.5 is a mean" in found.err


def test_a_round_that_contradicts_the_time_per_token(specplan_cli: Cli) -> None:
    found = _calibrate(specplan_cli, "gamma=3 404 tok/s tau=2.9 round=5.5ms")
    assert found.code == 1
    says = "τ = 2.9 and the round say 1.897 ms a token, and 2.475 ms is stated"  # 5.5/2.9, 1/404
    assert says in found.err
    assert _calibrate(specplan_cli, "gamma=3 404 tok/s tau=2.9 round=6.8ms").code == 0  # 5 % off
