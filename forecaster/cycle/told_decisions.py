"""Decisions as the numbers and texts that tell them, wherever they were made; records are made of both."""

from __future__ import annotations

from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from forecaster.cycle.decided_rows import SAID_BY_COUNTS, DecidedRows, RowTexts
from forecaster.domain.decision import Hold, LeadTime, Reason, Scale
from forecaster.horizontal.codes import REASONS
from forecaster.horizontal.record import held, held_words, recommendation
from forecaster.horizontal.sentences import replica_record, scale_sentence, verdict
from forecaster.publish.numbers import DECIDED_REASON, held_numbers
from forecaster.publish.record import row_numbers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime
    from typing import Any

    from numpy.typing import NDArray

    from forecaster.domain.decision import Recommendation, Resize
    from forecaster.domain.workload import Workload
    from forecaster.horizontal.row import RowNumbers, RowWords
    from forecaster.publish.offer import DecidedColumns

OTHERS = 2**62
"""First free number of a text: the texts of held workloads come from the reasons for holding."""


class ToldTexts(NamedTuple):
    """What was said of one workload, and since which change it is said."""

    words: RowWords
    resources: Resize | Hold
    worded: int
    """Another number for other words."""
    sized: int
    """Another number for other resources."""


class ToldDecisions(DecidedRows):
    """What was decided elsewhere, or about all at once: numbers, and what is said of each row."""

    def __init__(
        self, at: datetime, workloads: Sequence[Workload], numbers: DecidedColumns, told: Sequence[ToldTexts]
    ) -> None:
        self.at, self.workloads, self._numbers, self._told = at, workloads, numbers, told
        self.ids = tuple(one.id for one in workloads)
        self.current, recommended = numbers.current, numbers.recommended
        self.replicas = np.where(recommended < 0, self.current, recommended)
        self.reason = DECIDED_REASON[numbers.reason]
        self.sized = np.fromiter((one.sized for one in told), np.int64, len(told))
        self._worded = np.fromiter((one.worded for one in told), np.uint64, len(told))

    @property
    def numbers(self) -> DecidedColumns:
        """Return the numbers as received."""
        return self._numbers

    @property
    def worded(self) -> NDArray[np.uint64]:
        """Return the versions of the texts as received."""
        return self._worded

    @property
    def signals(self) -> tuple[str, ...]:
        """The axis of columns by signal."""
        return self._numbers.signals

    @cached_property
    def columns(self) -> Mapping[str, Sequence[Sequence[Any]]]:
        """Return the columns by their names in a table, [plane, row]."""
        return self._numbers.planes()  # type: ignore[return-value]  # arrays are sequences here

    def texts(self, index: int) -> RowTexts:
        """The texts of one workload."""
        told = self._told[index]
        return RowTexts.of(self.workloads[index], told.words, told.resources)

    def resources(self, index: int) -> Resize | Hold:
        """What was decided about the resources of one workload."""
        return self._told[index].resources

    def verdict(self, index: int) -> Scale | Hold:
        """What was decided about the count of one workload."""
        words = self._told[index].words
        if words.nothing_decided:
            return Hold(Reason(words.nothing_decided), words.hold)
        reason = REASONS[self.reason[index]]
        if reason not in SAID_BY_COUNTS:
            return verdict(self._row(index), words)
        counts = int(self._numbers.by_forecast[index]), int(self._numbers.reactive[index])
        return Scale(int(self.replicas[index]), reason, scale_sentence(reason, *counts, words.shut, ()))

    def _row(self, index: int) -> RowNumbers:
        found = row_numbers(self, index, self._told[index].words, self.at)
        watched, offered = not bool(self._numbers.acting[index]), int(self._numbers.count[index])
        return found._replace(watched=watched, offered=offered, reason=REASONS[self.reason[index]])

    def _record(self, index: int) -> Recommendation:
        workload, (words, resources, *_) = self.workloads[index], self._told[index]
        if words.nothing_decided:
            return held(workload, Reason(words.nothing_decided), words.hold, self.at)
        seconds = words.lead_seconds
        lead = None if seconds is None else LeadTime(timedelta(seconds=seconds), words.lead_origin)
        return recommendation(replica_record(self._row(index), words), workload, resources, self.at, lead)


def held_all(workloads: Sequence[Workload], reason: Reason, message: str, now: datetime) -> ToldDecisions:
    """Every workload left as it is: nothing is known of the present."""
    numbers = held_numbers(np.fromiter((one.replicas for one in workloads), np.int64, len(workloads)), reason)
    return ToldDecisions(now, workloads, numbers, [held_texts(one, reason, message) for one in workloads])


def held_texts(workload: Workload, reason: Reason, message: str) -> ToldTexts:
    """What is said of a workload that is left as it is."""
    said = hash((reason, message, workload.autoscaler and workload.autoscaler.name)) % OTHERS
    return ToldTexts(held_words(workload, reason, message), Hold(reason, message), said, said)
