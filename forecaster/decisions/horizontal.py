"""Replicas from what is measured and what is forecast, held within the clamps: refusals first, the formula last."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from forecaster.decisions.asked import Asked, ask, view, wakes_from_zero
from forecaster.decisions.clamps import clamped, expecting
from forecaster.decisions.events import freeze_at
from forecaster.decisions.outage import after_silence, expected_of, observed
from forecaster.decisions.targets import Unusable, full_pod, targets_of
from forecaster.decisions.wanted import missing, reason_of_missing, wanted_by
from forecaster.domain.decision import Hold, Reason, Scale
from forecaster.domain.outlook import SignalForecast, Unknown
from forecaster.hpa.proposals import Tolerance, Unmeasured

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from forecaster.decisions.gate import Gate
    from forecaster.decisions.state import ScalingState
    from forecaster.decisions.wanted import Wanted
    from forecaster.domain.decision import Clamp, SignalView
    from forecaster.domain.policy import HorizontalPolicy
    from forecaster.domain.signal import Signal
    from forecaster.domain.workload import Workload


class Horizontal(NamedTuple):
    """The replica part of a recommendation, and what to remember."""

    verdict: Scale | Hold
    signals: tuple[SignalView, ...]
    clamps: tuple[Clamp, ...]
    state: ScalingState
    offered: int | None = None
    """The count without what an HPA does itself to what it reads; None while holding."""


def decide_replicas(
    workload: Workload,
    outlooks: Mapping[Signal, SignalForecast],
    policy: HorizontalPolicy,
    state: ScalingState,
    now: datetime,
    *,
    gate: Gate | None = None,
) -> Horizontal:
    """One workload's replica count. Without a `gate` nobody judges the forecast, and it has its say."""
    asked = _ask_all(workload, outlooks, policy, state)
    usable = [one for one in asked if isinstance(one, Asked)]
    views = tuple(map(view, asked))
    wanted = _refusal(workload, asked, usable, policy, now) or wanted_by(usable, workload.replicas, policy, gate)
    if isinstance(wanted, Hold):
        return Horizontal(wanted, views, (), _holding(state, wanted, workload, policy, now))
    if policy.outage_hold:
        state = _looking_for_outages(state, usable, workload, policy, now)
    replicas, offered, clamps, state = clamped(wanted, workload, policy, state, now)
    return Horizontal(_verdict(replicas, wanted, views), views, clamps, state, offered)


def _ask_all(
    workload: Workload, outlooks: Mapping[Signal, SignalForecast], policy: HorizontalPolicy, state: ScalingState
) -> list[Asked | Unusable]:
    tolerance = _both_ways(policy.tolerance)
    asked: list[Asked | Unusable] = []
    for target in targets_of(workload, policy):
        if isinstance(target, Unusable):
            asked.append(target)
            continue
        outlook = outlooks.get(target.signal) or _unread(target.signal)
        asked.append(ask(target, outlook, workload, tolerance, policy, served_by=state.ready))
    return asked


@cache
def _both_ways(tolerance: float) -> Tolerance:
    return Tolerance(tolerance, tolerance)


def _unread(signal: Signal) -> SignalForecast:
    unknown = Unknown(f"{signal} is not among the signals read")
    return SignalForecast(signal, unknown, unknown)


def _refusal(
    workload: Workload,
    asked: Sequence[Asked | Unusable],
    usable: Sequence[Asked],
    policy: HorizontalPolicy,
    now: datetime,
) -> Hold | None:
    """Why nothing can be said about the count at all; None when something can."""
    if workload.replicas == 0 and not wakes_from_zero(policy):
        return Hold(Reason.NO_REPLICAS, "scaled to zero; whoever scaled it down scales it up again")
    frozen = freeze_at(policy.events, now) if policy.events else None
    if frozen:
        return Hold(Reason.FROZEN, f"{frozen.event} until {frozen.until:%Y-%m-%d %H:%M} UTC")
    if not usable:
        notes = "; ".join(f"{one.metric}: {one.note}" for one in asked if isinstance(one, Unusable))
        return Hold(Reason.NO_TARGET, notes or "no HPA and no CPU request: nothing says what one pod should carry")
    if workload.ready_replicas < 1 and not wakes_from_zero(policy):
        return Hold(Reason.NO_PODS, f"none of {workload.replicas} pods is ready")
    if all(isinstance(one.now, Unmeasured) for one in usable):
        return Hold(reason_of_missing(usable), missing(usable))
    return None


def _holding(
    state: ScalingState, hold: Hold, workload: Workload, policy: HorizontalPolicy, now: datetime
) -> ScalingState:
    """A hold for want of samples is an outage of input."""
    if hold.reason not in {Reason.NO_DATA, Reason.STALE} or not policy.outage_hold:
        return state
    return expecting(state, after_silence(workload.replicas, now, policy.outage_hold, hold.message), state.expected)


def _looking_for_outages(
    state: ScalingState, usable: Sequence[Asked], workload: Workload, policy: HorizontalPolicy, now: datetime
) -> ScalingState:
    outlooks = [one.outlook for one in usable]
    outage = observed(state.outage, outlooks, state.expected, workload.replicas, now, policy.outage_hold)
    pods = [full_pod(one.target, policy.peak_target) for one in usable]
    return expecting(state, outage, expected_of(zip(outlooks, pods, strict=True)))


def _verdict(replicas: int, wanted: Wanted, views: tuple[SignalView, ...]) -> Scale:
    if wanted.shut:
        return Scale(replicas, Reason.GATED, f"measured demand alone; the forecast has no say ({wanted.shut})")
    if wanted.forecast is None:
        notes = "; ".join(sorted({view.note for view in views if view.note}))
        return Scale(replicas, Reason.FALLBACK, f"measured demand alone: {notes or 'no forecast'}")
    if wanted.replicas == wanted.reactive:
        return Scale(replicas, Reason.REACTIVE, "the forecast asks for no more than the measured demand")
    return Scale(
        replicas, Reason.FORECAST, f"the forecast asks for {wanted.forecast}, the measured demand for {wanted.reactive}"
    )
