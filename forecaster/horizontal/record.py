"""One row of `Decisions` in sentences: made on demand, from numbers, codes and the objects that the row was made of."""

from __future__ import annotations

from dataclasses import fields
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from forecaster.domain.decision import Clamp, Hold, Reason, Recommendation, Scale, SignalView
from forecaster.domain.outlook import Measured, PeakForecast, SignalForecast, Unknown
from forecaster.horizontal.clamps import CLAMPS
from forecaster.horizontal.clamps.clamp import Step
from forecaster.horizontal.codes import (
    CHECKED,
    EVENT,
    IMPOSSIBLE,
    INCOMPLETE,
    KNOWN,
    READY,
    REASONS,
    REPLICAS,
    TARGET,
    UNKNOWN,
)
from forecaster.horizontal.events import freeze_at
from forecaster.horizontal.lead_time import lead_time
from forecaster.horizontal.targets import Unusable, stated_pod, targets_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from forecaster.domain.decision import LeadTime, Resize
    from forecaster.domain.policy import HorizontalPolicy
    from forecaster.domain.workload import Workload
    from forecaster.horizontal.decisions import Decisions
    from forecaster.horizontal.targets import PodTarget

NO_TARGET = "no HPA and no CPU request: nothing says what one pod should carry"


class Subject(NamedTuple):
    """The objects of one row: what its sentences name beside its numbers."""

    workload: Workload
    policy: HorizontalPolicy
    outlooks: Mapping[str, SignalForecast]
    """By signal; where a value is unknown, why."""
    shut: str = ""
    """Why the gate keeps the forecast from having its say."""
    failure: str = ""
    """Why the row could not be read."""


class ReplicaRecord(NamedTuple):
    """The replica part of a recommendation."""

    verdict: Scale | Hold
    signals: tuple[SignalView, ...]
    clamps: tuple[Clamp, ...]
    watched: bool
    """Whether the forecast is shown and has no say yet."""
    offered: int | None = None
    """The count without what an HPA does itself to what it reads; None while holding."""


def record(decisions: Decisions, row: int, subject: Subject) -> ReplicaRecord:
    """What was decided about one row, with every step on the way."""
    views = _views(decisions, row, subject)
    reason = REASONS[int(decisions.reason[row])]
    watched = not bool(decisions.inputs.acting[row])
    if not decisions.scales[row]:
        return ReplicaRecord(Hold(reason, _hold(reason, decisions, row, subject)), views, (), watched)
    offered = int(decisions.offered[row])
    verdict = Scale(int(decisions.replicas[row]), reason, _scale(reason, decisions, row, views, subject))
    return ReplicaRecord(verdict, views, _clamps(decisions, row, subject.policy), watched, offered)


def recommendation(
    decided: ReplicaRecord, subject: Subject, resources: Resize | Hold, now: datetime, lead: LeadTime | None = None
) -> Recommendation:
    """The whole record of a workload: its replicas, and what was decided about its resources."""
    workload = subject.workload
    hpa = workload.autoscaler
    return Recommendation(
        id=workload.id,
        at=now,
        replicas_now=workload.replicas,
        replicas=decided.verdict,
        resources_now=workload.resources,
        resources=resources,
        signals=decided.signals,
        clamps=decided.clamps,
        autoscaler=hpa.name if hpa else "",
        targets=hpa.targets if hpa else (),
        lead_time=lead or lead_time(subject.policy),
        watched=decided.watched,
        offered=decided.offered,
    )


def held(workload: Workload, reason: Reason, message: str, now: datetime) -> Recommendation:
    """The record of a workload about which nothing was decided: everything stays as it is."""
    hold, hpa = Hold(reason, message), workload.autoscaler
    return Recommendation(
        id=workload.id,
        at=now,
        replicas_now=workload.replicas,
        replicas=hold,
        resources_now=workload.resources,
        resources=hold,
        autoscaler=hpa.name if hpa else "",
        targets=hpa.targets if hpa else (),
    )


def _clamps(decisions: Decisions, row: int, policy: HorizontalPolicy) -> tuple[Clamp, ...]:
    """The steps that changed the count."""
    counts = [int(count[row]) for count in (decisions.reactive, *decisions.counts)]
    steps = zip(CLAMPS, pairwise(counts), strict=True)
    return tuple(
        Clamp(clamp.name, before, after, clamp.sentence(Step(decisions, row, before, after, policy)))
        for clamp, (before, after) in steps
        if before != after
    )


def _scale(reason: Reason, decisions: Decisions, row: int, views: Sequence[SignalView], subject: Subject) -> str:
    """Which side made the count what it is."""
    if reason is Reason.GATED:
        return f"measured demand alone; the forecast has no say ({subject.shut})"
    if reason is Reason.FALLBACK:
        notes = "; ".join(sorted({view.note for view in views if view.note}))
        return f"measured demand alone: {notes or 'no forecast'}"
    if reason is Reason.REACTIVE:
        return "the forecast asks for no more than the measured demand"
    forecast, reactive = int(decisions.forecast[row]), int(decisions.reactive[row])
    return f"the forecast asks for {forecast}, the measured demand for {reactive}"


def _asleep(subject: Subject) -> str:
    """Why a workload without replicas is left there."""
    signals = [one.signal for one in targets_of(subject.workload, subject.policy) if not isinstance(one, Unusable)]
    if subject.policy.min_replicas != 0 or not signals or any(signal.survives_zero for signal in signals):
        return "scaled to zero; what scaled it down scales it up again"
    names = ", ".join(dict.fromkeys(signals))
    return f"scaled to zero, and not by a recommendation: without pods {names} is not measured, so no load can wake it"


