"""Live facts from a real API server, through its restarts, with the rights that deploy/base gives."""

from __future__ import annotations

import json
import re
import time
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np
import pytest

from forecaster.app import telemetry
from forecaster.app.serve import build_service, state_directory
from forecaster.config.settings import Settings, parse
from forecaster.domain.signal import CPU, MEMORY, PODS, REQUESTS
from forecaster.domain.window import DAY, MINUTE, StartedPod, last_multiple
from forecaster.domain.workload import Target, TargetType, WorkloadId
from forecaster.kube.client import ApiClient
from forecaster.kube.config import client_config_source
from forecaster.publish.reader import TableReader
from forecaster.serving.answers import MetricRequest, answer
from forecaster.sources.embedded import EmbeddedPrometheus
from forecaster.sources.factory import prometheus
from forecaster.sources.live import LiveCluster
from forecaster.sources.live_source import LiveSource, RelistedSource
from forecaster.sources.queries import Queries
from forecaster.sources.recorded import Recording
from forecaster.sources.settings import PrometheusSettings, ScalableKind
from tests.support.builders import GIB, workload
from tests.support.control_plane.acting import watched
from tests.support.control_plane.workloads import deployment, external_hpa
from tests.support.ports import free_ports
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from forecaster.app.service import Service
    from tests.support.control_plane.api import Document
    from tests.support.control_plane.deployed import Deployed


def count(cluster: LiveCluster, id_: WorkloadId) -> int:
    present = cluster.present(id_)
    return present.replicas if present else -1


def scale(deployed: Deployed, namespace: str, replicas: int, name: str = "web") -> None:
    """Scale a Deployment as a person does, with kubectl."""
    deployed.cluster.kubectl("scale", f"deployment/{name}", f"--replicas={replicas}", f"--namespace={namespace}")


def test_the_rights_of_the_deployment_are_enough_and_give_the_facts_at_once(deployed: Deployed, namespace: str) -> None:
    api, web = deployed.cluster.api, WorkloadId(namespace, "Deployment", "web")
    with watched(deployed.account("forecaster")) as cluster:
        assert [watch.health.fault for watch in cluster.watches] == [""] * 6
        api.create(deployment("web", 2), namespace)
        api.create(external_hpa("web", target="0.35"), namespace)
        wait_until(lambda: bool(cluster.scalers(web)) and cluster.pods_counted()[web] == 2, goal="the pods and the HPA")
        (workload,) = cluster.inventory(datetime.now(UTC), ["Deployment"], re.compile(namespace)).workloads
        assert (workload.replicas, workload.resources.cpu_request) == (2, 0.1)
        assert workload.autoscaler is not None
        assert workload.autoscaler.targets == (
            Target("forecaster_demand", TargetType.AVERAGE_VALUE, 0.35, signal="cpu"),
        )
        api.delete("HorizontalPodAutoscaler", "web", namespace)
        wait_until(lambda: cluster.scalers(web) == [], goal="the end of the HPA")


def test_pods_are_timed_until_they_are_ready_and_told_with_their_node_pool(deployed: Deployed, namespace: str) -> None:
    web, api = WorkloadId(namespace, "Deployment", "web"), deployed.cluster.api
    nodes = [node["metadata"]["name"] for node in api.get("/api/v1/nodes")["items"]]
    deployed.cluster.kubectl("label", "nodes", *nodes, "agentpool=fake")
    with watched(deployed.account("forecaster")) as cluster:
        slow = {"pod-ready.stage.kwok.x-k8s.io/delay": "3s"}
        deployed.cluster.api.create(deployment("web", 5, annotations=slow), namespace)
        started: list[StartedPod] = []

        def ready() -> bool:
            started.extend(cluster.started().get(web, ()))
            return len(started) >= 5

        wait_until(ready, goal="five pods that are ready")
    deployed.cluster.kubectl("label", "nodes", *nodes, "agentpool-")
    assert {pod.pool for pod in started} == {"fake"}
    assert all(timedelta(seconds=2) <= pod.took <= timedelta(seconds=9) for pod in started), started  # whole seconds


