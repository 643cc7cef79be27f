"""Every default query against small worlds in the real Prometheus: who is joined to whom, and what is left out.

All worlds lie in one server, told apart by the label `cluster`, whose odd values try the escaping as well.
"""

from __future__ import annotations

import re
from contextlib import closing
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import TYPE_CHECKING

import pytest

from forecaster.domain.signal import CPU, MEMORY, OF_CONTAINER, PODS, REQUESTS, Signal
from forecaster.domain.workload import Autoscaler, Resources, Target, TargetType, WorkloadId
from forecaster.sources.container_queries import OOM_KILLS, SPAN, STARTS, THROTTLED
from forecaster.sources.cron_jobs import RUN_CPU, RUN_MEMORY, run_queries
from forecaster.sources.presets import MODEL_SERVERS, PRESETS
from forecaster.sources.prometheus import PrometheusSource
from forecaster.sources.queries import Queries
from forecaster.sources.settings import PrometheusSettings
from forecaster.sources.wire import at_instant
from tests.support.exposition import World
from tests.support.prometheus import RealPrometheus, fill

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from forecaster.domain.workload import Workload
    from tests.support.prometheus import Binaries

pytestmark = pytest.mark.prometheus

START = datetime(2024, 5, 6, 12, 0, 7, tzinfo=UTC)
AT = datetime(2024, 5, 6, 12, 14, tzinfo=UTC)
WEB = WorkloadId("shop", "Deployment", "web")

WORLDS: dict[str, Callable[[World], None]] = {}


def world(build: Callable[[World], None]) -> Callable[[World], None]:
    WORLDS[build.__name__] = build
    return build


class QueriedWorld:
    """The source, which queries one world."""

    def __init__(self, url: str, name: str, **queries: Any) -> None:
        about = queries.pop("about", None)
        chosen = Queries(labels={"cluster": name}, **queries)
        chosen = chosen.about(*about) if about else chosen
        self._source = PrometheusSource(PrometheusSettings(url=url), chosen)

    def latest(self, signal: Signal) -> dict[WorkloadId, float]:
        block = self._source.latest(signal, AT)
        assert not block.warnings
        return dict(zip(block.ids, block.values[:, 0].tolist(), strict=True))

    def workloads(self) -> dict[WorkloadId, Workload]:
        inventory = self._source.inventory(AT)
        assert not inventory.faults
        return {workload.id: workload for workload in inventory.workloads}

    def faults(self) -> tuple[str, ...]:
        return self._source.inventory(AT).faults

    def close(self) -> None:
        self._source.close()


@pytest.fixture(scope="module")
def server(prometheus_binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealPrometheus]:
    data = tmp_path_factory.mktemp("worlds") / "data"
    spans = []
    for name, build in WORLDS.items():
        cluster = World(name, START.timestamp())
        build(cluster)
        spans += cluster.spans
    fill(data, spans, prometheus_binaries)
    with RealPrometheus(prometheus_binaries, data) as running:
        yield running


@pytest.fixture
def queried(server: RealPrometheus) -> Iterator[Callable[..., QueriedWorld]]:
    opened: list[QueriedWorld] = []

    def ask(build: Callable[[World], None], **queries: Any) -> QueriedWorld:
        opened.append(QueriedWorld(server.url, build.__name__, **queries))
        return opened[-1]

    yield ask
    for source in opened:
        source.close()


@world
def every_kind(cluster: World) -> None:
    cluster.deployed("shop", "web", pods=2, cores=0.5)
    cluster.gauge("kube_statefulset_replicas", 1, namespace="shop", statefulset="db")
    cluster.gauge("kube_statefulset_status_replicas_ready", 1, namespace="shop", statefulset="db")
    cluster.pod("shop", "db-0", "StatefulSet", "db", cores=2)
    cluster.replicaset("shop", "canary-7f", "Rollout", "canary")
    cluster.gauge("kube_replicaset_spec_replicas", 3, namespace="shop", replicaset="canary-7f")
    cluster.gauge("kube_replicaset_status_ready_replicas", 2, namespace="shop", replicaset="canary-7f")
    cluster.pod("shop", "canary-7f-a", "ReplicaSet", "canary-7f", cores=3)
    for none, name in (("<none>", "old"), ("", "new")):
        cluster.replicaset("shop", f"bare-{name}", none, none)
        cluster.gauge("kube_replicaset_spec_replicas", 1, namespace="shop", replicaset=f"bare-{name}")
        cluster.gauge("kube_replicaset_status_ready_replicas", 1, namespace="shop", replicaset=f"bare-{name}")
        cluster.pod("shop", f"bare-{name}-a", "ReplicaSet", f"bare-{name}", cores=4)
    cluster.pod("shop", "agent-x", "DaemonSet", "agent", cores=5)
    cluster.gauge("kube_daemonset_status_desired_number_scheduled", 1, namespace="shop", daemonset="agent")
    cluster.gauge("kube_daemonset_status_number_ready", 1, namespace="shop", daemonset="agent")
    cluster.pod("shop", "report-1", "Job", "report", cores=6)
    cluster.pod("shop", "stray", "<none>", "<none>", cores=7)


