"""What another process has to know of one workload to replay its last hours: read between the writes of a cycle.

It is asked for by a thread while cycles run, so it only reads, and not while history is written.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from forecaster.cycle.containers import USAGE
from forecaster.cycle.lead_times import UNWATCHED
from forecaster.cycle.observed import with_observed
from forecaster.domain.policy import PodCapacity, Policy
from forecaster.domain.signal import PODS, Signal, Signals
from forecaster.domain.window import EPOCH, FIVE_MINUTES, MINUTE
from forecaster.domain.workload import NO_RESOURCES, Resources, Workload, WorkloadId
from forecaster.horizontal.standing import Gate, GateForecaster, Standing
from forecaster.replay.traces import Traces
from forecaster.replay.what_if import WhatIfFacts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from forecaster.cycle.run import Cycle

CONTAINER_POINTS = 144
"""Half a day by five minutes."""
FACTS_PATIENCE_SECONDS = 1.5
"""Seconds to wait for a cycle that writes what it has just read; the first cycle reads weeks."""


class KeptPoints(msgspec.Struct, frozen=True):
    """float32 points of one signal, the last at `end`."""

    end: datetime
    values: bytes

    def points(self) -> NDArray[np.float64]:
        """[point], NaN where nothing is known."""
        return np.frombuffer(self.values, np.float32).astype(np.float64)


class KeptSeries(msgspec.Struct, frozen=True):
    """One signal as it is kept."""

    minutes: KeptPoints
    weeks: KeptPoints


class ContainerTold(msgspec.Struct, frozen=True):
    """One container: what its hottest pod used, what it may use, and its image."""

    name: str
    usage: dict[str, KeptPoints]
    resources: Resources
    image: str


class WorkloadFacts(msgspec.Struct, frozen=True):
    """One workload as the last cycle knew it."""

    workload: Workload
    policy: dict[str, Any]
    """Policy as settings state it, with observed values filled in."""
    filled: dict[str, PodCapacity]
    signals: list[tuple[str, dict[str, Any]]]
    model: str
    start_ups: list[float]
    """Seconds."""
    standing: str
    forecaster: str
    series: dict[str, KeptSeries]
    containers: list[ContainerTold]
    news: list[tuple[datetime, str]]
    """Deploys and OOM kills as they were noticed."""


def facts_of(cycle: Cycle, id_: WorkloadId) -> WorkloadFacts | None:
    """What is known of it; None where there is no such workload, or history is being written for long."""
    if not cycle.writing.acquire(timeout=FACTS_PATIENCE_SECONDS):
        return None
    try:
        known = cycle.targets.inventory.workloads if cycle.targets else ()
        found = next((one for one in known if one.id == id_), None)
        return None if found is None else _facts(cycle, found, dict(_kept(cycle, found)))
    finally:
        cycle.writing.release()


def encoded_facts(cycle: Cycle, id_: WorkloadId) -> bytes:
    """Encode the facts as msgpack; empty where there are none."""
    facts = facts_of(cycle, id_)
    return msgspec.msgpack.encode(facts) if facts else b""


def _facts(cycle: Cycle, workload: Workload, series: dict[str, KeptSeries]) -> WorkloadFacts:
    observed, stated = cycle.decider.observed, cycle.policies.stated(workload.id)
    watch = observed.lead_times.watches.get(workload.id, UNWATCHED)
    policy = with_observed(stated, watch.rung, observed.capacities.filled.get(workload.id) or {})
    gate = observed.gates.of(workload.id)
    return WorkloadFacts(
        workload=workload,
        policy=policy.model_dump(mode="json", exclude_defaults=True),
        filled=dict(policy.horizontal.filled),
        signals=[(str(one), one.properties()) for one in policy.horizontal.signals.demand],
        model=cycle.forecaster.model,
        start_ups=[one.total_seconds() for one in watch.took],
        standing=gate.standing.value,
        forecaster=gate.forecaster.value,
        series=series,
        containers=list(_containers(cycle, workload.id)),
        news=[(one.at, one.said) for one in cycle.containers.news if one.id.workload == workload.id],
    )


def _containers(cycle: Cycle, id_: WorkloadId) -> Iterator[ContainerTold]:
    book = cycle.containers
    ids = book.of_workload.get(id_, ()) if book.end else ()
    usage = {str(signal): book.usage(ids, signal)[:, -CONTAINER_POINTS:] for signal in USAGE} if ids else {}
    for row, one in enumerate(ids):
        kept = {signal: KeptPoints(book.end or EPOCH, values[row].tobytes()) for signal, values in usage.items()}
        yield ContainerTold(one.name, kept, book.facts.resources.get(one, NO_RESOURCES), book.facts.images.get(one, ""))


def _kept(cycle: Cycle, workload: Workload) -> Iterator[tuple[str, KeptSeries]]:
    for signal in (*cycle.history.signals, PODS):
        minutes, weeks = (_points(cycle, signal, step, workload.id) for step in (MINUTE, FIVE_MINUTES))
        if minutes is not None and weeks is not None:
            yield str(signal), KeptSeries(minutes, weeks)


def _points(cycle: Cycle, signal: Signal, step: timedelta, id_: WorkloadId) -> KeptPoints | None:
    """A copy of one row; None where it is not kept."""
    window = cycle.history.window(signal, step)
    if id_ not in window.keys:
        return None
    return KeptPoints(window.end, window.values[window.keys.index(id_)].tobytes())


def what_if_facts(told: WorkloadFacts) -> WhatIfFacts:
    """Return the facts in the form that a replay reads."""
    signals = Signals(tuple(Signal(name, **_tupled(properties)) for name, properties in told.signals))
    policy = Policy.model_validate(told.policy)
    horizontal = policy.horizontal.reading(signals).with_observed(None, told.filled)
    return WhatIfFacts(
        workload=told.workload,
        policy=policy.model_copy(update={"horizontal": horizontal}),
        traces=_traces(told, signals),
        model=told.model,
        start_ups=tuple(timedelta(seconds=one) for one in told.start_ups),
        gate=Gate(Standing(told.standing), GateForecaster(told.forecaster)),
    )


def _tupled(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {**properties, "metrics": tuple(properties["metrics"])}


def _traces(told: WorkloadFacts, signals: Signals) -> Traces:
    """Return the history by the minute up to the latest instant: five equal minutes where only a mean is stored."""
    known = {signals.by_name[name]: kept for name, kept in told.series.items() if name in signals.by_name}
    end = max(kept.minutes.end for kept in known.values())
    oldest = min(kept.weeks.end - kept.weeks.points().size * FIVE_MINUTES + MINUTE for kept in known.values())
    columns = (end - oldest) // MINUTE + 1
    values = {signal: _by_minute(kept, oldest, columns)[None] for signal, kept in known.items()}
    return Traces((told.workload,), oldest, values)


def _by_minute(kept: KeptSeries, start: datetime, columns: int) -> NDArray[np.float64]:
    found = np.full(columns, np.nan)
    five = np.repeat(kept.weeks.points(), FIVE_MINUTES // MINUTE)
    _put(found, five, (kept.weeks.end - start) // MINUTE)
    _put(found, kept.minutes.points(), (kept.minutes.end - start) // MINUTE)
    return found


def _put(into: NDArray[np.float64], points: NDArray[np.float64], last: int) -> None:
    """Put the known ones of these points so that their last one lies in column `last`."""
    first = last - points.size + 1
    points = points[max(-first, 0) :]
    there = into[max(first, 0) : last + 1]
    np.copyto(there, points, where=~np.isnan(points))
