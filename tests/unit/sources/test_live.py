"""Objects that the API server lists become the inventory of a cycle; all else is read from Prometheus."""

from __future__ import annotations

import json
import re
import tracemalloc
from contextlib import ExitStack, nullcontext
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import structlog

from forecaster.actuators.floor.actuator import FloorActuator
from forecaster.actuators.floor.autoscalers import BEFORE, EXPIRES, LABEL, listed_autoscaler
from forecaster.actuators.floor.values import WrittenFloor
from forecaster.app.effects import actuators, watched_autoscalers
from forecaster.config.settings import parse
from forecaster.domain.window import Inventory, StartedPod
from forecaster.domain.workload import NamedContainer, Resources, Target, TargetType, Workload, WorkloadId
from forecaster.errors import SourceUnavailable
from forecaster.kube.client import ApiError, UnreachableError
from forecaster.kube.objects import HorizontalPodAutoscaler
from forecaster.kube.watch import AGED_SECONDS
from forecaster.sources.inventory import SEVERAL_OBJECTS
from forecaster.sources.live import LiveCluster
from forecaster.sources.live_objects import BUILT_IN_KINDS, ZONE_LABEL
from forecaster.sources.live_source import LiveSource
from forecaster.sources.queries import Queries
from forecaster.sources.settings import ScalableKind
from forecaster.store.state import ObservedFile
from tests.support.api_objects import (
    bookmark,
    container,
    deployment,
    event,
    external,
    hpa,
    lists,
    metadata,
    page,
    played,
    pod,
    refusal,
)

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.api_objects import Document

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
WEB = WorkloadId("shop", "Deployment", "web")
EVERYWHERE = re.compile(".+")
GIB = 2.0**30
ROLLOUT = ScalableKind(kind="Rollout", group="argoproj.io", version="v1alpha1", plural="rollouts")


class Clock:
    now = NOW.timestamp()

    def __call__(self) -> float:
        return self.now


def cluster(clock: Clock | None = None, **objects: list[Document]) -> LiveCluster:
    """Return the live facts of a cluster with these objects, by the plural of their kind."""
    live = LiveCluster(clock=clock or Clock())
    lists(live, objects)
    return live


RESOURCES: dict[str, list[Document]] = {
    "predictiveautoscalers": [
        {
            "metadata": metadata("web"),
            "spec": {"scaleTargetRef": {"name": "web"}, "horizontal": {"leadTime": "4m", "quantile": 0.9}},
        }
    ],
    "predictivepolicies": [
        {"metadata": metadata("teams"), "spec": {"match": {"namespace": "shop"}, "mode": "publish"}}
    ],
}


def with_resources(**objects: list[Document]) -> LiveCluster:
    """Return the live facts of a cluster with these objects, custom resources among them."""
    live = LiveCluster(clock=Clock(), resources=True)
    lists(live, objects)
    return live


def only_workload(live: LiveCluster) -> Workload:
    (workload,) = live.inventory(NOW, ["Deployment"], EVERYWHERE).workloads
    return workload


def hpa_targets(*metrics: Document) -> tuple[Target, ...]:
    """Targets of the HPA of shop/web with these metrics."""
    scaler = only_workload(cluster(deployments=[deployment()], horizontalpodautoscalers=[hpa(*metrics)])).autoscaler
    assert scaler is not None
    return scaler.targets


def resource(target: Document, kind: str = "Resource", **more: str) -> Document:
    block = kind[0].lower() + kind[1:]
    return {"type": kind, block: {"name": "cpu", "target": target, **more}}


