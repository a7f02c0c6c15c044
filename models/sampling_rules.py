"""Temperature, top-k, top-p and min-p: what engines do to a law before any token is drawn.

Order as in vLLM's v1 sampler: temperature, then min-p, then top-k, then top-p on what top-k left.
Both the target's and the draft's law go through it before they are compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from specplan.models.law import checked_law

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

_ROUNDING = 1e-12  # .5 + .3 must reach a top-p of .8


@dataclass(frozen=True)
class SamplingRules:
    """One request's sampling parameters, with vLLM's names, ranges and neutral defaults.

    temperature ≥ 0 (0 is greedy), top_k ≥ 1 or 0 for all, top_p in (0, 1], min_p in [0, 1].
    Raises ValueError outside these ranges.

    >>> SamplingRules(temperature=0.0).is_greedy
    True
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0

    def __post_init__(self) -> None:
        if not (np.isfinite(self.temperature) and self.temperature >= 0):
            raise ValueError(
                f"temperature is {self.temperature:g} (finite and at least 0; 0 is greedy)"
            )
        if self.top_k < 0:
            raise ValueError(f"top_k is {self.top_k} (at least 1, or 0 for all tokens)")
        if not 0 < self.top_p <= 1:
            raise ValueError(f"top_p is {self.top_p:g} (above 0, at most 1)")
        if not 0 <= self.min_p <= 1:
            raise ValueError(f"min_p is {self.min_p:g} (from 0 to 1)")

    @property
    def is_greedy(self) -> bool:
        """Whether all mass goes to the most likely token."""
        return self.temperature == 0

    def apply(self, law: ArrayLike, name: str = "law") -> NDArray[np.float64]:
        """Return the law that is really drawn from, (..., vocabulary), renormalised.

        Temperature T: law^(1/T). min-p: tokens below min_p × the largest are dropped. top-k: ties
        with the k-th are kept (vLLM compares with the k-th value). top-p: the smallest set of most
        likely tokens that reaches top_p; ties go to the lower index. Greedy: the argmax, lowest
        index first. Raises ValueError when `law` is no law.

        >>> SamplingRules(top_p=0.8).apply([0.5, 0.3, 0.2])
        array([0.625, 0.375, 0.   ])
        """
        shaped = checked_law(law, name)
        if self.is_greedy:
            return _argmax_law(shaped)
        if self.temperature != 1:
            shaped = _tempered(shaped, self.temperature)
        if self.min_p > 0:
            shaped = _kept(shaped, shaped >= self.min_p * shaped.max(axis=-1, keepdims=True))
        if 0 < self.top_k < shaped.shape[-1]:
            kth = np.partition(shaped, -self.top_k, axis=-1)[..., -self.top_k, None]
            shaped = _kept(shaped, shaped >= kth)
        if self.top_p < 1:
            shaped = _kept(shaped, _nucleus(shaped, self.top_p))
        return shaped


def _argmax_law(law: NDArray[np.float64]) -> NDArray[np.float64]:
    greedy = np.zeros_like(law)
    np.put_along_axis(greedy, law.argmax(axis=-1)[..., None], 1.0, axis=-1)
    return greedy


def _tempered(law: NDArray[np.float64], temperature: float) -> NDArray[np.float64]:
    """law^(1/T), scaled by its maximum first so that a low T does not underflow to all zeros."""
    powered = (law / law.max(axis=-1, keepdims=True)) ** (1.0 / temperature)
    return np.asarray(powered / powered.sum(axis=-1, keepdims=True))


def _kept(law: NDArray[np.float64], keep: NDArray[np.bool_]) -> NDArray[np.float64]:
    kept = np.where(keep, law, 0.0)
    return np.asarray(kept / kept.sum(axis=-1, keepdims=True))


def _nucleus(law: NDArray[np.float64], top_p: float) -> NDArray[np.bool_]:
    order = np.argsort(-law, axis=-1, kind="stable")
    ordered = np.take_along_axis(law, order, axis=-1)
    before = np.cumsum(ordered, axis=-1) - ordered
    keep = np.empty(law.shape, dtype=np.bool_)
    np.put_along_axis(keep, order, before < top_p - _ROUNDING, axis=-1)
    return keep
