"""Mode floor on a real API server with the real HPA controller, by the accounts of deploy/components/floor."""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import ExitStack, closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
import structlog
import yaml

from forecaster.actuators.floor.actuator import FloorActuator
from forecaster.actuators.floor.autoscalers import BEFORE, LABEL, MODE, Autoscalers
from forecaster.actuators.floor.values import Write, WrittenFloor
from forecaster.actuators.writes import Change
from forecaster.app.effects import actuators
from forecaster.config.settings import parse
from forecaster.domain.decision import Reason
from forecaster.domain.workload import WorkloadId
from forecaster.kube.client import ApiClient, ApiError, UnreachableError
from forecaster.kube.config import client_config_source
from tests.support.control_plane.acting import apply_components, events
from tests.support.control_plane.api import RefusedError
from tests.support.control_plane.deployed import NAMESPACE, ROOT
from tests.support.control_plane.workloads import deployment, external_hpa, replicas
from tests.support.decided_records import RecordPublisher
from tests.support.recommendations import recommendation, signal_view
from tests.support.waiting import PATIENCE, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from forecaster.domain.report import Effected
    from forecaster.kube.config import ClientConfig
    from tests.support.control_plane.api import Api, Document
    from tests.support.control_plane.plane import ControlPlane

HPA = "HorizontalPodAutoscaler"


