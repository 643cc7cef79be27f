"""Mode scale on a real API server with real controllers, by the account of deploy/components/scale."""

from __future__ import annotations

import subprocess
import sys
from contextlib import ExitStack, closing
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
import yaml

from forecaster.actuators.scale.scales import BEFORE, LABEL
from forecaster.domain.workload import WorkloadId
from tests.support.api_objects import own_marks
from tests.support.control_plane.acting import ActingReplica, apply_components, events
from tests.support.control_plane.api import RefusedError
from tests.support.control_plane.deployed import NAMESPACE
from tests.support.control_plane.workloads import deployment, external_hpa, replicas
from tests.support.recommendations import SAID
from tests.support.waiting import PATIENCE, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.control_plane.api import Api, Document
    from tests.support.control_plane.plane import ControlPlane

BOUNDS = {"min_replicas": 1, "max_replicas": 20}
MEASURED = 4
"""Count that the measured demand of every decision here asks for."""
KINDS = ["Deployment", "StatefulSet", "Rollout"]
ROLLOUT = {"kind": "Rollout", "group": "argoproj.io", "version": "v1alpha1", "plural": "rollouts"}
ROLLOUT_PATH = "/apis/argoproj.io/v1alpha1/namespaces/{}/rollouts/web"
ROLLOUTS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "rollouts.argoproj.io"},
    "spec": {
        "group": "argoproj.io",
        "scope": "Namespaced",
        "names": {"kind": "Rollout", "plural": "rollouts"},
        "versions": [
            {
                "name": "v1alpha1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
                "subresources": {
                    "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
                },
            }
        ],
    },
}
_RIGHTS = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "forecaster-rollouts"}}
MAY_SCALE_ROLLOUTS = [
    {
        **_RIGHTS,
        "kind": "ClusterRole",
        "rules": [
            {
                "apiGroups": ["argoproj.io"],
                "resources": ["rollouts", "rollouts/scale"],
                "verbs": ["get", "list", "watch", "patch"],
            }
        ],
    },
    {
        **_RIGHTS,
        "kind": "ClusterRoleBinding",
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "forecaster-rollouts"},
        "subjects": [{"kind": "ServiceAccount", "name": "forecaster", "namespace": NAMESPACE}],
    },
]


