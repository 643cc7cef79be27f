"""Policies as objects, on a real API server: what it refuses, what it shows, what they change; by the pod's account."""

from __future__ import annotations

import re
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import structlog
import yaml

from forecaster.app.compose import election_of
from forecaster.app.effects import policy_status_writer, status_writer
from forecaster.app.live_facts import live_cluster
from forecaster.config.settings import parse
from forecaster.domain.event import ScheduledEvent
from forecaster.domain.policy import HorizontalPolicy
from forecaster.domain.window import Inventory
from forecaster.domain.workload import WorkloadId
from forecaster.resources.objects import API_VERSION, AUTOSCALERS, path_of_all
from forecaster.resources.schema import CEL_RULES
from forecaster.sources.live_source import LiveSource
from forecaster.sources.queries import Queries
from tests.support.api_objects import in_objects
from tests.support.control_plane.acting import apply_components
from tests.support.control_plane.deployed import NAMESPACE, ROOT
from tests.support.control_plane.workloads import deployment, external_hpa
from tests.support.decided_records import RecordPublisher
from tests.support.owner_walk import specs
from tests.support.recommendations import recommendation
from tests.support.waiting import wait_until
from tests.unit.resources.test_definitions import CONTRADICTIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from forecaster.publish.publisher import OfferedCycle
    from tests.support.control_plane.api import Document
    from tests.support.control_plane.plane import ControlPlane

HEAD = {"apiVersion": API_VERSION, "kind": "PredictiveAutoscaler"}
DEFINITIONS = ROOT / "deploy" / "chart" / "definitions" / "definitions.yaml"


class Prometheus:
    """A Prometheus that knows no workload: those of the API server are all there are."""

    latest = history = containers = container_usage = None

    def __init__(self) -> None:
        self.queries = Queries()

    def inventory(self, at: datetime) -> Inventory:
        return Inventory(at, ())

    def follow(self, inventory: Inventory) -> None:
        """Ignore the inventory."""


class Replica:
    """One forecaster as `app` composes it: live facts, policies, offers, statuses. It recommends five replicas."""

    def __init__(self, plane: ControlPlane, parts: ExitStack) -> None:
        kubeconfig = str(plane.account("forecaster", NAMESPACE))
        given = {"resources": {"enabled": True}, "kubernetes": {"kubeconfig": kubeconfig}}
        self.settings = parse({**given, "acting": {"kubeconfig": kubeconfig}}, "test")
        built = live_cluster(self.settings)
        assert built is not None
        client, self.cluster = built
        self.cluster.start(client)
        parts.callback(self.cluster.stop, client)
        assert self.cluster.wait(60)
        self.source = LiveSource(Prometheus(), self.cluster)  # type: ignore[arg-type]
        self.fence = election_of(self.settings, parts)
        writer = status_writer(self.settings, structlog.get_logger(), parts, self.cluster, self.fence)
        assert writer is not None
        self.writer = writer
        self.offered: OfferedCycle | None = None
        recorder: Any = SimpleNamespace(receive=self._receive)
        of_policies = policy_status_writer(self.settings, structlog.get_logger(), parts, self.cluster, self.fence)
        assert of_policies is not None
        receivers = {"status": writer, "policy-status": of_policies, "seen": recorder}
        self.publisher = RecordPublisher(self.settings.policies, receivers)

    def cycle(self, namespace: str) -> Inventory:
        """Run one cycle and return its inventory."""
        wait_until(lambda: not self.writer.sender.sending, goal="the statuses of the cycle before")
        now = datetime.now(UTC)
        inventory = self.source.inventory(now)
        assert inventory.policies is not None
        self.settings.policies.take_over(inventory.policies)
        ids = [workload.id for workload in inventory.workloads if workload.id.namespace == namespace]
        self.publisher.publish(now, [recommendation(id_, at=now, now=1) for id_ in ids])
        return inventory

    def published(self, id_: WorkloadId) -> bool:
        """Whether HPAs may read a number of a workload, after one more cycle."""
        self.cycle(id_.namespace)
        assert self.offered is not None
        return id_ in self.offered.ids and self.offered.offer(self.offered.ids.index(id_)) is not None

    def _receive(self, cycle: OfferedCycle) -> None:
        self.offered = cycle