class TestWorkload:
    def test_has_its_count_its_pods_and_its_hpa(self) -> None:
        workload = only_workload(
            cluster(deployments=[deployment(replicas=4)], horizontalpodautoscalers=[hpa(external("queue", "30"))])
        )
        assert (workload.id, workload.replicas, workload.ready_replicas) == (WEB, 4, 4)
        assert workload.autoscaler is not None
        assert (workload.autoscaler.min_replicas, workload.autoscaler.max_replicas) == (2, 9)

    @pytest.mark.parametrize(("before", "least"), [("1", 1), ("0", 0), ("7", 2), ("-1", 2), ("9" * 5000, 2), ("", 2)])
    def test_has_its_owners_minimum_while_a_floor_of_ours_stands(self, before: str, least: int) -> None:
        """The comparison with the HPA alone would otherwise count our own floor as its minimum."""
        document = hpa(external("queue", "30"))
        document["metadata"]["annotations"] = {BEFORE: before}
        scaler = only_workload(cluster(deployments=[deployment()], horizontalpodautoscalers=[document])).autoscaler
        assert scaler is not None
        assert (scaler.min_replicas, scaler.max_replicas) == (least, 9)

    def test_has_the_image_of_its_template_without_what_differs_by_release(self) -> None:
        containers = [container("app", image="registry:5000/shop/web:1.2@sha256:abc"), container("log", image="fluent")]
        inventory = cluster(deployments=[deployment("web", 3, *containers)]).inventory(NOW, ["Deployment"], EVERYWHERE)
        assert inventory.images == {WEB: "fluent, registry:5000/shop/web"}

    def test_without_a_count_has_one_replica(self) -> None:
        assert only_workload(cluster(deployments=[deployment(replicas=None)])).replicas == 1

    def test_outside_of_the_namespaces_is_none(self) -> None:
        live = cluster(deployments=[deployment()])
        assert live.inventory(NOW, ["Deployment"], re.compile("team-.*")).workloads == ()

    def test_with_two_hpas_has_none_and_that_is_a_fault(self) -> None:
        live = cluster(deployments=[deployment()], horizontalpodautoscalers=[hpa(), hpa(name="copy")])
        inventory = live.inventory(NOW, ["Deployment"], EVERYWHERE)
        assert inventory.workloads[0].autoscaler is None
        assert inventory.faults == ("Deployment shop/web: scaled by more than one HPA (copy, web); none is used",)

    @pytest.mark.parametrize(
        ("version", "named"), [("extensions/v1beta1", "API group extensions"), ("", "no API group")]
    )
    def test_an_hpa_that_names_another_api_group_scales_it_not(self, version: str, named: str) -> None:
        lost = hpa(name="lost", scaleTargetRef={"apiVersion": version, "kind": "Deployment", "name": "web"})
        live = cluster(deployments=[deployment()], horizontalpodautoscalers=[hpa(), lost])
        inventory = live.inventory(NOW, ["Deployment"], EVERYWHERE)
        assert inventory.workloads[0].autoscaler is not None
        fault = f"HPA shop/lost: its scaleTargetRef names Deployment of {named}, not of apps; it scales none"
        assert inventory.faults == (fault,)

    def test_of_thousands_of_metrics_the_first_are_read_since_each_costs_the_whole_fleet(self) -> None:
        metrics = [external(f"queue-{number:04}", "30") for number in range(5000)]
        live = cluster(deployments=[deployment()], horizontalpodautoscalers=[hpa(*metrics)])
        inventory = live.inventory(NOW, ["Deployment"], EVERYWHERE)
        assert inventory.workloads[0].autoscaler is not None
        assert [target.metric for target in inventory.workloads[0].autoscaler.targets][-2:] == [
            "queue-0030",
            "queue-0031",
        ]
        assert inventory.faults == ("HPA shop/web: of its 5000 metrics the first 32 by name are read",)

    def test_with_thousands_of_hpas_is_named_in_one_line(self) -> None:
        copies = [hpa(name=f"copy-{number:04}") for number in range(2000)]
        live = cluster(deployments=[deployment()], horizontalpodautoscalers=copies)
        (fault,) = live.inventory(NOW, ["Deployment"], EVERYWHERE).faults
        assert fault.endswith("(copy-0000, copy-0001, copy-0002, copy-0003, copy-0004 and 1995 more); none is used")

    def test_that_an_hpa_names_and_is_not_there_is_a_fault(self) -> None:
        inventory = cluster(horizontalpodautoscalers=[hpa()]).inventory(NOW, ["Deployment"], EVERYWHERE)
        assert inventory.faults == ("HPA shop/web: scales Deployment web, which is not there",)

    def test_of_a_custom_kind_is_listed_where_it_is_configured(self) -> None:
        live = LiveCluster([*BUILT_IN_KINDS, ROLLOUT], clock=Clock())
        lists(live, {"rollouts": [deployment("web", 5)]})
        (rollout,) = live.inventory(NOW, ["Rollout"], EVERYWHERE).workloads
        assert (str(rollout.id.kind), rollout.replicas) == ("Rollout", 5)

    def test_of_a_custom_kind_whose_count_is_elsewhere_is_left_out(self) -> None:
        """An HPA on such a kind with six pods read one of them as `forecaster_replicas`, and would have kept one."""
        elsewhere, live = deployment("odd", None), LiveCluster([ROLLOUT], clock=Clock())
        elsewhere["spec"]["size"], elsewhere["status"] = {"count": 6}, {"observed": {"count": 6}}
        lists(live, {"rollouts": [elsewhere, deployment("web", None)]})
        prometheus = FakePrometheus()
        prometheus.queries = Queries(kinds=("Rollout",))
        inventory = live_source(prometheus, live, Clock()).inventory(NOW)
        assert [(workload.id.name, workload.replicas) for workload in inventory.workloads] == [("web", 1)]
        assert any(
            "odd is left out, it is not understood (ValueError: it states neither" in why for why in inventory.faults
        )


