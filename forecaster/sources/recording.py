"""Recorded demand of a few workloads, minute by minute: what the embedded endpoint serves."""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from forecaster.domain.signal import Signal
from forecaster.domain.window import MINUTE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from numpy.typing import NDArray

    from forecaster.domain.workload import Workload, WorkloadId


@dataclass(frozen=True, slots=True, eq=False)
class Recording:
    """What was measured of a few workloads on a grid of one minute.

    `values[signal][i, j]`, float64, is the total of `workloads[i]` in the minute that ends at `start + j` minutes, in
    the signal's unit; NaN where nothing was recorded, a whole row of it for a workload without that signal.
    """

    start: datetime
    workloads: tuple[Workload, ...]
    values: Mapping[Signal, NDArray[np.float64]]
    origins: tuple[str, ...] = ()
    """One sentence per workload: where its numbers come from and what was done to them."""

    @property
    def minutes(self) -> int:
        """Length of the grid."""
        return len(next(iter(self.values.values())).T)

    @property
    def end(self) -> datetime:
        """The last instant of the grid."""
        return self.start + (self.minutes - 1) * MINUTE

    def at(self, signal: Signal, at: datetime) -> NDArray[np.float64]:
        """float64[workload]: the newest minute that has ended at `at`; NaN outside of the recording."""
        column = (at - self.start) // MINUTE
        if 0 <= column < self.minutes:
            return self.values[signal][:, column]
        return np.full(len(self.workloads), np.nan)

    def fleet(self, at: datetime) -> Fleet:
        """The workloads with the pods that were recorded at `at`; with their own number where none was."""
        pods = self.at(Signal.PODS, at) if Signal.PODS in self.values else np.full(len(self.workloads), np.nan)
        counted = zip(self.workloads, pods.tolist(), strict=True)
        return Fleet(_with_pods(one, one.replicas if math.isnan(count) else round(count)) for one, count in counted)


class Fleet:
    """The workloads as they are now. Whoever plays the cluster changes them; the endpoint reads from its threads."""

    def __init__(self, workloads: Iterable[Workload]) -> None:
        self._lock = threading.Lock()
        self._workloads = {workload.id: workload for workload in workloads}
        self._changes: dict[WorkloadId, list[Change]] = {one: [] for one in self._workloads}

    def workloads(self) -> tuple[Workload, ...]:
        """All of them at one moment."""
        with self._lock:
            return tuple(self._workloads.values())

    def __getitem__(self, workload: WorkloadId) -> Workload:
        with self._lock:
            return self._workloads[workload]

    def scale(self, workload: WorkloadId, replicas: int, *, at: datetime, ready_replicas: int | None = None) -> None:
        """Ask for `replicas` from `at` on; as many are ready unless `ready_replicas` says otherwise."""
        ready = replicas if ready_replicas is None else ready_replicas
        with self._lock:
            self._workloads[workload] = _with_pods(self._workloads[workload], replicas, ready)
            self._changes[workload].append(Change(at.timestamp(), ready))

    def changes(self, workload: WorkloadId) -> tuple[Change, ...]:
        """When the number of ready pods changed, in the order in which it was told."""
        with self._lock:
            return tuple(self._changes[workload])


class Change(NamedTuple):
    """From this time on, in seconds since the epoch, so many pods were ready."""

    since: float
    ready: int


def _with_pods(workload: Workload, replicas: int, ready: int | None = None) -> Workload:
    return replace(workload, replicas=replicas, ready_replicas=replicas if ready is None else ready)