def test_a_watch_survives_a_restart_that_forgets_its_version(deployed: Deployed, namespace: str) -> None:
    plane, web, gone = deployed.cluster, *(WorkloadId(namespace, "Deployment", name) for name in ("web", "gone"))
    with watched(plane.kubeconfig) as cluster:
        plane.api.create(deployment("web", 1), namespace)
        plane.api.create(deployment("gone", 1), namespace)
        wait_until(lambda: count(cluster, web) == count(cluster, gone) == 1, goal="the Deployments")
        plane.restart_api_server()
        scale(deployed, namespace, 3)
        plane.api.delete("Deployment", "gone", namespace)
        wait_until(lambda: count(cluster, web) == 3 and count(cluster, gone) == -1, goal="what happened since")
        wait_until(lambda: not cluster.faults(), goal="all collections to be followed")
        assert sum(watch.health.restarts for watch in cluster.watches) > 0


ROLLOUTS = ScalableKind(kind="Rollout", group="example.test", version="v1alpha1", plural="rollouts")


def definition() -> Document:
    """A custom resource of the form of a Deployment, of which the API server checks nothing."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": anything, "status": anything}}}
    scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    version = {"name": ROLLOUTS.version, "served": True, "storage": True, "schema": schema}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{ROLLOUTS.plural}.{ROLLOUTS.group}"},
        "spec": {
            "group": ROLLOUTS.group,
            "scope": "Namespaced",
            "names": {"kind": ROLLOUTS.kind, "plural": ROLLOUTS.plural},
            "versions": [version | {"subresources": {"status": {}, "scale": scale}}],
        },
    }


def test_a_custom_kind_is_watched_and_scaled_like_a_deployment(
    deployed: Deployed, namespace: str, tmp_path: Path
) -> None:
    """A workload of a CRD that is installed while everything runs."""
    plane, web = deployed.cluster, WorkloadId(namespace, "Rollout", "web")
    client, cluster = ApiClient(client_config_source(plane.kubeconfig), connections=8), LiveCluster([ROLLOUTS])
    (tmp_path / "crd.json").write_text(json.dumps(definition()))
    plane.install(tmp_path)
    cluster.start(client)
    try:
        spec = deployment("web", 2)["spec"]
        rollout = {"apiVersion": f"{ROLLOUTS.group}/{ROLLOUTS.version}", "kind": "Rollout", "metadata": {"name": "web"}}
        plane.kubectl("create", "-f", "-", f"--namespace={namespace}", given=json.dumps(rollout | {"spec": spec}))
        wait_until(lambda: count(cluster, web) == 2, goal="the Rollout")
        plane.kubectl("scale", f"rollouts.{ROLLOUTS.group}/web", "--replicas=5", f"--namespace={namespace}")
        wait_until(lambda: count(cluster, web) == 5, goal="its count")
        (workload,) = cluster.inventory(datetime.now(UTC), ["Rollout"], re.compile(namespace)).workloads
        assert workload.resources.cpu_request == 0.1
    finally:
        cluster.stop(client)


def test_without_rights_each_collection_says_which_one_is_missing(deployed: Deployed) -> None:
    with watched(deployed.cluster.user("nobody-in-particular")) as cluster:
        assert cluster.kinds() == frozenset()
        assert all("is forbidden" in watch.health.fault and watch.health.refused for watch in cluster.watches)


SYNCS = 4
"""Syncs of the HPA, a second each, in which a count has to stand."""
TRIES = 4
"""The HPA may read in the very moment between a change and our knowing of it; it does so every second here."""
AT_ONCE = 10.0
"""Seconds from a change to its being served."""
SILENT = timedelta(minutes=4)
TARGET = 0.5


@contextmanager
def steady_load(namespace: str, now: datetime, cores: float) -> Iterator[str]:
    """A Prometheus with two days of constant CPU of one workload; its address."""
    minutes = 2 * DAY // MINUTE + 10
    present = workload(id=WorkloadId(namespace, "Deployment", "web"), replicas=10)
    ones = np.ones((1, minutes))
    values = {CPU: cores * ones, MEMORY: GIB * ones, REQUESTS: np.nan * ones, PODS: 10 * ones}
    recording = Recording(now - 2 * DAY, (present,), values)
    with EmbeddedPrometheus(recording, Settings().queries, recording.fleet(now)) as served:
        yield served.url


def served_value(deployed: Deployed, namespace: str) -> str:
    """Return the number that an HPA reads, or the reason why it reads none."""
    reader = TableReader(deployed.table, stale_after=timedelta(hours=12))
    reader.refresh()
    assert reader.table
    request = MetricRequest(namespace, "web", signal="cpu")
    reading = answer(reader.table, request, reader.moment(reader.table))
    return f"{reading.source} {reading.value:g}" if hasattr(reading, "source") else reading.message


def service_on(deployed: Deployed, namespace: str, url: str, parts: ExitStack) -> Service:
    """The computing side with live facts, publishing to the process that serves."""
    given = {
        "prometheus": {"url": url, "retries": 0},
        "queries": {"namespaces": namespace, "requests_from": "none"},
        "kubernetes": {"kubeconfig": str(deployed.account("forecaster"))},
        "state": {"directory": str(deployed.table.parent)},
        "policy": {"mode": "publish", "max_sample_age": "1m", "publish": {"abstain": "neutral"}},
    }
    settings = parse(given, "test")
    return build_service(settings, state_directory(settings.state), telemetry.logger(), parts)


def cycle_at(service: Service, at: datetime) -> None:
    service.clock = lambda: at + service.settings.delay
    service.tick()


def prometheus_goes_away(service: Service) -> None:
    """Let the source read an address where nothing listens, as while Prometheus is away."""
    live = service.cycle.source
    assert isinstance(live, LiveSource)
    live.source.close()
    gone = prometheus(PrometheusSettings(url=f"http://127.0.0.1:{free_ports(1)[0]}", retries=0), Queries())
    vars(live).update(vars(RelistedSource(gone)))


def stands(deployed: Deployed, namespace: str, change: Callable[[], object], value: str, count: int) -> float:
    """Let a person change something, and the HPA keep that; seconds until the value followed.

    The HPA may look between the change and our answer, with Kubernetes 1.37 at the very change: then once more.
    """
    for _ in range(TRIES):
        change()
        begin = time.monotonic()
        while served_value(deployed, namespace) != value and time.monotonic() < begin + AT_ONCE:
            pass
        late = time.monotonic() - begin
        counts = {desired(deployed, namespace) for _ in range(SYNCS) if time.sleep(1.0) is None}
        if counts == {count}:
            return late
    raise AssertionError(f"the count did not stand at {count}: {counts}")


def desired(deployed: Deployed, namespace: str) -> int:
    count: int = deployed.cluster.api.read("Deployment", "web", namespace)["spec"]["replicas"]
    return count


@pytest.mark.slow
@pytest.mark.usefixtures("serving")
def test_what_a_person_does_while_prometheus_is_away_is_not_undone(deployed: Deployed, namespace: str) -> None:
    """10 -> 30 as mitigation stands, though nothing is known of the demand; so does a target that an owner raises."""
    api, now = deployed.cluster.api, last_multiple(datetime.now(UTC), MINUTE)
    api.create(deployment("web", 10), namespace)
    api.create(external_hpa("web", target="500m"), namespace)
    with ExitStack() as parts:
        service = service_on(deployed, namespace, parts.enter_context(steady_load(namespace, now, 10 * TARGET)), parts)
        cycle_at(service, now - SILENT)
        assert served_value(deployed, namespace) in {"measured 5", "forecast 5"}
        prometheus_goes_away(service)
        cycle_at(service, now)
        assert served_value(deployed, namespace) == "neutral 5"
        late = stands(deployed, namespace, lambda: scale(deployed, namespace, 30), "neutral 15", 30)
        assert late < AT_ONCE

        def raised() -> None:
            """Repeat with each try: the count, then the target."""
            scale(deployed, namespace, 30)
            target = {"type": "AverageValue", "averageValue": "1"}
            external = api.read("HorizontalPodAutoscaler", "web", namespace)["spec"]["metrics"][0]["external"]
            metrics = [{"type": "External", "external": external | {"target": target}}]
            api.merge("HorizontalPodAutoscaler", "web", {"spec": {"metrics": metrics}}, namespace)

        stands(deployed, namespace, raised, "neutral 30", 30)
        with deployed.cluster.programs.hanging("kube-apiserver"):
            silent = "the API server has not answered lately"
            wait_until(lambda: silent in served_value(deployed, namespace), goal="an error", timeout=30)
        wait_until(lambda: served_value(deployed, namespace) == "neutral 30", goal="the count again")
