"""Facts that another process needs to replay the last hours of one workload, read between the writes of a cycle.

A thread calls this while cycles run, so it only reads, and not while history is written.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from forecaster.cycle.containers import USAGE
from forecaster.cycle.lead_times import UNWATCHED
from forecaster.domain.policy import PodCapacity
from forecaster.domain.signal import PODS, Signal
from forecaster.domain.window import EPOCH, FIVE_MINUTES, MINUTE
from forecaster.domain.workload import NO_RESOURCES, Resources, Workload, WorkloadId
from forecaster.hpa.behavior import Behavior

if TYPE_CHECKING:
    from forecaster.cycle.run import Cycle

CONTAINER_POINTS = 144
"""Half a day by five minutes."""
FACTS_PATIENCE_SECONDS = 1.5
"""Seconds to wait for a cycle that writes history; the first cycle reads weeks."""


class EncodedPoints(msgspec.Struct, frozen=True):
    """float32 points of one signal, the last at `end`."""

    end: datetime
    values: bytes

    def points(self) -> NDArray[np.float64]:
        """[point], NaN where nothing is known."""
        return np.frombuffer(self.values, np.float32).astype(np.float64)


class EncodedSeries(msgspec.Struct, frozen=True):
    """One encoded signal."""

    minutes: EncodedPoints
    weeks: EncodedPoints


class ContainerRecord(msgspec.Struct, frozen=True):
    """One container: usage of its hottest pod, its limits, and its image."""

    name: str
    usage: dict[str, EncodedPoints]
    resources: Resources
    image: str


class WorkloadFacts(msgspec.Struct, frozen=True):
    """One workload as of the last cycle."""

    workload: Workload
    policy: dict[str, Any]
    """Policy in force: as settings state it, with observed values filled in."""
    filled: dict[str, PodCapacity]
    signals: list[tuple[str, dict[str, Any]]]
    model: str
    start_ups: list[float]
    """Seconds."""
    standing: str
    forecaster: str
    series: dict[str, EncodedSeries]
    containers: list[ContainerRecord]
    news: list[tuple[datetime, str]]
    """Deploys and OOM kills as they were noticed."""
    behavior: Behavior | None = None
    """Behavior of its HPA; None: the default one, or not known."""
    least: int | None = None
    """Minimum of its HPA as it is now, with our floor; None is not known."""
    scalers: list[str] = msgspec.field(default_factory=list)
    """HPAs that scale it now; empty without any, or where they are not known."""


def facts_of(cycle: Cycle, id_: WorkloadId) -> WorkloadFacts | None:
    """Return the facts of a workload; None if it does not exist, or if history is being written for too long."""
    if not cycle.writing.acquire(timeout=FACTS_PATIENCE_SECONDS):
        return None
    try:
        known = cycle.targets.inventory.workloads if cycle.targets else ()
        workload = next((workload for workload in known if workload.id == id_), None)
        return None if workload is None else _facts(cycle, workload, dict(_series_of(cycle, workload)))
    finally:
        cycle.writing.release()


def encoded_facts(cycle: Cycle, id_: WorkloadId) -> bytes:
    """Encode the facts as msgpack; empty where there are none."""
    facts = facts_of(cycle, id_)
    return msgspec.msgpack.encode(facts) if facts else b""


def _facts(cycle: Cycle, workload: Workload, series: dict[str, EncodedSeries]) -> WorkloadFacts:
    observed, static = cycle.decider.observed, cycle.row_cache.static
    watch = observed.lead_times.watches.get(workload.id, UNWATCHED)
    row = static.known.get(workload.id) if static else None
    policy = row.policy if row else cycle.policies.stated(workload.id)
    gate, own = observed.gates.read(workload.id), cycle.benefit.hpa(workload.id) if cycle.benefit else None
    return WorkloadFacts(
        workload=workload,
        policy=policy.model_dump(mode="json", exclude_defaults=True),
        filled=dict(policy.horizontal.filled),
        signals=[(str(signal), signal.properties()) for signal in policy.horizontal.signals.demand],
        model=cycle.forecaster.model,
        start_ups=[duration.total_seconds() for duration in watch.took],
        standing=gate.standing.value,
        forecaster=gate.forecaster.value,
        series=series,
        containers=list(_containers(cycle, workload.id)),
        behavior=own.behavior if own else None,
        least=own.bounds.min_replicas if own else None,
        scalers=[hpa.spec.name for _, hpa in cycle.benefit.scalers(workload.id)] if cycle.benefit else [],
        news=[(change.at, change.text) for change in cycle.containers.news if change.id.workload == workload.id],
    )


def _containers(cycle: Cycle, id_: WorkloadId) -> Iterator[ContainerRecord]:
    containers, facts, end = cycle.containers, cycle.containers.facts, cycle.containers.end
    ids = containers.of_workload.get(id_, ()) if end else ()
    usage = {str(signal): containers.usage(ids, signal)[:, -CONTAINER_POINTS:] for signal in USAGE} if ids else {}
    for row, container in enumerate(ids):
        points = {signal: EncodedPoints(end or EPOCH, values[row].tobytes()) for signal, values in usage.items()}
        resources, image = facts.resources.get(container, NO_RESOURCES), facts.images.get(container, "")
        yield ContainerRecord(container.name, points, resources, image)


def _series_of(cycle: Cycle, workload: Workload) -> Iterator[tuple[str, EncodedSeries]]:
    for signal in (*cycle.history.signals, PODS):
        minutes, weeks = (_points(cycle, signal, step, workload.id) for step in (MINUTE, FIVE_MINUTES))
        if minutes is not None and weeks is not None:
            yield str(signal), EncodedSeries(minutes, weeks)


def _points(cycle: Cycle, signal: Signal, step: timedelta, id_: WorkloadId) -> EncodedPoints | None:
    """A copy of one row; None where it is not kept."""
    window = cycle.history.window(signal, step)
    row = window.row.get(id_)
    return None if row is None else EncodedPoints(window.end, window.values[row].tobytes())
