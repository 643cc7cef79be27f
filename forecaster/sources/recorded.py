"""Recorded demand minute by minute, as the embedded endpoint serves it, and the real load in the package.

The numbers are in `recorded_load/load.npz` as their publishers recorded them; NOTICE.md beside it states origins and
licences. The cluster around them is composed by the table below: a name, a factor that turns the recorded amount into
cores, bytes or requests per second of a workload of plausible size, and an HPA. The signals of one workload were
recorded on different systems, unless its CPU and its requests name the same series; then CPU is the requests times a
cost per request. Pod counts are not recorded but computed: the count that the workload's HPA would have held.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from forecaster.domain.signal import BUILT_IN, CPU, DEMAND, PODS, Signal
from forecaster.domain.window import MINUTE
from forecaster.domain.workload import GIB, Autoscaler, Resources, Target, TargetType, Workload, WorkloadId


@dataclass(frozen=True, slots=True, eq=False)
class Recording:
    """Measured signals of a few workloads on a grid of one minute.

    `values[signal][i, j]`, float64, is the total of `workloads[i]` in the minute that ends at `start + j` minutes, in
    the signal's unit; NaN where nothing was recorded, a whole row of it for a workload without that signal.
    """

    start: datetime
    workloads: tuple[Workload, ...]
    values: Mapping[Signal, NDArray[np.float64]]
    origins: tuple[str, ...] = ()
    """One sentence per workload: the origin of its numbers, and their changes."""

    @property
    def minutes(self) -> int:
        """Length of the grid."""
        return len(next(iter(self.values.values())).T)

    @property
    def end(self) -> datetime:
        """The last instant of the grid."""
        return self.start + (self.minutes - 1) * MINUTE

    def at(self, signal: Signal, at: datetime) -> NDArray[np.float64]:
        """float64[workload]: the latest minute that has ended at `at`; NaN outside of the recording."""
        column = (at - self.start) // MINUTE
        if 0 <= column < self.minutes:
            return self.values[signal][:, column]
        return np.full(len(self.workloads), np.nan)

    def fleet(self, at: datetime) -> RecordedFleet:
        """The workloads with the pods that were recorded at `at`; with their own number where none was.

        From then on they have these pods until something scales them, whatever the recording goes on to say.
        """
        pods = self.at(PODS, at) if PODS in self.values else np.full(len(self.workloads), np.nan)
        counted = zip(self.workloads, pods.tolist(), strict=True)
        workloads = [_with_pods(each, each.replicas if math.isnan(count) else round(count)) for each, count in counted]
        fleet = RecordedFleet(workloads)
        for workload in workloads:
            fleet.scale(workload.id, workload.replicas, at=at)
        return fleet


class RecordedFleet:
    """The workloads as they are now. What plays the cluster changes them; the endpoint reads from its threads."""

    def __init__(self, workloads: Iterable[Workload]) -> None:
        self._lock = threading.Lock()
        self._workloads = {workload.id: workload for workload in workloads}
        self._changes: dict[WorkloadId, list[PodCount]] = {id_: [] for id_ in self._workloads}

    def workloads(self) -> tuple[Workload, ...]:
        """Return all workloads in one consistent state."""
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
            self._changes[workload].append(PodCount(at.timestamp(), ready))

    def changes(self, workload: WorkloadId) -> tuple[PodCount, ...]:
        """Return when the number of ready pods changed, in the order of the changes."""
        with self._lock:
            return tuple(self._changes[workload])


class PodCount(NamedTuple):
    """Number of ready pods from a time on, in seconds since the epoch."""

    since: float
    ready: int


def _with_pods(workload: Workload, replicas: int, ready: int | None = None) -> Workload:
    return replace(workload, replicas=replicas, ready_replicas=replicas if ready is None else ready)


START = datetime(2021, 10, 8, tzinfo=UTC)
"""A Friday, the true date of the one-minute CPU series; others are shifted here, keeping weekday and time of day."""

RECORDED_DAYS = 13
LOAD = Path(__file__).with_name("recorded_load") / "load.npz"

_STABILIZATION_MINUTES = 5
_FIXED_PODS = 5
"""Replicas of a workload without an HPA."""


class RecordedSeries(NamedTuple):
    """One recorded series and the factor that scales it."""

    series: str
    factor: float


@dataclass(frozen=True, slots=True)
class Composed:
    """One workload of the demo: its recorded parts and its objects in the cluster."""

    id: WorkloadId
    resources: Resources
    autoscaler: Autoscaler | None
    parts: Mapping[Signal, RecordedSeries] = field(default_factory=dict)


def _composed(
    namespace: str,
    name: str,
    pod: Resources,
    hpa: tuple[int, int, *tuple[Target, ...]] | None,
    kind: str = "Deployment",
    **parts: tuple[str, float],
) -> Composed:
    """Compose a workload: its pod, the bounds and targets of its HPA, and a series with a factor for each signal."""
    scaled = Autoscaler(name, hpa[0], hpa[1], hpa[2:]) if hpa else None
    series = {BUILT_IN.by_name[signal]: RecordedSeries(*part) for signal, part in parts.items()}
    return Composed(WorkloadId(namespace, kind, name), pod, scaled, series)


def _utilization(value: float) -> Target:
    return Target("cpu", TargetType.UTILIZATION, value)


def _average(metric: str, value: float) -> Target:
    return Target(metric, TargetType.AVERAGE_VALUE, value)


def _pod(cores: float, gib: float, *, cpu_limit: float | None = None) -> Resources:
    return Resources(cpu_request=cores, cpu_limit=cpu_limit, memory_request=gib * GIB, memory_limit=gib * GIB)


_NASA = "nasa/july1995"

COMPOSED: tuple[Composed, ...] = (
    _composed("data", "ingest", _pod(1.0, 1.0), (2, 40, _utilization(0.7)), cpu=("crane/input01", 1.0)),
    _composed(
        "data",
        "reports",
        _pod(2.0, 2.0, cpu_limit=4.0),
        None,
        cpu=("crane/input11", 1.0),
        memory=("bitbrains/vm488_memory", 2.0),
    ),
    _composed("media", "thumbnails", _pod(0.5, 0.5), (2, 40, _utilization(0.6)), cpu=("crane/input05", 5.0)),
    _composed("media", "transcoder", _pod(1.0, 2.0), (2, 50, _utilization(0.7)), cpu=("crane/input06", 0.5)),
    _composed(
        "payments",
        "ledger",
        _pod(1.0, 2.0),
        (3, 40, _average("cpu", 0.5)),
        kind="StatefulSet",
        cpu=("crane/input04", 10.0),
        memory=("bitbrains/vm231_memory", 1.6),
    ),
    _composed("shop", "checkout", _pod(1.0, 1.0), (2, 20, _utilization(0.75)), cpu=("crane/input08", 0.015)),
    _composed(
        "shop",
        "recommendations",
        _pod(1.0, 1.5),
        (2, 24, _utilization(0.65)),
        cpu=("crane/input12", 1.0),
        memory=("bitbrains/vm303_memory", 1.4),
    ),
    _composed(
        "shop",
        "search",
        _pod(1.0, 2.0),
        (3, 24, _utilization(0.7)),
        cpu=("crane/input14", 0.15),
        memory=("bitbrains/vm420_memory", 1.5),
    ),
    _composed(
        "shop",
        "storefront",
        _pod(1.0, 1.0),
        (3, 36, _utilization(0.7), _average("http_requests_per_second", 60.0)),
        cpu=("crane/input09", 0.02),
        memory=("bitbrains/vm253_memory", 0.5),
        requests=("nab/elb_request_count_8c0756", 500.0),
    ),
    _composed(
        "social",
        "timeline",
        _pod(1.0, 1.0),
        (2, 30, _utilization(0.7)),
        cpu=("crane/input03", 1000.0),
        requests=("nab/tweets_AMZN", 200.0),
    ),
    _composed(
        "web",
        "space-center",
        _pod(0.5, 0.5),
        (2, 48, _utilization(0.7)),
        cpu=(_NASA, 2.0),
        memory=("bitbrains/vm006_memory", 1.6),
        requests=(_NASA, 100.0),
    ),
)


def load_recording() -> Recording:
    """The bundled load as a recording of `RECORDED_DAYS` days from `START`."""
    with np.load(LOAD, allow_pickle=False) as arrays:
        series = {name: arrays[name] for name in arrays.files}
    demand = {signal: _demand(signal, series) for signal in DEMAND}
    return Recording(
        start=START + MINUTE,  # a recorded minute is stamped with its beginning, ours with its end
        workloads=tuple(Workload(composed.id, 1, 1, composed.resources, composed.autoscaler) for composed in COMPOSED),
        values=demand | {PODS: _pods(demand[CPU])},
        origins=tuple(_origin(composed) for composed in COMPOSED),
    )


def _demand(signal: Signal, series: Mapping[str, NDArray[np.float32]]) -> NDArray[np.float64]:
    demand = np.full((len(COMPOSED), RECORDED_DAYS * 24 * 60), np.nan)
    for row, composed in zip(demand, COMPOSED, strict=True):
        if part := composed.parts.get(signal):
            recorded = series[part.series].astype(np.float64)  # a coarser sample describes every minute of its time
            row[:] = np.repeat(recorded, row.size // recorded.size) * part.factor
    return demand


def _pods(cpu: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the pods of each HPA: enough for the CPU of the last five minutes, with the default stabilization."""
    peak = np.fmax.reduce([np.roll(cpu, shift, axis=1) for shift in range(_STABILIZATION_MINUTES)])
    return np.array([_enough(row, composed) for row, composed in zip(peak, COMPOSED, strict=True)])


