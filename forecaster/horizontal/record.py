"""One row of `Decisions` as a record: its numbers and words, taken on demand from arrays, codes and objects."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from math import nan
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from forecaster.domain.decision import Hold, Recommendation
from forecaster.domain.outlook import Measured, SignalForecast, Unknown
from forecaster.horizontal.clamps.outage_hold import Missing, cause_sentence, unseen_sentence
from forecaster.horizontal.codes import (
    CHECKED,
    EVENT,
    FIRST_NUMBER,
    IMPOSSIBLE,
    KNOWN,
    NONE,
    READY,
    REPLICAS,
    SILENCE,
    STALE,
)
from forecaster.horizontal.events import floor_at, freeze_at
from forecaster.horizontal.row import RowWords, RuleNumbers, TargetWords
from forecaster.horizontal.targets import Unusable, stated_pod, targets_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from forecaster.domain.decision import LeadTime, Reason, Resize
    from forecaster.domain.policy import HorizontalPolicy
    from forecaster.domain.workload import Workload
    from forecaster.horizontal.columns import Array
    from forecaster.horizontal.decide import Decisions
    from forecaster.horizontal.sentences import ReplicaRecord
    from forecaster.horizontal.targets import PodTarget

NO_RULES = RuleNumbers(nan, 0, 0, nan)
"""Rules of a row about which nothing was decided."""


class Subject(NamedTuple):
    """The objects of one row: what its sentences name beside its numbers."""

    workload: Workload
    policy: HorizontalPolicy
    outlooks: Mapping[str, SignalForecast]
    """Latest demand and forecast by signal; where a value is unknown, the reason."""
    shut: str = ""
    """Why the gate keeps the forecast from having its say."""
    failure: str = ""
    """Why the row could not be read."""


def recommendation(
    decided: ReplicaRecord, workload: Workload, resources: Resize | Hold, now: datetime, lead: LeadTime | None
) -> Recommendation:
    """The whole record of a workload: its replicas, and what was decided about its resources."""
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
        lead_time=lead,
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


def held_words(workload: Workload, reason: Reason, message: str) -> RowWords:
    """The words of a workload about which nothing was decided."""
    hpa = workload.autoscaler
    return RowWords(NO_RULES, autoscaler=hpa.name if hpa else "", hold=message, nothing_decided=str(reason))


def outlook_of(subject: Subject, signal: str) -> SignalForecast:
    """What is known of one signal of a row."""
    found = subject.outlooks.get(signal)
    if found is not None:
        return found
    unknown = Unknown(f"{signal} is not among the signals read")
    return SignalForecast(signal, unknown, unknown)


def row_words(decisions: Decisions, row: int, subject: Subject, lead: LeadTime | None = None) -> RowWords:
    """What is said of one row beside its numbers."""
    hpa = subject.workload.autoscaler
    return RowWords(
        rules=_rules(decisions, row, subject.policy),
        targets=() if subject.failure else tuple(_target_words(decisions, row, subject)),
        autoscaler=hpa.name if hpa else "",
        shut=subject.shut,
        hold=_hold(decisions, row, subject),
        event=_event(decisions, row, subject.policy),
        outage=_outage(decisions, row),
        lead_seconds=None if lead is None else lead.value.total_seconds(),
        lead_origin="" if lead is None else lead.origin,
    )


def _rules(decisions: Decisions, row: int, policy: HorizontalPolicy) -> RuleNumbers:
    rules, columns = decisions.inputs.rules, decisions.inputs.policy
    return RuleNumbers(
        quantile=float(columns.quantile[row]),
        newsvendor=rules.sizing == "newsvendor",
        lowest=int(columns.min_replicas[row]),
        highest=int(columns.max_replicas[row]),
        max_sample_age=float(columns.max_sample_age[row]),
        may_sleep=policy.min_replicas == 0,
        comes_back=rules.comes_back,
        numbers=tuple((name, float(columns[name][row])) for name in sorted(columns.in_use) if columns[name][row] > 0.0),
    )


def _hold(decisions: Decisions, row: int, subject: Subject) -> str:
    """What is impossible, or which maintenance window is on."""
    if decisions.failed[row]:
        return subject.failure or _impossible(decisions, row)
    if not decisions.inputs.frozen[row]:
        return ""
    frozen = freeze_at(subject.policy.events, datetime.fromtimestamp(decisions.now, UTC))
    return f"{frozen.event} until {frozen.until:%Y-%m-%d %H:%M} UTC" if frozen else ""


def _impossible(decisions: Decisions, row: int) -> str:
    """Which number no decision can be made with."""
    inputs, code = decisions.inputs, int(decisions.failed[row])
    counts = {REPLICAS: inputs.current, READY: inputs.ready, EVENT: inputs.event_floor}
    if code in counts:
        return f"{CHECKED[code]}: {counts[code][row]} is impossible"
    if code >= FIRST_NUMBER:
        name, number = inputs.policy.number_of(code, row)
        return f"{name}: {number:g} is impossible"
    return f"{CHECKED[code]}: nothing can be computed by it"


def _event(decisions: Decisions, row: int, policy: HorizontalPolicy) -> str:
    """Which event has a floor now, and until when."""
    if decisions.inputs.event_floor[row] <= 0:
        return ""
    lead = timedelta(seconds=float(decisions.inputs.policy.lead_time[row]))
    event = floor_at(policy.events, datetime.fromtimestamp(decisions.now, UTC), lead)
    return f"{event.event} until {event.until:%H:%M} UTC" if event else ""


def _outage(decisions: Decisions, row: int) -> str:
    """What is or was missing, while the floor of an outage holds."""
    state = decisions.state
    if state.cause[row] == NONE:
        return ""
    columns = zip(state.signals, state.missing[:, row].tolist(), state.missing_age[:, row].tolist(), strict=True)
    missing = (Missing(*one) for one in columns if one[1] != KNOWN)
    gone, limit = int(state.gone[row]), float(decisions.inputs.policy.max_sample_age[row])
    return cause_sentence(int(state.cause[row]), state.signals[gone] if gone >= 0 else "", missing, limit)


def _target_words(decisions: Decisions, row: int, subject: Subject) -> Iterator[TargetWords]:
    """Every target in the order of the HPA, those that cannot be computed among them."""
    target = 0
    for one in targets_of(subject.workload, subject.policy):
        if isinstance(one, Unusable):
            yield TargetWords(one.metric, note=one.note)
        else:
            yield _usable_words(decisions, row, target, one, subject)
            target += 1


def _usable_words(decisions: Decisions, row: int, target: int, one: PodTarget, subject: Subject) -> TargetWords:
    """What is said of one target that is usable."""
    outlook = outlook_of(subject, one.signal)
    words = TargetWords(
        signal=str(one.signal),
        target=one.words,
        unit=one.signal.unit,
        pod=stated_pod(one),
        unmeasured=_unmeasured(decisions, row, target, outlook),
    )
    if isinstance(outlook.ahead, Unknown):
        return words._replace(unforeseen=outlook.ahead.note)
    ahead, at = outlook.ahead, datetime.fromtimestamp(decisions.now, UTC)
    begin, until = ((instant - at).total_seconds() for instant in (ahead.begin, ahead.until))
    return words._replace(model=ahead.model, begin=begin, until=until, remark=ahead.note)


def _unmeasured(decisions: Decisions, row: int, target: int, outlook: SignalForecast) -> str:
    """Why there is no measurement, or a part of one, where the code and the age do not say it."""
    code, measured = int(decisions.unseen[target, row]), outlook.measured
    if code == KNOWN:
        return ""
    if code == IMPOSSIBLE:
        return f"what was measured, {decisions.inputs.measured[target, row]:g}, is no amount of demand"
    note = (measured.lower_bound or "no sample") if isinstance(measured, Measured) else measured.note
    age, limit = decisions.inputs.age[target, row], decisions.inputs.policy.max_sample_age[row]
    return "" if note == unseen_sentence(code, outlook.signal, float(age), float(limit)) else note


def word_numbers(decisions: Decisions) -> Iterator[Array]:
    """Every number [row] on which `row_words` depends, but for what is known of signals, events, sizes and gates."""
    inputs, state, failed = decisions.inputs, decisions.state, decisions.failed
    yield failed
    yield inputs.frozen
    if failed.any():
        for count in (inputs.current, inputs.ready, inputs.event_floor):
            yield np.where(failed > 0, count, 0)
    yield np.where(decisions.scales, state.cause, 0)
    if state.cause.any():
        yield state.gone
        silent = decisions.scales & (state.cause == SILENCE)
        for code, age in zip(state.missing, state.missing_age, strict=True):
            yield np.where(silent, code, 0)
            yield np.where(silent & (code == STALE), age, 0.0)
    for target in range(len(inputs.rules.kinds)):
        yield decisions.unseen[target]
        yield np.isnan(inputs.peak[target])
        yield np.asarray(np.isnan(inputs.quantiles[target][:1]).any(axis=0))
        yield np.where(decisions.unseen[target] == IMPOSSIBLE, inputs.measured[target], 0.0)
