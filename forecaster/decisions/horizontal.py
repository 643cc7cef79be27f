"""Replicas from what is measured, raised by what is forecast, then held within the clamps.

Forecast and measurement go through the same formula of the HPA. The order of the clamps is written once, in
`_clamped`: stabilisation first, bounds last, so that no rule can undo a bound.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from forecaster.decisions.asked import Asked, ask, view
from forecaster.decisions.state import ScalingState
from forecaster.decisions.targets import PodTarget, Unusable, targets_of
from forecaster.domain.decision import Clamp, Hold, Reason, Scale
from forecaster.domain.outlook import Outlook, Unknown
from forecaster.hpa import legacy
from forecaster.hpa.combine import NoRecommendation, combine
from forecaster.hpa.numbers import MAX_INT32
from forecaster.hpa.proposals import Proposal
from forecaster.hpa.tolerance import Tolerance
from forecaster.hpa.unmeasured import Unmeasured

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from forecaster.domain.decision import SignalView
    from forecaster.domain.policy import HorizontalPolicy
    from forecaster.domain.signal import Signal
    from forecaster.domain.workload import Workload


class Horizontal(NamedTuple):
    """The replica part of a recommendation, and what to remember."""

    verdict: Scale | Hold
    signals: tuple[SignalView, ...]
    clamps: tuple[Clamp, ...]
    state: ScalingState


class _Wanted(NamedTuple):
    """A count before the clamps, and which side asked for it."""

    replicas: int
    reactive: int
    forecast: int | None


def decide_replicas(
    workload: Workload,
    outlooks: Mapping[Signal, Outlook],
    policy: HorizontalPolicy,
    state: ScalingState,
    now: datetime,
) -> Horizontal:
    """One workload's replica count. Refusals first, the formula last."""
    asked = _ask_all(workload, outlooks, policy)
    usable = [one for one in asked if isinstance(one, Asked)]
    views = tuple(map(view, asked))
    wanted = _refusal(workload, asked, usable) or _wanted(usable, workload.replicas, policy)
    if isinstance(wanted, Hold):
        return Horizontal(wanted, views, (), state)
    replicas, clamps, state = _clamped(wanted, workload, policy, state, now)
    return Horizontal(_verdict(replicas, wanted, views), views, clamps, state)


def _ask_all(
    workload: Workload, outlooks: Mapping[Signal, Outlook], policy: HorizontalPolicy
) -> list[Asked | Unusable]:
    tolerance = Tolerance(policy.tolerance, policy.tolerance)

    def asked(target: PodTarget | Unusable) -> Asked | Unusable:
        if isinstance(target, Unusable):
            return target
        return ask(target, outlooks.get(target.signal) or _unread(target.signal), workload, tolerance)

    return [asked(target) for target in targets_of(workload, policy)]


def _unread(signal: Signal) -> Outlook:
    unknown = Unknown(f"{signal} is not among the signals read")
    return Outlook(signal, unknown, unknown)


def _refusal(workload: Workload, asked: Sequence[Asked | Unusable], usable: Sequence[Asked]) -> Hold | None:
    """Why nothing can be said about the count at all; None when something can."""
    if workload.replicas == 0:
        return Hold(Reason.NO_REPLICAS, "scaled to zero; whoever scaled it down scales it up again")
    if not usable:
        notes = "; ".join(f"{one.metric}: {one.note}" for one in asked if isinstance(one, Unusable))
        return Hold(Reason.NO_TARGET, notes or "no HPA and no CPU request: nothing says what one pod should carry")
    if workload.ready_replicas < 1:
        return Hold(Reason.NO_PODS, f"none of {workload.replicas} pods is ready")
    if all(isinstance(one.now, Unmeasured) for one in usable):
        return Hold(_reason_of_missing(usable), _missing(usable))
    return None


def _reason_of_missing(usable: Sequence[Asked]) -> Reason:
    stale = any(isinstance(one.outlook.measured, Unknown) and one.outlook.measured.stale for one in usable)
    return Reason.STALE if stale else Reason.NO_DATA