@pytest.fixture(scope="module")
def plane(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """The control plane with `deploy/base`, the component `scale`, and a kind of its own with a scale."""
    apply_components(control_plane, tmp_path_factory.mktemp("scale"), "scale")
    definitions = tmp_path_factory.mktemp("definitions")
    (definitions / "rollouts.yaml").write_text(yaml.safe_dump(ROLLOUTS))
    control_plane.install(definitions)
    control_plane.kubectl("apply", "-f-", given=yaml.safe_dump_all(MAY_SCALE_ROLLOUTS))
    control_plane.until_allowed(f"{NAMESPACE}/forecaster", "patch", "deployments.apps")
    control_plane.until_allowed(f"{NAMESPACE}/forecaster", "patch", "rollouts.argoproj.io")
    yield control_plane
    control_plane.uninstall(definitions)


@pytest.fixture(scope="module")
def leader(plane: ControlPlane) -> Iterator[ActingReplica]:
    with ExitStack() as parts:
        policy = {"mode": "scale", "horizontal": BOUNDS}
        account = str(plane.account("forecaster", NAMESPACE))
        kinds = {"kubernetes": {"kubeconfig": account, "custom_kinds": [ROLLOUT]}, "queries": {"kinds": KINDS}}
        replica = ActingReplica(plane, parts, {"scale": {"enabled": True}, "policy": policy, **kinds})
        replica.until_leading()
        yield replica


@pytest.fixture
def web(plane: ControlPlane, namespace: str) -> str:
    """A namespace with a Deployment of two pods that its owner applied."""
    plane.kubectl("apply", f"--namespace={namespace}", "-f-", given=yaml.safe_dump(deployment("web", 2)))
    wait_until(lambda: replicas(plane.api, "web", namespace).ready == 2, goal="two pods")
    return namespace


def owners_part(api: Api, namespace: str) -> Document:
    """Return the parts of a Deployment that are its owner's."""
    document = api.read("Deployment", "web", namespace)
    revision = "deployment.kubernetes.io/revision"
    noted = {key: value for key, value in document["metadata"]["annotations"].items() if key != revision}
    return {"spec": document["spec"], "labels": document["metadata"].get("labels"), "annotations": noted}


def managers(api: Api, namespace: str) -> set[str]:
    return {each["manager"] for each in api.read("Deployment", "web", namespace)["metadata"]["managedFields"]}


def traces(api: Api, namespace: str) -> set[str]:
    """Marks of ours that the Deployment's controller has copied to its ReplicaSets."""
    return own_marks(*api.get(f"/apis/apps/v1/namespaces/{namespace}/replicasets")["items"])


def release(plane: ControlPlane, *arguments: str, code: int = 0) -> str:
    """Run `forecaster release`, which ends with `code`, and return what it prints."""
    rights = f"--kubeconfig={plane.account('forecaster', NAMESPACE)}"
    command = [sys.executable, "-m", "forecaster", "release", *arguments, rights]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert done.returncode == code, done.stderr
    return done.stderr if code else done.stdout


def test_pods_are_there_before_the_load_and_a_release_leaves_no_trace(
    plane: ControlPlane, leader: ActingReplica, web: str
) -> None:
    before = owners_part(plane.api, web)
    assert leader.cycle(web, 6)["scale"].writes == {("raise", "written"): 1}
    wait_until(lambda: replicas(plane.api, "web", web).ready == 6, goal="six pods")
    metadata = plane.api.read("Deployment", "web", web)["metadata"]
    assert metadata["labels"] == {LABEL: "scaled", BEFORE: "2"}
    assert traces(plane.api, web) == set()
    assert (
        "ScaledUp",
        f"replicas 2 → 6: 6 are asked for. {SAID}",
    ) in events(plane.api, web)
    assert leader.cycle(web, 6)["scale"].writes == {}
    left = release(plane, f"{web}/web", code=1)
    assert left.startswith(f"Deployment {web}/web: left at replicas 6: its owner's 2 would come back at once")
    assert replicas(plane.api, "web", web).desired == 6
    shown = release(plane, "--now", "--dry-run", f"{web}/web")
    assert shown.startswith(f"Deployment {web}/web: replicas 2, was 6")
    assert release(plane, "--now", f"{web}/web") == f"Deployment {web}/web: replicas 2, was 6: released by command\n"
    wait_until(lambda: replicas(plane.api, "web", web) == (2, 2), goal="the owner's pods")
    assert owners_part(plane.api, web) == before
    assert "forecaster" not in managers(plane.api, web)
    assert traces(plane.api, web) == set()


def test_a_count_is_raised_as_far_as_the_quota_of_its_namespace_goes_and_held_there_with_its_name(
    plane: ControlPlane, leader: ActingReplica, web: str
) -> None:
    hard = {"hard": {"requests.cpu": "550m", "pods": "20"}}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "team"}, "spec": hard}
    plane.kubectl("apply", f"--namespace={web}", "-f-", given=yaml.safe_dump(quota))
    counted = f"/api/v1/namespaces/{web}/resourcequotas/team"
    wait_until(lambda: plane.api.get(counted).get("status", {}).get("used", {}).get("pods") == "2", goal="the quota")
    assert leader.cycle(web, 6)["scale"].writes == {("raise", "written"): 1}
    wait_until(lambda: replicas(plane.api, "web", web) == (5, 5), goal="the pods that fit")
    wait_until(lambda: plane.api.get(counted)["status"]["used"]["pods"] == "5", goal="the quota")
    effect = leader.cycle(web, 6)["scale"]
    assert (effect.writes, effect.states["quota"]) == ({}, 1)
    code, why = leader.actuators.refusal(WorkloadId(web, "Deployment", "web")) or ("", "")
    assert (code, "quota team: requests.cpu would exceed the quota" in why) == ("quota", True)
    all_events = plane.api.get(f"/api/v1/namespaces/{web}/events")["items"]
    assert "FailedCreate" not in {event["reason"] for event in all_events}


