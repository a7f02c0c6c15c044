"""Measured points of one system beside their baseline: what is compared with what."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from specplan.models.calibration import RoundFit, ScatterError, UndeterminedError, fit_round
from specplan.models.diagnosis import Measured, Warned
from specplan.scenarios.errors import Fault, ScenarioError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from specplan.scenarios.importers.costs_points import Point

#: A repeated run this much faster than the first one of its kind ran on something kept from it.
WARM = 1.5
#: A stated speedup further than this from baseline/TPOT was not made from these two.
SAME_SPEEDUP = 0.004
#: A stated speedup this close to a speed over a baseline was made from these two.
FROM_BASELINE = 0.01
#: Served requests below this share of the offered ones: the run was no steady state.
SERVED = 0.8


@dataclass(frozen=True)
class Group:
    """Points of one label, batch and context, in order; the baseline is not among them."""

    label: str
    batch: float
    context: float | None
    baseline: Point | None
    points: tuple[Point, ...]
    apart: tuple[Warned, ...] = ()  # why a baseline that was given is not this group's

    def round_fit(self) -> RoundFit | str:
        """Solve verify and draft from the points, or say why they are not determined.

        Raises ScenarioError: the points contradict each other; the residuals are in the message.
        """
        usable = [one for one in self.points if one.gamma and one.round_s and one.tokens_per_round]
        if any(one.draft_s is not None or one.verify_s is not None for one in usable):
            return "not needed: drafting or verifying was measured"
        if not usable and any(one.gamma is None and one.round_s for one in self.points):
            return (
                "undetermined: no point states its γ, and verify and draft step are two unknowns "
                "(--point 'gamma=3 404 tok/s tau=2.9', at two γ)"
            )
        try:
            return fit_round(
                [one.gamma or 0 for one in usable], [one.round_s or 0 for one in usable]
            )
        except UndeterminedError as error:
            return f"undetermined: {error}"
        except ScatterError as error:
            if self.baseline is None and len({one.gamma for one in usable}) == 1:
                return f"undetermined: {error}"  # nothing is concluded from them
            raise ScenarioError(Fault(str(error), field=self.label or "points")) from error

    def measured(self, point: Point, fit: RoundFit | str) -> Measured | None:
        """Give the point's T, R, τ and phases; what is not stated is solved from the rest."""
        step_s = self.baseline.token_s if self.baseline else None
        if not (step_s and point.round_s and point.tokens_per_round):
            return None
        draft_s, verify_s = phases(point, fit)
        drafted = point.drafted_per_round if point.drafted_per_round else point.gamma
        return Measured(
            step_s, point.round_s, point.tokens_per_round, drafted or None, draft_s, verify_s
        )

    def speedup(self, point: Point) -> float | None:
        """Baseline time over the point's: per token, of the whole job, or of requests at overload.

        Requests served are a speedup only where both runs were offered more than they could serve.
        """
        base = self.baseline
        if base and base.token_s and point.token_s:
            return base.token_s / point.token_s
        if base and base.total_s and point.total_s:
            return base.total_s / point.total_s
        if base and _overloaded(base) and _overloaded(point):
            return (point.served_per_s or 0.0) / (base.served_per_s or 1.0)
        return None

    def warnings(self) -> list[Warned]:
        """Return what looks wrong about the points taken together."""
        return [
            *self.apart,
            *(one for point in self._all for one in point.warnings),
            *self._stated_speedups(),
            *self._warm(),
            *self._load(),
            *self._first_token(),
            *self._order(),
        ]

    @property
    def _all(self) -> tuple[Point, ...]:
        return (*([self.baseline] if self.baseline else []), *self.points)

    def _stated_speedups(self) -> list[Warned]:
        found = []
        for point in self.points:
            measured, stated = self.speedup(point), point.stated_speedup
            if measured and stated and abs(stated / measured - 1) > SAME_SPEEDUP:
                says = (
                    f"{name(point)}: a speedup of {stated:.4g} is stated, the times give "
                    f"{measured:.4g}"
                )
                found.append(Warned("inconsistent_speedup", says))
        return found

    def _warm(self) -> list[Warned]:
        """Find runs of one kind whose first is far slower than every later one."""
        kinds: dict[object, list[float]] = {}
        for point in self.points:
            if point.tokens_per_s:
                kind = (point.gamma, point.tokens_per_round, point.acceptance_rate)
                kinds.setdefault(kind, []).append(point.tokens_per_s)
        return [
            Warned(
                "warm_cache",
                f"the first run gives {first:.4g} tok/s, its repeats {min(later):.4g} to "
                f"{max(later):.4g}: the repeats reuse what the first one left behind (a warm draft "
                "or prefix cache); only the first counts",
            )
            for first, *later in kinds.values()
            if later and min(later) > WARM * first
        ]

    def _load(self) -> list[Warned]:
        return [
            Warned(
                "offered_exceeds_served",
                f"{one.served_per_s:.4g}/s served of {one.offered_per_s:.4g}/s offered: not a "
                "steady state, the run ends by draining its queue; its latency is mostly queueing",
            )
            for one in self._all
            if _overloaded(one)
        ]

    def _first_token(self) -> list[Warned]:
        base = self.baseline.ttft_s if self.baseline else None
        return [
            Warned(
                "unexplained_ttft",
                f"the first token comes {1e3 * (base - one.ttft_s):.4g} ms earlier with "
                "speculation: nothing in a round does that, so the runs differ otherwise (a "
                "scheduling default?); it is not fitted",
            )
            for one in self.points
            if base and one.ttft_s and one.ttft_s < base * (1 - 0.02)
        ]

    def _order(self) -> list[Warned]:
        """Find a higher acceptance rate that is slower at the same γ."""
        rated = sorted(
            (one.acceptance_rate, self.speedup(one) or one.stated_speedup or 0.0)
            for one in self.points
            if one.acceptance_rate is not None and len({p.gamma for p in self.points}) == 1
        )
        speeds = [speed for _, speed in rated if speed]
        if len(speeds) > 2 and speeds != sorted(speeds) and max(speeds) < 1:
            says = (
                "more acceptance is not faster here: a cost that acceptance does not pay for "
                "decides (a replay after rejections, overhead of a round)"
            )
            return [Warned("non_monotonic_in_acceptance", says)]
        return []