class TestTargets:
    def test_of_resources_are_ratios_amounts_and_those_of_one_container(self) -> None:
        assert hpa_targets(
            resource({"type": "Utilization", "averageUtilization": 70}),
            resource({"type": "AverageValue", "averageValue": "333m"}),
            resource({"type": "Utilization", "averageUtilization": 60}, "ContainerResource", container="app"),
        ) == (
            Target("cpu", TargetType.AVERAGE_VALUE, 0.333),
            Target("cpu", TargetType.UTILIZATION, 0.7),
            Target("cpu", TargetType.UTILIZATION, 0.6, "app"),
        )

    def test_of_our_demand_have_the_signals_of_their_selectors(self) -> None:
        of_web = {"workload": "web", "kind": "Deployment"}
        targets = hpa_targets(
            external("forecaster_demand", "350m", signal="cpu", **of_web),
            external("forecaster_demand", "100", signal="requests", **of_web),
        )
        assert [(target.signal, target.value) for target in targets] == [("cpu", 0.35), ("requests", 100.0)]

    @pytest.mark.parametrize("labels", [{"workload": "cart"}, {"workload": "web", "namespace": "other"}])
    def test_of_another_workloads_demand_are_not_ours(self, labels: dict[str, str]) -> None:
        (target,) = hpa_targets(external("forecaster_demand", "350m", **labels))
        assert target.metric.startswith("forecaster_demand{")

    def test_of_kedas_names_keep_the_signal_of_the_name(self) -> None:
        (target,) = hpa_targets(external("s0-forecaster-requests", "9", **{"scaledobject.keda.sh/name": "web"}))
        assert (target.metric, target.signal) == ("s0-forecaster-requests", "")

    def test_of_a_container_come_with_what_the_template_states_of_it(self) -> None:
        metric = resource({"type": "Utilization", "averageUtilization": 60}, "ContainerResource", container="app")
        stated = deployment("web", 3, container(), container("log", "50m"))
        workload = only_workload(cluster(deployments=[stated], horizontalpodautoscalers=[hpa(metric)]))
        assert workload.containers == (NamedContainer("app", Resources(cpu_request=0.5, memory_request=GIB)),)

    def test_of_a_value_of_an_object(self) -> None:
        described = {"kind": "Deployment", "name": "web"}
        target = {"type": "Value", "value": "2500m"}
        block = {"metric": {"name": "forecaster_demand"}, "describedObject": described, "target": target}
        (read_target,) = hpa_targets({"type": "Object", "object": block})
        assert read_target == Target("forecaster_demand", TargetType.VALUE, 2.5)

    @pytest.mark.parametrize(
        ("type_", "amounts", "read"),
        [
            ("External", {"type": "Utilization", "averageUtilization": 50, "value": "30"}, (TargetType.VALUE, 30.0)),
            ("External", {"type": "Value", "averageValue": "4", "value": "30"}, (TargetType.AVERAGE_VALUE, 4.0)),
            ("Object", {"type": "Value", "averageValue": "4", "value": "30"}, (TargetType.VALUE, 30.0)),
            ("Object", {"type": "AverageValue", "averageValue": "4", "value": "30"}, (TargetType.AVERAGE_VALUE, 4.0)),
            (
                "Pods",
                {"type": "Utilization", "averageUtilization": 5, "averageValue": "4"},
                (TargetType.AVERAGE_VALUE, 4.0),
            ),
        ],
    )
    def test_of_several_amounts_are_the_one_that_the_controller_reads(
        self, type_: str, amounts: dict[str, Any], read: tuple[TargetType, float]
    ) -> None:
        block = {"metric": {"name": "queue"}, "target": amounts}
        described = {"describedObject": {"kind": "Service", "name": "web"}} if type_ == "Object" else {}
        (target,) = hpa_targets({"type": type_, type_.lower(): {**block, **described}})
        assert (target.type, target.value) == read

    def test_are_made_once_however_often_the_status_changes(self) -> None:
        live = cluster(horizontalpodautoscalers=[hpa(external("queue", "30"))])
        before = live.hpas.objects["shop", "web"]
        played(live.hpas, [event("MODIFIED", hpa(external("queue", "30"), version=2))])
        after = live.hpas.objects["shop", "web"]
        assert (after.meta.resource_version, after.spec is before.spec) == ("2", True)


class TestMisread:
    OF_WEB = {"workload": "web", "kind": "Deployment"}  # noqa: RUF012  a constant

    def sentences(self, *signals: str) -> list[str]:
        """Sentences about an HPA with a target for each of these signals; an empty one is not in its selector."""
        named = [{"signal": signal} if signal else {} for signal in signals]
        metrics = [external("forecaster_demand", "1", **self.OF_WEB, **labels) for labels in named]
        misread = cluster(horizontalpodautoscalers=[hpa(*metrics)]).misread(["cpu", "requests"], EVERYWHERE)
        return [str(reason) for reason in misread]

    @pytest.mark.parametrize("signals", [("cpu",), ("",), ("cpu", "requests"), ()])
    def test_is_nothing_that_has_an_answer(self, signals: tuple[str, ...]) -> None:
        assert self.sentences(*signals) == []

    def test_is_a_signal_that_is_not_measured(self) -> None:
        (why,) = self.sentences("cpus")
        assert why == "HPA shop/web: its selector names signal cpus, which is not measured; there are cpu, requests"

    @pytest.mark.parametrize("signals", [("", ""), ("cpu", ""), ("cpu", "cpu")])
    def test_are_several_targets_without_a_signal_each(self, signals: tuple[str, ...]) -> None:
        (why,) = self.sentences(*signals)
        assert why.startswith("HPA shop/web: 2 targets of forecaster_demand of which")

    def test_is_no_selector_of_a_hundred_thousand_values(self) -> None:
        """Reading it took a minute, in which the process did nothing else."""
        metric = external("forecaster_demand", "1")
        values = [f"{each:x}" for each in range(120_000)]
        metric["external"]["metric"]["selector"] = {"matchExpressions": [{"key": "signal", "values": values}]}
        assert cluster(horizontalpodautoscalers=[hpa(metric)]).misread(["cpu"], EVERYWHERE) == []


class TestAutoscalers:
    """Mode floor decides from the same facts whether HPAs are watched or listed."""

    def test_a_watched_hpa_has_the_facts_of_a_listed_one(self) -> None:
        document = hpa(external("queue", "30"))
        document["spec"]["behavior"] = {"scaleUp": {"selectPolicy": "Disabled"}}
        document["metadata"] |= {
            "uid": "1",
            "labels": {LABEL: "raised"},
            "annotations": {BEFORE: "2", EXPIRES: "2026-11-22T12:15:00Z"},
            "ownerReferences": [{"kind": "ScaledObject", "name": "web", "controller": True}],
            "managedFields": [{"manager": "argocd", "fieldsV1": {"f:spec": {"f:minReplicas": {}}}}],
        }
        listed = msgspec.json.decode(msgspec.json.encode(document), type=HorizontalPodAutoscaler)
        (watched,) = watched_autoscalers(cluster(horizontalpodautoscalers=[document])) or ()
        assert watched == listed_autoscaler(listed)
        assert watched.floor == WrittenFloor(2, NOW + timedelta(minutes=15))
        assert (watched.other_writers, watched.controller) == ("argocd", "ScaledObject web")
        assert watched.scale_up_disabled

    @pytest.mark.parametrize("later", [AGED_SECONDS + 1.0, -3600.0], ids=["for long", "and the clock went back"])
    def test_while_the_watch_is_away_they_are_not_known(self, later: float) -> None:
        clock = Clock()
        live = cluster(clock, horizontalpodautoscalers=[hpa(external("queue", "30"))])
        clock.now += later
        assert watched_autoscalers(live) is None
        assert watched_autoscalers(None) is None

    def test_of_another_cluster_than_the_one_that_is_written_to_are_not_taken(self, tmp_path: Path) -> None:
        document = {
            "clusters": [{"name": "here", "cluster": {"server": "https://127.0.0.1:9"}}],
            "users": [{"name": "here", "user": {"token": "a"}}],
            "contexts": [{"name": "here", "context": {"cluster": "here", "user": "here"}}],
        }
        written = tmp_path / "written"
        written.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", "current-context": "here", **document}))
        live = cluster(horizontalpodautoscalers=[hpa(external("queue", "30"))])
        for watched, known in ((written, True), (tmp_path / "another", False)):
            given = {"floor": {"enabled": True}, "acting": {"kubeconfig": str(written)}}
            settings = parse({**given, "kubernetes": {"kubeconfig": str(watched)}}, "test")
            with ExitStack() as parts:
                acting = actuators(settings, structlog.get_logger(), parts, live)
                assert acting is not None
                floor = acting.parts["floor"]
                assert isinstance(floor, FloorActuator)
                with nullcontext() if known else pytest.raises(UnreachableError):
                    assert [autoscaler.name for autoscaler in floor.autoscalers.listed()] == ["web"]


