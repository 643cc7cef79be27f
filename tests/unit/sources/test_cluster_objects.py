from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from forecaster.domain.workload import Resources, Workload, WorkloadId
from forecaster.errors import SourceRefused
from forecaster.sources.cluster_objects import read_cluster
from forecaster.vertical.admission.context import Rollout
from forecaster.vertical.admission.proof import prove
from forecaster.vertical.cluster_rules.server import Server
from tests.support import objects as given
from tests.support.cluster_rules import block

if TYPE_CHECKING:
    from pathlib import Path

    from forecaster.vertical.admission.cluster import Cluster

WEB = WorkloadId("shop", "Deployment", "web")
APP = given.container("app", {"cpu": "500m", "memory": "1Gi"})


@pytest.fixture
def read(tmp_path: Path):  # noqa: ANN201  a function of any objects
    def read_objects(*items: given.Wire) -> Cluster:
        return read_cluster([given.written(tmp_path / "cluster.json", *items)])

    return read_objects


def test_a_pod_is_its_deployment_s_through_the_replica_set(read) -> None:  # noqa: ANN001
    cluster = read(
        given.replica_set("shop", "web"),
        given.pod("shop", "web-1", "n1", APP, owner=("ReplicaSet", "web-7d9f")),
        given.node("n1"),
    )
    assert [(pod.workload, pod.requests) for pod in cluster.residents] == [
        ("shop/Deployment/web", {"cpu": 500, "memory": 2**30})
    ]
    assert WEB in cluster.running


def test_a_template_keeps_every_container_and_its_priority(read) -> None:  # noqa: ANN001
    web = given.deployment("shop", "web", APP, given.container("proxy", {"cpu": "100m"}))
    web["spec"]["template"]["spec"]["priorityClassName"] = "important"
    cluster = read(web, {"kind": "PriorityClass", "metadata": given.meta("important"), "value": 1000})
    assert [container.name for container in cluster.templates[WEB].containers] == ["app", "proxy"]
    assert cluster.templates[WEB].priority == 1000


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        ({}, Rollout(10, 3, 2)),
        ({"maxSurge": 1, "maxUnavailable": 0}, Rollout(10, 1, 0)),
        ({"maxSurge": "0%", "maxUnavailable": "5%"}, Rollout(10, 0, 1)),
    ],
    ids=["a quarter each, up and down", "absolute", "never nothing at all"],
)
def test_shares_of_a_rollout_are_rounded_as_the_controller_does(read, strategy, expected) -> None:  # noqa: ANN001
    assert read(given.deployment("shop", "web", APP, replicas=10, **strategy)).rollouts[WEB] == expected


def test_a_workload_that_an_operator_makes_says_from_what(read) -> None:  # noqa: ANN001
    made = given.deployment("shop", "web", APP, replicas=10)
    made["metadata"]["ownerReferences"] = [{"kind": "Shop", "name": "north", "controller": True}]
    assert read(made).rollouts[WEB].made_by == "Shop north"


def test_the_surroundings_of_a_workload_are_its_namespace_s(read) -> None:  # noqa: ANN001
    cluster = read(
        given.deployment("shop", "web", APP),
        given.limit_range("shop", max={"cpu": "2"}),
        given.quota("data", {"pods": "10"}, {"pods": "1"}),
        given.node("n1"),
    )
    context = cluster.context_of(Workload(WEB, 3, 3, Resources()), 5)
    assert context.rollout.replicas == 5
    assert context.limit_ranges is not None
    assert context.limit_ranges[0].items[0].max == {"cpu": 2000}
    assert context.quotas == ()


def test_the_server_is_at_least_as_new_as_its_newest_kubelet(read) -> None:  # noqa: ANN001
    assert read(given.node("n1")).server == Server(1, 36)


def test_an_object_that_cannot_be_read_is_named_and_the_others_go_on(read) -> None:  # noqa: ANN001
    broken = given.node("n2", cpu="four")
    cluster = read(given.node("n1"), broken)
    assert [node.name for node in cluster.nodes or ()] == ["n1"]
    assert cluster.faults == (
        (
            "node n2: not a node as the API writes it: 'four': quantities are a decimal number and a suffix, "
            "like 100m, 1.5, 2Gi or 1e3"
        ),
    )


def test_a_pod_that_cannot_be_read_is_named_once(read) -> None:  # noqa: ANN001
    (fault,) = read(given.pod("shop", "web-1", "n1", given.container("app", {"cpu": "many"}))).faults
    assert fault.startswith("pod shop/web-1: not a pod as the API writes it: 'many'")


def test_no_nodes_is_not_an_empty_cluster(read) -> None:  # noqa: ANN001
    assert read(given.deployment("shop", "web", APP)).nodes is None


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "values.json"
    path.write_text("[1, 2]")
    with pytest.raises(SourceRefused, match=r"values.json: expected a List of objects"):
        read_cluster([path])


def test_headroom_pods_are_in_nobody_s_way(read) -> None:  # noqa: ANN001
    """If these pods counted as demand, the headroom would shrink itself."""
    warm = given.pod("ops", "w", "n1", APP, owner=("ReplicaSet", "forecaster-headroom-web-5c"))
    cluster = read(given.node("n1"), warm, given.pod("shop", "web-1", "n1", APP))
    assert len(cluster.residents) == 2
    assert [pod.name for pod in cluster.lasting] == ["shop/web-1"]
    assert cluster.occupancy is not None
    assert cluster.occupancy.pods("n1") == 1


def test_the_template_of_a_cron_job_is_that_of_its_jobs(read) -> None:  # noqa: ANN001
    backup = WorkloadId("shop", "CronJob", "backup")
    cluster = read(given.cron_job("shop", "backup", APP))
    assert [container.name for container in cluster.templates[backup].containers] == ["app"]
    assert cluster.rollouts[backup] == Rollout(), "a quota has to hold a run beside all that is charged now"


def test_a_node_has_the_memory_that_the_kernel_counts_by(read) -> None:  # noqa: ANN001
    """Scores are shares of the capacity of 16 GiB, although pods may request only 12."""
    node = given.node("n1", memory="12Gi")
    node["status"]["capacity"] = {"cpu": "4", "memory": "16Gi"}
    cluster = read(given.deployment("shop", "web", APP), node)
    context = cluster.context_of(Workload(WEB, 3, 3, Resources()), 3)
    proof = prove({"app": block("500m", "2Gi")}, context)
    assert [finding.message for finding in proof.findings if finding.rule == "oom_score_adj"] == [
        "app: 938 → 875 on n1, less exposed when the node runs out of memory"
    ]