def _overloaded(point: Point) -> bool:
    """Return whether a run was offered more requests than it could serve."""
    if not point.offered_per_s or not point.served_per_s:
        return False
    return point.served_per_s < SERVED * point.offered_per_s


def phases(point: Point, fit: RoundFit | str) -> tuple[float | None, float | None]:
    """Return what a round spends on drafting and on verifying: stated, fitted, or the rest."""
    draft_s, verify_s = point.draft_s, point.verify_s
    if draft_s is None and verify_s is None and isinstance(fit, RoundFit) and point.gamma:
        return fit.draft_s * point.gamma, fit.verify_s
    if point.round_s and verify_s is None and draft_s is not None:
        return draft_s, max(point.round_s - draft_s, 0.0)
    if point.round_s and draft_s is None and verify_s is not None:
        return max(point.round_s - verify_s, 0.0), verify_s
    return draft_s, verify_s


def name(point: Point) -> str:
    """Name a point in a sentence."""
    if point.is_baseline:
        return "plain"
    if point.gamma:
        return f"γ = {point.gamma:g}"
    return "speculation" if says_speculation(point) else "unknown"


def says_speculation(point: Point) -> bool:
    """Return whether anything about the point tells that it drafts, or that it does not."""
    told = (point.gamma, point.tokens_per_round, point.acceptance_rate, point.stated_speedup)
    return any(one is not None for one in (*told, point.draft_s, point.verify_s))


def groups(points: Sequence[Point], baseline: Point | None = None) -> list[Group]:
    """Put points of one label, batch and context together with their baseline.

    The baseline of a group is its own plain point; else `baseline`; else the one plain point that
    has no label.

    Raises ScenarioError: two different baselines in one group.
    """
    by_kind: dict[_Kind, list[Point]] = {}
    for point in points:
        by_kind.setdefault(_kind(point), []).append(point)
    plain: dict[_Kind, Point] = {}
    for kind, members in by_kind.items():
        bases = [one for one in members if one.is_baseline]
        if bases and baseline is not None and baseline not in bases:
            bases += [baseline] * (_kind(baseline) == kind)
        if len(bases) > 1 and not _alike(bases):
            shown = ", ".join(f"{1e3 * (one.token_s or 0):.4g} ms" for one in bases)
            right = "one for each system and load; label= separates systems"
            raise ScenarioError(Fault(f"{len(bases)} baselines: {shown}", right))
        if bases:
            plain[kind] = bases[0]
    for_all = [point for (label, *_), point in plain.items() if not label]
    shared = baseline or (for_all[0] if len(for_all) == 1 else None)
    found = []
    for kind, members in by_kind.items():
        base, apart = _comparable(plain.get(kind, shared), members[0])
        points_of = tuple(one for one in members if not one.is_baseline)
        if apart:
            points_of = tuple(_own_speedup(one, plain.get(kind, shared)) for one in points_of)
        found.append(Group(kind[0], members[0].batch, members[0].context, base, points_of, apart))
    order = list(dict.fromkeys(group.label for group in found))
    found.sort(key=lambda group: (order.index(group.label), group.batch, group.context or 0.0))
    drafting = [group for group in found if group.points]
    return drafting or found


def _own_speedup(point: Point, other: Point | None) -> Point:
    """Drop a stated speedup that was made from the baseline of another batch or context."""
    stated, speed = point.stated_speedup, point.tokens_per_s
    base = other.tokens_per_s if other else None
    if not (stated and speed and base) or abs(speed / stated / base - 1) > FROM_BASELINE:
        return point
    says = (
        f"{name(point)}: the speedup of {stated:.4g} that is stated is against {base:.4g} tok/s, "
        f"the baseline of batch {other.batch if other else 0:g}: it contains what batching gives"
    )
    warned = (*point.warnings, Warned("baseline_batch_mismatch", says))
    return replace(point, stated_speedup=None, warnings=warned)


_Kind = tuple[str, float, float | None]


def _kind(point: Point) -> _Kind:
    return point.label, round(point.batch, 2), point.context


def _alike(bases: Sequence[Point]) -> bool:
    times = [one.token_s for one in bases if one.token_s]
    return bool(times) and max(times) <= 1.05 * min(times)


def _comparable(base: Point | None, member: Point) -> tuple[Point | None, tuple[Warned, ...]]:
    """Drop, with a warning, a baseline that stands beside points of another batch or context.

    Whole jobs are compared whatever their batch.
    """
    if base is None or (base.total_s and member.total_s):
        return base, ()
    if base.context is not None and member.context is not None and base.context != member.context:
        says = (
            f"the baseline is of context {base.context:,.0f}, the points of "
            f"{member.context:,.0f}: the ratio of the two is no speedup, so none is given"
        )
        return None, (Warned("other_context", says),)
    if abs(base.batch - member.batch) <= 0.05 * member.batch:
        return base, ()
    says = (
        f"the baseline is of batch {base.batch:g}, the points of batch {member.batch:g}: the ratio "
        f"of the two is no speedup, so none is given (if it is of this load, state "
        f"batch={member.batch:g} in it)"
    )
    return None, (Warned("other_batch", says),)
