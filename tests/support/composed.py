"""The service as `forecaster run` composes it, on an embedded Prometheus with days of recorded load."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from forecaster.app import telemetry
from forecaster.app.serve import build_service, state_directory, table_path
from forecaster.config.settings import Settings, parse
from forecaster.domain.signal import CPU, MEMORY, PODS, REQUESTS
from forecaster.domain.window import DAY, MINUTE
from forecaster.publish.reader import TableReader
from forecaster.sources.embedded import EmbeddedPrometheus
from forecaster.sources.recorded import Recording
from tests.support.builders import GIB, NOON, workload

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime
    from pathlib import Path

    from forecaster.app.service import Service
    from forecaster.domain.workload import Workload
    from forecaster.publish.reader import PublishedTable
    from forecaster.sources.recorded import RecordedFleet

DAYS = 4


@dataclass(frozen=True)
class Cluster:
    """Workloads that a story may change, and a Prometheus about them."""

    url: str
    fleet: RecordedFleet


@contextmanager
def recorded_cluster(
    workloads: Sequence[Workload] | None = None, *, cores: float = 2.0, days: int = DAYS
) -> Iterator[Cluster]:
    """Days before noon and three hours after it, with a daily wave: from a half of `cores` to twice as much."""
    present = workloads or (workload("web"), workload("cart"))
    minutes = days * DAY // MINUTE + 180
    start = NOON - days * DAY
    wave = cores * (1.25 + 0.75 * np.sin(np.arange(minutes) * (MINUTE / DAY * 2 * np.pi)))
    pods = np.array([[workload_.replicas] for workload_ in present], np.float64)
    values = {
        CPU: np.tile(wave, (len(present), 1)),
        MEMORY: np.repeat(pods * GIB, minutes, axis=1),
        REQUESTS: np.full((len(present), minutes), np.nan),
        PODS: np.repeat(pods, minutes, axis=1),
    }
    recording = Recording(start, tuple(present), values)
    fleet = recording.fleet(NOON)
    with EmbeddedPrometheus(recording, Settings().queries, fleet) as served:
        yield Cluster(served.url, fleet)


@contextmanager
def composed(
    cluster: Cluster, directory: Path, *, tell: Callable[[bytes], None] = lambda _: None, **given: Mapping[str, object]
) -> Iterator[Service]:
    """The service with its state in `directory`; nothing is saved at the end, as after a kill."""
    settings = parse(
        {
            "prometheus": {"url": cluster.url, "retries": 0},
            "state": {"directory": str(directory)},
            "forecast": {"model": "seasonal-naive-day"},
            "policy": {"mode": "publish"},
            **given,
        },
        "test",
    )
    with ExitStack() as parts:
        directory_ = state_directory(settings.state)
        yield build_service(settings, directory_, telemetry.logger(), parts, clock=lambda: NOON, tell=tell)


def tick(service: Service, at: datetime) -> None:
    """One cycle."""
    service.clock = lambda: at + service.settings.delay
    service.tick()


def published(directory: Path) -> PublishedTable:
    """The table as it lies there."""
    reader = TableReader(table_path(directory), lambda: NOON + DAY)
    reader.refresh()
    assert reader.table is not None, reader.fault
    return reader.table


def scale(cluster: Cluster, name: str, replicas: int, ready: int, at: datetime) -> None:
    """Another number of pods from now on."""
    (id_,) = (workload_.id for workload_ in cluster.fleet.workloads() if workload_.id.name == name)
    cluster.fleet.scale(id_, replicas, at=at, ready_replicas=ready)