def test_what_is_not_known_lowers_nothing_and_what_is_known_does_after_five_minutes(
    plane: ControlPlane, leader: ActingReplica, web: str
) -> None:
    began = datetime.now(UTC)
    leader.cycle(web, 6, at=began)
    for minute, count in enumerate([None, None, 3, 3, 3, 3]):
        leader.cycle(web, count, at=began + timedelta(minutes=minute + 1))
        assert replicas(plane.api, "web", web).desired == (6 if minute < 5 else 3)


def test_a_second_writer_keeps_its_count_and_is_told_of_it(
    plane: ControlPlane, leader: ActingReplica, web: str
) -> None:
    leader.cycle(web, 6)
    plane.kubectl("scale", "deployment/web", "--replicas=9", f"--namespace={web}")
    wait_until(lambda: replicas(plane.api, "web", web).ready == 9, goal="what its controller writes, too")
    assert leader.cycle(web, 6)["scale"].writes == {("yield", "written"): 1}
    effect = leader.cycle(web, 12)["scale"]
    assert effect.writes == {}
    assert effect.states["second-writer"] >= 1
    assert replicas(plane.api, "web", web).desired == 9
    why = "kubectl wrote replicas 9; raised by measured demand alone for 1h"
    assert ("ScaleBackedOff", why) in events(plane.api, web)
    release(plane, f"{web}/web")
    assert owners_part(plane.api, web)["labels"] is None
    assert replicas(plane.api, "web", web).desired == 9


def test_a_second_writer_that_replaces_the_whole_workload_is_one_although_our_marks_go_with_it(
    plane: ControlPlane, leader: ActingReplica, web: str
) -> None:
    def written(change: str) -> bool:
        """Run a cycle; its write conflicts where the workload's own controller writes at the same moment."""
        return leader.cycle(web, 6)["scale"].writes.get((change, "written")) == 1

    for change in ("raise", "yield"):
        wait_until(lambda: written(change), goal=change)  # noqa: B023
        plane.api.put(deployment("web", 5), web)
    effect = leader.cycle(web, 6)["scale"]
    assert (effect.writes, effect.states["second-writer"]) == ({}, 1)
    assert owners_part(plane.api, web)["labels"] is None


def test_a_second_writer_of_a_custom_resource_that_states_no_count_keeps_its_count(
    plane: ControlPlane, leader: ActingReplica, namespace: str
) -> None:
    """The API server notes who scales a custom resource only where somebody owns its count already."""
    manifest = {**deployment("web", 1), "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout"}
    manifest["spec"].pop("replicas")
    plane.kubectl("apply", f"--namespace={namespace}", "-f-", given=yaml.safe_dump(manifest))
    assert leader.cycle(namespace, 4, kind="Rollout")["scale"].writes == {("raise", "written"): 1}
    plane.kubectl("scale", "rollout/web", "--replicas=9", f"--namespace={namespace}")
    assert leader.cycle(namespace, 4, kind="Rollout")["scale"].writes == {("yield", "written"): 1}
    assert plane.api.get(ROLLOUT_PATH.format(namespace))["spec"]["replicas"] == 9


def test_what_an_hpa_scales_or_a_gitops_tool_applies_is_refused(
    plane: ControlPlane, leader: ActingReplica, web: str
) -> None:
    plane.api.create(external_hpa("web", target="1"), web)
    effect = leader.cycle(web, 6)["scale"]
    assert (effect.writes, effect.states["owned"]) == ({}, 1)
    plane.api.delete("HorizontalPodAutoscaler", "web", web)
    tracked = {"metadata": {"labels": {"kustomize.toolkit.fluxcd.io/name": "apps"}}}
    plane.api.merge("Deployment", "web", tracked, web)
    assert leader.cycle(web, 6)["scale"].states["owned"] == 1
    assert replicas(plane.api, "web", web).desired == 2
    plane.api.merge("Deployment", "web", {"metadata": {"labels": {"kustomize.toolkit.fluxcd.io/name": None}}}, web)


