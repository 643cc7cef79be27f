"""Decisions as the columns and sizes that were received, wherever they were made."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from forecaster.domain.decision import Hold
from forecaster.publish.decided import DecidedRows
from forecaster.publish.numbers import held_numbers

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from numpy.typing import NDArray

    from forecaster.domain.decision import Reason, Resize
    from forecaster.domain.workload import Workload
    from forecaster.publish.offer import DecidedColumns

OTHERS = 2**62
"""First free number of a size: the numbers of held workloads come from the reasons for holding."""


class ToldSize(NamedTuple):
    """What was decided about the resources of one workload."""

    resources: Resize | Hold
    sized: int
    """Another number for other resources."""


class ToldDecisions(DecidedRows):
    """What was decided elsewhere, or about all at once."""

    def __init__(
        self, at: datetime, workloads: Sequence[Workload], numbers: DecidedColumns, sizes: Sequence[ToldSize]
    ) -> None:
        super().__init__(at, workloads, numbers)
        self._sizes = sizes

    @cached_property
    def sized(self) -> NDArray[np.int64]:
        """Return the versions of the resources as received."""
        return np.fromiter((size.sized for size in self._sizes), np.int64, len(self._sizes))

    def resources(self, index: int) -> Resize | Hold:
        """Return what was decided about the resources of one workload."""
        return self._sizes[index].resources


def held_all(workloads: Sequence[Workload], reason: Reason, message: str, now: datetime) -> ToldDecisions:
    """Every workload left as it is: nothing is known of the present."""
    numbers = held_numbers(workloads, reason, lambda _: message)
    return ToldDecisions(now, workloads, numbers, [held_size(reason, message)] * len(workloads))


def held_size(reason: Reason, message: str) -> ToldSize:
    """Return the size of a workload that is left as it is."""
    return ToldSize(Hold(reason, message), hash((reason, message)) % OTHERS)
