"""The table of rights: all of it is used, nothing beside it is asked for, and each one is needed."""

from __future__ import annotations

from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple

import httpx
import pytest
import yaml

from deploy.generate.kustomized import within
from deploy.generate.roles import IN_THE_BASE
from forecaster.actuators.floor.autoscalers import Autoscalers
from forecaster.actuators.resize.pods import Resizes
from forecaster.actuators.resize.sized_pod import ResizeWrite
from forecaster.actuators.writes import Change
from forecaster.app.rights import rights_checks
from forecaster.config.settings import parse
from forecaster.domain.decision import Reason, Resize
from forecaster.domain.workload import ContainerSize, Resources
from forecaster.kube.client import ApiClient
from forecaster.kube.config import client_config_source
from forecaster.kube.rights import RELEASE, RIGHTS, Right, missing
from forecaster.kube.watch import Followed
from forecaster.resources.objects import API_VERSION, DEFAULTS
from tests.cluster.test_floor import Dying, Replica, run_release
from tests.cluster.test_neighbours import KEDA, VPA, kind_of
from tests.cluster.test_resources import Replica as StatedReplica
from tests.cluster.test_resources import apply as apply_autoscaler
from tests.cluster.test_resources import events as reasons_of_events
from tests.support.control_plane.acting import ActingReplica, watched
from tests.support.control_plane.binaries import CORE, why_not
from tests.support.control_plane.deployed import NAMESPACE, Deployed
from tests.support.control_plane.plane import ControlPlane
from tests.support.control_plane.workloads import deployment, external_hpa
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.control_plane.api import Document

RBAC = "/apis/rbac.authorization.k8s.io/v1"
METHODS = {"get": "GET", "list": "GET", "watch": "GET", "create": "POST", "patch": "PATCH"}
OF_EVERY_ACCOUNT = "selfsubjectaccessreviews"
"""Resource that `doctor` asks for; every account may."""
VALUE = "/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/forecaster_demand?labelSelector=workload%3Dweb"


class Granted(NamedTuple):
    """One verb of a right."""

    right: Right
    verb: str

    def __str__(self) -> str:
        return f"{self.right.account}-{self.right.mode}-{self.verb}-{self.right.resource}"


GRANTED = [Granted(right, verb) for right in RIGHTS for verb in right.verbs]


