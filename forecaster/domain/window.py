"""History: blocks on their way from a source, windows as they are held, gaps that are still to be asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from forecaster.domain.layers import ClusterPolicies
    from forecaster.domain.signal import Signal
    from forecaster.domain.workload import Workload, WorkloadId

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
FIVE_MINUTES = timedelta(minutes=5)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
WEEK = timedelta(days=7)
MINUTES_A_DAY = DAY // MINUTE
MINUTES_A_POINT = FIVE_MINUTES // MINUTE
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
PLAUSIBLE_YEARS = range(1971, 9000)
"""Years of which weeks before and after can still be represented."""
NOTHING_PARTLY: Mapping[WorkloadId, str] = MappingProxyType({})


class StartedPod(NamedTuple):
    """A pod that has become ready."""

    took: timedelta
    """Time from the pod's creation to ready, without the time in which it had no node."""
    pool: str = ""
    """The node pool that it is on; empty where that is not known."""


NOTHING_STARTED: Mapping[WorkloadId, tuple[StartedPod, ...]] = MappingProxyType({})


def last_multiple(at: datetime, step: timedelta) -> datetime:
    """The last multiple of a step since the epoch that is over at `at`, e.g. when a cycle is evaluated."""
    return at - (at - EPOCH) % step


@dataclass(frozen=True, eq=False)
class Window:
    """The latest points of one signal, all workloads side by side.

    `values[i, j]` is the demand of `keys[i]` in the time that ends at `start + j * step`: float32, in the signal's
    unit, NaN where nothing is known. It is a read-only view of memory that the next write changes: use it within the
    cycle, copy what has to outlive it.
    """

    keys: tuple[WorkloadId, ...]
    start: datetime
    step: timedelta
    values: NDArray[np.float32]
    rows: Mapping[WorkloadId, int] | None = field(default=None, repr=False)
    """Row of each workload, where the owner of the values knows it already."""

    @property
    def end(self) -> datetime:
        """Instant of the latest column."""
        return self.start + (int(self.values.shape[1]) - 1) * self.step

    def latest(self, span: timedelta) -> Window:
        """Return its latest columns, at most as many as `span` holds; a view, too."""
        older = int(self.values.shape[1]) - span // self.step
        if older <= 0:
            return self
        return Window(self.keys, self.start + older * self.step, self.step, self.values[:, older:], self.rows)

    @cached_property
    def row(self) -> Mapping[WorkloadId, int]:
        """Return the row of each workload."""
        return {id_: row for row, id_ in enumerate(self.keys)} if self.rows is None else self.rows


@dataclass(frozen=True, slots=True)
class Gap:
    """A span of columns that no source has answered yet; `start` and `end` are both on the grid and both included."""

    signal: Signal
    start: datetime
    end: datetime
    step: timedelta

    @property
    def columns(self) -> int:
        """Number of missing instants."""
        return (self.end - self.start) // self.step + 1


@dataclass(frozen=True, slots=True, eq=False)
class PodSamples:
    """Pods and samples behind the values of a block, [row, column] each; NaN where they are not known."""

    pods: NDArray[np.float64]
    """Pods with samples that are past their start."""
    per_pod: NDArray[np.float64]
    """Samples of such a pod within the window of the rate, on average."""
    settled: NDArray[np.float64]
    """The cores that they use."""
    starting: NDArray[np.float64]
    """1 where there are other pods that use some: those that start. Else 0."""

    @property
    def layers(self) -> tuple[NDArray[np.float64], ...]:
        """Return its arrays in their order."""
        return (self.pods, self.per_pod, self.settled, self.starting)


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Values of one signal for many workloads on one regular grid.

    `values[i, j]` is the demand of `ids[i]` at `start + j * step`, float64, in the signal's unit, finite and not
    negative; NaN where the source had no such sample. A value describes the time that ends at its instant. `ids` holds
    each workload once.
    """

    signal: str
    ids: tuple[WorkloadId, ...]
    start: datetime
    step: timedelta
    values: NDArray[np.float64]
    warnings: tuple[str, ...] = ()
    made_of: PodSamples | None = None
    """None where it is not known."""
    partial: str = ""
    """The server's own words where it says that something is missing from its answer."""
    rated: bool = False
    """Whether each value is a rate over a window, which samples may cover in part only."""
    moved: Mapping[WorkloadId, str] = field(default_factory=lambda: NOTHING_PARTLY)
    """Workloads whose values have another meaning from now on, and why: their history is not comparable."""

    @property
    def end(self) -> datetime:
        """Instant of the latest column; `start - step` when there is none."""
        columns: int = self.values.shape[1]
        return self.start + (columns - 1) * self.step


@dataclass(frozen=True, slots=True)
class Inventory:
    """Every workload that the source knows at `at`, and what could not be understood about some of them."""

    at: datetime
    workloads: tuple[Workload, ...]
    faults: tuple[str, ...] = ()
    """One sentence each, with the object and the value."""
    partly: Mapping[WorkloadId, str] = field(default_factory=lambda: NOTHING_PARTLY)
    """Workloads too little known for a decision, and the missing part."""
    whole: frozenset[str] = frozenset()
    """Kinds that are listed as a whole: a workload of them that is not in the list is gone."""
    policies: ClusterPolicies | None = None
    """Policies stated by objects of the cluster; None where they are not read, or not known now: the earlier ones stay.
    """
    started: Mapping[WorkloadId, tuple[StartedPod, ...]] = field(default_factory=lambda: NOTHING_STARTED)
    """Pods that have become ready since the inventory before."""
    images: Mapping[WorkloadId, str] = field(default_factory=lambda: NOTHING_PARTLY)
    """Images of the app containers of a workload as one text; empty where none is known."""
    partial: str = ""
    """Part of the list that is missing, as the source says; empty where the list is whole."""

    @property
    def ids(self) -> tuple[WorkloadId, ...]:
        """Identities of the workloads, in order."""
        return tuple(workload.id for workload in self.workloads)
