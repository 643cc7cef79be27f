"""Live facts from a real API server, through its restarts, with the rights that deploy/base gives."""

from __future__ import annotations

import re
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from forecaster.domain.workload import Target, TargetType, WorkloadId
from forecaster.kube.client import ApiClient
from forecaster.kube.config import client_config_source
from forecaster.sources.live import LiveCluster
from tests.support.control_plane.workloads import deployment, external_hpa
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.control_plane.deployed import Deployed


@contextmanager
def watched(kubeconfig: Path) -> Iterator[LiveCluster]:
    """Everything is listed, or refused."""
    client = ApiClient(client_config_source(kubeconfig), connections=8)
    cluster = LiveCluster()
    cluster.start(client)
    try:
        assert cluster.wait(60)
        yield cluster
    finally:
        cluster.stop(client)


def count(cluster: LiveCluster, id_: WorkloadId) -> int:
    present = cluster.present(id_)
    return present.replicas if present else -1


def scale(deployed: Deployed, namespace: str, replicas: int, name: str = "web") -> None:
    """As a person does it."""
    deployed.cluster.kubectl("scale", f"deployment/{name}", f"--replicas={replicas}", f"--namespace={namespace}")


def test_the_rights_of_the_deployment_are_enough_and_give_the_facts_at_once(deployed: Deployed, namespace: str) -> None:
    api, web = deployed.cluster.api, WorkloadId(namespace, "Deployment", "web")
    with watched(deployed.account("forecaster")) as cluster:
        assert [state.fault for state in cluster.states()] == [""] * 5
        api.create(deployment("web", 2), namespace)
        api.create(external_hpa("web", target="0.35"), namespace)
        wait_until(lambda: bool(cluster.scalers(web)) and cluster.pods_of(web) == 2, what="the pods and the HPA")
        (found,) = cluster.inventory(datetime.now(UTC), ["Deployment"], re.compile(namespace)).workloads
        assert (found.replicas, found.resources.cpu_request) == (2, 0.1)
        assert found.autoscaler is not None
        assert found.autoscaler.targets == (Target("forecaster_demand", TargetType.AVERAGE_VALUE, 0.35, signal="cpu"),)
        api.delete("HorizontalPodAutoscaler", "web", namespace)
        wait_until(lambda: cluster.scalers(web) == [], what="the end of the HPA")


def test_a_watch_survives_a_restart_that_forgets_its_version(deployed: Deployed, namespace: str) -> None:
    plane, web, gone = deployed.cluster, *(WorkloadId(namespace, "Deployment", one) for one in ("web", "gone"))
    with watched(plane.kubeconfig) as cluster:
        plane.api.create(deployment("web", 1), namespace)
        plane.api.create(deployment("gone", 1), namespace)
        wait_until(lambda: count(cluster, web) == count(cluster, gone) == 1, what="the Deployments")
        plane.restart_api_server()
        scale(deployed, namespace, 3)
        plane.api.delete("Deployment", "gone", namespace)
        wait_until(lambda: count(cluster, web) == 3 and count(cluster, gone) == -1, what="what happened since")
        wait_until(lambda: not cluster.faults(), what="all collections to be followed")
        assert sum(watch.health.restarts for watch in cluster.watches) > 0


def test_without_rights_each_collection_says_which_one_is_missing(deployed: Deployed) -> None:
    with watched(deployed.cluster.user("nobody-in-particular")) as cluster:
        assert cluster.kinds() == frozenset()
        assert all("is forbidden" in state.fault and state.refused for state in cluster.states())
