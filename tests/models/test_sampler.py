"""The seeded sampler against the exact law: issue 4's figures, 200,000 draws, 20 seeds."""

import numpy as np
import pytest
from numpy.typing import ArrayLike

from specplan.models import sampler
from specplan.models.law import output_law
from specplan.models.sampler import Rule, Sample, chi_square, sample_rounds

SEED_CASE = ([[0.6, 0.3, 0.1]], [[0.5, 0.25, 0.25]], [0.6, 0.3, 0.1])
BLOCK = (
    [[0.6, 0.3, 0.1], [0.2, 0.3, 0.5], [0.1, 0.1, 0.8]],
    [[0.5, 0.25, 0.25], [0.4, 0.3, 0.3], [0.0, 0.5, 0.5]],
    [0.25, 0.25, 0.5],
)


def run(case: tuple[ArrayLike, ArrayLike, ArrayLike], rule: Rule, seed: int) -> Sample:
    p, q, bonus = case
    return sample_rounds(p, q, bonus, rounds=200_000, seed=seed, rule=rule)


@pytest.mark.parametrize("case", [SEED_CASE, BLOCK], ids=["seed case", "block of three"])
def test_the_true_rule_keeps_the_target_law_in_20_seeds(
    case: tuple[ArrayLike, ArrayLike, ArrayLike],
) -> None:
    p, _, bonus = case
    due = np.vstack([np.asarray(p), np.asarray(bonus)])
    for seed in range(20):
        assert chi_square(run(case, "exact", seed).tokens, due).p_value > 1e-3


@pytest.mark.parametrize("rule", ["unchanged_target", "skip_rejected"])
@pytest.mark.parametrize("case", [SEED_CASE, BLOCK], ids=["seed case", "block of three"])
def test_the_wrong_rules_fail_in_every_seed(
    case: tuple[ArrayLike, ArrayLike, ArrayLike], rule: Rule
) -> None:
    p, _, bonus = case
    due = np.vstack([np.asarray(p), np.asarray(bonus)])
    for seed in range(20):
        assert chi_square(run(case, rule, seed).tokens, due).p_value < 1e-6


def test_accepted_lengths_follow_the_product_of_beta() -> None:
    # β = .85, .8, .6: A = .85, .68, .408, so P(k) = .15, .17, .272, .408
    lengths = run(BLOCK, "exact", 1).accepted_lengths
    assert chi_square(lengths, [0.15, 0.17, 0.272, 0.408]).p_value > 1e-3
    assert run(BLOCK, "exact", 1).tokens_per_round == pytest.approx(2.938, abs=0.01)


def test_a_wrong_rule_follows_its_own_law() -> None:
    p, q, bonus = BLOCK
    own = output_law(p, q, correction="unchanged_target").output
    counts = run(BLOCK, "unchanged_target", 3).tokens
    assert chi_square(counts, np.vstack([own, np.asarray(bonus)])).p_value > 1e-3


def test_lenience_follows_its_own_law() -> None:
    p, q, bonus = BLOCK
    sample = sample_rounds(p, q, bonus, rounds=200_000, seed=1, lenience=0.6)
    law = output_law(p, q, 0.6)
    assert chi_square(sample.tokens, np.vstack([law.output, np.asarray(bonus)])).p_value > 1e-3
    assert chi_square(sample.tokens, np.vstack([law.target, np.asarray(bonus)])).p_value < 1e-6


def test_equal_laws_are_never_rejected() -> None:
    p = [[0.6, 0.3, 0.1]] * 4
    sample = sample_rounds(p, p, p[0], rounds=10_000, seed=1)
    assert sample.accepted_lengths.tolist() == [0, 0, 0, 0, 10_000]


def test_a_token_without_target_mass_is_never_committed() -> None:
    sample = sample_rounds([[1.0, 0.0]], [[0.0, 1.0]], [1.0, 0.0], rounds=10_000, seed=1)
    assert sample.tokens.tolist() == [[10_000, 0], [0, 0]]


def test_the_same_seed_draws_the_same_rounds() -> None:
    first, second = run(BLOCK, "exact", 7), run(BLOCK, "exact", 7)
    assert (first.tokens == second.tokens).all()
    assert (first.tokens != run(BLOCK, "exact", 8).tokens).any()


def test_parts_of_a_long_run_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Judged in small parts it is the same law, and no round is lost between them."""
    monkeypatch.setattr(sampler, "DRAFTS_AT_ONCE", 1000)
    sample = run(BLOCK, "exact", 3)
    assert sample.accepted_lengths.sum() == 200_000
    assert sample.tokens[0].sum() == 200_000  # every round commits a first token
    assert chi_square(sample.tokens, np.vstack([BLOCK[0], [BLOCK[2]]])).p_value > 1e-3


def test_no_rounds_are_refused() -> None:
    with pytest.raises(ValueError, match="draws is 0"):
        sample_rounds([[1.0]], [[1.0]], [1.0], rounds=0, seed=1)


def test_chi_square_by_hand() -> None:
    # (44 − 50)²/50 · 2 = 1.44 on one degree of freedom: p = .2301 (tables: .23)
    test = chi_square([44, 56], [0.5, 0.5])
    assert test.statistic == pytest.approx(1.44)
    assert test.freedom == 1
    assert test.p_value == pytest.approx(0.2301, abs=1e-4)


def test_chi_square_pools_rare_cells_and_refutes_impossible_ones() -> None:
    pooled = chi_square([90, 4, 3, 3], [0.9, 0.04, 0.03, 0.03])
    assert pooled.statistic == pytest.approx(0)
    assert pooled.freedom == 1
    assert chi_square([99, 1], [1.0, 0.0]).p_value == 0
    assert chi_square([5], [1.0]).p_value == 1
    assert chi_square([[0, 0]], [[0.5, 0.5]]).p_value == 1
