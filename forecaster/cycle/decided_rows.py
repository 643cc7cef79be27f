"""What was decided about every workload of a cycle: numbers as columns, texts and records made when asked for."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, overload

import numpy as np

from forecaster.domain.decision import Reason, Recommendation
from forecaster.horizontal.codes import REASONS, SCALED

if TYPE_CHECKING:
    from datetime import datetime

    from numpy.typing import NDArray

    from forecaster.domain.decision import Hold, Resize, Scale
    from forecaster.domain.workload import Resources, Target, Workload, WorkloadId
    from forecaster.horizontal.row import RowWords
    from forecaster.publish.offer import DecidedColumns


SAID_BY_COUNTS = frozenset({Reason.REACTIVE, Reason.FORECAST, Reason.GATED})
"""Reasons whose sentence needs no signal."""


class RowTexts(NamedTuple):
    """What is said of one workload beside its numbers: the words of its count, its resources, what its HPA reads."""

    words: RowWords
    current: Resources
    resources: Resize | Hold
    targets: tuple[Target, ...]

    @classmethod
    def of(cls, workload: Workload, words: RowWords, resources: Resize | Hold) -> RowTexts:
        """Return the texts of a workload as it is now."""
        hpa = workload.autoscaler
        return cls(words, workload.resources, resources, hpa.targets if hpa else ())


class DecidedRows(Sequence["Recommendation"]):
    """What was decided about every workload, in the order of the inventory: `publish.decided.DecidedFleet`.

    Numbers are columns; the record of a workload is made when it is asked for, within the cycle.
    """

    at: datetime
    workloads: Sequence[Workload]
    ids: tuple[WorkloadId, ...]
    """The workloads, in the order of their records."""
    current: NDArray[np.int64]
    """[row] the replicas that there are."""
    replicas: NDArray[np.int64]
    """[row] the recommended count; the current one where it is held."""
    reason: NDArray[np.int8]
    """[row] a position in `horizontal.codes.REASONS`."""
    sized: NDArray[np.int64]
    """[row] a number that changes when what was decided about its resources does."""

    @property
    @abstractmethod
    def numbers(self) -> DecidedColumns:
        """What offers, the table and records are made of."""

    @property
    @abstractmethod
    def worded(self) -> NDArray[np.uint64]:
        """[row] a number that changes when the texts of a row do, but for what was decided about its resources."""

    @abstractmethod
    def texts(self, index: int) -> RowTexts:
        """The texts of one workload; held with the reason where they cannot be made."""

    @abstractmethod
    def resources(self, index: int) -> Resize | Hold | None:
        """What was decided about the resources of one workload; None where that cannot be told."""

    @abstractmethod
    def verdict(self, index: int) -> Scale | Hold:
        """What was decided about the count of one workload."""

    @abstractmethod
    def _record(self, index: int) -> Recommendation:
        """The record of one workload; held with the reason where it cannot be made."""

    def __len__(self) -> int:
        return len(self.replicas)

    @overload
    def __getitem__(self, index: int) -> Recommendation: ...

    @overload
    def __getitem__(self, index: slice) -> list[Recommendation]: ...

    def __getitem__(self, index: int | slice) -> Recommendation | list[Recommendation]:
        if isinstance(index, slice):
            return [self._record(i) for i in range(*index.indices(len(self)))]
        return self._record(range(len(self))[index])

    def summary(self, index: int) -> Recommendation:
        """The record of one workload without its signals and clamps."""
        workload, resources = self.workloads[index], self.resources(index)
        try:
            decided = self.verdict(index)
        except Exception:  # noqa: BLE001  the boundary of a record says what is wrong
            return self._record(index)
        if resources is None:
            return self._record(index)
        return Recommendation(workload.id, self.at, workload.replicas, decided, workload.resources, resources)

    def changed_since(self, before: DecidedRows | None) -> list[int]:
        """The rows decided otherwise than before, with another size, or of workloads in another order."""
        if before is None or before.ids != self.ids:
            return list(range(len(self)))
        same = (self.replicas == before.replicas) & (self.reason == before.reason)
        return np.flatnonzero(~(same & (self.current == before.current) & (self.sized == before.sized))).tolist()

    def verdicts(self) -> Counter[tuple[str, str]]:
        """Workloads by verdict and reason."""
        counts = np.bincount(self.reason, minlength=len(REASONS)).tolist()
        return Counter(
            {(_verdict_word(reason), reason.value): n for reason, n in zip(REASONS, counts, strict=True) if n}
        )


def _verdict_word(reason: Reason) -> str:
    return "scale" if reason in SCALED else "hold"
