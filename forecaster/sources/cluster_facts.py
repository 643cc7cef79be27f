"""A cluster from the series of kube-state-metrics: nodes, the pods on them, LimitRanges, quotas, containers.

Less exact than the objects themselves (`cluster_objects`): affinity, spread and the values of priority classes are not
exported, and labels of nodes only as configured (`--metric-labels-allowlist=nodes=[*]`). Eighteen queries, sent for an
admission proof or a node forecast, never for a decision.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime

from forecaster.domain.workload import WorkloadId
from forecaster.sources.blocks import workload_of
from forecaster.sources.container_queries import CONTAINER_FACTS
from forecaster.sources.facts import InstantRow
from forecaster.sources.prometheus import PrometheusSource
from forecaster.sources.promql import SELECTED, by_owner, sidecars, stated_by_pod
from forecaster.sources.wire import at_instant
from forecaster.vertical.admission.cluster import Cluster
from forecaster.vertical.admission.context import Rollout
from forecaster.vertical.cluster_rules.limit_range import LimitRange, LimitRangeItem
from forecaster.vertical.cluster_rules.node import POOL_LABELS, Node, Resident, scheduled
from forecaster.vertical.cluster_rules.placement import Taint
from forecaster.vertical.cluster_rules.pod import Container, Pod, Requirements
from forecaster.vertical.cluster_rules.quota import Quota
from forecaster.vertical.cluster_rules.resource_list import MILLI
from forecaster.vertical.cluster_rules.server import Server

Ask = Callable[[str, str], Sequence[InstantRow]]

_NODE = 'node!=""$labels'
_ANYWHERE = 'namespace!=""$labels'
"""Nodes are shared: pods of every namespace take room on them."""


QUERIES: dict[str, str] = {
    "node_allocatable": f"max by (node, resource) (kube_node_status_allocatable{{{_NODE}}})",
    "node_memory_capacity": f'max by (node) (kube_node_status_capacity{{resource="memory",{_NODE}}})',
    "node_labels": f"kube_node_labels{{{_NODE}}} == 1",
    "node_taints": f"group by (node, key, value, effect) (kube_node_spec_taint{{{_NODE}}} == 1)",
    "node_unschedulable": f"max by (node) (kube_node_spec_unschedulable{{{_NODE}}}) == 1",
    "node_versions": f"group by (kubelet_version) (kube_node_info{{{_NODE}}})",
    "pods_on_nodes": (
        f"group by (namespace, pod, node, created_by_kind, created_by_name) (kube_pod_info{{{_ANYWHERE}}})"
        f' and on (namespace, pod) (kube_pod_status_phase{{phase=~"Pending|Running",{_ANYWHERE}}} == 1)'
    ),
    "pod_node_requests": f"sum by (namespace, pod, resource) ({stated_by_pod('requests', _ANYWHERE, '.+')})",
    "pod_owners": "$owners",
    "pod_memory": (
        "sum by (namespace, pod) (max by (namespace, pod, container) "
        f'(container_memory_working_set_bytes{{container!="",container!="POD",{_ANYWHERE}}}))'
    ),
    "container_requests": CONTAINER_FACTS["container_requests"],
    "container_limits": CONTAINER_FACTS["container_limits"],
    "containers": by_owner(
        "group", f"group by (namespace, pod, container) (kube_pod_container_info{{{SELECTED}}})", "container"
    ),
    "sidecars": by_owner("group", sidecars(SELECTED), "container"),
    "limit_ranges": f"max by (namespace, limitrange, type, resource, constraint) (kube_limitrange{{{SELECTED}}})",
    "quotas": f"max by (namespace, resourcequota, resource, type) (kube_resourcequota{{{SELECTED}}})",
    "max_surge": (
        f"max by (namespace, deployment) (kube_deployment_spec_strategy_rollingupdate_max_surge{{{SELECTED}}})"
    ),
    "max_unavailable": (
        f"max by (namespace, deployment) (kube_deployment_spec_strategy_rollingupdate_max_unavailable{{{SELECTED}}})"
    ),
}
"""Queries by name; placeholders as in `promql`."""

_KNOWN_LABELS = {
    "label_" + "".join(sign if sign.isalnum() else "_" for sign in name): name
    for name in (
        *POOL_LABELS,
        "kubernetes.io/arch",
        "kubernetes.io/hostname",
        "kubernetes.io/os",
        "topology.kubernetes.io/region",
        "topology.kubernetes.io/zone",
    )
}
"""kube-state-metrics replaces characters that a Prometheus label cannot hold; the names of these labels can be
restored."""
_CONSTRAINTS = {
    "min": "min",
    "max": "max",
    "default": "default",
    "defaultRequest": "default_request",
    "maxLimitRequestRatio": "ratio",
}


def cluster_of(source: PrometheusSource, now: datetime) -> Cluster:
    """Read every fact about the cluster at an instant. Raises `SourceError`."""

    def ask(name: str, query: str) -> tuple[InstantRow, ...]:
        return source.rows(at_instant(name, query, now))

    return read_cluster(ask, source.queries.rendered)


def read_cluster(ask: Ask, rendered: Callable[[str], str]) -> Cluster:
    """Read every fact about the cluster. `ask` sends a named query, `rendered` fills in its placeholders.

    Facts without series stay unknown: missing nodes do not mean an empty cluster. Raises `SourceError`.
    """
    rows = {name: ask(name, rendered(template)) for name, template in QUERIES.items()}
    nodes = _nodes(rows)
    return Cluster(
        nodes=tuple(nodes) or None,
        residents=tuple(_residents(rows)) if nodes else (),
        limit_ranges=_limit_ranges(rows["limit_ranges"]) if nodes else None,
        quotas=_quotas(rows["quotas"]) if nodes else None,
        templates=_templates(rows),
        rollouts=_rollouts(rows),
        server=Server.latest(row.labels.get("kubelet_version", "") for row in rows["node_versions"]),
    )


def _nodes(rows: Mapping[str, Sequence[InstantRow]]) -> list[Node]:
    allocatable: dict[str, dict[str, int]] = defaultdict(dict)
    for row in rows["node_allocatable"]:
        allocatable[row.labels.get("node", "")][_resource(row.labels.get("resource", ""))] = _milli(row.value)
    taints: dict[str, list[Taint]] = defaultdict(list)
    for row in rows["node_taints"]:
        taint = Taint(row.labels.get("key", ""), row.labels.get("value", ""), row.labels.get("effect", ""))
        taints[row.labels.get("node", "")].append(taint)
    labels = {row.labels.get("node", ""): _labels(row.labels) for row in rows["node_labels"]}
    cordoned = {row.labels.get("node", "") for row in rows["node_unschedulable"]}
    memory = {row.labels.get("node", ""): round(row.value) for row in rows["node_memory_capacity"]}
    return [
        Node(name, amounts, labels.get(name, {}), tuple(taints[name]), name in cordoned, memory.get(name))
        for name, amounts in sorted(allocatable.items())
    ]


def _labels(exported: Mapping[str, str]) -> dict[str, str]:
    return {_KNOWN_LABELS[name]: value for name, value in exported.items() if name in _KNOWN_LABELS and value}


def _resource(exported: str) -> str:
    """`ephemeral_storage` is `ephemeral-storage`; huge pages come as `hugepages_2Mi`."""
    return exported.replace("_", "-") if exported.startswith(("ephemeral", "hugepages")) else exported


def _residents(rows: Mapping[str, Sequence[InstantRow]]) -> Iterable[Resident]:
    requests: dict[tuple[str, str], dict[str, int]] = defaultdict(dict)
    for row in rows["pod_node_requests"]:
        requests[_pod(row)][_resource(row.labels.get("resource", ""))] = _milli(row.value)
    owners = {_pod(row): id_ for row in rows["pod_owners"] if (id_ := workload_of(row.labels))}
    memory = {_pod(row): round(row.value) for row in rows["pod_memory"]}
    for row in rows["pods_on_nodes"]:
        key, node = _pod(row), row.labels.get("node", "")
        if node:
            created = WorkloadId(key[0], row.labels.get("created_by_kind", ""), row.labels.get("created_by_name", ""))
            owner = owners.get(key, created)
            yield Resident(
                node,
                scheduled(requests[key]),
                workload=owner.path,
                daemon=owner.kind == "DaemonSet",
                memory_bytes=memory.get(key),
                name="/".join(key),
            )


def _templates(rows: Mapping[str, Sequence[InstantRow]]) -> dict[WorkloadId, Pod]:
    """Containers and sidecars as they are stated; init containers that end before the load comes are left out."""
    requests, limits = _by_container(rows["container_requests"]), _by_container(rows["container_limits"])

    def stated(id_: WorkloadId, names: Iterable[str], *, sidecar: bool = False) -> tuple[Container, ...]:
        blocks = ((name, Requirements(requests[id_, name], limits[id_, name])) for name in sorted(names))
        return tuple(Container(name, block, sidecar) for name, block in blocks)

    names, sidecars = _names(rows["containers"]), _names(rows["sidecars"])
    return {id_: Pod(stated(id_, names[id_]), stated(id_, sidecars[id_], sidecar=True)) for id_ in list(names)}


def _names(rows: Sequence[InstantRow]) -> dict[WorkloadId, list[str]]:
    names: dict[WorkloadId, list[str]] = defaultdict(list)
    for row in rows:
        if id_ := workload_of(row.labels):
            names[id_].append(row.labels.get("container", ""))
    return names


def _by_container(rows: Sequence[InstantRow]) -> dict[tuple[WorkloadId, str], dict[str, int]]:
    amounts: dict[tuple[WorkloadId, str], dict[str, int]] = defaultdict(dict)
    for row in rows:
        if id_ := workload_of(row.labels):
            amounts[id_, row.labels.get("container", "")][_resource(row.labels.get("resource", ""))] = _milli(row.value)
    return amounts


def _limit_ranges(rows: Sequence[InstantRow]) -> dict[str, tuple[LimitRange, ...]]:
    bounds: dict[tuple[str, str, str], dict[str, dict[str, int]]] = defaultdict(lambda: defaultdict(dict))
    for row in rows:
        field = _CONSTRAINTS.get(row.labels.get("constraint", ""))
        if field:
            key = (row.labels.get("namespace", ""), row.labels.get("limitrange", ""), row.labels.get("type", ""))
            bounds[key][field][_resource(row.labels.get("resource", ""))] = _milli(row.value)
    ranges: dict[str, dict[str, list[LimitRangeItem]]] = defaultdict(lambda: defaultdict(list))
    for (namespace, name, kind), fields in sorted(bounds.items()):
        ranges[namespace][name].append(LimitRangeItem(kind, **fields))
    return {
        namespace: tuple(LimitRange(tuple(items), name) for name, items in objects.items())
        for namespace, objects in ranges.items()
    }


def _quotas(rows: Sequence[InstantRow]) -> dict[str, tuple[Quota, ...]]:
    """Scopes are not exported: every quota is taken to be about every pod, which is the side that refuses."""
    amounts: dict[tuple[str, str], dict[str, dict[str, int]]] = defaultdict(lambda: defaultdict(dict))
    for row in rows:
        key = (row.labels.get("namespace", ""), row.labels.get("resourcequota", ""))
        amounts[key][row.labels.get("type", "")][row.labels.get("resource", "")] = _milli(row.value)
    quotas: dict[str, list[Quota]] = defaultdict(list)
    for (namespace, name), kinds in sorted(amounts.items()):
        quotas[namespace].append(Quota(kinds["hard"], kinds["used"], name=name))
    return {namespace: tuple(objects) for namespace, objects in quotas.items()}


def _rollouts(rows: Mapping[str, Sequence[InstantRow]]) -> dict[WorkloadId, Rollout]:
    surge = {_deployment(row): round(row.value) for row in rows["max_surge"]}
    unavailable = {_deployment(row): round(row.value) for row in rows["max_unavailable"]}
    return {id_: Rollout(1, surge.get(id_, 0), unavailable.get(id_, 0)) for id_ in surge.keys() | unavailable.keys()}


def _deployment(row: InstantRow) -> WorkloadId:
    return WorkloadId(row.labels.get("namespace", ""), "Deployment", row.labels.get("deployment", ""))


def _pod(row: InstantRow) -> tuple[str, str]:
    return row.labels.get("namespace", ""), row.labels.get("pod", "")


def _milli(value: float) -> int:
    return round(value * MILLI)
