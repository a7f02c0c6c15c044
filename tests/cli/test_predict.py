"""`specplan predict`: the seed cases, the keys, the words."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

# MODEL.md §5, the keys of `predict --json`.
KEYS = {
    "tokens_per_round", "tokens_per_round_variance", "round_s", "round_cost_ratio", "tpot_s",
    "baseline_tpot_s", "speedup", "break_even_alpha", "break_even_draft_step_s", "best_gamma",
    "best_gamma_speedup", "speedup_perfect_draft", "speedup_free_draft", "operations_factor",
    "target_reads_per_token", "rounds", "draft_steps", "generation_s",
}  # fmt: skip


def test_seed_case_that_pays(specplan_cli: Callable[..., Any]) -> None:
    """MODEL.md §3: γ 2, α .5, T = V = 100 ms, d = 20 ms → E 1.75, R 140 ms, 80 ms, 1.25×."""
    found = specplan_cli("predict", "toy-20ms", "--json").json
    assert set(found) >= KEYS
    assert found["tokens_per_round"] == pytest.approx(1.75, abs=1e-9)
    assert found["round_s"] == pytest.approx(0.14, abs=1e-9)
    assert found["tpot_s"] == pytest.approx(0.08, abs=1e-9)
    assert found["speedup"] == pytest.approx(1.25, abs=1e-9)
    assert found["rounds"] == pytest.approx(73.46938775510203, abs=1e-9)  # issue 2, n = 128


def test_seed_case_that_does_not(specplan_cli: Callable[..., Any]) -> None:
    """d = 50 ms: 114.2857 ms, 0.875×; 1 + α + α² = R/T = 2 at α = (√5 − 1)/2."""
    found = specplan_cli("predict", "toy-50ms", "--json").json
    assert found["tpot_s"] == pytest.approx(0.8 / 7, abs=1e-9)
    assert found["speedup"] == pytest.approx(0.875, abs=1e-9)
    assert found["round_cost_ratio"] == pytest.approx(2.0, abs=1e-9)
    assert found["break_even_alpha"] == pytest.approx((5**0.5 - 1) / 2, abs=1e-9)
    assert found["break_even_draft_step_s"] == pytest.approx(0.0375, abs=1e-9)
    assert found["best_gamma"] == 0
    assert found["speedup_perfect_draft"] == pytest.approx(1.5, abs=1e-9)  # 3 tokens per 200 ms
    assert found["speedup_free_draft"] == pytest.approx(1.75, abs=1e-9)


def test_the_words_give_the_reason(specplan_cli: Callable[..., Any]) -> None:
    text = " ".join(specplan_cli("predict", "toy-50ms").out.split())
    assert "slower than plain decoding, 0.875x" in text
    assert "114.29 ms against 100 ms plain" in text
    assert "R/T = 2" in text
    assert "yields 1.75 tokens" in text
    assert "α 0.618 (now 0.5), or a draft step of 37.5 ms (now 50 ms)" in text
    assert "perfect draft 1.5x, free draft 1.75x" in text


def test_claims_stay_on_lines_of_their_own(specplan_cli: Callable[..., Any]) -> None:
    lines = specplan_cli("predict", "toy-20ms").out.splitlines()
    assert any(line.startswith("Arithmetic") and "operations factor" in line for line in lines)
    assert any(line.startswith("Memory traffic") and "0.5714 reads" in line for line in lines)


def test_plain_and_narrow_when_piped(specplan_cli: Callable[..., Any]) -> None:
    out = specplan_cli("predict", "toy-20ms").out
    assert "\x1b" not in out
    assert max(len(line.rstrip()) for line in out.splitlines()) <= 80


def test_no_acceptance_can_pay(specplan_cli: Callable[..., Any]) -> None:
    """R/T = 11 above γ + 1 = 3 tokens: no break-even α exists."""
    found = specplan_cli("predict", "toy-20ms", "--set", "draft.step=500 ms", "--json").json
    assert found["break_even_alpha"] is None
    text = specplan_cli("predict", "toy-20ms", "--set", "draft.step=500 ms").out
    assert "no acceptance can pay" in " ".join(text.split())


def test_baseline(specplan_cli: Callable[..., Any]) -> None:
    found = specplan_cli("predict", "toy-20ms", "--set", "speculation.method=none")
    assert "plain decoding: nothing is proposed" in found.out
    assert specplan_cli("predict", "toy-20ms", "--set", "speculation.gamma=0", "--json").json[
        "speedup"
    ] == pytest.approx(1.0, abs=1e-12)


def test_free_draft_is_said(specplan_cli: Callable[..., Any]) -> None:
    text = specplan_cli("predict", "toy-20ms", "--set", "draft.step=0 ms").out
    assert "1.75x" in text


def test_the_tree_of_a_budget_is_shown(specplan_cli: Callable[..., Any]) -> None:
    """Ranks .6 and .2, four nodes: the chain, .6 + .36 + .216 (by hand: a second child adds .2)."""
    sets = ("method=tree", "gamma=null", "tree={budget: 4}", "acceptance={ranks: [0.6, 0.2]}")
    asked = [word for one in sets for word in ("--set", f"speculation.{one}")]
    text = " ".join(specplan_cli("predict", "toy-20ms", *asked).out.split())
    assert "4 nodes with the root, depth 3: 1, 1, 1 by level; no tree of this size" in text
    found = specplan_cli("predict", "toy-20ms", *asked, "--json").json
    assert found["tree"] == [[0], [0, 0], [0, 0, 0]]
    assert found["tokens_per_round"] == pytest.approx(1 + 0.6 + 0.36 + 0.216)


def test_every_key_of_predict_is_documented(specplan_cli: Callable[..., Any]) -> None:
    page = Path(__file__).parents[2] / "docs" / "model.md"
    if not page.is_file():
        pytest.skip("the docs are not beside the tests")
    found = specplan_cli("predict", "toy-20ms", "--json").json
    text = page.read_text(encoding="utf-8")
    assert [key for key in found if f"`{key}`" not in text] == []