EVERY_KIND = {
    WEB: 1.0,
    WorkloadId("shop", "StatefulSet", "db"): 2.0,
    WorkloadId("shop", "Rollout", "canary"): 3.0,
    WorkloadId("shop", "ReplicaSet", "bare-old"): 4.0,
    WorkloadId("shop", "ReplicaSet", "bare-new"): 4.0,
}


def test_pods_are_joined_to_whoever_controls_them(queried: Callable[..., QueriedWorld]) -> None:
    """Jobs, DaemonSets, pods of nobody, pause containers and cgroup aggregates are all left out."""
    assert queried(every_kind).latest(CPU) == pytest.approx(EVERY_KIND)


def test_memory_is_joined_like_cpu(queried: Callable[..., QueriedWorld]) -> None:
    # Two pods of 500 bytes: the builders give every container 1000 bytes per core.
    assert queried(every_kind).latest(MEMORY) == {id_: 1000 * cores for id_, cores in EVERY_KIND.items()}


def test_the_kinds_that_count_are_configurable(queried: Callable[..., QueriedWorld]) -> None:
    daemons = queried(every_kind, kinds=("DaemonSet",))
    agent = WorkloadId("shop", "DaemonSet", "agent")
    assert daemons.latest(CPU)[agent] == pytest.approx(5.0)
    assert daemons.workloads().keys() == {agent}


def test_replicas_come_from_the_workload_itself_or_from_its_replicasets(queried: Callable[..., QueriedWorld]) -> None:
    counted = {
        id_: (workload.replicas, workload.ready_replicas) for id_, workload in queried(every_kind).workloads().items()
    }
    assert counted == {
        WEB: (2, 2),
        WorkloadId("shop", "StatefulSet", "db"): (1, 1),
        WorkloadId("shop", "Rollout", "canary"): (3, 2),
        WorkloadId("shop", "ReplicaSet", "bare-old"): (1, 1),
        WorkloadId("shop", "ReplicaSet", "bare-new"): (1, 1),
    }


def test_ready_pods_are_a_signal_too(queried: Callable[..., QueriedWorld]) -> None:
    assert queried(every_kind).latest(PODS)[WorkloadId("shop", "Rollout", "canary")] == 2


@world
def scraped_twice(cluster: World) -> None:
    cluster.deployed("shop", "web", cores=2)
    cluster.container("shop", "web-5d8f-0", "app", cores=2, job="second-kubelet-job")
    cluster.owner("shop", "web-5d8f-0", "ReplicaSet", "web-5d8f", instance="second-kube-state-metrics")


def test_two_scrapes_of_the_same_container_count_once(queried: Callable[..., QueriedWorld]) -> None:
    assert queried(scraped_twice).latest(CPU) == pytest.approx({WEB: 2.0})


@world
def restarted_container(cluster: World) -> None:
    cluster.deployed("shop", "web", cores=1)
    cluster.counter(
        "container_cpu_usage_seconds_total",
        0.5,
        namespace="shop",
        pod="web-5d8f-0",
        container="app",
        id="/kubepods/web-5d8f-0/app-after-restart",
    )


def test_a_container_before_and_after_its_restart_adds_up(queried: Callable[..., QueriedWorld]) -> None:
    assert queried(restarted_container).latest(CPU) == pytest.approx({WEB: 1.5})


@world
def contradicting_owners(cluster: World) -> None:
    """A pod recreated under its old name by another controller, both within the look-back."""
    cluster.deployed("shop", "web", cores=1)
    cluster.owner("shop", "web-5d8f-0", "StatefulSet", "web", uid="another")


