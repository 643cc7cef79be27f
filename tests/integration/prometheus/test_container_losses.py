"""OOM kills and throttling of a span against a small cluster in the real Prometheus; another one beside it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np
import pytest

from forecaster.domain.workload import WorkloadId
from forecaster.sources.container_queries import container_losses
from forecaster.sources.prometheus import PrometheusSource
from forecaster.sources.queries import Queries
from forecaster.sources.settings import PrometheusSettings
from tests.support.exposition import World
from tests.support.prometheus import RealPrometheus, fill

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from forecaster.domain.workload import ContainerLosses
    from tests.support.prometheus import Binaries

pytestmark = pytest.mark.prometheus
START = datetime(2024, 5, 6, 12, 0, 7, tzinfo=UTC)
UNTIL = datetime(2024, 5, 6, 12, 15, tzinfo=UTC)
KILLED_AFTER = 7


def filled(cluster: World, *, kills: int) -> None:
    """Add a workload of which a pod was killed `kills` times and throttled half of the time, and a quiet one."""
    for name, killed in (("web", kills), ("quiet", 0)):
        pod = f"{name}-7d-a"
        cluster.replicaset("shop", f"{name}-7d", "Deployment", name)
        cluster.pod("shop", pod, "ReplicaSet", f"{name}-7d")
        labels = {"namespace": "shop", "pod": pod, "container": "app"}
        after = np.arange(cluster.scrapes) >= KILLED_AFTER
        cluster.levels("kube_pod_container_status_restarts_total", np.where(after, killed, 0.0), **labels)
        if killed:
            reported = np.where(after, 1.0, np.nan)
            cluster.levels("kube_pod_container_status_last_terminated_reason", reported, reason="OOMKilled", **labels)
            cluster.counter("container_cpu_cfs_throttled_seconds_total", 0.5, id=f"/{pod}", **labels)


@pytest.fixture(scope="module")
def losses(
    prometheus_binaries: Binaries, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[WorkloadId, ContainerLosses]]:
    data: Path = tmp_path_factory.mktemp("losses") / "data"
    own, other = World("ours", START.timestamp()), World("other", START.timestamp())
    filled(own, kills=2)
    filled(other, kills=5)
    fill(data, [*own.spans, *other.spans], prometheus_binaries)
    with RealPrometheus(prometheus_binaries, data) as running:
        source = PrometheusSource(PrometheusSettings(url=running.url), Queries(labels={"cluster": "ours"}))
        yield container_losses(source, UNTIL - timedelta(minutes=15), UNTIL)
        source.close()


def test_each_kill_of_our_cluster_is_counted_once(losses: dict[WorkloadId, ContainerLosses]) -> None:
    assert losses[WorkloadId("shop", "Deployment", "web")].oom_kills == 2


def test_no_kill_is_known_from_no_news(losses: dict[WorkloadId, ContainerLosses]) -> None:
    quiet = losses[WorkloadId("shop", "Deployment", "quiet")]
    assert quiet == (0, None)


def test_throttled_time_is_that_of_the_containers(losses: dict[WorkloadId, ContainerLosses]) -> None:
    hours = losses[WorkloadId("shop", "Deployment", "web")].throttled_hours
    assert hours == pytest.approx(0.5 * 15 / 60, rel=0.05)
