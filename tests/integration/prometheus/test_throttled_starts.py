"""Starts that a CPU limit held back, in the real Prometheus: pods that are not ready yet, each counted once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np
import pytest

from forecaster.domain.workload import WorkloadId
from forecaster.sources.container_queries import throttled_starts
from forecaster.sources.prometheus import PrometheusSource
from forecaster.sources.queries import Queries
from forecaster.sources.settings import PrometheusSettings
from tests.support.exposition import World
from tests.support.prometheus import RealPrometheus, fill

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.prometheus import Binaries

pytestmark = pytest.mark.prometheus
START = datetime(2024, 5, 6, 12, 0, tzinfo=UTC)
STARTED = timedelta(minutes=5)
MINUTE = timedelta(minutes=1)
WEB = WorkloadId("shop", "Deployment", "web")


def start(world: World, pod: str, *, throttled: float, ready_after: float, restarts: int = 0, busy: float = 8) -> None:
    """A pod that started after five minutes, with `busy` CPU periods a second and a share of them throttled."""
    names = {"namespace": "shop", "pod": pod}
    age = np.arange(world.scrapes) * world.interval - STARTED.total_seconds()
    there = np.where(age >= 0, 1.0, np.nan)
    container = names | {"container": "app", "id": f"/{pod}/{restarts}"}
    world.owner("shop", pod, "ReplicaSet", "web-7d")
    world.levels("container_cpu_cfs_periods_total", there * busy * age, **container)
    world.levels("container_cpu_cfs_throttled_periods_total", there * busy * throttled * age, **container)
    world.levels("container_start_time_seconds", there * (START + STARTED).timestamp(), **container)
    world.levels("kube_pod_status_ready", there * (age >= ready_after), condition="true", **names)
    world.levels("kube_pod_container_status_restarts_total", there * restarts, container="app", **names)


@pytest.fixture(scope="module")
def source(prometheus_binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrometheusSource]:
    data: Path = tmp_path_factory.mktemp("starts") / "data"
    own, other = (World(name, START.timestamp(), interval=15.0, scrapes=40) for name in ("ours", "other"))
    for world, throttled in ((own, 0.5), (other, 1.0)):
        world.replicaset("shop", "web-7d", "Deployment", "web")
        start(world, "web-7d-slow", throttled=throttled, ready_after=200)
    start(own, "web-7d-free", throttled=0.0, ready_after=100)
    start(own, "web-7d-quick", throttled=0.5, ready_after=20)
    start(own, "web-7d-again", throttled=0.5, ready_after=200, restarts=1)
    start(own, "web-7d-waits", throttled=0.5, ready_after=200, busy=0.1)
    fill(data, [*own.spans, *other.spans], prometheus_binaries)
    with RealPrometheus(prometheus_binaries, data) as running:
        source = PrometheusSource(PrometheusSettings(url=running.url), Queries(labels={"cluster": "ours"}))
        yield source
        source.close()


def test_throttled_shares_are_those_of_pods_that_started_and_are_not_ready(source: PrometheusSource) -> None:
    """Ready after 20 s is too quick to be seen; a restarted container, and one that waits, say nothing of a limit."""
    starts = throttled_starts(source, START + STARTED + timedelta(seconds=75), MINUTE)
    assert {container: sorted(shares) for container, shares in starts[WEB].items()} == {"app": [0.0, 0.5]}


def test_of_cycles_by_the_minute_each_start_is_seen_by_one(source: PrometheusSource) -> None:
    cycles = [throttled_starts(source, START + STARTED + timedelta(seconds=15) + n * MINUTE, MINUTE) for n in range(4)]
    assert [len(starts.get(WEB, {}).get("app", ())) for starts in cycles] == [0, 2, 0, 0]


def test_a_cycle_that_was_missed_is_made_up_for(source: PrometheusSource) -> None:
    starts = throttled_starts(source, START + STARTED + timedelta(seconds=135), 2 * MINUTE)
    assert starts[WEB] == {"app": [0.5]}