def test_a_pod_with_two_owners_does_not_fail_the_query_and_counts_once(queried: Callable[..., QueriedWorld]) -> None:
    by_workload = queried(contradicting_owners).latest(CPU)
    assert sum(by_workload.values()) == pytest.approx(1.0)


EXPORTED = re.compile(r"\b(?:kube|container|forecaster|nginx)[a-z_:0-9]+(?=\{)")
OWN_LABELS = ("workload", "workload_kind", "job_name", "replicaset", "what")


@world
def exported_by_tenants(cluster: World) -> None:
    """Series of all our names, which pods of a tenant export with labels that only our queries make."""
    cluster.deployed("shop", "web", pods=2)
    who = {"deployment": "a", "statefulset": "a", "daemonset": "a", "replicaset": "a", "pod": "a", "container": "a"}
    for metric in {name for queries in both_presets() for text in texts_of(queries) for name in EXPORTED.findall(text)}:
        for kind in ("ReplicaSet", "Deployment", "Job", "CronJob"):
            owned = {"owner_kind": kind, "owner_name": "a", "owner_is_controller": "true", "ingress": "a"}
            for label, value in product(OWN_LABELS, "ab"):
                cluster.gauge(metric, 1, **(owned | who | {label: value, "namespace": "tenant"}))
    cluster.gauge("kube_pod_owner", 1, namespace="tenant", exported_pod="a")
    cluster.gauge("kube_state_metrics_build_info", 1, namespace="tenant", version="v2.4.0")
    cluster.gauge("kube_state_metrics_build_info", 1, namespace="monitoring", version="v2.19.0")
    for namespace in ("tenant", "ingress"):  # one controller of each, for the Service of the same name
        names = {"exported_namespace": "shop", "exported_service": "web", "service": "controller", "ingress": "web"}
        cluster.counter("nginx_ingress_controller_requests", 2.0, namespace=namespace, **names)


def both_presets() -> tuple[Queries, ...]:
    return tuple(Queries(preset=preset, labels={"cluster": "exported_by_tenants"}) for preset in ("raw", "recorded"))


def texts_of(queries: Queries) -> list[str]:
    """Every query that is asked anywhere."""
    runs, rendered = run_queries(queries), queries.rendered
    signals = [queries.signal(signal, containers=["app"]) for signal in OF_CONTAINER.values()]
    owned = [rendered(query) for query in (RUN_CPU, RUN_MEMORY, *(server.query for server in MODEL_SERVERS.values()))]
    spans = [
        rendered(query).replace(SPAN, span) for query, span in ((STARTS, "300"), (OOM_KILLS, "5m"), (THROTTLED, "5m"))
    ]
    facts = [*queries.container_facts().values(), *runs.container_facts().values(), queries.hpa_count()]
    usage = [queries.container_usage(signal, timedelta()) for signal in (CPU, MEMORY)]
    presets = [queries.requests_of(preset) for preset in PRESETS]
    return [*queries.all_queries().values(), *signals, *owned, *spans, *facts, *usage, *presets, queries.detection()]


def test_series_that_a_tenant_exports_under_our_names_fail_no_query(server: RealPrometheus) -> None:
    for queries in both_presets():
        with closing(PrometheusSource(PrometheusSettings(url=server.url, retries=0), queries)) as source:
            for text in texts_of(queries):
                source.rows(at_instant("hostile", text, AT))


def test_what_a_tenant_exports_tells_nothing_of_others(queried: Callable[..., QueriedWorld]) -> None:
    source = queried(exported_by_tenants, requests_from="nginx-ingress")
    assert {id_: cores for id_, cores in source.latest(CPU).items() if id_.namespace == "shop"} == {
        WEB: pytest.approx(2.0)
    }
    assert source.latest(REQUESTS)[WEB] == pytest.approx(4.0)
    assert not [fault for fault in source.faults() if "honor_labels" in fault]
    assert not [fault for fault in source.faults() if "fractional" in fault]


