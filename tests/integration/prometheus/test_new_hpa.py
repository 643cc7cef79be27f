"""An HPA that is created, told in part, or absent, from the real Prometheus to the decision.

Ten pods with three cores in all, 300m of the 500m that each requests. By the policy's own target (80 %) eight pods
would do; the HPA at 30 % wants twenty.
"""

from __future__ import annotations

from contextlib import ExitStack, closing
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np
import pytest

from forecaster.domain.decision import Hold, Scale
from forecaster.domain.policies import Policies
from forecaster.domain.policy import HorizontalPolicy, Policy
from forecaster.sources.prometheus import PrometheusSource
from forecaster.sources.queries import Queries
from forecaster.sources.settings import PrometheusSettings
from tests.support.exposition import World
from tests.support.fakes import CycleOnFakes, named
from tests.support.prometheus import RealPrometheus, fill

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from forecaster.domain.decision import Recommendation
    from tests.support.prometheus import Binaries

pytestmark = pytest.mark.prometheus

START = datetime(2024, 5, 6, 12, 0, 7, tzinfo=UTC)
NOON = START.replace(second=0)
CREATED, WHOLE = 10, 14
"""Minutes in which the HPA is created, and in which its metrics are told where that takes longer."""


def pods(cluster: World, kind: str) -> None:
    """Ten pods of one kind of workload."""
    if kind == "StatefulSet":
        cluster.gauge("kube_statefulset_replicas", 10, namespace="shop", statefulset="web")
        cluster.gauge("kube_statefulset_status_replicas_ready", 10, namespace="shop", statefulset="web")
    else:
        cluster.deployment("shop", "web", replicas=10)
        cluster.replicaset("shop", "web-5d8f", "Deployment", "web")
    owner = ("StatefulSet", "web") if kind == "StatefulSet" else ("ReplicaSet", "web-5d8f")
    for number in range(10):
        pod = f"web-{number}"
        cluster.pod("shop", pod, *owner, cores=0.3)
        requests = {"container": "app", "resource": "cpu", "namespace": "shop", "pod": pod}
        cluster.gauge("kube_pod_container_resource_requests", 0.5, **requests)


def hpa(cluster: World, *, metrics_since: int) -> None:
    """An HPA at 30 % from minute `CREATED` on; its metrics are reported from minute `metrics_since` on."""
    minute = (cluster.times - NOON.timestamp()) / 60
    created, reported = (np.where(minute >= since, 1.0, np.nan) for since in (CREATED, metrics_since))
    who = {"namespace": "shop", "horizontalpodautoscaler": "web"}
    scales = {"scaletargetref_kind": "Deployment", "scaletargetref_name": "web"}
    cluster.levels("kube_horizontalpodautoscaler_info", created, **scales, **who)
    cluster.levels("kube_horizontalpodautoscaler_spec_min_replicas", 2 * created, **who)
    cluster.levels("kube_horizontalpodautoscaler_spec_max_replicas", 50 * created, **who)
    target = {"metric_name": "cpu", "metric_target_type": "utilization"}
    cluster.levels("kube_horizontalpodautoscaler_spec_target_metric", 30 * reported, **target, **who)


def worlds() -> Iterator[World]:
    for name, since in (("created", CREATED), ("in-part", WHOLE)):
        world = World(name, START.timestamp(), interval=15.0, scrapes=80)
        pods(world, "Deployment")
        hpa(world, metrics_since=since)
        yield world
    for kind in ("Deployment", "StatefulSet"):
        world = World(kind, START.timestamp(), interval=15.0, scrapes=80)
        pods(world, kind)
        yield world


@pytest.fixture(scope="module")
def server(prometheus_binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealPrometheus]:
    data = tmp_path_factory.mktemp("new-hpa") / "data"
    fill(data, [span for world in worlds() for span in world], prometheus_binaries)
    with RealPrometheus(prometheus_binaries, data) as running:
        yield running


@pytest.fixture
def decided(server: RealPrometheus) -> Iterator[Callable[..., dict[int, Recommendation]]]:
    """Recommendations for shop/web of a world, by minute."""
    with ExitStack() as sources:

        def run(world: str, first: int, last: int, **horizontal: object) -> dict[int, Recommendation]:
            source = PrometheusSource(
                PrometheusSettings(url=server.url, retries=0),
                Queries(labels={"cluster": world}, requests_from="none"),
            )
            sources.enter_context(closing(source))
            given = {"gate": False, "scale_down_stabilization": timedelta(0), **horizontal}
            policies = Policies(Policy(horizontal=HorizontalPolicy.model_validate(given)))
            stage = CycleOnFakes(start=NOON + first * timedelta(minutes=1), policies=policies, learns_first=False)
            stage.cycle.source = source
            minutes = range(first, last + 1)
            return {minute: named(stage.cycle.run(NOON + timedelta(minutes=minute)), "web") for minute in minutes}

        yield run


def test_a_new_hpa_is_used_whole_in_the_first_cycle_in_which_it_is_told(
    decided: Callable[..., dict[int, Recommendation]],
) -> None:
    """No minute combines its bounds with the targets of the policy, or the other way around."""
    by_minute = decided("created", CREATED - 2, CREATED + 2)
    assert (by_minute[CREATED].autoscaler, by_minute[CREATED].recommended_replicas) == ("", 10)
    for minute in (CREATED + 1, CREATED + 2):
        recommendation = by_minute[minute]
        assert (recommendation.autoscaler, recommendation.recommended_replicas) == ("web", 20)
        assert recommendation.signals[0].target == "30 % of 500m a pod"


def test_while_it_is_told_in_part_nothing_is_decided_by_the_rest(
    decided: Callable[..., dict[int, Recommendation]],
) -> None:
    by_minute = decided("in-part", CREATED - 1, WHOLE + 2)
    for minute in range(CREATED + 1, WHOLE + 1):
        held = by_minute[minute].replicas
        assert isinstance(held, Hold), minute
        assert "no series has the metrics of its HPA web" in held.message
        assert by_minute[minute].offered is None
    assert by_minute[WHOLE + 2].recommended_replicas == 20


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
def test_what_has_no_hpa_is_never_recommended_below_what_it_has(
    decided: Callable[..., dict[int, Recommendation]], kind: str
) -> None:
    recommendation = decided(kind, 8, 10)[10]
    assert isinstance(recommendation.replicas, Scale)
    assert recommendation.replicas.replicas == 10
    assert any(clamp.rule == "present size" for clamp in recommendation.clamps)


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
def test_unless_the_policy_says_how_small_it_may_be(
    decided: Callable[..., dict[int, Recommendation]], kind: str
) -> None:
    recommendation = decided(kind, 8, 10, min_replicas=2)[10]
    assert recommendation.recommended_replicas == 8
