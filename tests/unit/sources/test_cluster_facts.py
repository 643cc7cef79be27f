from __future__ import annotations

from dataclasses import replace

from forecaster.domain.workload import WorkloadId
from forecaster.sources.cluster_facts import QUERIES, read_cluster
from forecaster.sources.facts import InstantRow
from forecaster.sources.queries import Queries
from forecaster.vertical.admission.proof import prove
from forecaster.vertical.cluster_rules.placement import Taint
from forecaster.vertical.cluster_rules.server import Server
from tests.support.builders import workload
from tests.support.cluster_rules import block, pod, quota

WEB = WorkloadId("shop", "Deployment", "web")
OWNER = {"namespace": "shop", "workload_kind": "Deployment", "workload": "web"}
POD = {"namespace": "shop", "pod": "web-1"}

ROWS: dict[str, list[InstantRow]] = {
    "node_allocatable": [
        InstantRow({"node": "n1", "resource": "cpu"}, 3.92),
        InstantRow({"node": "n1", "resource": "memory"}, 2.0**34),
        InstantRow({"node": "n1", "resource": "pods"}, 110.0),
        InstantRow({"node": "n1", "resource": "ephemeral_storage"}, 1e11),
    ],
    "node_memory_capacity": [InstantRow({"node": "n1"}, 2.0**34 + 2**30)],
    "node_labels": [InstantRow({"node": "n1", "label_karpenter_sh_nodepool": "web", "label_team": "x"}, 1.0)],
    "node_taints": [InstantRow({"node": "n1", "key": "spot", "value": "", "effect": "NoSchedule"}, 1.0)],
    "node_versions": [InstantRow({"kubelet_version": "v1.35.2"}, 1.0)],
    "pods_on_nodes": [
        InstantRow({**POD, "node": "n1", "created_by_kind": "ReplicaSet", "created_by_name": "web-7d"}, 1.0)
    ],
    "pod_node_requests": [
        InstantRow({**POD, "resource": "cpu"}, 0.5),
        InstantRow({**POD, "resource": "memory"}, 2.0**30),
    ],
    "pod_owners": [InstantRow({**POD, **OWNER}, 1.0)],
    "pod_memory": [InstantRow(POD, 5e8)],
    "containers": [InstantRow({**OWNER, "container": "app"}, 1.0), InstantRow({**OWNER, "container": "idle"}, 1.0)],
    "container_requests": [InstantRow({**OWNER, "container": "app", "resource": "cpu"}, 0.5)],
    "container_limits": [InstantRow({**OWNER, "container": "app", "resource": "memory"}, 2.0**30)],
    "limit_ranges": [
        InstantRow(
            {"namespace": "shop", "limitrange": "l", "type": "Container", "resource": "cpu", "constraint": "max"}, 2.0
        )
    ],
    "quotas": [
        InstantRow({"namespace": "shop", "resourcequota": "q", "resource": "requests.cpu", "type": kind}, value)
        for kind, value in (("hard", 10.0), ("used", 4.5))
    ],
    "max_surge": [InstantRow({"namespace": "shop", "deployment": "web"}, 2.0)],
    "max_unavailable": [InstantRow({"namespace": "shop", "deployment": "web"}, 1.0)],
}


def answered(name: str, _query: str) -> list[InstantRow]:
    return ROWS.get(name, [])


def test_series_become_nodes_pods_and_the_namespace_s_rules() -> None:
    cluster = read_cluster(answered, Queries().rendered)
    (node,) = cluster.nodes or ()
    assert (node.allocatable["cpu"], node.allocatable["ephemeral-storage"]) == (3920, 10**14)
    assert (node.labels, node.taints) == ({"karpenter.sh/nodepool": "web"}, (Taint("spot"),))
    (pod,) = cluster.residents
    assert (pod.workload, pod.requests, pod.memory_bytes) == (
        "shop/Deployment/web",
        {"cpu": 500, "memory": 2**30},
        500_000_000,
    )
    assert [container.name for container in cluster.templates[WEB].containers] == ["app", "idle"]
    assert cluster.templates[WEB].containers[0].resources.limits == {"memory": 2**30 * 1000}
    assert (cluster.limit_ranges or {})["shop"][0].items[0].max == {"cpu": 2000}
    assert (cluster.quotas or {})["shop"][0].used == {"requests.cpu": 4500}
    assert (cluster.rollouts[WEB].surge, cluster.rollouts[WEB].unavailable) == (2, 1)
    assert cluster.server == Server(1, 35)


def test_without_kube_state_metrics_nothing_is_known() -> None:
    cluster = read_cluster(lambda _name, _query: [], Queries().rendered)
    assert (cluster.nodes, cluster.limit_ranges, cluster.quotas) == (None, None, None)


def test_every_query_is_filled_in() -> None:
    for template in QUERIES.values():
        assert "$" not in Queries(namespaces="shop").rendered(template).replace("$1", "")


def test_a_stateful_set_is_rolled_out_without_a_pod_more() -> None:
    """kube-state-metrics has the surge of Deployments only; at most 1.1 of the 1.2 cores of the quota are used."""
    state = workload("state", replicas=2, autoscaler=None)
    state = replace(state, id=state.id._replace(kind="StatefulSet"))
    quotas = {"shop": (quota({"requests.cpu": "1200m"}, {"requests.cpu": "1"}),)}
    known = replace(read_cluster(answered, Queries().rendered), quotas=quotas, templates={state.id: pod()})
    findings = prove({"app": block("600m", "1Gi")}, known.context_of(state, 2)).findings
    assert [str(finding) for finding in findings if finding.rule == "ResourceQuota"] == ["ResourceQuota: passes"]