@world
def requests_and_limits(cluster: World) -> None:
    cluster.deployed("shop", "web", pods=2)
    cluster.deployed("shop", "silent", pods=1)
    for pod in ("web-5d8f-0", "web-5d8f-1", "silent-5d8f-0"):
        cluster.container("shop", pod, "sidecar")
    _states(cluster, "web-5d8f-0", "app", request=1.0, limit=2.0)
    _states(cluster, "web-5d8f-0", "sidecar", request=0.5)
    _states(cluster, "web-5d8f-1", "app", request=2.0, limit=2.0)
    _states(cluster, "web-5d8f-1", "sidecar", request=0.5)
    _states(cluster, "silent-5d8f-0", "app", request=1.0)
    # Evicted long ago with an older template: it is not part of the workload any more.
    who = {"namespace": "shop", "pod": "web-5d8f-gone"}
    cluster.owner("shop", "web-5d8f-gone", "ReplicaSet", "web-5d8f")
    cluster.gauge("kube_pod_container_info", 1, container="app", **who)
    cluster.gauge("kube_pod_status_phase", 1, phase="Failed", **who)
    _states(cluster, "web-5d8f-gone", "app", request=64.0)


def _states(cluster: World, pod: str, container: str, *, request: float, limit: float | None = None) -> None:
    labels = {"namespace": "shop", "pod": pod, "container": container, "resource": "cpu", "unit": "core"}
    cluster.gauge("kube_pod_container_resource_requests", request, **labels)
    if limit is not None:
        cluster.gauge("kube_pod_container_resource_limits", limit, **labels)


def test_requests_are_the_mean_of_live_pods_and_unknown_where_a_container_is_silent(
    queried: Callable[..., QueriedWorld],
) -> None:
    workloads = queried(requests_and_limits).workloads()
    assert workloads[WEB].resources == Resources(cpu_request=2.0)  # (1 + 0.5 + 2 + 0.5) / 2; no limit of the sidecars
    assert workloads[WorkloadId("shop", "Deployment", "silent")].resources == Resources()


@world
def native_sidecars(cluster: World) -> None:
    """A restartable init container of 200m beside an app of 300m, and one that ends before the app starts."""
    cluster.deployed("shop", "web", pods=1)
    pod = {"namespace": "shop", "pod": "web-5d8f-0"}
    _states(cluster, "web-5d8f-0", "app", request=0.3)
    for container, policy, request in (("mesh", "Always", 0.2), ("setup", "", 4.0)):
        cluster.gauge("kube_pod_init_container_info", 1, container=container, restart_policy=policy, **pod)
        cluster.gauge("kube_pod_init_container_resource_requests", request, container=container, resource="cpu", **pod)


def test_native_sidecars_count_into_requests_as_the_hpa_counts_them(queried: Callable[..., QueriedWorld]) -> None:
    """The request is 500m and not 300m: at twice the target of 60 % that is 6 pods of 3 and not 9."""
    assert queried(native_sidecars).workloads()[WEB].resources == Resources(cpu_request=0.5)


@world
def autoscaled(cluster: World) -> None:
    cluster.deployed("shop", "web", pods=1)
    hpa = {"namespace": "shop", "horizontalpodautoscaler": "web"}
    cluster.gauge(
        "kube_horizontalpodautoscaler_info", 1, scaletargetref_kind="Deployment", scaletargetref_name="web", **hpa
    )
    cluster.gauge("kube_horizontalpodautoscaler_spec_min_replicas", 2, **hpa)
    cluster.gauge("kube_horizontalpodautoscaler_spec_max_replicas", 20, **hpa)
    for metric, kind, value in (("cpu", "utilization", 70), ("queue", "average", 30), ("cpu", "average", 0.5)):
        cluster.gauge(
            "kube_horizontalpodautoscaler_spec_target_metric",
            value,
            metric_name=metric,
            metric_target_type=kind,
            **hpa,
        )


def test_an_hpa_is_found_with_its_bounds_and_its_targets_as_ratios_and_amounts(
    queried: Callable[..., QueriedWorld],
) -> None:
    assert queried(autoscaled).workloads()[WEB].autoscaler == Autoscaler(
        "web",
        2,
        20,
        (
            Target("cpu", TargetType.AVERAGE_VALUE, 0.5),
            Target("cpu", TargetType.UTILIZATION, 0.7),
            Target("queue", TargetType.AVERAGE_VALUE, 30.0),
        ),
    )


