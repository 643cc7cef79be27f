"""Decisions as the numbers and texts that tell them, wherever they were made; records are made of both."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from forecaster.domain.decision import Hold
from forecaster.horizontal.record import held_words
from forecaster.publish.decided import DecidedRows, RowTexts
from forecaster.publish.numbers import held_numbers

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from numpy.typing import NDArray

    from forecaster.domain.decision import Reason, Resize
    from forecaster.domain.workload import Workload
    from forecaster.horizontal.row import RowWords
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
        super().__init__(at, workloads, numbers)
        self._told = told

    @cached_property
    def sized(self) -> NDArray[np.int64]:
        """Return the versions of the resources as received."""
        return np.fromiter((texts.sized for texts in self._told), np.int64, len(self._told))

    @cached_property
    def worded(self) -> NDArray[np.uint64]:
        """Return the versions of the texts as received."""
        return np.fromiter((texts.worded for texts in self._told), np.uint64, len(self._told))

    def texts(self, index: int) -> RowTexts:
        """Return the texts of one workload as received."""
        return RowTexts(self._told[index].words, self._told[index].resources)

    def shut(self, index: int) -> str:
        """Return why the gate keeps the forecast of one workload from having its say."""
        return self._told[index].words.shut

    def resources(self, index: int) -> Resize | Hold:
        """Return what was decided about the resources of one workload."""
        return self._told[index].resources


def held_all(workloads: Sequence[Workload], reason: Reason, message: str, now: datetime) -> ToldDecisions:
    """Every workload left as it is: nothing is known of the present."""
    numbers = held_numbers(np.fromiter((one.replicas for one in workloads), np.int64, len(workloads)), reason)
    return ToldDecisions(now, workloads, numbers, [held_texts(one, reason, message) for one in workloads])


def held_texts(workload: Workload, reason: Reason, message: str) -> ToldTexts:
    """What is said of a workload that is left as it is."""
    said = hash((reason, message, workload.autoscaler and workload.autoscaler.name)) % OTHERS
    return ToldTexts(held_words(workload, reason, message), Hold(reason, message), said, said)
