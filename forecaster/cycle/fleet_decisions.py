"""What a cycle of this process decided: the arrays of its groups, and the objects that texts are made of."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from forecaster.domain.decision import Hold, LeadTime, Reason, Resize
from forecaster.errors import unexpected
from forecaster.horizontal.codes import IMPOSSIBLE, NONE, REASONS
from forecaster.horizontal.decide import DOWN, FAILED, Decisions
from forecaster.horizontal.record import failure_words, outage_words, unmeasured_words
from forecaster.horizontal.standing import Gate, shut_by
from forecaster.hpa.numbers import MAX_INT32
from forecaster.publish.decided import DecidedRows
from forecaster.publish.numbers import held_numbers, numbers_of
from forecaster.publish.record import encoded_lead_time

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from numpy.typing import NDArray

    from forecaster.cycle.forecasts import Columns, Forecasts
    from forecaster.cycle.rows import Rows
    from forecaster.domain.signal import Signal
    from forecaster.domain.workload import Workload, WorkloadId
    from forecaster.horizontal.columns import Names
    from forecaster.horizontal.events import EventColumns
    from forecaster.publish.numbers import Group
    from forecaster.publish.offer import DecidedColumns
    from forecaster.vertical.sizing.containers import PodSizing
    from forecaster.vertical.sizing.pod import SizeCache


@dataclass(frozen=True, slots=True, eq=False)
class Context:
    """What records of rows are made of beside the numbers of their decisions."""

    rows: Rows
    forecasts: Forecasts
    gates: Sequence[Gate | None]
    """[row]; None where the policy asks for no gate."""
    sizing: Callable[[WorkloadId], PodSizing]
    lead_time: Callable[[WorkloadId], LeadTime]
    columns: Mapping[Signal, Columns]
    events: EventColumns
    names: Names
    """Texts of the cycle, each once."""
    sizes: SizeCache


class FleetDecisions(DecidedRows):
    """What this process decided: the arrays of each group, and the objects that texts and records are made of."""

    def __init__(self, at: datetime, groups: Sequence[tuple[NDArray[np.intp], Decisions]], context: Context) -> None:
        workloads = context.rows.workloads
        count = len(workloads)
        current = np.fromiter((workload.replicas for workload in workloads), np.int64, count)
        replicas, reason = current.copy(), np.full(count, DOWN, np.int8)
        for positions, decided in groups:
            replicas[positions], reason[positions] = decided.replicas, decided.reason
        numbers = with_texts(numbers_of(current, replicas, reason, groups), groups, context)
        super().__init__(at, workloads, numbers)
        self._context = context
        self._sizings = [context.sizing(id_) for id_ in context.rows.ids]

    @cached_property
    def sized(self) -> NDArray[np.int64]:
        """[row] the same number while it is the same choice of a size for the same row; both are kept alive here."""
        pairs = zip(self._sizings, self._context.rows.standing.rows, strict=True)
        return np.fromiter((id(sizing) ^ (id(row) << 1) for sizing, row in pairs), np.int64, len(self))

    def resources(self, index: int) -> Resize | Hold:
        """Return what was decided about the resources of one workload; held with the reason where it cannot be made."""
        workload, row = self.workloads[index], self._context.rows.rows[index]
        if row.lost:
            return Hold(Reason.SOURCE_DOWN, row.lost)
        try:
            return self._context.sizes.size(workload, self._sizings[index], row.policy.vertical)
        except Exception as error:  # noqa: BLE001  the boundary of a size: nothing in one workload stops the others
            return Hold(Reason.FAILED, unexpected(error))

    def failures(self) -> list[str]:
        """One sentence for each workload about which nothing could be computed."""
        failed = np.flatnonzero(self.reason == FAILED).tolist()
        return [f"{self.ids[row]}: {self[row].replicas.message}" for row in failed]


def with_texts(numbers: DecidedColumns, groups: Sequence[Group], context: Context) -> DecidedColumns:
    """Return the columns of a fleet with the texts of its rows."""
    names, rows = context.names, context.rows.rows
    numbers.stated[:] = names.codes(row.stated for row in rows)
    numbers.readers[:] = names.codes(row.readers for row in rows)
    gates = zip(rows, context.gates, strict=True)
    numbers.shut[:] = names.codes(shut_by(row.policy, gate).encode() for row, gate in gates)
    for index, row in enumerate(rows):
        if row.lost:
            _withhold(numbers, index, Reason.SOURCE_DOWN, row.lost, names)
            continue
        try:
            numbers.lead_time[index] = names.code(encoded_lead_time(context.lead_time(context.rows.ids[index])))
        except Exception as error:  # noqa: BLE001  the boundary of a row: nothing in one workload stops the others
            _withhold(numbers, index, Reason.FAILED, unexpected(error), names)
    for positions, group in groups:
        GroupTexts(numbers, positions, group, context).put()
    return replace(numbers, names=names.texts)


def _withhold(numbers: DecidedColumns, row: int, reason: Reason, why: str, names: Names) -> None:
    """Hold a row whatever its numbers are."""
    numbers.nothing_decided[row] = REASONS.index(reason)
    numbers.hold[row] = names.code(why.encode(errors="replace"))


class GroupTexts(NamedTuple):
    """Puts the texts of the rows of one group into the columns of the fleet."""

    numbers: DecidedColumns
    positions: NDArray[np.intp]
    group: Decisions
    context: Context

    def put(self) -> None:
        """Put what is said of rows that are not as they mostly are; of forecasts, what is said of each."""
        inputs, state, events = self.group.inputs, self.group.state, self.context.events
        self._put("hold", self.group.failed > 0, self._failure)
        self._put(
            "hold", inputs.frozen & (self.group.failed == 0), lambda row: events.freeze_words[self.positions[row]]
        )
        self._put("event", inputs.event_floor > 0, lambda row: events.floor_words[self.positions[row]])
        most = np.minimum(inputs.event_most, inputs.event_bound)
        self._put("event_most", most < MAX_INT32, lambda row: events.most_words[self.positions[row]])
        self._put("outage", state.cause != NONE, lambda row: outage_words(self.group, row))
        for target, kind in enumerate(inputs.rules.kinds):
            columns = self.context.columns[kind.signal]  # type: ignore[index]  # a signal is its name
            self.numbers.outlook[target, self.positions] = columns.outlook[self.positions]
            partly = columns.partly[self.positions] | (self.group.unseen[target] == IMPOSSIBLE)
            self._put("unmeasured", partly, partial(self._unmeasured, target), target)

    def _put(self, name: str, where: NDArray[np.bool_], words: Callable[[int], str], plane: int = 0) -> None:
        names, column = self.context.names, np.atleast_2d(getattr(self.numbers, name))[plane]
        for row in np.flatnonzero(where).tolist():
            index = self.positions[row]
            try:
                column[index] = names.code(words(row).encode())
            except Exception as error:  # noqa: BLE001  the boundary of a row: nothing in one workload stops the others
                _withhold(self.numbers, index, Reason.FAILED, unexpected(error), names)

    def _failure(self, row: int) -> str:
        return self.context.rows.rows[self.positions[row]].failure or failure_words(self.group, row)

    def _unmeasured(self, target: int, row: int) -> str:
        rows, index = self.context.rows, self.positions[row]
        signal = self.group.inputs.rules.kinds[target].signal
        latest = self.context.forecasts.latest[signal]  # type: ignore[index]  # a signal is its name
        measured = latest.measured(rows.ids[index], rows.rows[index].policy.max_sample_age)
        return unmeasured_words(self.group, row, target, measured)


def held_all(workloads: Sequence[Workload], reason: Reason, message: str, now: datetime) -> DecidedRows:
    """Every workload left as it is: nothing is known of the present."""
    numbers = held_numbers(workloads, reason, lambda _: message)
    return DecidedRows(now, workloads, numbers, [held_size(reason, message)] * len(workloads))


@lru_cache
def held_size(reason: Reason, message: str) -> Hold:
    """Return the size of workloads that are left as they are: one object, so that it is no change."""
    return Hold(reason, message)