@world
def groups(cluster: World) -> None:
    """A LeaderWorkerSet with two groups: its leaders, the workers of the first, and an HPA of the groups."""
    for pod in ("llm-0", "llm-1"):
        cluster.pod("shop", pod, "StatefulSet", "llm", cores=2)
    cluster.pod("shop", "llm-0-1", "StatefulSet", "llm-0", cores=6)
    hpa = {"namespace": "shop", "horizontalpodautoscaler": "llm"}
    scales = {"scaletargetref_kind": "LeaderWorkerSet", "scaletargetref_name": "llm"}
    for name, pods in (("llm", 2), ("llm-0", 1)):
        cluster.gauge("kube_statefulset_replicas", pods, namespace="shop", statefulset=name)
        cluster.gauge("kube_statefulset_status_replicas_ready", pods, namespace="shop", statefulset=name)
    cluster.gauge("kube_horizontalpodautoscaler_info", 1, **scales, **hpa)
    cluster.gauge("kube_horizontalpodautoscaler_spec_max_replicas", 20, **hpa)
    target = {"metric_name": "cpu", "metric_target_type": "utilization"}
    cluster.gauge("kube_horizontalpodautoscaler_spec_target_metric", 70, **target, **hpa)


def test_an_hpa_of_groups_of_pods_is_that_of_their_leaders_whose_pods_alone_it_measures(
    queried: Callable[..., QueriedWorld],
) -> None:
    llm = WorkloadId("shop", "StatefulSet", "llm")
    scaler = queried(groups).workloads()[llm].autoscaler
    assert scaler == Autoscaler("llm", 1, 20, (Target("cpu", TargetType.UTILIZATION, 0.7),))
    assert queried(groups).latest(CPU)[llm] == pytest.approx(4.0)


@world
def scaled_by_container(cluster: World) -> None:
    """A pod with a proxy, whose HPA looks at the app alone (ContainerResource)."""
    cluster.deployed("shop", "web", pods=1)
    hpa = {"namespace": "shop", "horizontalpodautoscaler": "web"}
    scales = {"scaletargetref_kind": "Deployment", "scaletargetref_name": "web"}
    cluster.gauge("kube_horizontalpodautoscaler_info", 1, **scales, **hpa)
    cluster.gauge("kube_horizontalpodautoscaler_spec_max_replicas", 20, **hpa)
    target = {"metric_name": "cpu", "metric_target_type": "utilization", "container": "app"}
    cluster.gauge("kube_horizontalpodautoscaler_spec_target_metric", 70, **target, **hpa)


def test_a_target_of_one_container_is_read_as_such(queried: Callable[..., QueriedWorld]) -> None:
    scaler = queried(scaled_by_container).workloads()[WEB].autoscaler
    assert scaler == Autoscaler("web", 1, 20, (Target("cpu", TargetType.UTILIZATION, 0.7, "app"),))


@world
def odd_names(cluster: World) -> None:
    cluster.deployed("team-a", "web", cores=1)
    cluster.deployed("team-b", "web", cores=2)
    cluster.deployed("kube-system", "dns", cores=3)


def test_namespaces_narrow_every_query(queried: Callable[..., QueriedWorld]) -> None:
    narrowed = queried(odd_names, namespaces="team-.")
    assert {id_.namespace for id_ in narrowed.latest(CPU)} == {"team-a", "team-b"}
    assert {id_.namespace for id_ in narrowed.workloads()} == {"team-a", "team-b"}


def _quote_backslash(cluster: World) -> None:
    cluster.deployed("shop", "web", cores=1)


ODD = 'we"ird\\{}, $window\nß'
_quote_backslash.__name__ = ODD
WORLDS[ODD] = _quote_backslash


def test_odd_characters_in_a_label_select_exactly_that_label(queried: Callable[..., QueriedWorld]) -> None:
    assert queried(_quote_backslash).latest(CPU) == pytest.approx({WEB: 1.0})


def test_history_is_what_latest_was_at_each_time(server: RealPrometheus) -> None:
    source = PrometheusSource(PrometheusSettings(url=server.url), Queries(labels={"cluster": "every_kind"}))
    (block,) = source.history(CPU, AT - timedelta(minutes=5), AT, timedelta(minutes=1))
    source.close()
    assert block.values.shape == (len(EVERY_KIND), 6)
    assert dict(zip(block.ids, block.values[:, 0].tolist(), strict=True)) == pytest.approx(EVERY_KIND)