def applied_by(plane: ControlPlane, namespace: str, manager: str, count: int) -> None:
    """Apply the manifest again, with its count, as a field manager does by server-side apply."""
    given = yaml.safe_dump(deployment("web", count))
    command = ["apply", "--server-side", "--force-conflicts", f"--field-manager={manager}"]
    plane.kubectl(*command, f"--namespace={namespace}", "-f-", given=given)


@pytest.mark.parametrize("manager", ["helm", "kubectl", "kubectl-client-side-apply"])
def test_a_deploy_that_states_a_count_leaves_nothing_short_for_longer_than_two_cycles(
    plane: ControlPlane, leader: ActingReplica, web: str, manager: str
) -> None:
    """`helm upgrade` with `replicas: 2` while measured demand needs 4: its count is kept as the owner's."""
    leader.cycle(web, 6)
    applied_by(plane, web, manager, 2)
    leader.cycle(web, 6)
    wait_until(
        lambda: leader.cycle(web, 6) is not None and replicas(plane.api, "web", web).desired == MEASURED,
        goal="what measured demand needs",
    )
    assert plane.api.read("Deployment", "web", web)["metadata"]["labels"][BEFORE] == "2"


@pytest.mark.parametrize("manager", ["argocd-controller", "argocd-application-controller", "kustomize-controller"])
def test_what_a_gitops_tool_states_the_count_of_is_refused_at_the_door(
    plane: ControlPlane, leader: ActingReplica, web: str, manager: str
) -> None:
    applied_by(plane, web, manager, 2)
    effect = leader.cycle(web, 6)["scale"]
    assert (effect.writes, effect.states["owned"]) == ({}, 1)
    code, why = leader.actuators.refusal(WorkloadId(web, "Deployment", "web")) or ("", "")
    assert (code, f"writes its count (field manager {manager})" in why) == ("owned", True)
    assert replicas(plane.api, "web", web).desired == 2


def test_an_hpa_that_comes_takes_the_count_over(plane: ControlPlane, leader: ActingReplica, web: str) -> None:
    leader.cycle(web, 6)
    plane.api.create(external_hpa("web", target="1"), web)

    def forgotten() -> bool:
        """The marks go in one cycle, or in two where the workload's own controller writes at the same moment."""
        return leader.cycle(web, 9)["scale"].writes == {("forget", "written"): 1}

    wait_until(forgotten, goal="marks of ours to go")
    assert owners_part(plane.api, web)["labels"] is None
    assert replicas(plane.api, "web", web).desired == 6


def test_scaled_to_zero_by_hand_it_stays(plane: ControlPlane, leader: ActingReplica, web: str) -> None:
    plane.kubectl("scale", "deployment/web", "--replicas=0", f"--namespace={web}")
    assert leader.cycle(web, 6)["scale"].states["stopped"] == 1
    assert replicas(plane.api, "web", web).desired == 0


class TestRights:
    @pytest.fixture
    def account(self, plane: ControlPlane) -> Iterator[Api]:
        with closing(plane.client(token=plane.token("forecaster", NAMESPACE))) as client:
            yield client

    @pytest.mark.parametrize(
        ("change", "refusal"),
        [
            ({"spec": {"replicas": 5}}, "through its scale"),
            ({"spec": {"template": {"spec": {"serviceAccountName": "root"}}}}, "through its scale"),
            ({"metadata": {"annotations": {"argocd.argoproj.io/sync": "no"}}}, "changes its own only"),
            ({"metadata": {"labels": {"team": "other"}}}, "labels forecaster changes its own only"),
            ({"metadata": {"finalizers": ["forecaster.dev/stay"]}}, "neither finalizers nor owners"),
        ],
        ids=lambda each: each if isinstance(each, str) else None,
    )
    def test_the_api_server_holds_our_account_to_the_count(
        self, account: Api, web: str, change: Document, refusal: str
    ) -> None:
        with pytest.raises(RefusedError, match=refusal):
            account.merge("Deployment", "web", change, web)

    def test_never_to_zero(self, plane: ControlPlane, web: str) -> None:
        with pytest.raises(AssertionError, match="scales nothing to 0"):
            plane.kubectl(
                "scale", "deployment/web", "--replicas=0", f"--namespace={web}",
                f"--kubeconfig={plane.account('forecaster', NAMESPACE)}",
            )  # fmt: skip
