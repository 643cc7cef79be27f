"""What a cycle of this process decided: the arrays of its groups, and the objects that texts are made of."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from forecaster.domain.decision import Hold, Reason
from forecaster.errors import unexpected
from forecaster.horizontal.columns import mixed
from forecaster.horizontal.decide import DOWN, FAILED
from forecaster.horizontal.record import Subject, held_words, row_words, word_numbers
from forecaster.horizontal.standing import GateForecaster, shut_by
from forecaster.publish.decided import DecidedRows, RowTexts
from forecaster.publish.numbers import numbers_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from numpy.typing import NDArray

    from forecaster.cycle.forecasts import Forecasts
    from forecaster.cycle.rows import Rows
    from forecaster.domain.decision import LeadTime, Resize
    from forecaster.domain.outlook import SignalForecast
    from forecaster.domain.signal import Signal
    from forecaster.domain.workload import Workload, WorkloadId
    from forecaster.horizontal.decide import Decisions
    from forecaster.horizontal.events import EventColumns
    from forecaster.horizontal.standing import Gate
    from forecaster.vertical.sizing.containers import PodSizing
    from forecaster.vertical.sizing.pod import SizeCache


class Place(NamedTuple):
    """Position of a workload: its group, and its row in that group."""

    group: int
    row: int


@dataclass(frozen=True, slots=True, eq=False)
class Context:
    """What records of rows are made of beside the numbers of their decisions."""

    rows: Rows
    forecasts: Forecasts
    gates: Sequence[Gate | None]
    """[row]; None where the policy asks for no gate."""
    sizing: Callable[[WorkloadId], PodSizing]
    lead_time: Callable[[WorkloadId], LeadTime]
    words: Mapping[Signal, NDArray[np.uint64]]
    """[row] a number that changes when what is said of a signal does."""
    events: EventColumns
    start_ups: NDArray[np.int64]
    """[row] a number that stays while what is known of the lead time stays."""
    sizes: SizeCache


class FleetDecisions(DecidedRows):
    """What this process decided: the arrays of each group, and the objects that texts and records are made of."""

    def __init__(self, at: datetime, groups: Sequence[tuple[NDArray[np.intp], Decisions]], context: Context) -> None:
        workloads = context.rows.workloads
        count = len(workloads)
        current = np.fromiter((workload.replicas for workload in workloads), np.int64, count)
        replicas, reason = current.copy(), np.full(count, DOWN, np.int8)
        self._group, self._row = np.zeros(count, np.intp), np.zeros(count, np.intp)
        for number, (positions, decided) in enumerate(groups):
            replicas[positions], reason[positions] = decided.replicas, decided.reason
            self._group[positions], self._row[positions] = number, np.arange(len(positions))
        super().__init__(at, workloads, numbers_of(current, replicas, reason, groups))
        self.groups, self._context = groups, context
        self._sizings = [context.sizing(id_) for id_ in context.rows.ids]

    @cached_property
    def sized(self) -> NDArray[np.int64]:
        """[row] the same number while it is the same choice of a size, which is kept alive here."""
        return np.fromiter(map(id, self._sizings), np.int64, len(self))

    def place(self, index: int) -> Place:
        """Return the group and row of a workload."""
        return Place(int(self._group[index]), int(self._row[index]))

    @cached_property
    def worded(self) -> NDArray[np.uint64]:
        """[row] a number that changes when the texts of a row do, but for what was decided about its resources."""
        context = self._context
        gates = (hash((gate.standing, gate.why)) if gate else 0 for gate in context.gates)
        shut = np.fromiter(gates, np.int64, len(self))
        of_rows = (context.rows.standing.identities, shut, context.events.words, context.start_ups)
        found = mixed(np.zeros(len(self), np.uint64), of_rows)
        for positions, group in self.groups:
            of_signals = (context.words[kind.signal][positions] for kind in group.inputs.rules.kinds)  # type: ignore[index]
            found[positions] = mixed(found[positions], (*word_numbers(group), *of_signals))
        return found

    def texts(self, index: int) -> RowTexts:
        """The texts of one workload; held with the reason where they cannot be made."""
        workload, row = self._context.rows.workloads[index], self._context.rows.rows[index]
        if row.lost:
            return _held_texts(workload, Reason.SOURCE_DOWN, row.lost)
        try:
            group, position = self.place(index)
            lead = self._context.lead_time(workload.id)
            words = row_words(self.groups[group][1], position, self._subject(index), lead)
            return RowTexts(words, self._resources(index))
        except Exception as error:  # noqa: BLE001  the boundary of a record: nothing in one workload stops the others
            return _held_texts(workload, Reason.FAILED, unexpected(error))

    def resources(self, index: int) -> Resize | Hold | None:
        """What was decided about the resources of one workload; None where that cannot be told."""
        try:
            return self._resources(index)
        except Exception:  # noqa: BLE001  the boundary of a record: `texts` says what is wrong
            return None

    def shut(self, index: int) -> str:
        """Return why the gate keeps the forecast of one workload from having its say."""
        return shut_by(self._context.rows.rows[index].policy.horizontal, self._context.gates[index])

    def _resources(self, index: int) -> Resize | Hold:
        """What was decided about the resources of one workload."""
        rows = self._context.rows
        row = rows.rows[index]
        if row.lost:
            return Hold(Reason.SOURCE_DOWN, row.lost)
        return self._context.sizes.size(rows.workloads[index], self._sizings[index], row.policy.vertical)

    def at_maximum(self) -> int:
        """Count the workloads with a count that only their maximum limits."""
        held_below = (one.scales & (one.counts[-2] > one.inputs.policy.max_replicas) for _, one in self.groups)
        return sum(int(np.count_nonzero(some)) for some in held_below)

    def failures(self) -> list[str]:
        """One sentence for each workload about which nothing could be computed."""
        failed = np.flatnonzero(self.reason == FAILED).tolist()
        return [f"{self.ids[row]}: {self[row].replicas.message}" for row in failed]

    def _subject(self, index: int) -> Subject:
        context, gate = self._context, self._context.gates[index]
        workload, row = context.rows.workloads[index], context.rows.rows[index]
        known: Mapping[str, SignalForecast] = context.forecasts.of(
            workload.id, row, gate.forecaster if gate else GateForecaster.MODEL
        )
        return Subject(workload, row.policy.horizontal, known, self.shut(index), row.failure)


def _held_texts(workload: Workload, reason: Reason, message: str) -> RowTexts:
    return RowTexts(held_words(workload, reason, message), Hold(reason, message))