def _missing(usable: Sequence[Asked]) -> str:
    return "; ".join(f"{one.target.signal}: {one.now.message}" for one in usable if isinstance(one.now, Unmeasured))


def _wanted(usable: Sequence[Asked], current: int, policy: HorizontalPolicy) -> _Wanted | Hold:
    """Reactive and forecast count; a signal that is missing now blocks going down, as in the HPA (docs/hpa.md §9)."""
    recommendation = combine([one.now for one in usable], current)
    ahead = max((one.ahead.replicas for one in usable if isinstance(one.ahead, Proposal)), default=None)
    if isinstance(recommendation, NoRecommendation):
        if ahead is None or ahead <= current:
            blocked = "not going down while a signal is missing: " + _missing(usable)
            return Hold(_reason_of_missing(usable), blocked)
        return _Wanted(ahead, current, ahead)
    reactive = recommendation.replicas
    if ahead is None:
        return _Wanted(reactive, reactive, None)
    if policy.scale_in_by_forecast and not recommendation.partial:
        ahead = _everywhere(usable)
        return _Wanted(ahead, reactive, ahead)
    return _Wanted(max(reactive, ahead), reactive, ahead)


def _everywhere(usable: Sequence[Asked]) -> int:
    """The forecast count in which a signal without a forecast asks for what it measures: not knowing lowers nothing."""
    sides = (one.now if isinstance(one.ahead, Unmeasured) else one.ahead for one in usable)
    return max(side.replicas for side in sides if isinstance(side, Proposal))


def _clamped(
    wanted: _Wanted, workload: Workload, policy: HorizontalPolicy, state: ScalingState, now: datetime
) -> tuple[int, tuple[Clamp, ...], ScalingState]:
    lowest, highest = _bounds(workload, policy)
    window = policy.scale_down_stabilization
    stabilized, history = legacy.stabilize(state.history, wanted.replicas, window, now)
    bounded, rule = legacy.bound(stabilized, lowest, highest, growth=MAX_INT32)
    recent = f"highest recommendation of the last {window.total_seconds():g} s"
    steps = (
        ("forecast", wanted.reactive, wanted.replicas, _forecast_clause(wanted, policy)),
        ("stabilization", wanted.replicas, stabilized, recent),
        ("bounds", stabilized, bounded, f"{rule}: {lowest} to {_spoken_bound(highest)} replicas"),
    )
    clamps = tuple(Clamp(step, before, after, why) for step, before, after, why in steps if before != after)
    return bounded, clamps, ScalingState(history)


def _forecast_clause(wanted: _Wanted, policy: HorizontalPolicy) -> str:
    side = "raises" if wanted.replicas > wanted.reactive else "lowers"
    return f"the p{policy.quantile * 100:g} of the coming peak {side} what the measured demand asks for"


def _bounds(workload: Workload, policy: HorizontalPolicy) -> tuple[int, int]:
    hpa = workload.autoscaler
    lowest = policy.min_replicas or (max(hpa.min_replicas, 1) if hpa else 1)
    highest = policy.max_replicas or (hpa.max_replicas if hpa else MAX_INT32)
    return min(lowest, highest), highest


def _spoken_bound(highest: int) -> str:
    return "any number of" if highest == MAX_INT32 else str(highest)


def _verdict(replicas: int, wanted: _Wanted, views: tuple[SignalView, ...]) -> Scale:
    if wanted.forecast is None:
        notes = "; ".join(sorted({view.note for view in views if view.note}))
        return Scale(replicas, Reason.FALLBACK, f"measured demand alone: {notes or 'no forecast'}")
    if wanted.replicas == wanted.reactive:
        return Scale(replicas, Reason.REACTIVE, "the forecast asks for no more than the measured demand")
    return Scale(
        replicas, Reason.FORECAST, f"the forecast asks for {wanted.forecast}, the measured demand for {wanted.reactive}"
    )
