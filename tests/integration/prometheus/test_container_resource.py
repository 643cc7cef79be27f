"""HPAs that look at one container of each pod (ContainerResource), from the real Prometheus to what is read.

Two pods, each an app that uses 450m of the 500m it requests and a proxy that idles on a whole core: the app is at 90 %,
the pod at 33 %. An HPA at 60 % of the app wants 3 pods (HPA rules §8.1), one at 60 % of the pod would want 1 or 2.
"""

from __future__ import annotations

from contextlib import ExitStack, closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np
import pytest

from forecaster.domain.decision import Hold
from forecaster.domain.signal import CPU, CPU_CONTAINER, MEMORY_CONTAINER
from forecaster.domain.window import MINUTE
from forecaster.domain.workload import WorkloadId
from forecaster.horizontal.hpa_next import next_sync
from forecaster.horizontal.sentences import explanation
from forecaster.sources.prometheus import PrometheusSource
from forecaster.sources.queries import Queries
from forecaster.sources.settings import PrometheusSettings
from tests.support.exposition import World
from tests.support.fakes import CycleOnFakes, named, stored_values
from tests.support.prometheus import RealPrometheus, fill

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from forecaster.domain.decision import Recommendation
    from tests.support.prometheus import Binaries

pytestmark = pytest.mark.prometheus

START = datetime(2024, 5, 6, 12, 0, 7, tzinfo=UTC)
NOON = START.replace(second=0)
WEB = WorkloadId("shop", "Deployment", "web")
FIRST, LAST = 12, 14
KNOWN = 11
"""Minutes before `FIRST` whose windows are within the series."""


def meshed(cluster: World, *targets: dict[str, str | float]) -> None:
    """Two pods of an app and a native sidecar, and an HPA with these targets."""
    cluster.deployed("shop", "web", pods=2, cores=0.45)
    for pod in ("web-5d8f-0", "web-5d8f-1"):
        who = {"namespace": "shop", "pod": pod}
        cluster.container("shop", pod, "proxy", cores=0.05, stated=False)
        cluster.gauge("kube_pod_init_container_info", 1, container="proxy", restart_policy="Always", **who)
        cluster.gauge("kube_pod_init_container_resource_requests", 1.0, container="proxy", resource="cpu", **who)
        cluster.gauge("kube_pod_container_resource_requests", 0.5, container="app", resource="cpu", **who)
    # Evicted long ago with an older template: it is no part of the workload any more.
    gone = {"namespace": "shop", "pod": "web-5d8f-gone"}
    cluster.owner("shop", "web-5d8f-gone", "ReplicaSet", "web-5d8f")
    cluster.gauge("kube_pod_status_phase", 1, phase="Failed", **gone)
    cluster.gauge("kube_pod_container_resource_requests", 64.0, container="app", resource="cpu", **gone)
    hpa = {"namespace": "shop", "horizontalpodautoscaler": "web"}
    scales = {"scaletargetref_kind": "Deployment", "scaletargetref_name": "web"}
    cluster.gauge("kube_horizontalpodautoscaler_info", 1, **scales, **hpa)
    cluster.gauge("kube_horizontalpodautoscaler_spec_max_replicas", 20, **hpa)
    for labels in targets:
        value = float(labels.pop("value"))
        names = {name: str(text) for name, text in labels.items()}
        cluster.gauge("kube_horizontalpodautoscaler_spec_target_metric", value, **names, **hpa)


def target(metric: str, kind: str, value: float, container: str = "") -> dict[str, str | float]:
    return {"metric_name": metric, "metric_target_type": kind, "value": value, "container": container}


WORLDS: dict[str, tuple[dict[str, str | float], ...]] = {
    "app": (target("cpu", "utilization", 60, "app"),),
    "proxy": (target("cpu", "utilization", 60, "proxy"),),
    "pod": (target("cpu", "utilization", 60),),
    "app-and-pod": (target("cpu", "utilization", 60, "app"), target("cpu", "utilization", 60)),
    "memory": (target("memory", "average", 200, "app"),),
    "both": (target("cpu", "utilization", 60, "app"), target("cpu", "utilization", 60, "proxy")),
    "nowhere": (target("cpu", "utilization", 60, "gone"),),
}


@pytest.fixture(scope="module")
def server(prometheus_binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealPrometheus]:
    data, spans = tmp_path_factory.mktemp("containers") / "data", []
    for name, targets in WORLDS.items():
        world = World(name, START.timestamp(), interval=15.0, scrapes=80)
        meshed(world, *targets)
        spans += world.spans
    fill(data, spans, prometheus_binaries)
    with RealPrometheus(prometheus_binaries, data) as running:
        yield running


