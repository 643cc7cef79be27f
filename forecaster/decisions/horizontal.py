"""How many replicas: reactive from what is measured, raised by what is forecast, then held within the clamps.

Forecast and measurement go through the same formula of the HPA. The order of the clamps is written once, in
`_clamped`: stabilisation first, bounds last, so that no rule can undo a bound.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from forecaster.decisions.replicas import proposal
from forecaster.decisions.state import ScalingState
from forecaster.decisions.targets import PodTarget, Unusable, targets_of
from forecaster.domain.decision import Clamp, Hold, Reason, Scale, SignalView
from forecaster.domain.outlook import Ahead, Measured, Outlook, Unknown
from forecaster.hpa import legacy
from forecaster.hpa.combine import NoRecommendation, combine
from forecaster.hpa.numbers import MAX_INT32
from forecaster.hpa.proposals import Proposal
from forecaster.hpa.tolerance import Tolerance
from forecaster.hpa.unmeasured import Unmeasured

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from forecaster.domain.policy import HorizontalPolicy
    from forecaster.domain.signal import Signal
    from forecaster.domain.workload import Workload


class Horizontal(NamedTuple):
    """The replica part of a recommendation, and what to remember."""

    verdict: Scale | Hold
    signals: tuple[SignalView, ...]
    clamps: tuple[Clamp, ...]
    state: ScalingState


class _Asked(NamedTuple):
    """What one target asks for, now and ahead."""

    target: PodTarget | Unusable
    outlook: Outlook | None
    now: Proposal | Unmeasured
    ahead: Proposal | Unmeasured


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
    targets = targets_of(workload, policy)
    asked = [_ask(target, workload, outlooks, Tolerance(policy.tolerance, policy.tolerance)) for target in targets]
    views = tuple(_view(one) for one in asked)
    refused = _refusal(workload, asked)
    if refused is not None:
        return Horizontal(refused, views, (), state)
    wanted = _wanted(asked, workload.replicas, policy)
    if isinstance(wanted, Hold):
        return Horizontal(wanted, views, (), state)
    replicas, clamps, state = _clamped(wanted, workload, policy, state, now)
    return Horizontal(_verdict(replicas, wanted, views), views, clamps, state)


def _ask(
    target: PodTarget | Unusable, workload: Workload, outlooks: Mapping[Signal, Outlook], tolerance: Tolerance
) -> _Asked:
    if isinstance(target, Unusable):
        unusable = Unmeasured("invalid_target", target.note)
        return _Asked(target, None, unusable, unusable)
    outlook = outlooks.get(target.signal)
    if outlook is None or workload.ready_replicas < 1:
        nothing = Unmeasured("no_samples", f"{target.signal} is not among the signals read")
        return _Asked(target, outlook, nothing, nothing)

    def through_formula(demand: float) -> Proposal | Unmeasured:
        return proposal(demand, target, workload.ready_replicas, workload.replicas, tolerance)

    measured, ahead = outlook.measured, outlook.ahead
    return _Asked(
        target,
        outlook,
        through_formula(measured.value) if isinstance(measured, Measured) else _absent(measured),
        through_formula(ahead.peak) if isinstance(ahead, Ahead) else _absent(ahead),
    )


def _absent(unknown: Unknown) -> Unmeasured:
    return Unmeasured("no_samples", unknown.note)


def _refusal(workload: Workload, asked: Sequence[_Asked]) -> Hold | None:
    """Why nothing can be said about the count at all; None when something can."""
    if workload.replicas == 0:
        return Hold(Reason.NO_REPLICAS, "scaled to zero; whoever scaled it down scales it up again")
    usable = [one for one in asked if not isinstance(one.target, Unusable)]
    if not usable:
        notes = "; ".join(
            f"{one.target.metric}: {one.target.note}" for one in asked if isinstance(one.target, Unusable)
        )
        return Hold(Reason.NO_TARGET, notes or "no HPA and no CPU request: nothing says what one pod should carry")
    if workload.ready_replicas < 1:
        return Hold(Reason.NO_PODS, f"none of {workload.replicas} pods is ready")
    if all(isinstance(one.now, Unmeasured) for one in usable):
        return Hold(Reason.NO_DATA, "; ".join(_missing(usable)))
    return None


def _missing(asked: Sequence[_Asked]) -> list[str]:
    return [
        f"{one.target.signal}: {one.now.message}"
        for one in asked
        if not isinstance(one.target, Unusable) and isinstance(one.now, Unmeasured)
    ]


def _wanted(asked: Sequence[_Asked], current: int, policy: HorizontalPolicy) -> _Wanted | Hold:
    """Reactive and forecast count; a signal that is missing now blocks going down, as in the HPA (docs/hpa.md §9)."""
    readable = [one for one in asked if not isinstance(one.target, Unusable)]
    recommendation = combine([one.now for one in readable], current)
    ahead = max((one.ahead.replicas for one in readable if isinstance(one.ahead, Proposal)), default=None)
    if isinstance(recommendation, NoRecommendation):
        if ahead is None or ahead <= current:
            return Hold(Reason.NO_DATA, "not going down while a signal is missing: " + "; ".join(_missing(readable)))
        return _Wanted(ahead, current, ahead)
    reactive = recommendation.replicas
    if ahead is None:
        return _Wanted(reactive, reactive, None)
    lowered = policy.scale_in_by_forecast and not recommendation.partial
    return _Wanted(ahead if lowered else max(reactive, ahead), reactive, ahead)


def _clamped(
    wanted: _Wanted, workload: Workload, policy: HorizontalPolicy, state: ScalingState, now: datetime
) -> tuple[int, tuple[Clamp, ...], ScalingState]:
    lowest, highest = _bounds(workload, policy)
    stabilized, history = legacy.stabilize(state.history, wanted.replicas, policy.scale_down_stabilization, now)
    bounded, rule = legacy.bound(stabilized, lowest, highest, growth=MAX_INT32)
    seconds = policy.scale_down_stabilization.total_seconds()
    steps = (
        Clamp("forecast", wanted.reactive, wanted.replicas, _forecast_clause(wanted, policy)),
        Clamp("stabilization", wanted.replicas, stabilized, f"highest recommendation of the last {seconds:g} s"),
        Clamp("bounds", stabilized, bounded, f"{rule}: {lowest} to {_spoken_bound(highest)} replicas"),
    )
    return bounded, tuple(step for step in steps if step.before != step.after), ScalingState(history)


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


def _view(asked: _Asked) -> SignalView:
    """The record of one target: every input and both answers."""
    target, outlook = asked.target, asked.outlook
    if isinstance(target, Unusable):
        return SignalView(signal=target.metric, target="", note=target.note)
    measured = outlook.measured if outlook and isinstance(outlook.measured, Measured) else None
    ahead = outlook.ahead if outlook and isinstance(outlook.ahead, Ahead) else None
    return SignalView(
        signal=target.signal,
        target=str(target),
        measured=measured.value if measured else None,
        measured_at=measured.at if measured else None,
        reactive_replicas=asked.now.replicas if isinstance(asked.now, Proposal) else None,
        forecast=ahead,
        forecast_replicas=asked.ahead.replicas if isinstance(asked.ahead, Proposal) else None,
        note="; ".join(dict.fromkeys(_notes(asked, ahead))),
    )


def _notes(asked: _Asked, ahead: Ahead | None) -> list[str]:
    missing = [side.message for side in (asked.now, asked.ahead) if isinstance(side, Unmeasured)]
    return missing + ([ahead.note] if ahead and ahead.note else [])
