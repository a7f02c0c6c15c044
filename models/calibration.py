"""Costs from what people measured: exact where points equal unknowns, least squares above, else no.

A fit never says more than its points: it carries its residuals, it names what the points cannot
tell apart, and it refuses points that scatter too far instead of averaging them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

#: A point further from the fit than this is no scatter around one cost: the points disagree.
WILD = 0.15
#: Pass times of real GPUs bend (padding, tiles, caches): root mean square allowed over a table.
WILD_TABLE = 0.25
#: Residuals below this are of rounding; above, a term that came out at 0 keeps the fit off a point.
SOLVED = 1e-6
TERMS = ("base_s", "per_sequence_s", "per_token_s", "per_context_token_s")


class UndeterminedError(ValueError):
    """The points are too few, or all alike: the message says which ones are needed."""


class ScatterError(ValueError):
    """The points contradict each other or the physics: the message holds the residuals."""


@dataclass(frozen=True)
class RoundFit:
    """R(γ) = verify_s + γ · draft_s, through measured round times.

    `verify_s` is everything a round costs before its first draft token, fixed overhead included;
    `draft_s` is one more drafted token: a draft step and what the verify pass grows by. The errors
    are standard errors, None where nothing is left over to estimate them.
    """

    verify_s: float
    draft_s: float
    gamma: tuple[float, ...]
    residuals: tuple[float, ...]
    verify_error_s: float | None
    draft_error_s: float | None

    @property
    def points(self) -> int:
        """Count the measured rounds."""
        return len(self.gamma)

    def round_s(self, gamma: ArrayLike) -> Floats:
        """Seconds of a round of γ drafted tokens."""
        return self.verify_s + self.draft_s * np.asarray(gamma, dtype=np.float64)

    def trust(self) -> str:
        """Say how far the fit may be trusted."""
        low, high = min(self.gamma), max(self.gamma)
        between = f"between γ = {low:g} and {high:g}"
        if len(set(self.gamma)) == 2 and self.points == 2:
            return (
                f"exact through 2 points, so no point is left to check it: {between}; beyond, it "
                "assumes that every further drafted token costs the same"
            )
        worst = max(map(abs, self.residuals))
        return f"{self.points} points, worst residual {100 * worst:.1f} %: {between}"


def fit_round(gamma: ArrayLike, round_s: ArrayLike) -> RoundFit:
    """Solve R = V + γ·d for V and d from rounds at two or more draft lengths.

    Two draft lengths are solved exactly (the SpecBundle rows of MODEL.md's issue 5: V 6.113 ms, d
    0.352 ms), more by least squares of the relative error. `gamma`, `round_s` (points,), seconds.

    Raises UndeterminedError for fewer than two different γ, ScatterError when a point is more than
    15 % off (at one γ: off the mean) or when V or d comes out negative, ValueError for times that
    are not positive.

    >>> fit = fit_round([3, 5], [2.8981 / 404.25, 3.5164 / 446.64])
    >>> round(1e3 * fit.verify_s, 3), round(1e3 * fit.draft_s, 3)
    (6.113, 0.352)
    """
    drafts, times = _measured(gamma, round_s)
    different = np.unique(drafts)
    if different.size < 2:
        if times.size:
            _refuse_scatter(float(different[0]), times)
        says = f"only γ = {different[0]:g}" if different.size else "no round of a known γ"
        raise UndeterminedError(
            f"{says} is measured and two unknowns are wanted, verify and draft step (a point at "
            "another γ, or one of the two costs)"
        )
    rows = np.stack([np.ones_like(drafts), drafts], axis=1) / times[:, np.newaxis]
    solution, *_ = np.linalg.lstsq(rows, np.ones_like(drafts), rcond=None)
    verify, draft = (float(value) for value in solution)
    residuals = rows @ solution - 1.0
    shown = ", ".join(
        f"γ = {g:g}: {1e3 * t:.4g} ms, {100 * r:+z.1f} %"
        for g, t, r in zip(drafts, times, residuals, strict=True)
    )
    if np.abs(residuals).max() > WILD:
        raise ScatterError(
            f"the rounds do not lie on a line over γ: {shown} (points of one system under one "
            "load; separate the others with label=)"
        )
    if draft < 0 or verify < 0:
        name, value = ("a draft step", draft) if draft < 0 else ("the verify pass", verify)
        raise ScatterError(
            f"{name} would cost {1e3 * value:.4g} ms: {shown} (rounds that grow with γ; are τ and "
            "tok/s of the same run?)"
        )
    errors = _standard_errors(rows, residuals)
    return RoundFit(verify, draft, tuple(drafts), tuple(residuals), *errors)


def _refuse_scatter(gamma: float, times: Floats) -> None:
    """Refuse rounds of one draft length that are no scatter around one cost."""
    residuals = times.mean() / times - 1.0
    if np.abs(residuals).max() <= WILD:
        return
    shown = ", ".join(
        f"{1e3 * t:.4g} ms, {100 * r:+z.1f} %" for t, r in zip(times, residuals, strict=True)
    )
    raise ScatterError(
        f"the rounds at γ = {gamma:g} contradict each other: {shown} off their mean (points of one "
        "system under one load; separate the others with label=)"
    )


def _standard_errors(rows: Floats, residuals: Floats) -> tuple[float | None, float | None]:
    """Estimate √diag(s²(XᵀX)⁻¹) with s² = Σr²/(n − 2); None for exact solutions."""
    free = rows.shape[0] - 2
    if free < 1:
        return None, None
    spread = float(residuals @ residuals) / free * np.linalg.inv(rows.T @ rows)
    verify, draft = np.sqrt(np.diag(spread))
    return float(verify), float(draft)


@dataclass(frozen=True)
class LinearFit:
    """base + per sequence + per position + per cached token, in seconds, from whole passes.

    `relative_residuals` (points,) are fitted/measured − 1; `notes` name the terms that the points
    cannot tell apart and what would.
    """

    base_s: float
    per_sequence_s: float
    per_token_s: float
    per_context_token_s: float
    relative_residuals: tuple[float, ...]
    unknowns: int
    notes: tuple[str, ...] = ()

    @property
    def points(self) -> int:
        """Count the measured passes."""
        return len(self.relative_residuals)

    @property
    def worst(self) -> float:
        """The largest relative residual."""
        return max(map(abs, self.relative_residuals))

    @property
    def median(self) -> float:
        """The median of the absolute relative residuals."""
        return float(np.median(np.abs(self.relative_residuals)))

    def trust(self) -> str:
        """Say how far the fit may be trusted."""
        count = f"{self.points} point{'s' * (self.points > 1)}"
        if self.points == self.unknowns and self.worst < SOLVED:
            return f"exact through {count}: no point is left to check it"
        return (
            f"{count} for {self.unknowns} unknown{'s' * (self.unknowns > 1)}, median residual "
            f"{100 * self.median:.1f} %, worst {100 * self.worst:.1f} %; inside the measured "
            "range only"
        )


def fit_passes(
    batch: ArrayLike, width: ArrayLike, context_tokens: ArrayLike, seconds: ArrayLike
) -> LinearFit:
    """Fit the linear cost to measured passes by non-negative least squares of the relative error.

    All arguments (points,); `context_tokens` is per sequence. A term is fitted only where the
    points determine it; what is left out is named in the notes.

    Raises UndeterminedError without points, ScatterError when the root mean square of the relative
    residuals is above 25 %, ValueError for times that are not positive.

    >>> fit = fit_passes([1, 1, 8, 8], [1, 5, 1, 5], 0, [6.02e-3, 6.1e-3, 6.16e-3, 6.8e-3])
    >>> round(1e3 * fit.base_s, 3), round(1e6 * fit.per_token_s, 1)
    (6.0, 20.0)
    """
    sequences, times = _measured(batch, seconds)
    if not times.size:
        raise UndeterminedError("no pass is measured (one row a pass)")
    tokens = sequences * np.broadcast_to(np.asarray(width, dtype=np.float64), times.shape)
    context = sequences * np.broadcast_to(np.asarray(context_tokens, dtype=np.float64), times.shape)
    columns = {
        "base_s": np.ones_like(times),
        "per_token_s": tokens,
        "per_context_token_s": context,
        "per_sequence_s": sequences,
    }
    chosen, notes = _determined(columns, times)
    rows = np.stack([columns[name] for name in chosen], axis=1) / times[:, np.newaxis]
    found = dict.fromkeys(TERMS, 0.0) | dict(zip(chosen, _non_negative(rows), strict=True))
    residuals = rows @ np.array([found[name] for name in chosen]) - 1.0
    if np.sqrt(np.mean(residuals**2)) > WILD_TABLE:
        worst = np.argsort(-np.abs(residuals))[:3]
        shown = "; ".join(
            f"batch {sequences[i]:g}, {tokens[i]:g} positions: {1e3 * times[i]:.4g} ms, "
            f"{100 * residuals[i]:+.0f} %"
            for i in worst
        )
        raise ScatterError(
            f"{times.size} passes scatter by {100 * np.sqrt(np.mean(residuals**2)):.0f} % around "
            f"the best linear cost, worst: {shown} (passes of one system; a narrower range, or "
            "`table:` with the times as they are)"
        )
    return LinearFit(
        **found, relative_residuals=tuple(residuals), unknowns=len(chosen), notes=notes
    )


def _determined(columns: dict[str, Floats], times: Floats) -> tuple[list[str], tuple[str, ...]]:
    """Choose the terms whose columns are independent of those before them; name the others."""
    chosen: list[str] = []
    notes = []
    reasons = {
        "per_token_s": "all passes have the same number of positions: the cost per position is "
        "unknown and sits in base; measure another batch or width",
        "per_context_token_s": "one context for all passes: the cost of cached tokens is unknown "
        "and sits in the other terms; measure another context",
        "per_sequence_s": "sequences and positions grow together: their costs are not told apart "
        "and both are charged to positions; measure the same batch at another width",
    }
    for name, column in columns.items():
        if name == "per_context_token_s" and not column.any():
            continue
        rows = np.stack([columns[one] for one in (*chosen, name)], axis=1) / times[:, np.newaxis]
        scaled = rows / np.maximum(np.linalg.norm(rows, axis=0), 1e-300)
        if np.linalg.matrix_rank(scaled, tol=1e-6) > len(chosen):
            chosen.append(name)
        elif name in reasons and column.any():
            notes.append(reasons[name])
    return chosen, tuple(notes)


def _non_negative(rows: Floats) -> list[float]:
    """Minimise |rows·x − 1| with x ≥ 0 (Lawson & Hanson); columns scaled to one length."""
    from scipy.optimize import nnls

    scale = np.linalg.norm(rows, axis=0)
    solution, _ = nnls(rows / scale, np.ones(rows.shape[0]))
    return [float(value) for value in solution / scale]


def _measured(amount: ArrayLike, seconds: ArrayLike) -> tuple[Floats, Floats]:
    amounts, times = np.broadcast_arrays(
        np.atleast_1d(np.asarray(amount, dtype=np.float64)),
        np.atleast_1d(np.asarray(seconds, dtype=np.float64)),
    )
    wrong = ~(np.isfinite(times) & (times > 0))
    if wrong.any():
        raise ValueError(f"a measured time is {times[wrong][0]:g} s (finite and above 0)")
    return amounts, times