@pytest.fixture
def stage(server: RealPrometheus) -> Iterator[Callable[[str], CycleOnFakes]]:
    """A cycle on one of the worlds."""
    with ExitStack() as sources:

        def on(world: str) -> CycleOnFakes:
            queries = Queries(labels={"cluster": world}, requests_from="none")
            source = PrometheusSource(PrometheusSettings(url=server.url, retries=0), queries)
            sources.enter_context(closing(source))
            built = CycleOnFakes(start=NOON + FIRST * MINUTE, learns_first=False)
            built.cycle.source = source
            return built

        yield on


def decided(stage: CycleOnFakes) -> Recommendation:
    """Decide shop/web minute by minute and return the last recommendation."""
    outcomes = [stage.cycle.run(NOON + minute * MINUTE) for minute in range(FIRST, LAST + 1)]
    assert not outcomes[-1].report.failures
    return named(outcomes[-1], "web")


@pytest.mark.parametrize(
    ("world", "count"),
    # The app is at 90 % of 60 %: 2 * 1.5. The proxy is at 5 %: one pod, but down only after the stabilization window.
    [("app", 3), ("app-and-pod", 3), ("pod", 2), ("proxy", 2)],
)
def test_the_count_is_that_of_the_container_the_hpa_names(
    stage: Callable[[str], CycleOnFakes], world: str, count: int
) -> None:
    assert decided(stage(world)).recommended_replicas == count


def test_an_average_amount_of_memory_of_the_container(stage: Callable[[str], CycleOnFakes]) -> None:
    """The builders give 450 bytes to the app, and 50 to the proxy: ceil(900 / 200)."""
    recommendation = decided(stage("memory"))
    assert recommendation.recommended_replicas == 5
    assert recommendation.signals[0].signal == MEMORY_CONTAINER


def test_usage_request_and_arithmetic_are_explained(stage: Callable[[str], CycleOnFakes]) -> None:
    on_app = stage("app")
    recommendation = decided(on_app)
    (view,) = recommendation.signals
    assert view.signal == CPU_CONTAINER
    assert view.measured == pytest.approx(0.9, rel=0.01)
    assert view.target == "60 % of 500m a pod"
    (web,) = on_app.cycle.source.inventory(recommendation.at).workloads
    assert "90 % of requested cpu in use / 60 % × 2 pods = 3 pods" in "".join(
        next_sync(web, recommendation, {}, "observe")
    )
    assert any("cpu_container" in line and "60 % of 500m" in line for line in explanation(recommendation))


def test_the_past_of_the_container_is_read_and_learned_from(stage: Callable[[str], CycleOnFakes]) -> None:
    on_app = stage("app")
    decided(on_app)
    np.testing.assert_allclose(stored_values(on_app.history, CPU_CONTAINER, WEB)[-KNOWN:], 0.9, rtol=0.03)
    np.testing.assert_allclose(stored_values(on_app.history, CPU, WEB)[-KNOWN:], 1.0, rtol=0.03)


def test_where_the_hpa_turns_to_another_container_the_past_is_that_of_the_new_one(
    server: RealPrometheus, stage: Callable[[str], CycleOnFakes]
) -> None:
    moving = stage("app")
    decided(moving)
    queries = Queries(labels={"cluster": "proxy"}, requests_from="none")
    with closing(PrometheusSource(PrometheusSettings(url=server.url), queries)) as source:
        moving.cycle.source = source
        moving.cycle.run(NOON + (LAST + 1) * MINUTE)
    np.testing.assert_allclose(stored_values(moving.history, CPU_CONTAINER, WEB)[-KNOWN:], 0.1, rtol=0.03)


@pytest.mark.parametrize(("world", "why"), [("both", "targets of several containers"), ("nowhere", "container gone")])
def test_what_cannot_be_computed_is_held_with_the_reason(
    stage: Callable[[str], CycleOnFakes], world: str, why: str
) -> None:
    recommendation = decided(stage(world))
    assert isinstance(recommendation.replicas, Hold)
    assert why in "\n".join(explanation(recommendation))


def test_without_such_an_hpa_no_container_is_asked_for(
    server: RealPrometheus, stage: Callable[[str], CycleOnFakes]
) -> None:
    on_pod = stage("pod")
    signals: list[str] = []
    source = on_pod.cycle.source
    latest = source.latest
    source.latest = lambda signal, at: (signals.append(str(signal)), latest(signal, at))[1]  # type: ignore[method-assign]
    decided(on_pod)
    assert set(signals) == {"cpu", "memory", "requests"}
