"""The decision about a single workload, for stories: a table of one row."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np

from forecaster.cycle.decide import lost_share
from forecaster.domain.decision import Hold, Reason, Scale
from forecaster.domain.policy import Policy
from forecaster.domain.signal import Measured, PeakForecast, Unknown
from forecaster.horizontal.columns import Names
from forecaster.horizontal.decide import decide
from forecaster.horizontal.events import EventCalendar
from forecaster.horizontal.gate_states import gate_reason
from forecaster.horizontal.inputs import Inputs
from forecaster.horizontal.lead_time import lead_time
from forecaster.horizontal.record import failure_words, outage_words, stated_row, unmeasured_words
from forecaster.horizontal.row import (
    INCOMPLETE,
    KNOWN,
    NO_SAMPLE,
    NOT_READ,
    REASONS,
    STALE,
    DecidedRow,
    DecidedTarget,
    ForecastDetails,
)
from forecaster.horizontal.sentences import recommendation
from forecaster.horizontal.state import State
from forecaster.horizontal.terms import UNREADABLE_TERMS, policy_columns, target_columns, terms_of
from forecaster.publish.record import ROW_TEXTS, encoded_lead_time, encoded_stated
from forecaster.publish.values import encoded_readers
from tests.support.outlook import SignalForecast

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from forecaster.domain.decision import Recommendation
    from forecaster.domain.policy import HorizontalPolicy
    from forecaster.domain.workload import Workload
    from forecaster.horizontal.columns import Floats
    from forecaster.horizontal.decide import Decisions
    from forecaster.horizontal.gate_states import Gate
    from forecaster.publish.offer import DecidedColumns


NO_SIZE = Hold(Reason.NO_DATA, "nothing is said of sizes here")


class Subject(NamedTuple):
    """The objects of one row: what its sentences name beside its numbers."""

    workload: Workload
    policy: HorizontalPolicy
    outlooks: Mapping[str, SignalForecast]
    """Latest demand and forecast by signal; where a value is unknown, the reason."""
    shut: str = ""
    """Reason for which the gate shuts the forecast out."""
    failure: str = ""
    """Reason for which the row could not be read."""


def outlook_of(subject: Subject, signal: str) -> SignalForecast:
    """Outlook of one signal of a row."""
    outlook = subject.outlooks.get(signal)
    if outlook is not None:
        return outlook
    unknown = Unknown(f"{signal} is not among the signals read")
    return SignalForecast(signal, unknown, unknown)


def decide_one(
    workload: Workload,
    outlooks: Mapping[str, SignalForecast],
    policy: HorizontalPolicy,
    state: State,
    now: datetime,
    *,
    gate: Gate | None = None,
) -> tuple[Recommendation, State]:
    """One workload's replicas at `now`, with every step on the way, and the state to remember. Its size is left out.

    Without a `gate` the forecast counts. All forecasts with a distribution have the same levels.
    """
    shut = gate_reason(Policy(mode="publish", horizontal=policy), gate)
    subject = Subject(workload, policy, outlooks, shut)
    inputs = inputs_of_one(subject, now)
    decisions, after = decide(inputs, state, now.timestamp())
    return record(decisions, 0, subject), after


def state_of(recommendations: Iterable[tuple[int, datetime]] = ()) -> State:
    """The state [one row] of a workload for which these counts were recommended earlier."""
    state = State.new(1)
    for replicas, at in sorted(recommendations, key=lambda pair: pair[1]):
        state = state.opened(at.timestamp(), np.inf, ()).recommended(np.array([replicas]))
    return replace(state, begun=np.ones(1, np.bool_))


def inputs_of_one(subject: Subject, now: datetime) -> Inputs:
    """The inputs [one row] of one workload."""
    workload, policy = subject.workload, subject.policy
    terms = [terms_of(workload, policy, ())]
    kinds = terms[0].rules.kinds
    outlooks = [outlook_of(subject, kind.signal) for kind in kinds]
    levels = _levels(outlooks)
    columns = policy_columns(terms)
    return Inputs(
        rules=terms[0].rules._replace(levels=levels),
        policy=columns,
        targets=target_columns(terms),
        current=np.array([workload.replicas]),
        ready=np.array([workload.ready_replicas]),
        measured=_column(
            [outlook.measured.value if isinstance(outlook.measured, Measured) else np.nan for outlook in outlooks]
        ),
        unseen=np.array([_unseen(subject, outlook) for outlook in outlooks], np.int8).reshape(-1, 1),
        age=_column([_age(outlook, now) for outlook in outlooks]),
        peak=_column(
            [outlook.ahead.peak if isinstance(outlook.ahead, PeakForecast) else np.nan for outlook in outlooks]
        ),
        low=_column([outlook.ahead.low if isinstance(outlook.ahead, PeakForecast) else np.nan for outlook in outlooks]),
        quantiles=[_quantiles(outlook, levels) for outlook in outlooks],
        acting=np.array([not subject.shut]),
        events=EventCalendar([policy.events], [lead_time(policy).value]).at(now),
        lost=np.array([lost_share(workload.spread, policy.survive)]),
        unreadable=np.zeros(1, np.bool_),
    )


def _column(values: Sequence[float]) -> Floats:
    return np.array(values, np.float64).reshape(-1, 1)


def _unseen(subject: Subject, outlook: SignalForecast) -> int:
    if isinstance(outlook.measured, Unknown):
        there = outlook.signal in subject.outlooks
        return STALE if outlook.measured.stale else NO_SAMPLE if there else NOT_READ
    return INCOMPLETE if outlook.measured.lower_bound else KNOWN


def _age(outlook: SignalForecast, now: datetime) -> float:
    return (now - outlook.measured.at).total_seconds() if isinstance(outlook.measured, Measured) else np.nan


def _levels(outlooks: Sequence[SignalForecast]) -> tuple[float, ...]:
    levels = {
        outlook.ahead.levels for outlook in outlooks if isinstance(outlook.ahead, PeakForecast) and outlook.ahead.levels
    }
    if len(levels) > 1:
        raise ValueError(f"forecasts of one decision have the same levels, and not {sorted(levels)}")
    return levels.pop() if levels else ()


def _quantiles(outlook: SignalForecast, levels: tuple[float, ...]) -> Floats:
    """[level, one row]; NaN where only one quantile is known."""
    if isinstance(outlook.ahead, PeakForecast) and outlook.ahead.levels:
        return _column(outlook.ahead.peaks)
    return _column([np.nan] * len(levels))


def with_texts(numbers: DecidedColumns, decisions: Decisions, subject: Subject) -> DecidedColumns:
    """Put the texts of a single row into its columns, as a cycle does for its rows."""
    names, row = Names(), row_of_one(decisions, 0, subject)
    for name in ROW_TEXTS:
        getattr(numbers, name)[0] = names[getattr(row, name).encode()]
    numbers.stated[0] = names[encoded_stated(row)]
    numbers.lead_time[0] = names[encoded_lead_time(lead_time(subject.policy))]
    for place, target in enumerate(row.usable):
        numbers.outlook[place, 0] = names[msgspec.msgpack.encode(_outlook(target, row.at))]
        numbers.unmeasured[place, 0] = names[target.unmeasured.encode()]
    targets = subject.workload.autoscaler.targets if subject.workload.autoscaler else ()
    numbers.readers[0] = names[encoded_readers(targets)]
    return replace(numbers, names=tuple(names))


def _outlook(target: DecidedTarget, at: datetime) -> ForecastDetails:
    if target.ahead is None:
        return ForecastDetails(target.unforeseen)
    ahead = target.ahead
    begin, until = ((instant - at).total_seconds() for instant in (ahead.begin, ahead.until))
    return ForecastDetails("", ahead.model, begin, until, ahead.note)


def row_of_one(decisions: Decisions, row: int, subject: Subject) -> DecidedRow:
    """Decided row of one workload, by its objects."""
    workload, policy, inputs = subject.workload, subject.policy, decisions.inputs
    terms = UNREADABLE_TERMS if subject.failure else terms_of(workload, policy, ())
    stated = stated_row(workload, policy, terms)
    events = inputs.events.row(row)
    usable = count()
    failed = subject.failure or failure_words(decisions, row) if decisions.failed[row] else ""
    return stated._replace(
        rules=stated.rules._replace(max_sample_age=float(inputs.policy.max_sample_age[row])),
        targets=tuple(
            _target(decisions, row, next(usable), target, subject) if target.usable else target
            for target in stated.targets
        ),
        at=datetime.fromtimestamp(decisions.now, UTC),
        current=int(inputs.current[row]),
        replicas=int(decisions.replicas[row]),
        reason=REASONS[int(decisions.reason[row])],
        reactive=int(decisions.reactive[row]),
        forecast=int(decisions.forecast[row]),
        counts=tuple(int(count[row]) for count in decisions.counts),
        outage_until=float(decisions.state.until[row]),
        lead_time=lead_time(policy),
        shut=subject.shut,
        hold=failed or (events.freeze_words if inputs.events.frozen[row] else ""),
        event=events.floor_words if inputs.events.floors[row] > 0 else "",
        event_most=events.most_words,
        outage=outage_words(decisions, row),
    )


def _target(decisions: Decisions, row: int, place: int, stated: DecidedTarget, subject: Subject) -> DecidedTarget:
    outlook = outlook_of(subject, stated.signal)
    ahead = outlook.ahead
    return stated._replace(
        unseen=int(decisions.unseen[place, row]),
        unmeasured=unmeasured_words(decisions, row, place, outlook.measured),
        measured=float(decisions.inputs.measured[place, row]),
        age=float(decisions.inputs.age[place, row]),
        reactive=int(decisions.proposals.reactive[place][row]),
        forecast=int(decisions.proposals.forecast[place][row]),
        ahead=ahead if isinstance(ahead, PeakForecast) else None,
        unforeseen=ahead.note if isinstance(ahead, Unknown) else "",
    )


def record(decisions: Decisions, row: int, subject: Subject) -> Recommendation:
    """Record of one decided row, with every step on the way."""
    workload, hpa = subject.workload, subject.workload.autoscaler
    row_record = recommendation(workload.id, row_of_one(decisions, row, subject), workload.resources, NO_SIZE)
    return replace(
        row_record,
        targets=hpa.targets if hpa else (),
        shadow=not decisions.inputs.acting[row],
        offered=int(decisions.offered[row]) if isinstance(row_record.replicas, Scale) else None,
    )
