"""The acceptance of a speculator in the one form that predict and simulate read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from specplan.models.conversions import (
    ROUNDING,
    accepted_law,
    alpha_from_tokens_per_round,
    checked_unconditional,
    conditional_from_pq,
    conditional_from_unconditional,
    first_positions,
    probabilities,
    tokens_per_round_from_alpha,
    unconditional_from_alpha,
    unconditional_from_conditional,
    unconditional_from_histogram,
)
from specplan.models.heterogeneity import beta_nodes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

__all__ = [
    "Acceptance",
    "accepted_law",
    "alpha_from_tokens_per_round",
    "conditional_from_pq",
    "conditional_from_unconditional",
    "tokens_per_round_from_alpha",
    "unconditional_from_alpha",
    "unconditional_from_conditional",
    "unconditional_from_histogram",
]


@dataclass(frozen=True, slots=True, eq=False)
class Acceptance:
    """What predict and simulate consume: laws of the accepted length, and who follows which.

    Every request follows one law for its whole life. A round of that request proposes with chance
    `draft_probability`, and if so accepts i or more tokens with chance `unconditional[law, i−1]`.

    - weight (laws,): share of requests under each law; sums to 1
    - unconditional (laws, positions): A_i given that the round drafts; A_0 = 1 is not stored
    - draft_probability (laws,): chance that a round proposes anything (n-gram hit); 1 otherwise
    - concentration (laws,): κ of Beta(ακ, (1−α)κ), the α of single requests; inf = all alike.
      Finite only for iid laws (A_i = α^i), whose α is then the mean over requests
    - recorded (rounds,): accepted lengths to replay in order instead of drawing them, or None

    Raises ValueError when shapes disagree or a value cannot be a probability.

    >>> Acceptance.from_alpha(0.5, 2).tokens_per_round()
    np.float64(1.75)
    """

    weight: Floats
    unconditional: Floats
    draft_probability: Floats
    concentration: Floats
    recorded: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        if self.positions:
            checked_unconditional(self.unconditional)
        probabilities(self.weight, "weight")
        probabilities(self.draft_probability, "draft_probability")
        shapes = {self.weight.shape, self.draft_probability.shape, self.concentration.shape}
        if self.unconditional.ndim != 2 or shapes != {self.unconditional.shape[:1]}:
            raise ValueError(
                f"unconditional has shape {self.unconditional.shape}; it is (laws, positions) with "
                f"weight, draft_probability and concentration of shape (laws,)"
            )
        if not abs(self.weight.sum() - 1) <= ROUNDING:
            raise ValueError(f"weights sum to {self.weight.sum():g}; shares of requests sum to 1")
        self._check_concentration()

    def _check_concentration(self) -> None:
        spread = np.isfinite(self.concentration)
        if not (self.concentration > 0).all():
            raise ValueError(
                f"concentration is {self.concentration.min():g}; it is above 0, or inf"
            )
        if spread.any() and self.positions:
            lists = self.unconditional[spread]
            iid = lists[:, :1] ** np.arange(1, self.positions + 1)
            if not np.allclose(lists, iid, rtol=0, atol=ROUNDING):
                raise ValueError("a spread of alpha over requests (concentration) needs an iid law")

    @property
    def positions(self) -> int:
        """How many draft positions the lists describe: the largest γ they can answer for."""
        return int(self.unconditional.shape[-1])

    @classmethod
    def from_unconditional(
        cls, unconditional: ArrayLike, draft_probability: float = 1.0, concentration: float = np.inf
    ) -> Acceptance:
        """One law for all requests from a list A (positions,); raises ValueError when it rises.

        >>> Acceptance.from_unconditional([0.7, 0.45, 0.3, 0.25]).tokens_per_round(4).round(3)
        np.float64(2.7)
        """
        lists = np.asarray(unconditional, dtype=np.float64).reshape(1, -1)
        one = np.ones(1)
        return cls(one, lists, one * draft_probability, one * concentration)

    @classmethod
    def from_alpha(
        cls,
        alpha: float,
        positions: int,
        draft_probability: float = 1.0,
        concentration: float = np.inf,
    ) -> Acceptance:
        """Iid acceptance A_i = α^i; with a finite concentration α is the mean over requests.

        >>> Acceptance.from_alpha(0.5, 2).unconditional.tolist()
        [[0.5, 0.25]]
        """
        lists = unconditional_from_alpha(alpha, positions)
        return cls.from_unconditional(lists, draft_probability, concentration)

    @classmethod
    def from_histogram(cls, rounds_by_accepted: ArrayLike) -> Acceptance:
        """From counts of rounds by accepted tokens k = 0..γ (no bonus).

        >>> Acceptance.from_histogram([2, 1, 1]).unconditional.tolist()
        [[0.5, 0.25]]
        """
        return cls.from_unconditional(unconditional_from_histogram(rounds_by_accepted))

    @classmethod
    def from_recorded(cls, accepted: ArrayLike, positions: int) -> Acceptance:
        """Replay recorded accepted lengths (no bonus), one a round, in order.

        The closed form reads the law of the same record. Raises ValueError on lengths outside
        0..positions or that are not whole numbers.

        >>> Acceptance.from_recorded([0, 2, 1, 0], 2).unconditional.tolist()
        [[0.5, 0.25]]
        """
        lengths = np.asarray(accepted)
        if lengths.ndim != 1 or lengths.size == 0:
            raise ValueError(
                f"recorded lengths have shape {lengths.shape}; one a round, at least one"
            )
        bad = ~((lengths >= 0) & (lengths <= positions) & (lengths == np.floor(lengths)))
        if bad.any():
            raise ValueError(
                f"recorded length is {lengths[bad][0]:g} at round {int(np.argmax(bad)) + 1}; "
                f"it is a whole number of accepted tokens from 0 to {positions} (no bonus token)"
            )
        whole = lengths.astype(np.int64)
        law = cls.from_histogram(np.bincount(whole, minlength=positions + 1))
        return cls(law.weight, law.unconditional, law.draft_probability, law.concentration, whole)

    @classmethod
    def mixture(cls, weight: ArrayLike, parts: Sequence[Acceptance]) -> Acceptance:
        """Draw requests from parts with shares `weight` (parts,); lists are cut to the shortest.

        Raises ValueError when the shares do not sum to one or a part replays a record.

        >>> parts = [Acceptance.from_alpha(0.5, 5), Acceptance.from_alpha(0.9, 5)]
        >>> float(round(Acceptance.mixture([0.5, 0.5], parts).tokens_per_round(5), 6))
        2.772553
        """
        shares = np.atleast_1d(probabilities(weight, "weight"))
        if len(shares) != len(parts) or not parts:
            raise ValueError(f"a mixture of {len(parts)} parts has {len(shares)} weights")
        if any(part.recorded is not None for part in parts):
            raise ValueError(
                "a mixture cannot replay recorded lengths; use their histogram instead"
            )
        positions = min(part.positions for part in parts)
        return cls(
            np.concatenate([w * part.weight for w, part in zip(shares, parts, strict=True)]),
            np.concatenate([part.unconditional[:, :positions] for part in parts]),
            np.concatenate([part.draft_probability for part in parts]),
            np.concatenate([part.concentration for part in parts]),
        )

    def truncated(self, gamma: int) -> Acceptance:
        """Cut the lists to γ positions: the same requests when only γ tokens are drafted.

        Raises ValueError when γ is beyond the known positions; `extrapolation` extends lists.

        >>> Acceptance.from_alpha(0.5, 5).truncated(2).positions
        2
        """
        lists = first_positions(self.unconditional, gamma)
        recorded = None if self.recorded is None else np.minimum(self.recorded, gamma)
        return Acceptance(
            self.weight,
            lists,
            self.draft_probability,
            self.concentration,
            recorded,
        )

    def spread(self) -> Acceptance:
        """Replace every Beta law of α by its quadrature nodes: a mixture with all κ = inf.

        >>> Acceptance.from_alpha(0.8, 4, concentration=10).spread().weight.shape
        (48,)
        """
        if not np.isfinite(self.concentration).any():
            return self
        parts = []
        for law in range(len(self.weight)):
            alpha = float(self.unconditional[law, 0]) if self.positions else 0.0
            nodes, shares = beta_nodes(alpha, float(self.concentration[law]))
            lists = unconditional_from_alpha(nodes, self.positions)
            if len(nodes) == 1:
                lists = self.unconditional[law : law + 1]
            chance = np.full(len(nodes), self.draft_probability[law])
            parts.append((self.weight[law] * shares, lists, chance))
        weight, lists, chance = (np.concatenate(column) for column in zip(*parts, strict=True))
        return Acceptance(weight / weight.sum(), lists, chance, np.full(len(weight), np.inf))

    def tokens_per_round(self, gamma: int | None = None) -> np.float64:
        """Long-run tokens per round: 1/Σ_l w_l/E_l with E_l = 1 + h_l Σ_i A_li.

        Every request produces the same tokens on average, so the mean is over tokens (harmonic): a
        request with small E needs more rounds. The mean of E over requests would be too high.

        >>> Acceptance.from_alpha(0.5, 1, concentration=2).tokens_per_round().round(6)  # 1/ln 2
        np.float64(1.442695)
        """
        laws = self.spread().truncated(self.positions if gamma is None else gamma)
        tokens = 1 + laws.draft_probability * laws.unconditional.sum(axis=-1)
        return np.float64(1 / (laws.weight / tokens).sum())

    def request_lists(self, law: ArrayLike, quantile: ArrayLike) -> Floats:
        """Return lists A (requests, positions) from a law index and a uniform number for each.

        A request under a Beta law gets α at that quantile of it (inverse transform).

        >>> laws = Acceptance.from_alpha(0.5, 2, concentration=2)
        >>> laws.request_lists([0, 0], [0.25, 0.5]).tolist()
        [[0.25, 0.0625], [0.5, 0.25]]
        """
        index = np.asarray(law, dtype=np.intp)
        lists = self.unconditional[index]
        kappa, uniform = self.concentration[index], np.asarray(quantile, dtype=np.float64)
        alpha = lists[:, 0] if self.positions else np.zeros(len(lists))
        drawn = np.isfinite(kappa) & (alpha > 0) & (alpha < 1)
        if drawn.any():
            from scipy.special import betaincinv

            mean, kappa = alpha[drawn], kappa[drawn]
            own = betaincinv(mean * kappa, (1 - mean) * kappa, uniform[drawn])
            lists[drawn] = unconditional_from_alpha(own, self.positions)
        return lists
