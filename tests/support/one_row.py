"""The decision about a single workload, for stories: a table of one row."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np

from forecaster.domain.outlook import Measured, PeakForecast, Unknown
from forecaster.horizontal.codes import INCOMPLETE, KNOWN, NO_SAMPLE, NOT_READ, REASONS, STALE
from forecaster.horizontal.decide import decide
from forecaster.horizontal.events import calendar_of
from forecaster.horizontal.inputs import Inputs
from forecaster.horizontal.record import Subject, outlook_of, row_words
from forecaster.horizontal.row import RowNumbers, TargetNumbers
from forecaster.horizontal.sentences import replica_record
from forecaster.horizontal.standing import shut_by
from forecaster.horizontal.state import State
from forecaster.horizontal.terms import policy_columns, target_columns, terms_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from forecaster.domain.outlook import SignalForecast
    from forecaster.domain.policy import HorizontalPolicy
    from forecaster.domain.workload import Workload
    from forecaster.horizontal.decide import Decisions
    from forecaster.horizontal.numbers import Floats
    from forecaster.horizontal.sentences import ReplicaRecord
    from forecaster.horizontal.standing import Gate


def decide_one(
    workload: Workload,
    outlooks: Mapping[str, SignalForecast],
    policy: HorizontalPolicy,
    state: State,
    now: datetime,
    *,
    gate: Gate | None = None,
) -> tuple[ReplicaRecord, State]:
    """One workload's replicas at `now`, with every step on the way, and what to remember.

    Without a `gate` the forecast has its say. All forecasts with a distribution have the same levels.
    """
    shut = shut_by(policy, gate)
    subject = Subject(workload, policy, outlooks, shut)
    inputs = inputs_of_one(subject, now)
    decisions, after = decide(inputs, state, now.timestamp())
    return record(decisions, 0, subject), after


def state_of(recommendations: Iterable[tuple[int, datetime]] = ()) -> State:
    """The state [one row] of a workload for which these counts were recommended earlier."""
    state = State.new(1)
    for replicas, at in sorted(recommendations, key=lambda one: one[1]):
        ring = state.recommendations.opened(at.timestamp(), np.inf, 1)
        state = replace(state, recommendations=ring.marked(np.array([replicas])))
    return replace(state, begun=np.ones(1, np.bool_))


def inputs_of_one(subject: Subject, now: datetime) -> Inputs:
    """The inputs [one row] of one workload."""
    workload, policy = subject.workload, subject.policy
    terms = [terms_of(workload, policy, ())]
    kinds = terms[0].rules.kinds
    seen = [outlook_of(subject, kind.signal) for kind in kinds]
    levels = _levels(seen)
    columns = policy_columns(terms)
    calendar = calendar_of([policy.events], columns.lead_time, now.timestamp())
    return Inputs(
        rules=terms[0].rules._replace(levels=levels),
        policy=columns,
        targets=target_columns(terms),
        current=np.array([workload.replicas]),
        ready=np.array([workload.ready_replicas]),
        measured=_column([one.measured.value if isinstance(one.measured, Measured) else np.nan for one in seen]),
        unseen=np.array([_unseen(subject, one) for one in seen], np.int8).reshape(-1, 1),
        age=_column([_age(one, now) for one in seen]),
        peak=_column([one.ahead.peak if isinstance(one.ahead, PeakForecast) else np.nan for one in seen]),
        low=_column([one.ahead.low if isinstance(one.ahead, PeakForecast) else np.nan for one in seen]),
        quantiles=[_quantiles(one, levels) for one in seen],
        acting=np.array([not subject.shut]),
        event_floor=calendar.floors,
        frozen=calendar.frozen,
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


def _levels(seen: Sequence[SignalForecast]) -> tuple[float, ...]:
    found = {one.ahead.levels for one in seen if isinstance(one.ahead, PeakForecast) and one.ahead.levels}
    if len(found) > 1:
        raise ValueError(f"forecasts of one decision have the same levels, and not {sorted(found)}")
    return found.pop() if found else ()


def _quantiles(outlook: SignalForecast, levels: tuple[float, ...]) -> Floats:
    """[level, one row]; NaN where only one quantile is known."""
    if isinstance(outlook.ahead, PeakForecast) and outlook.ahead.levels:
        return _column(outlook.ahead.peaks)
    return _column([np.nan] * len(levels))


def record(decisions: Decisions, row: int, subject: Subject) -> ReplicaRecord:
    """What was decided about one row, with every step on the way."""
    return replica_record(row_numbers(decisions, row, subject), row_words(decisions, row, subject))


def row_numbers(decisions: Decisions, row: int, subject: Subject) -> RowNumbers:
    """The numbers of one row, with its forecasts."""
    return RowNumbers(
        at=datetime.fromtimestamp(decisions.now, UTC),
        current=int(decisions.inputs.current[row]),
        replicas=int(decisions.replicas[row]),
        offered=int(decisions.offered[row]),
        reason=REASONS[int(decisions.reason[row])],
        watched=not bool(decisions.inputs.acting[row]),
        reactive=int(decisions.reactive[row]),
        forecast=int(decisions.forecast[row]),
        counts=tuple(int(count[row]) for count in decisions.counts),
        outage_until=float(decisions.state.until[row]),
        targets=tuple(_target_numbers(decisions, row, subject)),
    )


def _target_numbers(decisions: Decisions, row: int, subject: Subject) -> Iterator[TargetNumbers]:
    """Yield the numbers of each usable target."""
    for target, kind in enumerate(decisions.inputs.rules.kinds):
        ahead = outlook_of(subject, kind.signal).ahead
        yield TargetNumbers(
            unseen=int(decisions.unseen[target, row]),
            measured=float(decisions.inputs.measured[target, row]),
            age=float(decisions.inputs.age[target, row]),
            reactive=int(decisions.proposals.reactive[target][row]),
            forecast=int(decisions.proposals.forecast[target][row]),
            ahead=ahead if isinstance(ahead, PeakForecast) else None,
        )
