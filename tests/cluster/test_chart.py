"""The chart against a real API server: install, upgrade, rollback and uninstall, and two releases side by side."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from deploy.generate.chart import CHART
from tests.support.control_plane.binaries import CORE, why_not
from tests.support.control_plane.everything import differences, everything
from tests.support.control_plane.plane import ControlPlane
from tests.support.control_plane.workloads import replicas
from tests.support.packaging import helm, tool
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

NAMESPACE = "scaling"
PARTS = ("dask", "floor", "initial", "postgres", "priority", "replicas", "resources", "scale", "vertical")
"""Components whose kinds every cluster has, but for those with a volume or a metrics API."""
DEFINITION = "predictiveautoscalers.autoscaling.forecaster.dev"
POLICY = {
    "apiVersion": "autoscaling.forecaster.dev/v1alpha1",
    "kind": "PredictiveAutoscaler",
    "metadata": {"name": "checkout"},
    "spec": {"scaleTargetRef": {"name": "checkout"}},
}


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A cluster of its own: what other tests leave is no part of the comparison."""
    tool("helm")
    if absent := why_not(*CORE):
        pytest.skip(absent)
    with ControlPlane(tmp_path_factory.mktemp("chart"), services="127.134") as running:
        labels = {"pod-security.kubernetes.io/enforce": "restricted"}
        for name in (NAMESPACE, "shop"):
            metadata = {"name": name, "labels": labels if name == NAMESPACE else {}}
            running.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        wait_until(lambda: running.api.has("ServiceAccount", "default", NAMESPACE), goal="the account")
        yield running


def run(plane: ControlPlane, *arguments: str, **values: Any) -> str:
    options = (f"--kubeconfig={plane.kubeconfig}", f"--namespace={NAMESPACE}")
    given = () if arguments[0] in {"rollback", "uninstall", "test"} else ("-f-",)
    done = helm(*arguments, *options, *given, given=values)
    assert done.returncode == 0, done.stderr
    return done.stdout


def with_parts(*parts: str, tag: str = "1", **values: Any) -> dict[str, Any]:
    return {"components": dict.fromkeys(parts, True), "image": {"tag": tag}, **values}


def until_ready(plane: ControlPlane, name: str, pods: int) -> None:
    wait_until(lambda: replicas(plane.api, name, NAMESPACE).ready == pods, goal=f"{pods} pods of {name}")


def behind(plane: ControlPlane, service: str) -> set[str]:
    """Names of the pods to which a Service leads."""
    selector = f"--selector=kubernetes.io/service-name={service}"
    text = plane.kubectl("get", "endpointslices", f"--namespace={NAMESPACE}", selector, "--output=json")
    endpoints = [endpoint for item in json.loads(text)["items"] for endpoint in item.get("endpoints") or ()]
    return {endpoint["targetRef"]["name"] for endpoint in endpoints}


def test_a_release_comes_changes_and_goes_beside_another_and_teams_keep_their_objects(plane: ControlPlane) -> None:
    before = everything(plane)
    notes = run(plane, "install", "green", str(CHART), **with_parts(*PARTS))
    assert "deploy/green-forecaster" in notes
    run(plane, "install", "blue", str(CHART), **with_parts("floor", "resources", crds={"install": False}))
    until_ready(plane, "green-forecaster", 2)
    until_ready(plane, "green-forecaster-worker", 2)
    until_ready(plane, "blue-forecaster", 1)
    wait_until(lambda: len(behind(plane, "green-forecaster")) == 2, goal="endpoints of both pods")
    assert behind(plane, "green-forecaster").isdisjoint(behind(plane, "blue-forecaster"))

    plane.kubectl("wait", "--for=condition=Established", f"crd/{DEFINITION}", "--timeout=60s")
    plane.kubectl("apply", "--namespace=shop", "-f-", given=json.dumps(POLICY))
    # Upgrade to another image and fewer parts within minutes of the install, then roll back.
    run(plane, "upgrade", "green", str(CHART), **with_parts("floor", tag="2"))
    until_ready(plane, "green-forecaster", 1)
    assert image_of(plane, "green-forecaster") == "forecaster:2"
    assert plane.kubectl("get", "predictiveautoscalers", "--namespace=shop", "--output=name")
    run(plane, "rollback", "green", "1")
    until_ready(plane, "green-forecaster", 2)
    assert image_of(plane, "green-forecaster") == "forecaster:1"

    run(plane, "uninstall", "green", "--wait")
    until_ready(plane, "blue-forecaster", 1)
    run(plane, "uninstall", "blue", "--wait")
    wait_until(lambda: left(before, everything(plane)) == set(), goal="nothing but definitions and objects of teams")
    assert plane.kubectl("get", "predictiveautoscalers", "--namespace=shop", "--output=name")


def image_of(plane: ControlPlane, name: str) -> str:
    pod = plane.api.read("Deployment", name, NAMESPACE)["spec"]["template"]["spec"]
    return str(pod["containers"][0]["image"])


def left(before: dict[str, Any], after: dict[str, Any]) -> set[str]:
    """Objects that are not as before, but for definitions and what teams made of them."""
    lasting = ("CustomResourceDefinition ", "PredictiveAutoscaler ", "APIService /v1alpha1.autoscaling.forecaster.dev")
    return {key for key in differences(before, after) if not key.startswith(lasting)}


@pytest.mark.parametrize("part", PARTS)
def test_each_part_is_added_and_taken_away_at_once(plane: ControlPlane, part: str) -> None:
    """Also `initial`, whose webhook needs the authority of the certificates: each revision has a Job of its own."""
    run(plane, "install", "red", str(CHART), **with_parts())
    # The definitions that the release before left belong to it.
    run(plane, "upgrade", "red", str(CHART), **with_parts(part, crds={"install": part != "resources"}))
    jobs = plane.kubectl("get", "jobs", f"--namespace={NAMESPACE}", "--output=name")
    assert "red-forecaster-certificates-2" in jobs
    notes = run(plane, "upgrade", "red", str(CHART), **with_parts())
    assert (f"NOTE: components.{part} is taken away" in notes) == (part in {"floor", "scale", "vertical"})
    run(plane, "uninstall", "red", "--wait")