@pytest.fixture(scope="module")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane for these tests alone: others ask on purpose for what is forbidden, and leave objects behind."""
    if absent := why_not(*CORE):
        pytest.skip(absent)
    with ControlPlane(tmp_path_factory.mktemp("rights"), services="127.135") as running:
        yield running


@pytest.fixture(scope="module")
def requests(deployed: Deployed, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Document]]:
    """Requests of our accounts to the API server, by account, while everything they are for was done."""
    plane = deployed.cluster
    with_all_rights(plane, tmp_path_factory.mktemp("overlay"))
    assert "forecaster-initial: trusts our authority" in deployed.run_certificates()
    acting, absent = {"kubeconfig": str(deployed.account("forecaster"))}, {"url": "http://127.0.0.1:9", "retries": 0}
    with deployed.run(prometheus=absent, acting=acting, replicas={"enabled": False}):
        plane.until_available()
        ask_for_a_value(deployed)
        wait_until(lambda: {"watch", "patch"} <= verbs_of(plane, "forecaster"), goal="watches and the Lease")
    with kind_of(plane, *KEDA), kind_of(plane, *VPA):
        raise_and_end_floors(plane)
        scale_and_put_back(plane)
        resize_a_pod(plane)
    tell_a_status(plane)
    evict_a_pod(plane)
    return {account: plane.audited(account) for account in {right.account for right in RIGHTS}}


def with_all_rights(plane: ControlPlane, folder: Path) -> None:
    """Apply the base with the component of each mode."""
    modes = [f"components/{mode}" for mode in dict.fromkeys(right.mode for right in RIGHTS) if mode not in IN_THE_BASE]
    parts = {"resources": ["base"], "components": modes}
    overlay = {key: [within(part, str(folder)) for part in value] for key, value in parts.items()}
    head = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization"}
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(head | overlay))
    plane.kubectl("apply", "-k", str(folder))
    for right in RIGHTS:
        for verb in right.verbs:
            until(plane, Granted(right, verb), allowed=True)


def ask_for_a_value(deployed: Deployed) -> None:
    """Ask as the HPA controller does, through the API server, and as an account without rights does, by its token."""
    plane = deployed.cluster
    with closing(plane.client(token=plane.token("horizontal-pod-autoscaler", "kube-system"))) as client:
        wait_until(lambda: client.ask("GET", VALUE).status_code != HTTPStatus.SERVICE_UNAVAILABLE, goal="an answer")
    bearer = {"Authorization": f"Bearer {plane.token('default', NAMESPACE)}"}
    for path in ("/metrics", "/api/v1/recommendations"):
        url = f"https://{deployed.address.host}:{deployed.address.port}{path}"
        assert httpx.get(url, headers=bearer, verify=False).status_code == HTTPStatus.FORBIDDEN  # noqa: S501  not its subject


def raise_and_end_floors(plane: ControlPlane) -> None:
    """Raise a floor that the service puts back, and one that is left to the CronJob."""
    plane.api.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "rights"}})
    wait_until(lambda: plane.api.has("ServiceAccount", "default", "rights"), goal="the account of the namespace")
    plane.api.put(deployment("web", 1), "rights")
    plane.api.put(external_hpa("web", target="1", most=10), "rights")
    with ExitStack() as parts:
        replica = Replica(plane, parts)
        replica.until_leading()
        assert replica.cycle("rights", 4).writes == {("raise", "written"): 1}
        plane.api.merge("HorizontalPodAutoscaler", "web", annotated("publish"), "rights")
        die_within_a_restoring(plane, replica)
        assert replica.cycle("rights", 4).writes["forget", "written"] == 1
        plane.api.merge("HorizontalPodAutoscaler", "web", annotated(None), "rights")
        replica.cycle("rights", 5, at=datetime.now(UTC) - timedelta(minutes=16))
        assert "its expiry has passed" in run_release(plane)
        replica.cycle("rights", 5)
        plane.api.merge("HorizontalPodAutoscaler", "web", annotated("publish"), "rights")
        die_within_a_restoring(plane, replica)
        assert "rights/web" in run_release(plane)


def scale_and_put_back(plane: ControlPlane) -> None:
    """Scale a workload of each kind without an HPA, and put its count back."""
    stateful = deployment("worker", 1)
    stateful["spec"]["serviceName"] = "worker"
    plane.api.put(deployment("worker", 1), "rights")
    plane.api.put({**stateful, "kind": "StatefulSet"}, "rights")
    policy = {"mode": "scale", "horizontal": {"min_replicas": 1, "max_replicas": 9}}
    with ExitStack() as parts:
        replica = ActingReplica(plane, parts, {"scale": {"enabled": True}, "policy": policy})
        replica.until_leading()
        for kind in ("Deployment", "StatefulSet"):
            effect = replica.cycle("rights", 3, name="worker", kind=kind)["scale"]
            assert effect.writes == {("raise", "written"): 1}
        wait_until(lambda: ("watch", "scaledobjects") in asked_of(plane), goal="the watch of ScaledObjects")
    assert "rights/worker" in run_release(plane, "release", "--now")


def tell_a_status(plane: ControlPlane) -> None:
    """Write the status of a PredictiveAutoscaler, and the Event of a target that is not there."""
    with ExitStack() as parts:
        replica = StatedReplica(plane, parts)
        wait_until(replica.fence.valid, goal="the Lease")
        apply_autoscaler(plane, "rights", scaleTargetRef={"name": "gone"})
        wait_until(lambda: bool(replica.cluster.policies().own), goal="the watch of the object")
        replica.cycle("rights")
        wait_until(lambda: "TargetNotFound" in reasons_of_events(plane, "rights"), goal="the Event")
        policy = {"apiVersion": API_VERSION, "kind": DEFAULTS, "metadata": {"name": "rights"}, "spec": {}}
        plane.kubectl("apply", "-f-", given=yaml.safe_dump(policy))
        wait_until(lambda: bool(replica.cluster.policies().defaults), goal="the watch of the object")

        def status_written() -> bool:
            replica.cycle("rights")
            return ("patch", "predictivepolicies") in statuses_of(plane)

        wait_until(status_written, goal="its status")
        plane.kubectl("delete", "predictivepolicy", "rights")


def asked_of(plane: ControlPlane) -> set[tuple[str, str]]:
    """Verbs that our account asked for, with the resource."""
    entries = (entry for entry in plane.audited("forecaster") if "objectRef" in entry)
    return {(entry["verb"], entry["objectRef"]["resource"]) for entry in entries}


def statuses_of(plane: ControlPlane) -> set[tuple[str, str]]:
    """Verbs on status subresources that our account asked for, with the resource."""
    entries = (
        entry for entry in plane.audited("forecaster") if entry.get("objectRef", {}).get("subresource") == "status"
    )
    return {(entry["verb"], entry["objectRef"]["resource"]) for entry in entries}


def resize_a_pod(plane: ControlPlane) -> None:
    """Give a running pod another size."""
    plane.api.put(deployment("sized", 1), "rights")
    small, large = (Resources(cpu_request=cpu, memory_request=2.0**26) for cpu in (0.1, 0.2))
    size = Resize(large, Reason.SIZED, "sized", (ContainerSize("app", small, large, None, None, ""),))
    with ExitStack() as parts:
        live = parts.enter_context(watched(plane.account("forecaster", NAMESPACE)))
        settings = {"resize": {"enabled": True}, "policy": {"vertical": {"mode": "in-place"}}}
        replica = ActingReplica(plane, parts, settings, live)
        replica.until_leading()
        written = ("resize", "written")
        wait_until(
            lambda: written in replica.cycle("rights", 1, name="sized", sizes=size)["resize"].writes, goal="a resize"
        )
        followed = {("watch", resource) for resource in ("verticalpodautoscalers", "limitranges", "resourcequotas")}
        wait_until(lambda: followed <= asked_of(plane), goal="their watches")


def evict_a_pod(plane: ControlPlane) -> None:
    """Evict a pod whose node would not grant its size, and look at nodes for pods that are made."""
    name = plane.api.get("/api/v1/namespaces/rights/pods?labelSelector=app%3Dsized")["items"][0]["metadata"]["name"]
    source = client_config_source(plane.account("forecaster", NAMESPACE))
    with closing(ApiClient(source)) as client, closing(Followed(ApiClient(source))) as followed:
        running = Resizes(client, lambda owner: owner, followed=followed)
        assert running.nodes()
        wait_until(lambda: ("watch", "nodes") in asked_of(plane), goal="the watch of nodes")
        pod = running.of("rights", name)
        assert pod is not None
        running.write(ResizeWrite(pod, Change.EVICT, {}, "tried"))


def die_within_a_restoring(plane: ControlPlane, replica: Replica) -> None:
    """Let the process die once the value is back, so that the marks of ours are left to the next look."""
    source = client_config_source(plane.account("forecaster", NAMESPACE))
    replace(replica.actuator, autoscalers=Autoscalers(Dying(source).configured())).act(datetime.now(UTC))


def annotated(mode: str | None) -> Document:
    return {"metadata": {"annotations": {"forecaster.dev/mode": mode}}}


def verbs_of(plane: ControlPlane, account: str) -> set[str]:
    return {entry["verb"] for entry in plane.audited(account)}


def is_of(grant: Granted, request: Document) -> bool:
    """Whether a request needed that right."""
    reference, right = request.get("objectRef", {}), grant.right
    resource = "/".join(filter(None, (reference.get("resource"), reference.get("subresource"))))
    return (
        (request["verb"], reference.get("apiGroup", ""), resource) == (grant.verb, right.group, right.resource)
        and (not right.names or reference.get("name") in right.names)
        and (not right.namespace or reference.get("namespace") == right.namespace)
    )


def test_every_right_is_used(requests: dict[str, list[Document]]) -> None:
    unused = [
        str(grant) for grant in GRANTED if not any(is_of(grant, request) for request in requests[grant.right.account])
    ]
    assert unused == []


def test_nothing_is_asked_for_beyond_the_rights(requests: dict[str, list[Document]]) -> None:
    """Paths that are no resources, such as /readyz, are open to every account."""
    beyond = [
        (account, request["verb"], request["requestURI"], request["responseStatus"]["code"])
        for account, of_account in requests.items()
        for request in of_account
        if request.get("objectRef", {}).get("resource") not in {None, OF_EVERY_ACCOUNT}
        and not any(grant.right.account == account and is_of(grant, request) for grant in GRANTED)
    ]
    assert beyond == []


def test_nothing_was_refused(requests: dict[str, list[Document]]) -> None:
    refused = [
        request["requestURI"]
        for of_account in requests.values()
        for request in of_account
        if request["responseStatus"]["code"] == HTTPStatus.FORBIDDEN
    ]
    assert refused == []


@pytest.mark.parametrize("grant", GRANTED, ids=str)
def test_without_it_the_same_request_is_refused(
    deployed: Deployed, requests: dict[str, list[Document]], grant: Granted
) -> None:
    plane, account = deployed.cluster, grant.right.account
    request = next(request for request in requests[account] if is_of(grant, request))
    kubeconfig = deployed.account(account)
    with without(plane, grant), closing(plane.client(token=plane.token(account, NAMESPACE))) as client:
        answer = client.ask(METHODS[grant.verb], request["requestURI"], {}, content_type=body_of(grant.verb))
        assert answer.status_code == HTTPStatus.FORBIDDEN, answer.text
        with closing(ApiClient(client_config_source(kubeconfig))) as api:
            assert missing(api, [grant.right]) == [(grant.right, grant.verb)]


def body_of(verb: str) -> str:
    return "application/merge-patch+json" if verb == "patch" else "application/json"


@contextmanager
def without(plane: ControlPlane, grant: Granted) -> Iterator[None]:
    """The cluster with that verb of that right taken away, in every role that grants it to the account."""
    taken = [each for each in granting(plane, grant.right) if taken_out(plane, each, grant)]
    assert taken, "no role grants it"
    try:
        until(plane, grant, allowed=False)
        yield
    finally:
        for each in taken:
            done = sent(plane, "PUT", each)
            assert (done if done.is_success else sent(plane, "POST", each)).is_success
        until(plane, grant, allowed=True)


def granting(plane: ControlPlane, right: Right) -> list[Document]:
    """The roles of ours, and the bindings to those of Kubernetes itself, by which an account has a right."""
    kinds = ("RoleBinding", "ClusterRoleBinding") if right.through else ("Role", "ClusterRole")
    roles = [
        stated(each, kind)
        for kind in kinds
        for each in plane.api.get(f"{RBAC}/{kind.lower()}s")["items"]
        if each["metadata"]["name"].startswith("forecaster")
    ]
    return [each for each in roles if grants(each, right)]


def sent(plane: ControlPlane, method: str, document: Document) -> httpx.Response:
    """Send a request for a role or a binding."""
    metadata = document["metadata"]
    place = f"/namespaces/{metadata['namespace']}" if "namespace" in metadata else ""
    name = "" if method == "POST" else f"/{metadata['name']}"
    return plane.api.ask(
        method, f"{RBAC}{place}/{document['kind'].lower()}s{name}", None if method == "DELETE" else document
    )


def grants(role: Document, right: Right) -> bool:
    if right.through:
        return bool(role["roleRef"]["name"] == right.through)
    mine = role["metadata"]["name"].startswith(right.account)
    return mine and any(rule_is_of(rule, right) for rule in role["rules"])


def rule_is_of(rule: dict[str, Any], right: Right) -> bool:
    return right.resource in rule.get("resources", ()) and right.group in rule.get("apiGroups", ())


def stated(document: Document, kind: str) -> Document:
    """An object without what the API server wrote into it."""
    metadata = {
        key: document["metadata"][key] for key in ("name", "namespace", "labels") if key in document["metadata"]
    }
    return {**document, "apiVersion": RBAC.removeprefix("/apis/"), "kind": kind, "metadata": metadata}


def taken_out(plane: ControlPlane, role: Document, grant: Granted) -> bool:
    """Take the verb out of a role, or take the binding away; whether that changed anything."""
    if grant.right.through:
        return sent(plane, "DELETE", role).is_success
    rules = [less(rule, grant) for rule in role["rules"]]
    changed = {**role, "rules": [rule for rule in rules if rule["verbs"]]}
    return rules != role["rules"] and sent(plane, "PUT", changed).is_success


def less(rule: dict[str, Any], grant: Granted) -> dict[str, Any]:
    if not rule_is_of(rule, grant.right):
        return rule
    return {**rule, "verbs": [verb for verb in rule["verbs"] if verb != grant.verb]}


def until(plane: ControlPlane, grant: Granted, *, allowed: bool) -> None:
    """Wait until the API server has learned of a role."""
    right = grant.right
    attributes = {
        "verb": grant.verb,
        "group": right.group,
        "resource": right.resource,
        "namespace": right.namespace,
        "name": right.names[0] if right.names else "",
    }
    user = f"system:serviceaccount:{NAMESPACE}:{right.account}"
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{NAMESPACE}", "system:authenticated"]
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": user, "groups": groups, "resourceAttributes": attributes},
    }

    def decided() -> bool:
        answer = plane.api.ask("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
        return bool(answer.json()["status"]["allowed"]) is allowed

    wait_until(decided, goal=f"{grant} to be {'allowed' if allowed else 'refused'}")


def test_doctor_names_what_is_missing_and_what_is_not_done_without_it(
    deployed: Deployed, requests: dict[str, list[Document]]
) -> None:
    kubeconfig = str(deployed.account("forecaster"))
    settings = parse(
        {"floor": {"enabled": True}, "acting": {"kubeconfig": kubeconfig}, "kubernetes": {"live": "off"}}, "test"
    )
    (well,) = rights_checks(settings)
    assert (well.name, well.ok) == ("rights of mode floor", True)
    events = next(
        grant for grant in GRANTED if grant.right[1:4] == ("floor", "", "events") and grant.right.account != RELEASE
    )
    with without(deployed.cluster, events):
        (check,) = rights_checks(settings)
    assert check.detail == "create events is not allowed: changes leave no Event beside the HPA"
    assert "deploy/components/floor/rights.yaml" in check.remedy