@world
def meshed(cluster: World) -> None:
    """A workload behind every mesh and ingress controller, each with a rate of its own."""
    cluster.deployed("shop", "web", pods=2)
    cluster.deployed("other", "web", pods=1)
    istio = {"destination_workload": "web", "destination_workload_namespace": "shop"}
    cluster.counter("istio_requests_total", 1, reporter="destination", pod="web-5d8f-0", **istio)
    cluster.counter("istio_requests_total", 9, reporter="source", pod="caller", **istio)
    for direction, rate in (("inbound", 2), ("outbound", 9)):
        cluster.counter("request_total", rate, direction=direction, namespace="shop", pod="web-5d8f-0")
    hubble = {"destination_workload": "web", "destination_namespace": "shop"}
    cluster.counter("hubble_http_requests_total", 3, reporter="server", **hubble)
    cluster.counter("hubble_http_requests_total", 9, reporter="client", **hubble)
    nginx = {"namespace": "ingress", "service": "controller", "ingress": "front"}
    cluster.counter("nginx_ingress_controller_requests", 4, exported_namespace="shop", exported_service="web", **nginx)
    cluster.counter("traefik_service_requests_total", 5, service="shop-web-80@kubernetes")
    cluster.counter("envoy_cluster_upstream_rq_total", 6, envoy_cluster_name="httproute/shop/web/rule/0")
    cluster.counter("envoy_cluster_upstream_rq_total", 7, envoy_cluster_name="shop_web_80")
    cluster.counter("haproxy_backend_http_requests_total", 8, proxy="shop_web_http")
    cluster.counter("kong_http_requests_total", 9, service="shop.web.80")
    cluster.counter("http_server_request_duration_seconds_count", 10, namespace="shop", pod="web-5d8f-1")
    cluster.counter("http_requests_total", 11, namespace="shop", pod="web-5d8f-1")


@pytest.mark.parametrize(
    ("preset", "rate"),
    [
        ("istio", 1),
        ("linkerd", 2),
        ("hubble", 3),
        ("nginx-ingress", 4),
        ("traefik", 5),
        ("envoy-gateway", 6),
        ("contour", 7),
        ("haproxy-ingress", 8),
        ("kong", 9),
        ("opentelemetry", 10),
        ("http-requests-total", 11),
    ],
)
def test_every_origin_of_request_rates_is_mapped_to_its_workload(
    queried: Callable[..., QueriedWorld], preset: str, rate: float
) -> None:
    assert queried(meshed, requests_from=preset).latest(REQUESTS) == pytest.approx({WEB: rate})


@world
def with_linkerd(cluster: World) -> None:
    cluster.deployed("shop", "web")
    cluster.counter("request_total", 2, direction="inbound", namespace="shop", pod="web-5d8f-0")


def test_the_origin_of_request_rates_is_found_out(queried: Callable[..., QueriedWorld]) -> None:
    assert queried(with_linkerd).latest(REQUESTS) == pytest.approx({WEB: 2.0})


def test_without_any_origin_of_request_rates_there_are_none(queried: Callable[..., QueriedWorld]) -> None:
    assert queried(odd_names).latest(REQUESTS) == {}


@world
def two_autoscalers(cluster: World) -> None:
    cluster.deployed("shop", "web")
    for name in ("web", "web-copy"):
        labels = {"namespace": "shop", "horizontalpodautoscaler": name}
        scaled = {"scaletargetref_kind": "Deployment", "scaletargetref_name": "web"}
        cluster.gauge("kube_horizontalpodautoscaler_info", 1, **labels, **scaled)
        cluster.gauge("kube_horizontalpodautoscaler_spec_max_replicas", 9, **labels)


def test_two_hpas_of_one_workload_are_named_and_neither_is_believed(queried: Callable[..., QueriedWorld]) -> None:
    (fault,) = queried(two_autoscalers).faults()
    assert "shop/web: scaled by more than one HPA (web, web-copy)" in fault


@pytest.mark.parametrize("id_", EVERY_KIND, ids=str)
def test_one_workload_alone_is_what_it_is_among_all(queried: Callable[..., QueriedWorld], id_: WorkloadId) -> None:
    alone, every = queried(every_kind, about=(id_.namespace, id_.name)), queried(every_kind)
    assert alone.latest(CPU) == {id_: EVERY_KIND[id_]}
    assert alone.workloads() == {id_: every.workloads()[id_]}
    assert alone.latest(PODS) == {id_: every.latest(PODS)[id_]}


def test_a_pattern_of_names_is_a_part_of_the_whole(queried: Callable[..., QueriedWorld]) -> None:
    assert {id_.name for id_ in queried(every_kind, about=("sh*", "bare-*")).workloads()} == {"bare-old", "bare-new"}
    assert queried(every_kind, about=("elsewhere", "*")).workloads() == {}
