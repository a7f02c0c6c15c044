"""The heuristic schedule of transformers in the long run."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from specplan.models.acceptance import unconditional_from_alpha
from specplan.models.adaptive import adaptive_gamma


@pytest.mark.parametrize(
    ("alpha", "gamma", "tokens", "speedup"),
    [  # published.json hf-heuristic-chain, c = .1
        (0.5, 2.27291, 1.72514, 1.40565),
        (0.6, 2.78387, 2.04585, 1.60034),
        (0.7, 3.65399, 2.58158, 1.89071),
        (0.8, 5.44828, 3.67324, 2.37777),
        (0.9, 10.93314, 7.00007, 3.34401),
    ],
)
def test_published_chain(alpha: float, gamma: float, tokens: float, speedup: float) -> None:
    chain = adaptive_gamma(unconditional_from_alpha(alpha, 300))
    assert_allclose([chain.mean_gamma, chain.tokens_per_round], [gamma, tokens], rtol=5e-6)
    assert_allclose(chain.tokens_per_round / (1 + 0.1 * chain.mean_gamma), speedup, rtol=5e-6)
    assert_allclose(chain.share.sum(), 1, rtol=1e-12)


def test_chain_by_hand() -> None:
    # Two positions, A = (½, ½): from 1 to 2 (capped) or 1; from 2 to 2 or 1, each with chance ½.
    chain = adaptive_gamma([0.5, 0.5])
    assert_allclose(chain.share, [0, 0.5, 0.5], atol=1e-12)
    assert_allclose([chain.mean_gamma, chain.tokens_per_round], [1.5, 1.75], rtol=1e-12)


def test_never_and_always_accepted() -> None:
    assert adaptive_gamma(np.zeros(10)).mean_gamma == pytest.approx(1)
    assert adaptive_gamma(np.ones(10)).mean_gamma == pytest.approx(10)


def test_moves_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match="lowest is 3"):
        adaptive_gamma([0.5, 0.4], lowest=3)