def _enough(cores: NDArray[np.float64], composed: Composed) -> NDArray[np.float64]:
    if composed.autoscaler is None:
        return np.full(cores.size, float(_FIXED_PODS))
    target = composed.autoscaler.targets[0]
    request = composed.resources.cpu_request or 1.0
    per_pod = target.value * request if target.type is TargetType.UTILIZATION else target.value
    desired = np.ceil(np.nan_to_num(cores) / per_pod)
    return np.clip(desired, composed.autoscaler.min_replicas, composed.autoscaler.max_replicas)


def _origin(composed: Composed) -> str:
    parts = ", ".join(f"{signal} is {part.series} × {part.factor:g}" for signal, part in composed.parts.items())
    return f"{composed.id}: {parts}"


class RunningSums:
    """Means over any window of minutes [row, minute] in constant time per point."""

    def __init__(self, values: NDArray[np.float64]) -> None:
        none = np.zeros((values.shape[0], 1))
        self._sums = np.hstack([none, np.nancumsum(values, axis=1)])
        self._counts = np.hstack([none, np.cumsum(~np.isnan(values), axis=1)])

    def means(self, columns: NDArray[np.intp], window: int) -> NDArray[np.float64]:
        """float64[row, column]: mean of the `window` minutes up to each column, of those that were recorded."""
        minutes = self._sums.shape[1] - 1
        after = np.clip(columns + 1, 0, minutes)
        before = np.clip(columns + 1 - window, 0, minutes)
        counts = self._counts[:, after] - self._counts[:, before]
        means = np.full(counts.shape, np.nan)
        np.divide(self._sums[:, after] - self._sums[:, before], counts, out=means, where=counts > 0)
        means[:, columns >= minutes] = np.nan
        return means