class TestResources:
    def test_of_a_template_count_native_sidecars_and_no_other_init_container(self) -> None:
        sidecar = container("proxy", "100m", "64Mi", restartPolicy="Always")
        stated = deployment("web", 3, container(), initContainers=[sidecar, container("migrate", "2", "2Gi")])
        resources = only_workload(cluster(deployments=[stated])).resources
        assert resources == Resources(cpu_request=0.6, memory_request=GIB + 64 * 2.0**20)

    def test_with_a_silent_container_are_not_stated(self) -> None:
        silent = {"name": "silent"}
        assert only_workload(cluster(deployments=[deployment("web", 3, container(), silent)])).resources == Resources()

    def test_of_the_pod_as_a_whole_come_first(self) -> None:
        stated = deployment("web", 3, container(), resources={"requests": {"cpu": "2"}})
        assert only_workload(cluster(deployments=[stated])).resources == Resources(cpu_request=2.0, memory_request=GIB)

    def test_are_the_mean_of_living_pods_through_their_replica_sets(self) -> None:
        """During a rollout both requests count; a pod that failed or is being deleted does not."""
        containers = {"old": container(cpu="1"), "new": container(cpu="2")}
        pods = [
            pod("a", ("ReplicaSet", "web-old"), containers["old"]),
            pod("b", ("ReplicaSet", "web-new"), containers["new"]),
            pod("failed", ("ReplicaSet", "web-new"), container(cpu="9"), phase="Failed"),
            pod("gone", ("ReplicaSet", "web-old"), container(cpu="9"), deletionTimestamp="2026-11-22T11:59:00Z"),
        ]
        sets = [{"metadata": metadata(f"web-{name}", owner=("Deployment", "web"))} for name in containers]
        workload = only_workload(cluster(deployments=[deployment()], pods=pods, replicasets=sets))
        assert workload.resources == Resources(cpu_request=1.5, memory_request=GIB)

    def test_are_those_of_the_template_where_pods_may_not_be_listed(self) -> None:
        live = LiveCluster(clock=Clock())
        for watch in live.watches[:-1]:
            played(watch, page(*([deployment()] if watch.path.endswith("deployments") else [])))
        played(live.pods, refusal(403))
        assert only_workload(live).resources.cpu_request == 0.5
        assert "/api/v1/pods is not known: GET /api/v1/pods?limit=500: 403 no" in live.faults()[0]

    def test_are_those_of_the_template_where_pods_may_not_be_listed_any_more(self) -> None:
        """There may have been a rollout since the right was lost, so pods that were listed before do not count."""
        clock, sets = Clock(), [{"metadata": metadata("web-1", owner=("Deployment", "web"))}]
        pods = [pod("a", ("ReplicaSet", "web-1"), container(cpu="9"))]
        live = cluster(clock, deployments=[deployment()], replicasets=sets, pods=pods)
        assert only_workload(live).resources.cpu_request == 9.0
        clock.now += 2 * AGED_SECONDS
        for watch in live.watches:
            played(watch, refusal(403) if watch is live.pods else [bookmark(2)])
        assert only_workload(live).resources.cpu_request == 0.5

    def test_are_beside_the_share_of_pods_on_the_fullest_node_and_in_the_fullest_zone(self) -> None:
        sets = [{"metadata": metadata("web-1", owner=("Deployment", "web"))}]
        pods = [placed(name, node) for name, node in {"a": "n1", "b": "n1", "c": "n2", "d": "n3", "e": ""}.items()]
        zones = {"n1": "west", "n2": "east", "n3": "east"}
        nodes = [{"metadata": {"name": name, "labels": {ZONE_LABEL: zone}}} for name, zone in zones.items()]
        assert only_workload(cluster(deployments=[deployment()], pods=pods, replicasets=sets, nodes=nodes)).spread == (
            0.5,
            0.5,
        )
        unzoned = cluster(deployments=[deployment()], pods=pods, replicasets=sets, nodes=nodes[:2])
        assert only_workload(unzoned).spread == (0.5, None)
        assert only_workload(cluster(deployments=[deployment()], replicasets=sets)).spread == (None, None)

    def test_a_pod_is_kept_with_its_times_and_its_node(self) -> None:
        since = [
            {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-11-22T11:00:01Z"},
            {"type": "Ready", "status": "False", "lastTransitionTime": "2026-11-22T11:00:09Z"},
        ]
        stated = pod("a", ("StatefulSet", "db"), creationTimestamp="2026-11-22T11:00:00Z")
        stated["status"]["conditions"] = since
        watched_pod = cluster(pods=[stated]).pods.objects["shop", "a"]
        assert (watched_pod.owner, watched_pod.node) == (WorkloadId("shop", "StatefulSet", "db"), "node-1")
        assert (watched_pod.scheduled - watched_pod.created, watched_pod.ready) == (1.0, 0.0)


def at(second: int) -> str:
    """Timestamp of this second after eleven."""
    return f"2026-11-22T11:{second // 60:02}:{second % 60:02}Z"


def living(name: str, *, created: int, scheduled: int | None = None, ready: int | None = None) -> Document:
    """A pod of `web-1` with the seconds at which it was created, scheduled and ready."""
    document = pod(name, ("ReplicaSet", "web-1"), creationTimestamp=at(created))
    times = {"PodScheduled": scheduled, "Ready": ready}
    document["status"]["conditions"] = [
        {"type": kind, "status": "True", "lastTransitionTime": at(second)} for kind, second in times.items() if second
    ]
    return document


def placed(name: str, node: str) -> Document:
    """A pod of `web-1` that is ready on this node, or pending if the node is empty."""
    document = living(name, created=1, scheduled=2, ready=3 if node else None)
    document["spec"]["nodeName"] = node
    return document


class TestStartUps:
    def pods(self, *stages: list[Document]) -> dict[WorkloadId, tuple[timedelta, ...]]:
        """Start-up times when pods are listed as in the first stage and then change to each later stage."""
        sets = [{"metadata": metadata("web-1", owner=("Deployment", "web"))}]
        live = cluster(deployments=[deployment()], replicasets=sets, pods=stages[0])
        for stage in stages[1:]:
            played(live.pods, [event("MODIFIED", document) for document in stage])
        return {id_: tuple(started_pod.took for started_pod in started) for id_, started in live.started().items()}

    def test_are_reported_with_the_node_pool_by_the_first_label_that_its_node_has(self) -> None:
        labels = {"agentpool": "old", "cloud.google.com/gke-nodepool": "gpu", "topology.kubernetes.io/zone": "a"}
        node = {"metadata": {"name": "node-1", "labels": labels}}
        sets = [{"metadata": metadata("web-1", owner=("Deployment", "web"))}]
        live = cluster(deployments=[deployment()], replicasets=sets, nodes=[node], pods=[living("a", created=1)])
        played(live.pods, [event("MODIFIED", living("a", created=1, scheduled=3, ready=43))])
        assert live.started() == {WEB: (StartedPod(timedelta(seconds=42), "gpu"),)}

    def test_are_timed_from_creation_to_ready_and_reported_once(self) -> None:
        new, ready = living("a", created=1), living("a", created=1, scheduled=3, ready=43)
        assert self.pods([new], [living("a", created=1, scheduled=3)], [ready]) == {WEB: (timedelta(seconds=42),)}

    def test_leave_out_the_time_without_a_node(self) -> None:
        ready = living("a", created=1, scheduled=601, ready=641)
        assert self.pods([living("a", created=1)], [ready]) == {WEB: (timedelta(seconds=45),)}

    def test_are_not_those_of_pods_that_were_ready_when_they_were_seen_first(self) -> None:
        assert self.pods([living("a", created=1, scheduled=2, ready=900)]) == {}

    def test_are_not_reported_for_a_pod_that_is_ready_again(self) -> None:
        ready, again = living("a", created=1, scheduled=2, ready=9), living("a", created=1, scheduled=2, ready=900)
        gone = living("a", created=1, scheduled=2)
        assert self.pods([gone], [ready], [gone], [again]) == {WEB: (timedelta(seconds=8),)}

    def test_of_a_pod_that_has_the_name_of_another_one_are_its_own(self) -> None:
        first, second = living("db-0", created=1), living("db-0", created=300, scheduled=301, ready=330)
        assert self.pods([first], [second]) == {}

    def test_that_no_cycle_asks_for_are_kept_within_bounds(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A replica that does not lead never asks; each release of each workload would add start-ups."""
        monkeypatch.setattr("forecaster.sources.live.MAX_STARTED", 2)
        live = cluster()
        for each in range(3):
            new, ready = living(f"p{each}", created=1), living(f"p{each}", created=1, scheduled=2, ready=9)
            for document in (new, ready):
                document["metadata"]["ownerReferences"][0]["name"] = f"web-{each}"
            played(live.pods, [event("ADDED", new), event("MODIFIED", ready)])
        assert [id_.name for id_ in live.started()] == ["web-1", "web-2"]


def managed(fields: str = "{}", at: str = "2026-11-01T00:00:00Z") -> str:
    """JSON of managedFields, which the owner of an HPA may write, up to the name that follows."""
    return f'"managedFields":[{{"manager":"owner","time":"{at}","fieldsV1":{fields}}}],"name":'


DEEP = '{"f:a":' * 9_000 + "{}" + "}" * 9_000
"""Fields nested 9,000 levels deep; the API server accepts up to 10,000."""


class TestManagedFields:
    """An owner may write anything into managedFields; it harms the facts of no other object."""

    @pytest.mark.parametrize(
        "fields",
        [managed(DEEP), managed(f'{{"f:spec":{{"f:minReplicas":{DEEP}}}}}'), managed(at="0000-01-01T00:00:00Z")],
        ids=["deep", "deep below minReplicas", "the year 0"],
    )
    def test_of_an_hpa_that_is_listed_and_followed(self, fields: str) -> None:
        live = cluster()
        odd = fields.join(json.dumps(hpa(name="odd", workload="odd")).split('"name":', 1))
        listed = page(hpa(), hpa(name="ODD"))
        text = listed.body.decode().replace(json.dumps(hpa(name="ODD")), odd)
        played(live.hpas, UnreachableError("anew", 410), listed._replace(body=text.encode()))
        played(live.hpas, [f'{{"type":"MODIFIED","object":{odd}}}\n'.encode()])
        assert (sorted(name for _, name in live.hpas.objects), live.faults()) == (["odd", "web"], [])

    def test_of_a_workload_beside_one_that_is_not_understood(self) -> None:
        live, odd = cluster(), deployment("odd")
        odd["spec"]["replicas"] = "many"
        listed = page(deployment("web"), deployment("DEEP"), odd)
        text = listed.body.decode().replace('"name": "DEEP"', managed(DEEP) + '"deep"')
        watch = live.workloads["Deployment"]
        played(watch, UnreachableError("anew", 410), listed._replace(body=text.encode()))
        assert ([*watch.objects], [*watch.progress.misread]) == ([("shop", "web"), ("shop", "deep")], [("shop", "odd")])


def test_only_pods_that_are_ready_now_run() -> None:
    """A pod that is no longer ready would be counted as serving beside the last one that does."""
    sets = [{"metadata": metadata("web-1", owner=("Deployment", "web"))}]
    live = cluster(replicasets=sets, pods=[living(name, created=1, scheduled=2, ready=3) for name in "ab"])
    gone = living("b", created=1, scheduled=2)
    gone["status"]["conditions"].append({"type": "Ready", "status": "False", "lastTransitionTime": at(60)})
    played(live.pods, [event("MODIFIED", gone)])
    assert [name for _, _, name, _ in live.running({WEB}) or ()] == ["a"]


def test_what_an_owner_writes_again_and_again_is_not_kept() -> None:
    """Parsed texts are remembered for the next object; a million characters an update would fill memory."""
    live, long = cluster(), "x" * 300_000

    def write(count: int) -> None:
        updated = deployment("web", 3, container(image=f"{long}-{count}"))
        played(live.workloads["Deployment"], [event("MODIFIED", updated)])
        played(live.hpas, [event("MODIFIED", hpa(external(f"{long}-{count}", "1"), workload=f"{long}-{count}"))])

    write(0)
    with ExitStack() as stack:
        tracemalloc.start()
        stack.callback(tracemalloc.stop)
        for count in range(1, 20):
            write(count)
        assert tracemalloc.get_traced_memory()[0] < 2_000_000  # the last update only; all of them are 17 MB


class TestChanges:
    def test_of_counts_and_hpas_are_reported_and_no_others(self) -> None:
        heard: list[WorkloadId] = []
        live = LiveCluster(changed=heard.append, clock=Clock())
        lists(live, {"deployments": [deployment()], "horizontalpodautoscalers": [hpa(external("queue", "30"))]})
        assert heard == [WEB, WEB]
        heard.clear()
        watch = live.workloads["Deployment"]
        busy = deployment(version=2)
        busy["status"]["readyReplicas"] = 1
        stream = [event("MODIFIED", busy), event("MODIFIED", deployment(replicas=30, version=3))]
        played(watch, stream)
        played(live.hpas, [event("MODIFIED", hpa(external("queue", "30"), version=2))])
        assert heard == [WEB]
        played(live.hpas, [event("MODIFIED", hpa(external("queue", "50")))])
        assert heard == [WEB, WEB]
        present = live.present(WEB)
        assert present is not None
        assert (present.replicas, present.targets[0].value) == (30, 50.0)

    def test_an_hpa_that_turns_to_another_workload_is_a_change_of_both(self) -> None:
        heard: list[WorkloadId] = []
        live = LiveCluster(changed=heard.append, clock=Clock())
        lists(live, {"horizontalpodautoscalers": [hpa()]})
        played(live.hpas, [event("MODIFIED", hpa(workload="cart"))])
        assert {id_.name for id_ in heard[1:]} == {"web", "cart"}
        assert live.scalers(WEB) == []


class TestConfirmed:
    def test_a_kind_that_was_never_told_keeps_no_other_from_being_known(self) -> None:
        live = LiveCluster(clock=Clock())
        for watch in live.watches:
            played(watch, refusal(403) if watch.path.endswith("statefulsets") else page())
        assert live.confirmed() == NOW.timestamp()

    def test_a_right_that_is_taken_away_ends_what_is_known_until_no_table_has_it(self) -> None:
        clock = Clock()
        live = cluster(clock)
        played(live.workloads["StatefulSet"], refusal(403))
        clock.now += 30
        for watch in (live.hpas, live.workloads["Deployment"]):
            played(watch, [])
        assert live.confirmed() == NOW.timestamp()
        clock.now += 600
        for watch in (live.hpas, live.workloads["Deployment"]):
            played(watch, [])
        assert live.confirmed() == clock.now


class FakePrometheus:
    """A Prometheus source that lists these workloads, or is down."""

    latest = history = containers = container_usage = None

    def __init__(self, *workloads: Workload) -> None:
        self.queries = Queries()
        self.workloads = workloads
        self.down: SourceUnavailable | None = None
        self.followed: Inventory | None = None

    def inventory(self, at: datetime) -> Inventory:
        if self.down:
            raise self.down
        return Inventory(at, self.workloads)

    def follow(self, inventory: Inventory) -> None:
        self.followed = inventory


def live_source(prometheus: Any, live: LiveCluster, clock: Clock, *, tells: bool = False) -> LiveSource:
    return LiveSource(prometheus, live, clock, tells=tells)


def workload(name: str, kind: str = "Deployment", replicas: int = 3) -> Workload:
    return Workload(WorkloadId("shop", kind, name), replicas, replicas)


class TestPolicies:
    def test_annotations_of_hpas_and_workloads_come_with_the_inventory(self) -> None:
        scaler, scaled = hpa(), deployment()
        scaler["metadata"]["annotations"] = {"forecaster.dev/mode": "floor", "team": "shop"}
        scaled["metadata"]["annotations"] = {"forecaster.dev/quantile": "0.95", "kubectl": "x" * 100}
        inventory = live_source(
            FakePrometheus(), cluster(deployments=[scaled], horizontalpodautoscalers=[scaler]), Clock()
        ).inventory(NOW)
        assert inventory.policies is not None
        assert [(layer.origin, layer.policy) for layer in inventory.policies.own[WEB]] == [
            ("annotations of Deployment shop/web", {"horizontal": {"quantile": "0.95"}}),
            ("annotations of HPA shop/web", {"mode": "floor"}),
        ]

    def test_one_that_cannot_be_read_is_a_fault_of_the_inventory(self) -> None:
        scaler = hpa()
        scaler["metadata"]["annotations"] = {"forecaster.dev/mode": "flor"}
        inventory = live_source(FakePrometheus(), cluster(horizontalpodautoscalers=[scaler]), Clock()).inventory(NOW)
        assert any("HPA shop/web: annotation forecaster.dev/mode is 'flor'" in fault for fault in inventory.faults)

    def test_one_of_a_namespace_that_is_not_read_is_no_fault_here(self) -> None:
        """`forecaster explain shop/web` began with a line for each misspelt annotation of all other tenants."""
        scaled, prometheus = deployment("noise"), FakePrometheus()
        scaled["metadata"] |= {"namespace": "evil", "annotations": {"forecaster.dev/mode": "flor"}}
        prometheus.queries = Queries(namespaces="shop")
        inventory = live_source(prometheus, cluster(deployments=[scaled, deployment()]), Clock()).inventory(NOW)
        assert (inventory.ids, inventory.faults) == ((WEB,), ())

    def test_they_stay_while_the_api_server_is_away_and_are_not_those_of_a_past_instant(self) -> None:
        scaler, clock = hpa(), Clock()
        scaler["metadata"]["annotations"] = {"forecaster.dev/mode": "floor"}
        source = live_source(FakePrometheus(), cluster(clock, horizontalpodautoscalers=[scaler]), clock)
        clock.now += AGED_SECONDS + 1
        later = NOW + timedelta(seconds=AGED_SECONDS + 1)
        assert source.inventory(later).policies == source.live.policies()
        assert source.inventory(NOW - timedelta(hours=1)).policies is None

    def test_those_of_an_earlier_process_count_until_the_api_server_tells_them(self, tmp_path: Path) -> None:
        scaler, scaled = hpa(), deployment()
        scaler["metadata"]["annotations"] = {"forecaster.dev/mode": "observe", EXPIRES: "2026-11-22T12:15:00Z"}
        scaled["metadata"]["annotations"] = {"forecaster.dev/paused": "true"}
        scaled["metadata"]["labels"] = {"team": "shop"}
        first = with_resources(deployments=[scaled], horizontalpodautoscalers=[scaler], **RESOURCES)
        before = first.policies()
        assert [layer.origin for layer in before.own[WEB]] == [
            "PredictiveAutoscaler shop/web",
            "annotations of HPA shop/web",
            "annotation forecaster.dev/paused of Deployment shop/web",
        ]
        ObservedFile(tmp_path / "stated.json", first.before).save()

        again = LiveCluster(clock=Clock(), resources=True)
        assert ObservedFile(tmp_path / "stated.json", again.before).load()
        assert again.policies() == before
        assert live_source(FakePrometheus(), again, Clock()).inventory(NOW).policies == before

        played(again.hpas, page(hpa()))
        played(again.workloads["Deployment"], page())
        assert [layer.origin for layer in again.policies().own[WEB]] == ["PredictiveAutoscaler shop/web"]
        assert again.policies().defaults == before.defaults

    def test_those_of_an_earlier_process_end_where_their_kind_is_not_there_any_more(self) -> None:
        first = with_resources(**RESOURCES)
        first.policies()
        again = LiveCluster(clock=Clock(), resources=True)
        again.before.restore(first.before.encoded())
        assert again.policies().defaults
        for watch in again.stated.watches if again.stated else ():
            watch.health.absent = True
        assert (again.policies().defaults, again.policies().own) == ((), {})

    def test_a_renewed_mark_of_a_write_is_nothing_new_to_keep(self) -> None:
        files = []
        for expires in ("2026-11-22T12:15:00Z", "2026-11-22T12:22:00Z"):
            scaler = hpa()
            scaler["metadata"]["annotations"] = {"forecaster.dev/mode": "floor", EXPIRES: expires}
            live = cluster(horizontalpodautoscalers=[scaler])
            live.policies()
            files.append(live.before.encoded())
        assert files[0] == files[1]

    def test_labels_come_with_them_and_are_shown(self) -> None:
        labelled = deployment()
        labelled["metadata"]["labels"] = {"team": "shop", "forecaster.dev/scale": "scaled"}
        source = live_source(FakePrometheus(), cluster(deployments=[labelled]), Clock())
        inventory = source.inventory(NOW)
        assert inventory.policies is not None
        assert inventory.policies.labels == {WEB: {"team": "shop"}}
        assert "It has labels team=shop, by which selectors of policies find it." in source.origins(WEB)


class TestSource:
    def test_has_the_api_servers_facts_and_of_other_kinds_those_of_prometheus(self) -> None:
        prometheus = FakePrometheus(workload("web", replicas=3), workload("gone"), workload("batch", "ReplicaSet"))
        source = live_source(prometheus, cluster(deployments=[deployment(replicas=30)]), Clock())
        inventory = source.inventory(NOW)
        assert [(workload.id.name, workload.replicas) for workload in inventory.workloads] == [
            ("web", 30),
            ("batch", 3),
        ]
        assert inventory.whole == {"Deployment", "StatefulSet"}
        assert prometheus.followed == inventory, "the containers that live HPAs name are asked for"
        assert source.live_kinds(NOW) == inventory.whole
        assert source.live_kinds(NOW + timedelta(minutes=1)) == frozenset()

    def test_holds_a_workload_that_has_series_of_several_clusters(self) -> None:
        """Count and HPA belong to one object, while the usage is the sum over all clusters."""
        prometheus = FakePrometheus(workload("web"))
        why = {workload("web").id: SEVERAL_OBJECTS}
        faults = (f"1 workload held, Deployment shop/web among them: {SEVERAL_OBJECTS}", "HPA shop/web: no series")
        prometheus.inventory = lambda at: Inventory(at, prometheus.workloads, faults, why)  # type: ignore[method-assign]
        inventory = live_source(prometheus, cluster(deployments=[deployment(replicas=30)]), Clock()).inventory(NOW)
        assert inventory.partly == why
        assert inventory.faults == faults[:1]

    def test_still_lists_while_prometheus_is_away_and_holds_what_only_prometheus_tells(self) -> None:
        prometheus = FakePrometheus(workload("web"), workload("batch", "ReplicaSet"))
        source = live_source(prometheus, cluster(deployments=[deployment(replicas=30)]), Clock())
        source.inventory(NOW)
        prometheus.down = SourceUnavailable("no connection in time")
        inventory = source.inventory(NOW)
        assert [(workload.id.name, workload.replicas) for workload in inventory.workloads] == [
            ("web", 30),
            ("batch", 3),
        ]
        assert dict(inventory.partly) == {workload("batch", "ReplicaSet").id: "not listed: no connection in time"}
        assert inventory.faults == ("no connection in time",)

    def test_of_another_cluster_is_not_believed(self) -> None:
        """Deployments that Prometheus lists are not gone because a kubeconfig names the wrong cluster."""
        prometheus = FakePrometheus(*(workload(f"web-{number}") for number in range(3)))
        source = live_source(prometheus, cluster(deployments=[deployment("elsewhere", 9)]), Clock())
        inventory = source.inventory(NOW)
        assert [workload.id.name for workload in inventory.workloads] == ["web-0", "web-1", "web-2"]
        assert (inventory.whole, source.live_kinds(NOW)) == ({"StatefulSet"}, {"StatefulSet"})
        assert inventory.faults[0].startswith("live facts: of 3 workloads of kind Deployment in Prometheus none is")

    def test_of_another_cluster_ends_no_workload_of_a_kind_with_few(self) -> None:
        several = [workload(f"web-{number}") for number in range(3)]
        elsewhere = cluster(deployments=[deployment("elsewhere")])
        source = live_source(FakePrometheus(*several, workload("db", "StatefulSet")), elsewhere, Clock())
        inventory = source.inventory(NOW)
        assert [workload.id.name for workload in inventory.workloads] == ["web-0", "web-1", "web-2", "db"]
        assert inventory.whole == frozenset()

    def test_is_that_of_prometheus_once_the_api_server_is_away_for_long(self) -> None:
        clock = Clock()
        live = cluster(clock, deployments=[deployment(replicas=30)])
        source = live_source(FakePrometheus(workload("web")), live, clock, tells=True)
        clock.now += AGED_SECONDS + 1
        for watch in live.watches:
            played(watch, UnreachableError("refused"))
        inventory = source.inventory(NOW)
        assert (inventory.workloads[0].replicas, inventory.whole) == (3, frozenset())
        assert "live facts: /apis/apps/v1/deployments is not known: refused" in inventory.faults

    def test_of_the_past_is_that_of_prometheus(self) -> None:
        source = live_source(
            FakePrometheus(workload("web")), cluster(deployments=[deployment(replicas=30)]), Clock(), tells=True
        )
        inventory = source.inventory(NOW - timedelta(hours=9))
        assert (inventory.workloads[0].replicas, inventory.faults) == (3, ())

    def test_without_the_right_to_hpas_is_that_of_prometheus(self) -> None:
        live = LiveCluster(clock=Clock())
        for watch in live.watches[1:]:
            played(watch, page(*([deployment(replicas=30)] if watch.path.endswith("deployments") else [])))
        played(live.hpas, ApiError("forbidden", 403))
        source = live_source(FakePrometheus(workload("web")), live, Clock())
        assert source.inventory(NOW).workloads[0].replicas == 3

    def test_says_which_source_told_a_fact_and_which_labels_are_a_workloads(self) -> None:
        live = cluster(
            deployments=[deployment(version=7)],
            horizontalpodautoscalers=[hpa(version=9)],
            pods=[pod("a", ("ReplicaSet", "web-1"))],
            replicasets=[{"metadata": metadata("web-1", owner=("Deployment", "web"))}],
        )
        source = live_source(FakePrometheus(), live, Clock())
        source.inventory(NOW)
        version, usage = "Deployment version 7", "usage and other histories are those of Prometheus."
        assert source.origins(WEB) == [
            f"Count, HPA web (version 9) and requests of its pods (1) are those of the API server ({version}); {usage}",
            "Its pods carry app=web; series are its own by namespace=shop and pod, through the owners of its pods.",
            "It has no labels by which selectors of policies could find it.",
        ]
        (other,) = source.origins(WorkloadId("shop", "DaemonSet", "logs"))
        assert "kube-state-metrics" in other
