"""Mode floor wakes an HPA that scaled its own target to zero, ahead of the load, with the real HPA controller."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from forecaster.actuators.floor.autoscalers import BEFORE
from tests.cluster.test_floor import Replica, run_release
from tests.support.cluster_serving import ClusterServing, autoscaler, known
from tests.support.control_plane.acting import apply_components
from tests.support.control_plane.deployed import NAMESPACE
from tests.support.control_plane.workloads import deployment, replicas

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.control_plane.plane import ControlPlane

HPA = "HorizontalPodAutoscaler"


@pytest.fixture(scope="module")
def serving(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterServing]:
    """Answers the metric of the HPA: a demand that a test names."""
    apply_components(control_plane, tmp_path_factory.mktemp("floor"), "floor")
    control_plane.until_allowed(f"{NAMESPACE}/forecaster", "patch", "horizontalpodautoscalers.autoscaling")
    with ClusterServing(control_plane, tmp_path_factory.mktemp("serving")) as running:
        yield running


@pytest.fixture(scope="module")
def leader(serving: ClusterServing) -> Iterator[Replica]:
    with ExitStack() as parts:
        replica = Replica(serving.plane, parts)
        replica.until_leading()
        yield replica


def demand(serving: ClusterServing, namespace: str, cores: float, now: int) -> None:
    """Publish so much measured and forecast demand for the metric that the HPA reads."""
    row = known(namespace, "web", cores, now)
    (view,) = row.signals
    serving.publish(replace(row, signals=(replace(view, measured=cores),)))


@pytest.fixture
def asleep(serving: ClusterServing, namespace: str) -> str:
    """A namespace with a Deployment that its HPA, with minReplicas 0, has scaled to zero because of no load."""
    api, manifest = serving.plane.api, autoscaler("web")
    manifest["spec"]["minReplicas"] = 0
    demand(serving, namespace, 0.0, 1)
    api.create(deployment("web", 1), namespace)
    api.create(manifest, namespace)
    until_at(serving, namespace, 0)
    serving.until(
        lambda: api.condition(HPA, "web", "ScaledToZero", namespace).get("status") == "True", goal="the condition"
    )
    return namespace


def until_at(serving: ClusterServing, namespace: str, count: int) -> None:
    serving.until(lambda: replicas(serving.plane.api, "web", namespace).desired == count, goal=f"{count} replicas")


def test_a_raised_minimum_wakes_it_while_there_is_no_load_and_it_sleeps_again_afterwards(
    serving: ClusterServing, leader: Replica, asleep: str
) -> None:
    assert leader.cycle(asleep, 3).writes == {("raise", "written"): 1}
    until_at(serving, asleep, 3)
    hpa = serving.plane.api.read(HPA, "web", asleep)
    assert (hpa["spec"]["minReplicas"], hpa["metadata"]["annotations"][BEFORE]) == (3, "0")
    assert run_release(serving.plane, "release", f"{asleep}/web").startswith(f"HPA {asleep}/web: minReplicas 0, was 3")
    assert serving.plane.api.read(HPA, "web", asleep)["spec"]["minReplicas"] == 0
    until_at(serving, asleep, 0)


def test_while_its_metric_cannot_be_read_the_controller_does_not_follow_from_zero(
    serving: ClusterServing, leader: Replica, asleep: str
) -> None:
    """From zero, unlike from one, the controller looks at metrics first (HPA rules §3)."""
    serving.publish()
    assert leader.cycle(asleep, 3).writes == {("raise", "written"): 1}
    failing = "FailedGetExternalMetric"
    serving.until(
        lambda: serving.plane.api.condition(HPA, "web", "ScalingActive", asleep).get("reason") == failing,
        goal="the failing metric",
    )
    assert replicas(serving.plane.api, "web", asleep).desired == 0
    demand(serving, asleep, 0.0, 0)
    until_at(serving, asleep, 3)


def test_a_target_that_a_person_scaled_to_zero_stays_there(
    serving: ClusterServing, leader: Replica, asleep: str
) -> None:
    """The controller wakes only what it has put to sleep; the other HPA shows that it has looked."""
    api, manifest = serving.plane.api, autoscaler("by-hand")
    manifest["spec"]["minReplicas"] = 3
    api.create(deployment("by-hand", 0), asleep)
    api.create(manifest, asleep)
    serving.until(
        lambda: api.condition(HPA, "by-hand", "ScalingActive", asleep).get("reason") == "ScalingDisabled",
        goal="an HPA that is off",
    )
    leader.cycle(asleep, 3)
    until_at(serving, asleep, 3)
    assert replicas(api, "by-hand", asleep).desired == 0