@pytest.fixture(scope="module")
def plane(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> ControlPlane:
    """The control plane with `deploy/base` and the component `floor`."""
    apply_components(control_plane, tmp_path_factory.mktemp("floor"), "floor")
    for account in ("forecaster", "forecaster-release"):
        control_plane.until_allowed(f"{NAMESPACE}/{account}", "patch", "horizontalpodautoscalers.autoscaling")
    return control_plane


class Replica:
    """One forecaster, composed by `app`, whose forecasts ask for counts that a test names."""

    def __init__(self, plane: ControlPlane, parts: ExitStack, mode: str = "floor") -> None:
        acting = {"kubeconfig": str(plane.account("forecaster", NAMESPACE))}
        given = {"acting": acting, "floor": {"enabled": True}, "policy": {"mode": mode}}
        self.settings = parse(given, "test")
        built = actuators(self.settings, structlog.get_logger(), parts)
        assert built is not None
        assert isinstance(built.parts["floor"], FloorActuator)
        self.actuator = built.parts["floor"]
        self.fence = built.election
        self.publisher = RecordPublisher(self.settings.policies, {"floor": self.actuator})

    def until_leading(self) -> None:
        wait_until(self.fence.leading, goal="the Lease")

    def cycle(self, namespace: str, count: int | None, *, at: datetime | None = None) -> Effected:
        """Run one cycle for the Deployment `web`; with None nothing is known."""
        now = at or datetime.now(UTC)
        view = signal_view("cpu", now)
        decided = recommendation(
            WorkloadId(namespace, "Deployment", "web"),
            at=now,
            now=1,
            replicas=count,
            reason=Reason.FORECAST if count else Reason.NO_DATA,
        )
        view = replace(view, forecast_replicas=count)
        self.publisher.publish(now, [replace(decided, signals=(view,), clamps=())])
        return self.actuator.act(now)


@pytest.fixture(scope="module")
def leader(plane: ControlPlane) -> Iterator[Replica]:
    with ExitStack() as parts:
        replica = Replica(plane, parts)
        replica.until_leading()
        yield replica


@pytest.fixture
def web(plane: ControlPlane, namespace: str) -> str:
    """A namespace with a Deployment of one pod, and an HPA whose metric cannot be read."""
    plane.api.create(deployment("web", 1), namespace)
    manifest = external_hpa("web", target="1", most=10)
    manifest["spec"]["behavior"]["scaleUp"]["policies"] = [{"type": "Pods", "value": 1, "periodSeconds": 60}]
    plane.kubectl("apply", f"--namespace={namespace}", "-f-", given=yaml.safe_dump(manifest))
    wait_until(lambda: reason(plane.api, namespace) == "FailedGetExternalMetric", goal="the HPA")
    return namespace


def reason(api: Api, namespace: str) -> str:
    return str(api.condition(HPA, "web", "ScalingActive", namespace).get("reason"))


def owners_part(api: Api, namespace: str) -> Document:
    """Return the parts of an HPA that are its owner's."""
    hpa = api.read(HPA, "web", namespace)
    meta = hpa["metadata"]
    return {"spec": hpa["spec"], "labels": meta.get("labels"), "annotations": meta.get("annotations")}


def managers(api: Api, namespace: str) -> set[str]:
    return {each["manager"] for each in api.read(HPA, "web", namespace)["metadata"]["managedFields"]}


def test_pods_are_there_within_one_sync_although_the_metric_cannot_be_read(
    plane: ControlPlane, leader: Replica, web: str
) -> None:
    began = time.monotonic()
    assert leader.cycle(web, 6).writes == {("raise", "written"): 1}
    wait_until(lambda: replicas(plane.api, "web", web).desired == 5, goal="the first step")
    print(f"asked to scaled: {time.monotonic() - began:.2f} s")  # noqa: T201
    began = time.monotonic()
    leader.cycle(web, 6)
    print(f"a look, a write and its Event: {time.monotonic() - began:.3f} s")  # noqa: T201
    wait_until(lambda: replicas(plane.api, "web", web).ready == 6, goal="six pods")
    hpa = plane.api.read(HPA, "web", web)
    assert hpa["metadata"]["annotations"][BEFORE] == "1"
    assert hpa["metadata"]["labels"] == {LABEL: "raised"}
    assert reason(plane.api, web) == "FailedGetExternalMetric"
    assert [message.partition(";")[0] for reason, message in events(plane.api, web) if reason == "FloorRaised"] == [
        "minReplicas 1 → 5: the forecast asks for 6. the forecast asks for 5, the measured demand for 4",
        "minReplicas 5 → 6: the forecast asks for 6. the forecast asks for 5, the measured demand for 4",
    ]


def test_a_floor_is_raised_as_far_as_the_quota_of_its_namespace_goes_and_no_pod_is_refused(
    plane: ControlPlane, leader: Replica, web: str
) -> None:
    """Four pods fit, of those that request 100m each."""
    quota = {"kind": "ResourceQuota", "metadata": {"name": "team"}, "spec": {"hard": {"requests.cpu": "450m"}}}
    plane.kubectl("apply", f"--namespace={web}", "-f-", given=yaml.safe_dump({"apiVersion": "v1", **quota}))
    used = f"/api/v1/namespaces/{web}/resourcequotas/team"

    def counts_as_used(amount: str) -> bool:
        amounts: Document = plane.api.get(used).get("status", {}).get("used", {})
        return bool(amounts.get("requests.cpu") == amount)

    def watched() -> bool:
        one_more = leader.actuator.headroom()(WorkloadId(web, "Deployment", "web"), 1)
        return [dict(quota.used) for quota in one_more.quotas] == [{"requests.cpu": 200}]

    wait_until(watched, goal="the quota, and what is used of it")
    wait_until(lambda: bool(leader.cycle(web, 6).writes), goal="a floor")
    assert plane.api.read(HPA, "web", web)["spec"]["minReplicas"] == 4
    wait_until(lambda: replicas(plane.api, "web", web) == (4, 4), goal="the pods that fit")
    wait_until(lambda: counts_as_used("400m"), goal="the quota")

    def refused() -> bool:
        effect = leader.cycle(web, 6)
        assert not effect.writes
        return effect.states["quota"] == 1

    wait_until(refused, goal="the refusal by the quota")
    all_events = plane.api.get(f"/api/v1/namespaces/{web}/events")["items"]
    assert "FailedCreate" not in {event["reason"] for event in all_events}


def test_another_mode_leaves_the_hpa_as_it_was_and_its_fields_free(
    plane: ControlPlane, leader: Replica, web: str
) -> None:
    before = owners_part(plane.api, web)
    leader.cycle(web, 4)
    assert owners_part(plane.api, web) != before
    plane.api.merge(HPA, "web", {"metadata": {"annotations": {MODE: "publish"}}}, web)
    assert leader.cycle(web, 4).writes["restore", "written"] == 1
    plane.api.merge(HPA, "web", {"metadata": {"annotations": {MODE: None}}}, web)
    assert owners_part(plane.api, web) == before
    assert "forecaster" not in managers(plane.api, web)
    manifest = external_hpa("web", target="1", most=10)
    manifest["spec"] = {key: manifest["spec"][key] for key in ("maxReplicas", "scaleTargetRef")} | {"minReplicas": 3}
    apply = ("apply", "--server-side", "--field-manager=gitops", f"--namespace={web}", "-f-")
    plane.kubectl(*apply, given=yaml.safe_dump(manifest))  # a conflict would be an error
    assert plane.api.read(HPA, "web", web)["spec"]["minReplicas"] == 3


def test_the_cron_jobs_command_ends_floors_that_were_not_renewed(
    plane: ControlPlane, leader: Replica, web: str
) -> None:
    """The service is gone: only this command is left, with its own account and rights."""
    before = owners_part(plane.api, web)
    leader.cycle(web, 4)
    assert run_release(plane) == ""
    leader.cycle(web, 5, at=datetime.now(UTC) - timedelta(minutes=16))
    assert f"HPA {web}/web: minReplicas 1, was 5: its expiry has passed" in run_release(plane)
    assert owners_part(plane.api, web) == before
    assert ("FloorRestored", "minReplicas 5 → 1: its expiry has passed") in events(plane.api, web)


def test_release_ends_all_floors_but_those_of_other_names(plane: ControlPlane, leader: Replica, web: str) -> None:
    before = owners_part(plane.api, web)
    leader.cycle(web, 4)
    assert run_release(plane, "release", "--dry-run", f"{web}/web").startswith(f"HPA {web}/web: minReplicas 1, was 4")
    assert run_release(plane, "release", f"{web}/other") == ""
    assert owners_part(plane.api, web)["spec"]["minReplicas"] == 4
    assert run_release(plane, "release", f"{web}/*").startswith(f"HPA {web}/web: minReplicas 1, was 4")
    assert owners_part(plane.api, web) == before
    assert "forecaster" not in managers(plane.api, web)


def run_release(plane: ControlPlane, *arguments: str) -> str:
    """Run the CronJob's command with its account, or another command with the account of the service."""
    job = plane.api.get(f"/apis/batch/v1/namespaces/{NAMESPACE}/cronjobs/forecaster-release")
    (container,) = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    account = "forecaster" if arguments else "forecaster-release"
    rights = f"--kubeconfig={plane.account(account, NAMESPACE)}"
    command = [sys.executable, "-m", "forecaster", *(arguments or container["args"]), rights]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_second_writer_keeps_its_value_and_is_told_of_it(plane: ControlPlane, leader: Replica, web: str) -> None:
    leader.cycle(web, 5)
    plane.api.merge(HPA, "web", {"spec": {"minReplicas": 3}}, web)
    assert leader.cycle(web, 5).writes["yield", "written"] == 1
    effect = leader.cycle(web, 5)
    assert effect.writes == {}
    assert effect.states["second-writer"] == 1
    hpa = plane.api.read(HPA, "web", web)
    assert hpa["spec"]["minReplicas"] == 3
    assert hpa["metadata"]["labels"] == {LABEL: "backed-off"}
    assert [reason for reason, _ in events(plane.api, web)] == ["FloorBackedOff", "FloorRaised"]
    assert run_release(plane, "release", f"{web}/web")
    assert owners_part(plane.api, web)["labels"] is None


def test_an_owner_who_applies_the_same_manifest_again_is_one(plane: ControlPlane, leader: Replica, web: str) -> None:
    """kubectl apply compares with what is there: it puts its own minReplicas back."""
    manifest = external_hpa("web", target="1", most=10)
    leader.cycle(web, 5)
    plane.kubectl("apply", f"--namespace={web}", "-f-", given=yaml.safe_dump(manifest))
    assert plane.api.read(HPA, "web", web)["spec"]["minReplicas"] == 1
    assert leader.cycle(web, 5).writes["yield", "written"] == 1
    assert plane.api.read(HPA, "web", web)["spec"]["minReplicas"] == 1


def test_an_owner_who_replaces_the_hpa_again_and_again_is_one_although_our_marks_go_with_it(
    plane: ControlPlane, leader: Replica, web: str
) -> None:
    manifest = external_hpa("web", target="1", most=10)
    leader.cycle(web, 5)
    plane.api.put(manifest, web)
    assert leader.cycle(web, 5).writes["yield", "written"] == 1
    plane.api.put(manifest, web)
    assert leader.cycle(web, 5).writes == {}
    refusal = leader.actuator.writer.lasting[WorkloadId(web, "Deployment", "web")]
    assert refusal.code == "second-writer"


def test_a_sync_of_argo_cd_that_ignores_the_field_makes_no_floor_the_owners_value(
    plane: ControlPlane, leader: Replica, web: str
) -> None:
    """Argo CD applies the live value of each field that it ignores, by the settings of deploy/examples/argo-cd.yaml."""
    manifest = external_hpa("web", target="1", most=10)
    leader.cycle(web, 5)
    manifest["spec"]["minReplicas"] = plane.api.read(HPA, "web", web)["spec"]["minReplicas"]
    sync = ("--server-side", "--force-conflicts", "--field-manager=argocd-controller")
    plane.kubectl("apply", *sync, f"--namespace={web}", "-f-", given=yaml.safe_dump(manifest))
    assert leader.cycle(web, 5).writes == {}
    plane.api.merge(HPA, "web", {"metadata": {"annotations": {MODE: "publish"}}}, web)
    assert leader.cycle(web, 5).writes == {("restore", "written"): 1}
    hpa = plane.api.read(HPA, "web", web)
    assert (hpa["spec"]["minReplicas"], hpa["metadata"].get("labels")) == (1, None)


def copied(plane: ControlPlane, namespace: str) -> Document:
    """Delete the HPA; return it as a backup or a file in Git has it, with our marks."""
    hpa = plane.api.read(HPA, "web", namespace)
    plane.api.delete(HPA, "web", namespace)
    meta = {key: hpa["metadata"][key] for key in ("name", "namespace", "labels", "annotations")}
    return {"apiVersion": hpa["apiVersion"], "kind": HPA, "metadata": meta, "spec": hpa["spec"]}


def test_a_floor_that_came_back_with_a_backup_ends_with_its_owners_value(
    plane: ControlPlane, leader: Replica, web: str
) -> None:
    leader.cycle(web, 5)
    plane.api.create(copied(plane, web), web)
    assert leader.cycle(web, 5).writes == {}
    assert "minReplicas 1, was 5" in run_release(plane, "release", f"{web}/web")
    assert plane.api.read(HPA, "web", web)["spec"]["minReplicas"] == 1


def test_a_floor_that_stands_in_git_by_mistake_is_yielded_to_once_in_a_back_off(
    plane: ControlPlane, leader: Replica, web: str
) -> None:
    leader.cycle(web, 5)
    manifest = yaml.safe_dump(copied(plane, web))
    sync = ("apply", "--server-side", "--force-conflicts", "--field-manager=kustomize-controller", "-f-")
    effects = [leader.cycle(web, 5) for _ in range(3) if plane.kubectl(*sync, given=manifest)]
    assert [effect.writes for effect in effects] == [{("yield", "written"): 1}, {}, {}]
    assert [reason for reason, _ in events(plane.api, web)] == ["FloorBackedOff", "FloorRaised"]


class Dying(ApiClient):
    """A client whose process dies before its merge patch is sent, or after its apply was."""

    def patch(self, path: str, change: Any, kind: Any) -> Any:
        raise UnreachableError("died")


def test_a_leader_that_dies_within_a_restoring_loses_no_value(plane: ControlPlane, leader: Replica, web: str) -> None:
    before = owners_part(plane.api, web)
    leader.cycle(web, 5)
    source = client_config_source(plane.account("forecaster", NAMESPACE))
    dying = replace(leader.actuator, autoscalers=Autoscalers(Dying(source).configured()))
    plane.api.merge(HPA, "web", {"metadata": {"annotations": {MODE: "publish"}}}, web)
    dying.act(datetime.now(UTC))
    assert plane.api.read(HPA, "web", web)["spec"]["minReplicas"] == 1
    assert plane.api.read(HPA, "web", web)["metadata"]["labels"] == {LABEL: "restored"}
    assert leader.cycle(web, 5).writes["forget", "written"] == 1
    plane.api.merge(HPA, "web", {"metadata": {"annotations": {MODE: None}}}, web)
    assert owners_part(plane.api, web) == before
    assert "forecaster" not in managers(plane.api, web)


class Hasty(ApiClient):
    """A client between whose writes the HPA's status changes, as its controller does at once from 1.37 on."""

    def __init__(self, source: Callable[[], ClientConfig], change: Callable[[], object]) -> None:
        super().__init__(source)
        self.change = change

    def apply(self, path: str, fields: Any, kind: Any) -> Any:
        answer = super().apply(path, fields, kind)
        self.change()
        return answer


def test_a_status_between_our_writes_leaves_no_mark_behind(plane: ControlPlane, leader: Replica, web: str) -> None:
    before, autoscalers = owners_part(plane.api, web), leader.actuator.autoscalers
    leader.cycle(web, 5)
    source = client_config_source(plane.account("forecaster", NAMESPACE))
    hasty = Hasty(
        source, lambda: plane.api.merge(HPA, "web", {"metadata": {"annotations": {"beside/us": str(time.time())}}}, web)
    )
    leader.actuator.autoscalers = Autoscalers(hasty.configured())
    plane.api.merge(HPA, "web", {"metadata": {"annotations": {MODE: "publish"}}}, web)
    assert leader.cycle(web, 5).writes["restore", "written"] == 1
    leader.actuator.autoscalers = autoscalers
    plane.api.merge(HPA, "web", {"metadata": {"annotations": {MODE: None, "beside/us": None}}}, web)
    assert owners_part(plane.api, web) == before
    assert "forecaster" not in managers(plane.api, web)


class Mute(ApiClient):
    """A client whose process dies after its write has arrived and before the answer has."""

    def apply(self, path: str, fields: Any, kind: Any) -> Any:
        super().apply(path, fields, kind)
        raise UnreachableError("died")


def test_a_leader_that_dies_before_the_answer_loses_no_value_and_is_not_repeated(
    plane: ControlPlane, leader: Replica, web: str
) -> None:
    source = client_config_source(plane.account("forecaster", NAMESPACE))
    before, autoscalers = owners_part(plane.api, web), leader.actuator.autoscalers
    leader.actuator.autoscalers = Autoscalers(Mute(source).configured())
    assert leader.cycle(web, 5).writes["raise", "failed"] == 1
    leader.actuator.autoscalers, leader.actuator.memory = autoscalers, {}
    marks = plane.api.read(HPA, "web", web)["metadata"]["annotations"]
    assert ("raise", "written") not in leader.cycle(web, 5).writes
    hpa = plane.api.read(HPA, "web", web)
    assert (hpa["spec"]["minReplicas"], hpa["metadata"]["annotations"]) == (5, marks)
    run_release(plane, "release", f"{web}/web")
    assert owners_part(plane.api, web) == before


def test_a_dry_run_changes_nothing_and_is_judged_by_the_api_server(plane: ControlPlane, web: str) -> None:
    before = plane.api.read(HPA, "web", web)
    source = client_config_source(plane.account("forecaster", NAMESPACE))
    (hpa,) = [each for each in Autoscalers(ApiClient(source)).listed() if each.namespace == web]
    dry = Autoscalers(ApiClient(source), dry_run=True)
    floor = WrittenFloor(1, datetime.now(UTC) + timedelta(minutes=15))
    dry.write(Write(hpa, Change.RAISE, 4, "a test", floor))
    with pytest.raises(ApiError, match="maxReplicas"):
        dry.write(Write(hpa, Change.RAISE, 11, "a test", floor))
    assert plane.api.read(HPA, "web", web) == before


def other_namespace(plane: ControlPlane, beside: str) -> str:
    """Another namespace with the same HPA, and nothing for it to scale."""
    name = f"{beside}-other"
    plane.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    plane.api.create(external_hpa("web", target="1", most=10), name)
    return name


class CutOff:
    """An API server that does not answer one replica."""

    def get(self, path: str, kind: Any) -> Any:
        raise UnreachableError("no answer")

    def patch(self, path: str, change: Any, kind: Any) -> Any:
        return self.get(path, kind)


class TestElection:
    def test_the_next_replica_leads_at_once_after_a_release_and_within_20_s_without_one(
        self, plane: ControlPlane, leader: Replica, web: str
    ) -> None:
        with ExitStack() as second_parts, ExitStack() as third_parts:
            second = Replica(plane, second_parts)
            assert second.cycle(web, 5).writes == {}
            assert second.fence.fault == ""
            fence = leader.fence
            reached, fence.leases = fence.leases, CutOff()
            began = time.monotonic()
            second.until_leading()
            took = time.monotonic() - began
            print(f"from the last leader to the next: {took:.1f} s")  # noqa: T201
            assert took < 20.0
            assert not fence.valid()
            assert leader.cycle(web, 5).writes == {}
            assert second.cycle(web, 5).writes["raise", "written"] == 1
            fence.leases = reached
            third = Replica(plane, third_parts)
            second_parts.close()
            wait_until(lambda: third.fence.leading() or fence.leading(), goal="the next leader")
            third_parts.close()
            leader.until_leading()

    def test_a_pause_by_annotation_stops_and_goes_on(self, plane: ControlPlane, leader: Replica, web: str) -> None:
        plane.kubectl("annotate", "lease", "forecaster", f"--namespace={NAMESPACE}", "forecaster.dev/pause=true")
        wait_until(lambda: leader.fence.paused, goal="the pause")
        assert leader.cycle(web, 5).writes == {}
        plane.kubectl("annotate", "lease", "forecaster", f"--namespace={NAMESPACE}", "forecaster.dev/pause-")
        wait_until(leader.fence.valid, goal="the end of the pause")
        assert leader.cycle(web, 5).writes["raise", "written"] == 1

    def test_a_pause_freezes_floors_that_run_out_meanwhile(
        self, plane: ControlPlane, leader: Replica, web: str
    ) -> None:
        leader.cycle(web, 5, at=datetime.now(UTC) - timedelta(minutes=16))
        plane.kubectl("annotate", "lease", "forecaster", f"--namespace={NAMESPACE}", "forecaster.dev/pause=true")
        try:
            assert "writes are paused" in run_release(plane)
            assert owners_part(plane.api, web)["spec"]["minReplicas"] == 5
        finally:
            plane.kubectl("annotate", "lease", "forecaster", f"--namespace={NAMESPACE}", "forecaster.dev/pause-")
        assert f"HPA {web}/web: minReplicas 1, was 5" in run_release(plane)


def test_the_service_itself_leads_undoes_what_is_no_longer_wanted_and_gives_the_lease_back(
    plane: ControlPlane, leader: Replica, web: str, tmp_path: Path
) -> None:
    """`forecaster run` with the settings of the component, and no Prometheus: it knows nothing, and lowers nothing."""
    leader.cycle(web, 5)
    other = other_namespace(plane, web)
    leader.cycle(other, 5)
    plane.api.merge(HPA, "web", {"metadata": {"annotations": {MODE: "publish"}}}, other)
    misread = yaml.safe_dump(external_hpa("web", target="1", signal="cpus") | {"metadata": {"name": "odd"}})
    plane.kubectl("apply", f"--namespace={other}", "-f-", given=misread)
    component = yaml.safe_load((ROOT / "deploy" / "components" / "floor" / "settings.yaml").read_text())
    rights = {"kubeconfig": str(plane.account("forecaster", NAMESPACE))}
    settings = {
        **component,
        "acting": component["acting"] | rights,
        "kubernetes": rights,  # HPAs are watched
        "policy": {"mode": "floor"},
        "prometheus": {"url": "http://127.0.0.1:9", "retries": 0},
        "serving": {"enabled": False},
        "state": {"directory": str(tmp_path / "state")},
    }
    (tmp_path / "settings.yaml").write_text(yaml.safe_dump(settings))
    command = [sys.executable, "-m", "forecaster", "run", "--config", str(tmp_path / "settings.yaml")]
    fence = leader.fence
    reached, fence.leases = fence.leases, CutOff()
    plane.api.merge("Lease", "forecaster", {"spec": {"holderIdentity": None}}, NAMESPACE)  # its first cycle leads
    with (tmp_path / "log").open("wb") as log, subprocess.Popen(command, stderr=log) as process:
        wait_until(lambda: owners_part(plane.api, other)["spec"]["minReplicas"] == 1, goal="the undo")
        wait_until(lambda: "MetricMisread" in dict(events(plane.api, other)), goal="the Event of the misread HPA")
        process.terminate()
    assert process.returncode == 0, (tmp_path / "log").read_text()
    assert plane.api.read(HPA, "web", web)["spec"]["minReplicas"] == 5
    assert "holderIdentity" not in plane.api.read("Lease", "forecaster", NAMESPACE)["spec"]
    logged = (tmp_path / "log").read_bytes()
    assert b'"event": "cluster_write"' in logged
    assert b"cycle_failed" not in logged
    fence.leases = reached
    leader.until_leading()


class TestRights:
    @pytest.fixture
    def account(self, plane: ControlPlane) -> Iterator[Api]:
        with closing(plane.client(token=plane.token("forecaster", NAMESPACE))) as client:
            yield client

    @pytest.mark.parametrize(
        ("change", "refusal"),
        [
            ({"spec": {"minReplicas": 5}}, "needs the owner's value"),
            ({"spec": {"minReplicas": 5}, "metadata": {"annotations": {BEFORE: "4"}}}, "needs the owner's value"),
            ({"spec": {"maxReplicas": 50}}, "changes minReplicas only"),
            ({"spec": {"scaleTargetRef": {"name": "other"}}}, "changes minReplicas only"),
            ({"spec": {"behavior": {"scaleUp": {"stabilizationWindowSeconds": 9}}}}, "changes minReplicas only"),
            ({"metadata": {"annotations": {"argocd.argoproj.io/sync": "no"}}}, "changes its own only"),
            ({"metadata": {"annotations": {BEFORE: "0"}}}, "stays as it was found"),
            ({"metadata": {"finalizers": ["forecaster.dev/stay"]}}, "neither finalizers nor owners"),
            ({"metadata": {"labels": {"team": "other"}}}, "labels forecaster changes its own only"),
            ({"metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": None}}}, "its own only"),
        ],
        ids=lambda each: each if isinstance(each, str) else None,
    )
    def test_the_api_server_holds_our_account_to_its_field(
        self, account: Api, web: str, change: Document, refusal: str
    ) -> None:
        with pytest.raises(RefusedError, match=refusal):
            account.merge(HPA, "web", change, web)

    def test_the_owners_value_is_the_least_that_our_account_may_write(
        self, plane: ControlPlane, account: Api, leader: Replica, web: str
    ) -> None:
        plane.api.merge(HPA, "web", {"spec": {"minReplicas": 3}}, web)
        with pytest.raises(RefusedError, match="must not be below"):
            account.merge(HPA, "web", {"spec": {"minReplicas": 2}}, web)
        leader.cycle(web, 6)
        with pytest.raises(RefusedError, match="must not be below"):
            account.merge(HPA, "web", {"spec": {"minReplicas": 2}, "metadata": {"annotations": {BEFORE: "2"}}}, web)
        with pytest.raises(RefusedError, match="stays as it was found"):
            account.merge(HPA, "web", {"metadata": {"annotations": {BEFORE: "2"}}}, web)

    def test_the_account_of_the_release_puts_back_and_raises_nothing(self, plane: ControlPlane, web: str) -> None:
        raised = {"spec": {"minReplicas": 5}, "metadata": {"annotations": {BEFORE: "1"}}}
        token = plane.token("forecaster-release", NAMESPACE)
        with closing(plane.client(token=token)) as account, pytest.raises(RefusedError, match="writes no others"):
            account.merge(HPA, "web", raised, web)

    def test_nothing_else_may_be_written(self, account: Api, web: str) -> None:
        for forbidden in (
            lambda: account.delete(HPA, "web", web),
            lambda: account.create(external_hpa("new", target="1"), web),
            lambda: account.merge("Deployment", "web", {"spec": {"replicas": 0}}, web),
            lambda: account.create({"kind": "Lease", "metadata": {"name": "other"}}, NAMESPACE),
            lambda: account.read("Secret", "forecaster-certificates", NAMESPACE),
        ):
            with pytest.raises(RefusedError, match="forbidden"):
                forbidden()