@pytest.fixture(scope="module")
def plane(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> ControlPlane:
    """The control plane with `deploy/base` and the component `resources`."""
    apply_components(control_plane, tmp_path_factory.mktemp("resources"), "resources")
    for verb, resource in (("patch", f"{AUTOSCALERS}/status"), ("watch", "predictivepolicies")):
        control_plane.until_allowed(f"{NAMESPACE}/forecaster", verb, f"{resource}.autoscaling.forecaster.dev")
    wait_until(lambda: served(control_plane, AUTOSCALERS, "predictivepolicies"), goal="the definitions")
    return control_plane


def served(plane: ControlPlane, *plurals: str) -> bool:
    return all(plane.api.ask("GET", path_of_all(plural)).is_success for plural in plurals)


@pytest.fixture(scope="module")
def leader(plane: ControlPlane) -> Iterator[Replica]:
    with ExitStack() as parts:
        replica = Replica(plane, parts)
        wait_until(replica.fence.valid, goal="the Lease")
        yield replica


@pytest.fixture
def web(plane: ControlPlane, leader: Replica, namespace: str) -> WorkloadId:
    """A Deployment of one pod, known to the replica."""
    plane.api.create(deployment("web", 1), namespace)
    id_ = WorkloadId(namespace, "Deployment", "web")
    wait_until(lambda: leader.cluster.present(id_) is not None, goal="the Deployment")
    return id_


def apply(plane: ControlPlane, namespace: str, name: str = "web", **spec: Any) -> str:
    document = {**HEAD, "metadata": {"name": name}, "spec": {"scaleTargetRef": {"name": "web"}, **spec}}
    return plane.kubectl("apply", f"--namespace={namespace}", "-f-", given=yaml.safe_dump(document))


def read(plane: ControlPlane, namespace: str) -> Document:
    return plane.api.get(f"/apis/{API_VERSION}/namespaces/{namespace}/{AUTOSCALERS}/web")


def condition(plane: ControlPlane, namespace: str, kind: str) -> tuple[str, str]:
    conditions = read(plane, namespace).get("status", {}).get("conditions", [])
    return next(((each["status"], each["reason"]) for each in conditions if each["type"] == kind), ("", ""))


def policy_row(plane: ControlPlane, leader: Replica, web: WorkloadId) -> list[str]:
    """Workloads and reason of the PredictivePolicy, as kubectl shows them, after one more cycle."""
    leader.cycle(web.namespace)
    _, row = plane.kubectl("get", "predictivepolicies", "publish").splitlines()
    return row.split()[-3:-1]


def events(plane: ControlPlane, namespace: str) -> list[str]:
    items = plane.api.get(f"/api/v1/namespaces/{namespace}/events")["items"]
    return sorted(event["reason"] for event in items if event["source"].get("component") == "forecaster")


def known(replica: Replica, id_: WorkloadId, layers: int) -> None:
    """Wait until the watch has so many layers of a workload."""
    wait_until(lambda: len(replica.cluster.policies().own.get(id_, ())) == layers, goal="the watch of the object")


class TestRefused:
    """Objects that the API server refuses before anything of them reaches us."""

    @pytest.mark.parametrize(
        ("spec", "message"),
        [
            ({"mode": "publsh"}, 'supported values: "observe", "publish", "floor", "scale"'),
            ({"horizontal": {"quantile": 95}}, "spec.horizontal.quantile: Invalid value: 95: must be at most 0.99"),
            ({"horizontal": {"leadTime": "5 minutes"}}, "must be a duration like 90s, 5m, 1h30m or 14d"),
            ({"horizontal": {"leadTime": "13h"}}, "must be at most 12h, in h, m, s or ms"),
            ({"horizontal": {"window": "0s"}}, "must be longer than 0s"),
            ({"horizontal": {"requestsPerPod": "many"}}, "must be a whole number or a quantity like 100m, 0.5 or 64Mi"),
            ({"horizontal": {"quantil": 0.9}}, 'unknown field "spec.horizontal.quantil"'),
        ],
        ids=lambda value: str(value)[:40],
    )
    def test_with_words_that_help(self, plane: ControlPlane, namespace: str, spec: Document, message: str) -> None:
        with pytest.raises(AssertionError, match=re.escape(message)):
            apply(plane, namespace, **spec)

    def test_whatever_contradicts_itself_is_refused_by_the_rule_of_its_own(
        self, plane: ControlPlane, namespace: str
    ) -> None:
        messages = [message for rules in CEL_RULES.values() for _, message in rules]
        for (model, stated), message in zip(CONTRADICTIONS, messages, strict=True):
            value: Any = in_objects(stated)
            section = "horizontal" if model is HorizontalPolicy else "vertical"
            spec = {"horizontal": {"events": [value]}} if model is ScheduledEvent else {section: value}
            with pytest.raises(AssertionError, match=re.escape(message)):
                apply(plane, namespace, **spec)

    def test_whatever_is_beyond_a_bound(self, plane: ControlPlane, namespace: str) -> None:
        """Every field of the schema beyond its bound, one after the other; tests/integration reads these cases, too."""
        path = f"/apis/{API_VERSION}/namespaces/{namespace}/{AUTOSCALERS}?dryRun=All"
        admitted = []
        for case in (each for each in specs() if each.beyond):
            spec = {"scaleTargetRef": {"name": "web"}, **(case.spec or {})}
            answer = plane.api.ask("POST", path, {**HEAD, "metadata": {"name": "web"}, "spec": spec})
            admitted += [] if answer.status_code == 422 else [f"{case.label}: {answer.status_code}"]
        assert admitted == []

    def test_and_what_makes_sense_is_not(self, plane: ControlPlane, namespace: str) -> None:
        event = {"name": "sale", "start": "2026-11-27T08:00:00Z", "end": "2026-11-27T22:00:00Z", "replicas": 40}
        horizontal = {"leadTime": "1h30m", "quantile": 0.95, "requestsPerPod": 50, "events": [event], "minReplicas": 2}
        apply(
            plane,
            namespace,
            mode="publish",
            minHistory="30m",
            horizontal={**horizontal, "podAmounts": [{"signal": "cpu", "amount": "500m"}]},
            vertical={"minCpu": "0.1", "minMemory": "64Mi", "staticCpus": True},
            publish={"abstain": "hold", "lastFor": "5m"},
        )


def test_a_mode_changes_what_is_published_and_its_deletion_puts_it_back(
    plane: ControlPlane, leader: Replica, web: WorkloadId
) -> None:
    assert not leader.published(web)
    apply(plane, web.namespace, mode="publish", horizontal={"leadTime": "4m"})
    known(leader, web, 1)
    assert leader.published(web)
    assert leader.settings.policies.refused(web) == []
    plane.kubectl("annotate", "deployment", "web", f"--namespace={web.namespace}", "forecaster.dev/paused=true")
    known(leader, web, 2)
    assert not leader.published(web)
    plane.kubectl("annotate", "deployment", "web", f"--namespace={web.namespace}", "forecaster.dev/paused-")
    plane.kubectl("delete", AUTOSCALERS, "web", f"--namespace={web.namespace}")
    known(leader, web, 0)
    assert not leader.published(web)


def test_defaults_of_the_platform_count_for_the_workloads_that_they_select(
    plane: ControlPlane, leader: Replica, web: WorkloadId
) -> None:
    policy = {"apiVersion": API_VERSION, "kind": "PredictivePolicy", "metadata": {"name": "publish"}}
    spec = {"mode": "publish", "match": {"namespace": web.namespace, "labels": {"team": "shop-*"}}}
    plane.kubectl("apply", "-f-", given=yaml.safe_dump({**policy, "spec": spec}))
    wait_until(lambda: bool(leader.cluster.policies().defaults), goal="the watch of the object")
    try:
        assert not leader.published(web)
        wait_until(lambda: policy_row(plane, leader, web) == ["0", "MatchesNothing"], goal="the status")
        plane.kubectl("label", "deployment", "web", f"--namespace={web.namespace}", "team=shop-a")
        wait_until(lambda: leader.cluster.policies().labels.get(web) == {"team": "shop-a"}, goal="the label")
        assert leader.published(web)
        wait_until(lambda: policy_row(plane, leader, web) == ["1", "PolicyInForce"], goal="the status")
        both = {"MatchesNothing", "PolicyInForce"}
        wait_until(lambda: both <= set(events(plane, "default")), goal="the Events")
        assert [layer.origin for layer in leader.settings.policies.layers(web)] == ["PredictivePolicy publish"]
    finally:
        plane.kubectl("delete", "predictivepolicy", "publish")


def test_kubectl_shows_what_is_recommended_and_why(plane: ControlPlane, leader: Replica, web: WorkloadId) -> None:
    apply(plane, web.namespace, mode="publish")
    known(leader, web, 1)
    leader.cycle(web.namespace)
    wait_until(lambda: condition(plane, web.namespace, "Ready") == ("True", "PolicyInForce"), goal="the status")
    head, row = plane.kubectl("get", AUTOSCALERS, f"--namespace={web.namespace}").splitlines()
    assert head.split() == ["NAME", "TARGET", "MODE", "CURRENT", "RECOMMENDED", "PEAK", "FORECAST", "REASON", "AGE"]
    assert row.split()[:-1] == ["web", "web", "publish", "1", "5", "cpu", "1800m", "acting", "forecast"]
    described = plane.kubectl("describe", AUTOSCALERS, "web", f"--namespace={web.namespace}")
    assert "The forecast may raise the count." in described


def test_a_status_is_written_once_and_an_event_says_what_changed(
    plane: ControlPlane, leader: Replica, web: WorkloadId
) -> None:
    apply(plane, web.namespace)
    known(leader, web, 1)
    leader.cycle(web.namespace)
    wait_until(lambda: condition(plane, web.namespace, "Ready")[0] == "True", goal="the status")
    version = read(plane, web.namespace)["metadata"]["resourceVersion"]
    leader.cycle(web.namespace)
    leader.cycle(web.namespace)
    assert read(plane, web.namespace)["metadata"]["resourceVersion"] == version
    plane.api.delete("Deployment", "web", web.namespace)
    wait_until(lambda: leader.cluster.present(web) is None, goal="the deletion")
    leader.cycle(web.namespace)
    wait_until(lambda: condition(plane, web.namespace, "Ready") == ("False", "TargetNotFound"), goal="the status")
    wait_until(lambda: events(plane, web.namespace) == ["TargetNotFound", "TargetNotFound"], goal="the Events")
    managers = {
        each["manager"]: each.get("subresource") for each in read(plane, web.namespace)["metadata"]["managedFields"]
    }
    assert managers["forecaster"] == "status"


def test_a_policy_that_other_layers_contradict_says_so_and_the_workload_goes_on_without_it(
    plane: ControlPlane, leader: Replica, web: WorkloadId
) -> None:
    apply(plane, web.namespace, mode="publish", horizontal={"minReplicas": 0})  # sizing is stated by no layer
    known(leader, web, 1)
    assert not leader.published(web)
    wait_until(lambda: condition(plane, web.namespace, "Ready") == ("False", "PolicyRefused"), goal="the status")
    conditions = {each["type"]: each["message"] for each in read(plane, web.namespace)["status"]["conditions"]}
    assert "horizontal.min_replicas is '0': must not be 0" in conditions["Ready"]


def test_what_init_writes_is_what_kubectl_applies(plane: ControlPlane, namespace: str) -> None:
    plane.api.create(external_hpa("web", target="1"), namespace)
    command = [sys.executable, "-m", "forecaster", "init", f"--kubeconfig={plane.kubeconfig}", "-n", namespace]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.startswith("# Keep HPA web: ")
    plane.kubectl("apply", "-f-", given=done.stdout)
    assert read(plane, namespace)["spec"]["mode"] == "observe"


@contextmanager
def redefined(plane: ControlPlane, change: Callable[[Document], None]) -> Iterator[None]:
    """The definition of PredictiveAutoscalers of another release of ours; then the present one again."""
    present, *_ = yaml.safe_load_all(DEFINITIONS.read_text())
    other = deepcopy(present)
    (version,) = other["spec"]["versions"]
    change(version["schema"]["openAPIV3Schema"]["properties"])
    try:
        plane.kubectl("replace", "-f-", given=yaml.safe_dump(other))
        yield
    finally:
        plane.kubectl("replace", "-f-", given=yaml.safe_dump(present))


def test_under_an_older_definition_the_status_tells_what_that_knows(
    plane: ControlPlane, leader: Replica, web: WorkloadId
) -> None:
    def older(schema: Document) -> None:
        del schema["status"]["properties"]["forecastPeak"], schema["spec"]["properties"]["vertical"]

    with redefined(plane, older):
        wait_until(lambda: not accepted(plane, web.namespace, vertical={}), goal="the older definition")
        apply(plane, web.namespace, mode="publish")
        known(leader, web, 1)
        assert leader.published(web)
        wait_until(lambda: condition(plane, web.namespace, "Ready") == ("True", "PolicyInForce"), goal="the status")


def test_a_field_of_a_newer_definition_is_named_and_guessed_at_by_nothing(plane: ControlPlane, web: WorkloadId) -> None:
    def newer(schema: Document) -> None:
        schema["spec"]["properties"]["horizontal"]["properties"]["mood"] = {"type": "string"}

    with redefined(plane, newer), ExitStack() as parts:
        wait_until(lambda: accepted(plane, web.namespace, horizontal={"mood": "calm"}), goal="the newer definition")
        replica = Replica(plane, parts)
        known(replica, web, 1)
        assert not replica.published(web)
        ((_, why),) = replica.settings.policies.refused(web)
        assert why.startswith("horizontal.mood is 'calm': ")


def accepted(plane: ControlPlane, namespace: str, **spec: object) -> bool:
    """Whether the API server knows these fields by now."""
    try:
        apply(plane, namespace, mode="publish", **spec)
    except AssertionError:
        return False
    return True


def test_without_the_definitions_the_service_goes_on_and_says_so(
    plane: ControlPlane, leader: Replica, web: WorkloadId, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last test: the definitions go, as when somebody deletes them while the service runs."""
    apply(plane, web.namespace, mode="publish")
    known(leader, web, 1)
    for name in (AUTOSCALERS, "predictivepolicies"):
        plane.kubectl("delete", "customresourcedefinition", f"{name}.autoscaling.forecaster.dev")
    known(leader, web, 0)
    assert web in leader.cycle(web.namespace).ids
    assert not leader.published(web)

    with ExitStack() as parts:  # a service that begins without definitions
        monkeypatch.setattr("forecaster.kube.watch.REFUSED_PAUSE", 1.0)
        replica = Replica(plane, parts)
        assert web in replica.cycle(web.namespace).ids
        refused = [watch for watch in replica.cluster.watches if watch.health.refused]
        assert [watch.path.rpartition("/")[2] for watch in refused] == [AUTOSCALERS, "predictivepolicies"]
        assert all("404" in watch.health.fault for watch in refused)
        plane.install(DEFINITIONS)  # the service learns of definitions that are installed later
        apply(plane, web.namespace, mode="publish")
        known(replica, web, 1)
        assert replica.published(web)
        assert not any(watch.health.refused for watch in replica.cluster.watches)