def _hold(reason: Reason, decisions: Decisions, row: int, subject: Subject) -> str:
    """Why nothing can be said about the count."""
    workload = subject.workload
    match reason:
        case Reason.NO_REPLICAS:
            return _asleep(subject)
        case Reason.FROZEN:
            frozen = freeze_at(subject.policy.events, datetime.fromtimestamp(decisions.now, UTC))
            return f"{frozen.event} until {frozen.until:%Y-%m-%d %H:%M} UTC" if frozen else "a maintenance window is on"
        case Reason.NO_TARGET:
            unusable = [one for one in targets_of(workload, subject.policy) if isinstance(one, Unusable)]
            return "; ".join(f"{one.metric}: {one.note}" for one in unusable) or NO_TARGET
        case Reason.NO_PODS:
            return f"none of {workload.replicas} pods is ready"
        case Reason.FAILED:
            return subject.failure or _impossible(decisions, row)
        case _:
            return _missing(decisions, row, subject)


def _impossible(decisions: Decisions, row: int) -> str:
    """Which number no decision can be made with."""
    inputs, code = decisions.inputs, int(decisions.failed[row])
    counts = {REPLICAS: inputs.current, READY: inputs.ready, EVENT: inputs.event_floor}
    if code in counts:
        return f"{CHECKED[code]}: {counts[code][row]} is impossible"
    if code < TARGET:
        number = getattr(inputs.policy, fields(inputs.policy)[code - 1].name)[row]
        return f"{CHECKED[code]}: {number:g} is impossible"
    return f"{CHECKED[code]}: nothing can be computed by it"


def _missing(decisions: Decisions, row: int, subject: Subject) -> str:
    """Which signals have no answer or a part of one, and why."""
    reactive, kinds = decisions.proposals.reactive, decisions.inputs.rules.kinds
    missing = [target for target in range(len(kinds)) if reactive[target][row] == UNKNOWN]
    parts = [target for target in range(len(kinds)) if decisions.unseen[target, row] == INCOMPLETE]
    at_fault = dict.fromkeys([*missing, *parts])
    said = "; ".join(f"{kinds[target].signal}: {_unmeasured(decisions, row, target, subject)}" for target in at_fault)
    if len(missing) == len(kinds):
        return said
    return f"not going down while a signal is {'missing' if missing else 'incomplete'}: {said}"


def _unmeasured(decisions: Decisions, row: int, target: int, subject: Subject) -> str:
    """Why a target has no answer now."""
    code = decisions.unseen[target, row]
    if code == KNOWN:
        return "no pod is ready" if decisions.inputs.current[row] else "no pod is asked for"
    if code == IMPOSSIBLE:
        return f"what was measured, {decisions.inputs.measured[target, row]:g}, is no amount of demand"
    signal = decisions.inputs.rules.kinds[target].signal
    measured = outlook_of(subject, signal).measured
    if isinstance(measured, Measured):
        return measured.lower_bound or "no sample"
    return measured.note


def outlook_of(subject: Subject, signal: str) -> SignalForecast:
    """What is known of one signal of a row."""
    found = subject.outlooks.get(signal)
    if found is not None:
        return found
    unknown = Unknown(f"{signal} is not among the signals read")
    return SignalForecast(signal, unknown, unknown)


def _views(decisions: Decisions, row: int, subject: Subject) -> tuple[SignalView, ...]:
    """Every target in the order of the HPA, those that cannot be computed among them."""
    views, target = [], 0
    for one in targets_of(subject.workload, subject.policy) if not subject.failure else ():
        if isinstance(one, Unusable):
            views.append(SignalView(signal=one.metric, note=one.note))
            continue
        views.append(_view(decisions, row, target, one, subject))
        target += 1
    return tuple(views)


def _view(decisions: Decisions, row: int, target: int, one: PodTarget, subject: Subject) -> SignalView:
    """The record of one target: every input and both answers."""
    outlook = outlook_of(subject, one.signal)
    measured = outlook.measured if isinstance(outlook.measured, Measured) else None
    forecast = outlook.ahead if isinstance(outlook.ahead, PeakForecast) else None
    if decisions.unseen[target, row] == IMPOSSIBLE:
        measured = None
    return SignalView(
        signal=str(one.signal),
        unit=one.signal.unit,
        target=one.words,
        measured=measured.value if measured else None,
        measured_at=measured.at if measured else None,
        reactive_replicas=_known(decisions.proposals.reactive[target][row]),
        forecast=forecast,
        forecast_replicas=_known(decisions.proposals.forecast[target][row]),
        note=_note(decisions, row, target, subject),
        pod=stated_pod(one),
    )


def _known(count: int) -> int | None:
    return None if count == UNKNOWN else int(count)


def _note(decisions: Decisions, row: int, target: int, subject: Subject) -> str:
    """What is missing of one target, and what the forecast itself says, each once."""
    ahead = outlook_of(subject, decisions.inputs.rules.kinds[target].signal).ahead
    said = [ahead.note] if isinstance(ahead, PeakForecast) and ahead.note else []
    part: list[str] = []
    if decisions.proposals.reactive[target][row] == UNKNOWN:
        return "; ".join(dict.fromkeys([_unmeasured(decisions, row, target, subject), *said]))
    if decisions.unseen[target, row] == INCOMPLETE:
        part = [f"a lower bound, not going down by it: {_unmeasured(decisions, row, target, subject)}"]
    if decisions.proposals.forecast[target][row] == UNKNOWN:
        unforeseen = ahead.note if isinstance(ahead, Unknown) else "the forecast is no amount of demand"
        return "; ".join(dict.fromkeys([*part, unforeseen, *said]))
    return "; ".join([*part, *said])
