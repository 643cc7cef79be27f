"""The queries about containers against a small world in the real Prometheus."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from forecaster.domain.signal import CPU, MEMORY, Signal
from forecaster.domain.workload import ContainerId, Resources, WorkloadId
from forecaster.sources.prometheus import PrometheusSource
from forecaster.sources.queries import Queries
from forecaster.sources.settings import PrometheusSettings
from tests.support.exposition import World
from tests.support.prometheus import RealPrometheus, fill

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.prometheus import Binaries

pytestmark = pytest.mark.prometheus

START = datetime(2024, 5, 6, 12, 0, 7, tzinfo=UTC)
AT = datetime(2024, 5, 6, 12, 15, tzinfo=UTC)
MINUTES = timedelta(minutes=5)
WEB = WorkloadId("shop", "Deployment", "web")
APP, PROXY, SETUP, MESH = (ContainerId(WEB, name) for name in ("app", "proxy", "setup", "mesh"))
POD = "web-5d8f-0"


def built(cluster: World) -> World:
    """Two pods, one of them hot; a proxy that was killed for memory and is throttled; an init container, a sidecar."""
    cluster.deployed("shop", "web", cores=0.5)
    cluster.pod("shop", "web-5d8f-1", "ReplicaSet", "web-5d8f", cores=2.0)
    cluster.container("shop", POD, "proxy", cores=0.1)
    for container, policy in (("setup", ""), ("mesh", "Always")):
        cluster.gauge(
            "kube_pod_init_container_info",
            1,
            namespace="shop",
            pod=POD,
            container=container,
            restart_policy=policy,
            image="mesh",
        )
    mesh = {"namespace": "shop", "pod": POD, "container": "mesh", "resource": "cpu"}
    cluster.gauge("kube_pod_init_container_resource_requests", 0.3, **mesh)
    cluster.owner("shop", "web-5d8f-evicted", "ReplicaSet", "web-5d8f")
    cluster.gauge("kube_pod_status_phase", 1, phase="Failed", namespace="shop", pod="web-5d8f-evicted")
    evicted = {"namespace": "shop", "pod": "web-5d8f-evicted", "container": "proxy"}
    cluster.gauge("kube_pod_container_info", 1, image="app", **evicted)
    cluster.gauge("kube_pod_container_resource_requests", 64.0, resource="cpu", **evicted)
    proxy = {"namespace": "shop", "pod": POD, "container": "proxy"}
    for resource, request, limit in (("cpu", 0.2, 0.4), ("memory", 1000.0, 2000.0)):
        cluster.gauge("kube_pod_container_resource_requests", request, resource=resource, **proxy)
        cluster.gauge("kube_pod_container_resource_limits", limit, resource=resource, **proxy)
    cluster.gauge("kube_pod_container_status_last_terminated_reason", 1, reason="OOMKilled", **proxy)
    cluster.counter("kube_pod_container_status_restarts_total", 1 / 600, **proxy)
    for metric, rate in (("container_cpu_cfs_throttled_periods_total", 3), ("container_cpu_cfs_periods_total", 10)):
        cluster.counter(metric, rate, id=f"/kubepods/{POD}/proxy", **proxy)
    cluster.counter(
        "container_pressure_cpu_waiting_seconds_total", 0.2, namespace="shop", pod="web-5d8f-1", container="app"
    )
    return cluster


@pytest.fixture(scope="module")
def source(prometheus_binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrometheusSource]:
    data = tmp_path_factory.mktemp("containers") / "data"
    fill(data, built(World("one", START.timestamp())).spans, prometheus_binaries)
    with RealPrometheus(prometheus_binaries, data) as running:
        opened = PrometheusSource(PrometheusSettings(url=running.url), Queries())
        yield opened
        opened.close()


def usage(source: PrometheusSource, signal: Signal) -> dict[ContainerId, float]:
    by_container: dict[ContainerId, float] = {}
    for block in source.container_usage(signal, AT - MINUTES, AT - MINUTES, MINUTES):
        by_container |= dict(zip(block.ids, block.values[:, 0].tolist(), strict=True))
    return by_container


def test_usage_is_that_of_the_hottest_pod(source: PrometheusSource) -> None:
    assert usage(source, CPU) == pytest.approx({APP: 2.0, PROXY: 0.1})
    assert usage(source, MEMORY) == pytest.approx({APP: 2000.0, PROXY: 100.0})


def test_facts_are_those_of_the_container(source: PrometheusSource) -> None:
    facts = source.containers(AT)
    assert facts.images == {APP: "app", PROXY: "app", MESH: "mesh"}
    assert facts.init == {SETUP}


def test_native_sidecars_have_their_size_and_evicted_pods_have_none(source: PrometheusSource) -> None:
    assert source.containers(AT).resources == {PROXY: Resources(0.2, 0.4, 1000.0, 2000.0), MESH: Resources(0.3)}


def test_an_oom_kill_is_told_with_the_limit_of_its_time(source: PrometheusSource) -> None:
    assert source.containers(AT).oom_limits == {PROXY: 2000.0}


def test_throttling_and_stalls_are_told(source: PrometheusSource) -> None:
    """A share of the last hour, of which only a quarter was recorded: a fifth of it is a twentieth."""
    assert source.containers(AT).held_back == pytest.approx({PROXY: 0.3, APP: 0.05}, rel=0.02)
