"""The whole story: installed from deploy/, observing, publishing, raising floors, and gone without a trace.

Recorded demands, each on two Deployments with the same HPA, on a real control plane with the real HPA controller; half
of the HPAs are given `forecaster.dev/mode: floor`. Then once more with Helm: some of the demands are those of two more
Deployments without an HPA; one is scaled, of the other the pods are resized. `./dev test --long` plays a hundred of
them, any other run the twenty of forty that rise most. `-s` shows what became of them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import defaultdict
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import yaml

from deploy.generate.kustomized import DEPLOY
from forecaster.actuators.resize.pods import LABEL as RESIZED
from forecaster.actuators.scale.scales import LABEL as SCALED
from forecaster.app import telemetry
from forecaster.app.reload import SettingsFiles, SettingsReload
from forecaster.app.serve import build_service, state_directory, table_path
from forecaster.config.files import fingerprint
from forecaster.config.settings import load
from forecaster.domain.window import MINUTE, last_multiple
from tests.support.control_plane.binaries import CORE, why_not
from tests.support.control_plane.deployed import EXTERNAL, NAMESPACE, Deployed
from tests.support.control_plane.everything import differences, everything
from tests.support.control_plane.objects import node
from tests.support.control_plane.plane import ControlPlane
from tests.support.exporters import NAMESPACE as SHOP
from tests.support.exporters import SCRAPE
from tests.support.packaging import helm, tool
from tests.support.played_time import PlayedTime
from tests.support.prometheus import RealPrometheus, fill, find_binaries
from tests.support.twin_fleet import (
    ALONE,
    ARMS,
    MOST,
    UTILIZATION,
    Carried,
    PodMetrics,
    TwinExporters,
    TwinFleet,
    app_of,
    arm_of,
    recorded_demand,
    requested_by,
)
from tests.support.waiting import PATIENCE, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from forecaster.app.service import Service
    from tests.support.control_plane.api import Document

pytestmark = [pytest.mark.prometheus, pytest.mark.slow, pytest.mark.long]

START = DEPLOY / "start"
SHORT, LONG = (40, 20, 15, 16460), (100, 100, 30, 8955)
"""Demands, how many of them are played, how many of those are also of Deployments without an HPA, and the minute of the
recording at which it begins: an hour in which the HPA alone falls short more than in most.
"""
HOUR = 60
NODES = 20
"""Nodes of 64 cores each; a pod has two."""
PLAYED = 15
"""Minutes with floors."""
PLAYED_AGO = timedelta(hours=8)
"""Time before the real clock at which the story is played, so that no table is of the future."""
READING = {"get", "list", "watch"}
BOUNDS = {"min_replicas": 1, "max_replicas": MOST, "cpu_utilization": UTILIZATION}
SCALES = {"match": {"name": "scale-*"}, "policy": {"mode": "scale", "horizontal": BOUNDS}}
RESIZES = {"match": {"name": "sized-*"}, "policy": {"vertical": {"mode": "in-place"}}}


@dataclass
class Story:
    """The fleet, and forecaster installed beside it."""

    fleet: TwinFleet
    clock: PlayedTime
    prometheus: str
    folder: Path
    before: dict[str, Document]
    begins: int
    """The minute of the recording at which the fleet was at rest."""
    deployed: Deployed | None = None
    service: Service | None = None
    mounted: Path | None = None
    """Settings of the ConfigMap, as a kubelet mounts them."""
    installed: datetime | None = None
    """Instant of the last installation."""

    @property
    def plane(self) -> ControlPlane:
        return self.fleet.plane

    def install(self) -> Deployed:
        """Install as the README says, with kubectl alone, and with the metrics API for HPAs that read the forecast."""
        self.plane.kubectl("apply", "-f", str(DEPLOY / "base" / "api-service.yaml"))
        table = table_path(state_directory_of(self.folder))
        self.deployed = Deployed(self.plane, self.folder, table=table, kustomization=START)
        self.deployed.stale_after_seconds = None
        self.plane.until_allowed(f"{NAMESPACE}/forecaster", "patch", "horizontalpodautoscalers.autoscaling")
        self.deployed.run_certificates()
        return self.deployed

    def install_with_helm(self, *components: str) -> None:
        """Install as the README says, with Helm alone, and with these components."""
        self.installed = datetime.now(UTC)
        chosen = ["--set=apiService.create=true", *(f"--set=components.{name}=true" for name in components)]
        values = f"--values={START / 'values.yaml'}"
        self.helm("install", "forecaster", str(DEPLOY / "chart"), "--create-namespace", values, *chosen)
        for resource in ("horizontalpodautoscalers.autoscaling", "deployments.apps", "pods"):
            self.plane.until_allowed(f"{NAMESPACE}/forecaster", "patch", resource)

    def helm(self, *arguments: str) -> None:
        """One call of Helm in our namespace."""
        done = helm(*arguments, f"--kubeconfig={self.plane.kubeconfig}", f"--namespace={NAMESPACE}")
        assert done.returncode == 0, done.stderr

    @contextmanager
    def computing(self, mode: str, **given: Any) -> Iterator[None]:
        """The computing process with the settings of the ConfigMap, by the played clock."""
        self.mounted = self._settings(mode, given)
        settings = load(self.mounted)
        with ExitStack() as parts:
            state, log = state_directory(settings.state), telemetry.logger()
            self.service = build_service(settings, state, log, parts, clock=self.clock)
            files = SettingsFiles(partial(fingerprint, self.mounted), partial(load, self.mounted), dict)
            self.service.reload = SettingsReload(files, settings, log)
            yield

    def state(self, *overrides: object) -> None:
        """Edit the ConfigMap; the next cycle takes it over."""
        assert self.mounted
        (self.mounted / "99-overrides.yaml").write_text(yaml.safe_dump({"overrides": overrides}))

    def minutes(self, count: int) -> dict[str, Carried]:
        """Play so many minutes with a cycle in each, and return what became of the demand, by arm."""
        assert self.service
        sums = dict.fromkeys((*ARMS, *ALONE), Carried(0.0, 0.0, 0.0))
        for _ in range(count):
            self.fleet.minute += 1
            for _ in range(MINUTE // SCRAPE):
                carried = self.fleet.half_minute()
                sums = {arm: Carried(*map(sum, zip(sums[arm], carried[arm], strict=True))) for arm in sums}
            self.clock.set(self.fleet.at + self.service.settings.delay)
            self.service.tick()
        return sums

    def _settings(self, mode: str, given: dict[str, object]) -> Path:
        deployment = self.plane.api.read("Deployment", "forecaster", NAMESPACE)["spec"]["template"]["spec"]
        (volume,) = [each["configMap"] for each in deployment["volumes"] if "configMap" in each]
        mounted = self.folder / f"settings-{len(list(self.folder.glob('settings-*')))}"
        mounted.mkdir()
        for name, text in self.plane.api.read("ConfigMap", volume["name"], NAMESPACE)["data"].items():
            (mounted / name).write_text(text)
        settings = {
            "prometheus": {"url": self.prometheus, "retries": 0},
            "queries": {"requests_from": "none", "specifications_every": "0s"},
            "serving": {"secure": {"enabled": False}},
            "state": {"directory": str(state_directory_of(self.folder))},
            "kubernetes": {"live": "off"},  # they are confirmed by the real clock, eight hours ahead
            "acting": {"kubeconfig": str(self.plane.account("forecaster", NAMESPACE))},
            # The story has no three days in which a gate could be judged; live facts time pods by the real clock.
            "policy": {"mode": mode, "horizontal": {"gate": False, "lead_time": "3m"}},
            **given,
        }
        (mounted / "99-here.yaml").write_text(yaml.safe_dump(settings))
        return mounted

    def hpas(self) -> list[Document]:
        """HPAs of the fleet."""
        path = f"/apis/autoscaling/v2/namespaces/{SHOP}/horizontalpodautoscalers"
        items: list[Document] = self.plane.api.get(path)["items"]
        return items

    def pods(self, arm: str) -> list[Document]:
        """Pods of all workloads of an arm."""
        items = self.plane.api.get(f"/api/v1/namespaces/{SHOP}/pods")["items"]
        return [pod for pod in items if arm_of(app_of(pod)) == arm]

    def deployments(self, arm: str) -> list[Document]:
        """Deployments of an arm."""
        items = self.plane.api.get(f"/apis/apps/v1/namespaces/{SHOP}/deployments")["items"]
        return [document for document in items if arm_of(document["metadata"]["name"]) == arm]

    def release(self) -> str:
        """`forecaster release` with the rights of the service, as `kubectl exec` in its pod runs it."""
        rights = f"--kubeconfig={self.plane.account('forecaster', NAMESPACE)}"
        command = [sys.executable, "-m", "forecaster", "release", "--now", rights]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
        assert done.returncode == 0, done.stderr
        return done.stdout


def state_directory_of(folder: Path) -> Path:
    return folder / "state"


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Story]:
    """A cluster of its own with the fleet at rest, before anything of ours is in it."""
    demands, pairs, without_hpa, begins = LONG if request.config.getoption("--long") else SHORT
    binaries, absent = find_binaries(), why_not(*CORE)
    if absent or binaries is None:
        pytest.skip(absent or "no prometheus and promtool: run .ci/prometheus")
    folder = tmp_path_factory.mktemp("story")
    for part in (state_directory_of(folder), folder / "cluster"):
        part.mkdir()
    start = last_multiple(datetime.now(UTC) - PLAYED_AGO, MINUTE)
    clock = PlayedTime(folder / "now")
    clock.set(start)
    prometheus = RealPrometheus(binaries, folder / "data", options=["--web.enable-remote-write-receiver"])
    with (
        ControlPlane(folder / "cluster", services="127.131") as plane,
        PodMetrics(folder) as metrics,
        closing(TwinExporters(prometheus.url)) as exporters,
    ):
        exporters.least = {}
        for number in range(2, NODES):
            plane.api.create(node(f"kwok-{number}"))
        metrics.register(plane)
        demand = rising(recorded_demand(demands), begins, pairs)
        fleet = TwinFleet(plane, metrics, demand, start, begins, exporters, without_hpa)
        fill(folder / "data", fleet.history(), binaries)
        fleet.create()
        with prometheus:
            fleet.until_at_rest()
            yield Story(fleet, clock, prometheus.url, folder, everything(plane), begins)


def rising(demand: NDArray[np.float64], begins: int, count: int) -> NDArray[np.float64]:
    """Return the demands [pair, minute] that are played: those that rise most in the hour from its beginning on."""
    rise = demand[:, begins : begins + HOUR].max(axis=1) - demand[:, begins]
    return demand[np.sort(np.argsort(-rise)[:count])]


def test_from_the_first_apply_to_the_last_delete(story: Story) -> None:
    deployed = story.install()
    with story.computing("observe"):
        observed(story)
    with story.computing("publish"), contextmanager(deployed.serve)(*story.clock.serving):
        story.plane.until_available()
        published(story)
        floored(story)
        uninstalled(story)
    at_rest_as_before(story)


def test_counts_and_sizes_are_installed_with_helm_and_gone_without_a_trace(story: Story) -> None:
    tool("helm")
    own = sized(story)
    story.install_with_helm("scale", "vertical")
    live = {"kubeconfig": str(story.plane.account("forecaster", NAMESPACE))}
    with story.computing("observe", kubernetes=live):
        story.state(SCALES)
        scaled(story)
        story.state(SCALES, RESIZES)
        resized(story, own)
        lines = story.release().splitlines()
    assert {line.split(" ")[0] for line in lines} == {"Deployment", "Pod"}
    assert sized(story) == own
    story.plane.kubectl("delete", "apiservice", EXTERNAL)
    story.helm("uninstall", "forecaster")
    story.plane.kubectl("delete", "namespace", NAMESPACE)
    at_rest_as_before(story)


def observed(story: Story) -> None:
    """Recommendations for every workload, and nothing but reading of theirs: what is written is our own state."""
    story.minutes(2)
    assert story.service
    assert story.service.report
    assert story.service.report.verdicts.total() == len(story.fleet.names)
    requests = [request for request in story.plane.audited("forecaster") if request["verb"] not in READING]
    named = {(request["objectRef"]["resource"], request["objectRef"].get("name", "")) for request in requests}
    assert {resource for resource, _ in named} <= {"leases", "secrets", "tokenreviews", "subjectaccessreviews"}
    assert {name for resource, name in named if resource == "secrets"} <= {"forecaster-state"}


def published(story: Story) -> None:
    """Recommendations for every workload, and whoever may ask has an answer."""
    story.minutes(2)
    path = f"/apis/external.metrics.k8s.io/v1beta1/namespaces/{SHOP}/forecaster_demand?labelSelector=workload%3D"

    def answered(name: str) -> bool:
        answer = story.plane.api.ask("GET", f"{path}{name}%2Csignal%3Dcpu")
        return answer.is_success and len(answer.json()["items"]) == 1

    for name, _ in story.fleet.names[:: len(story.fleet.demand) // 5]:
        wait_until(lambda name=name: answered(name), goal=f"the demand of {name}")  # type: ignore[misc]


def floored(story: Story) -> None:
    """One annotation, and the HPA is ahead of the load; its twin goes on as ever."""
    annotate(story, "forecaster.dev/mode=floor")
    by_arm = story.minutes(PLAYED)
    raised = [hpa for hpa in story.hpas() if hpa["metadata"]["labels"].get("forecaster.dev/floor") == "raised"]
    print(account_of(by_arm), f"{len(raised)} floors are up at the end")  # noqa: T201
    assert raised
    assert {hpa["metadata"]["labels"]["arm"] for hpa in raised} == {"floor"}
    assert all(hpa["spec"]["minReplicas"] <= hpa["spec"]["maxReplicas"] for hpa in raised)
    plain = [hpa for hpa in story.hpas() if hpa["metadata"]["labels"]["arm"] == "plain"]
    assert {hpa["spec"]["minReplicas"] for hpa in plain} == {1}
    assert by_arm["floor"].unserved < 0.6 * by_arm["plain"].unserved  # 0.40 to 0.50, as real controllers find time
    assert by_arm["floor"].pod_seconds < 1.3 * by_arm["plain"].pod_seconds


def scaled(story: Story) -> None:
    """The count is ahead of the load, where the same load on as many pods as ever falls short."""
    by_arm = story.minutes(10)
    raised = [
        document
        for document in story.deployments("scale")
        if document["metadata"].get("labels", {}).get(SCALED) == "scaled"
    ]
    print(account_of(by_arm), f"{len(raised)} counts are ours at the end")  # noqa: T201
    assert raised
    assert all(1 <= document["spec"]["replicas"] <= MOST for document in raised)
    assert by_arm["scale"].unserved < 0.5 * by_arm["sized"].unserved
    assert_left_alone(story, {"deployments"})


def resized(story: Story, own: dict[str, Document]) -> None:
    """Pods get their sizes one after the other, are the same pods, and their nodes have granted it."""
    story.minutes(6)
    changed = [pod for pod in story.pods("sized") if RESIZED in pod["metadata"].get("labels", {})]
    print(f"{len(changed)} of {len(own)} pods have another size:", sorted({requested_by(pod) for pod in changed}))  # noqa: T201
    assert len(changed) >= story.fleet.alone / 2
    now = sized(story)
    assert all(now[uid]["resources"] != own[uid]["resources"] for uid in (pod["metadata"]["uid"] for pod in changed))
    assert {pod["metadata"]["uid"] for pod in story.pods("sized")} == own.keys()
    assert_left_alone(story, {"deployments", "pods"})


def assert_left_alone(story: Story, resources: set[str]) -> None:
    """Nothing but these and our own state was written, and of these nothing of a workload with an HPA."""
    assert story.installed
    written = defaultdict(set)
    for request in story.plane.audited("forecaster"):
        since = datetime.fromisoformat(request["requestReceivedTimestamp"]) >= story.installed
        if since and request["verb"] not in READING and request["responseStatus"]["code"] < 300:
            written[request["objectRef"]["resource"]].add(request["objectRef"].get("name", ""))
    assert written.pop("secrets", set()) <= {"forecaster-state"}
    assert written.keys() - {"events", "leases", "tokenreviews", "subjectaccessreviews"} <= resources
    names = [name for resource in resources for name in written[resource]]
    assert {arm_of(name) for name in names} <= {"scale", "sized"}


def sized(story: Story) -> dict[str, Document]:
    """Resources, labels and annotations of the pods to resize, by uid: all of them are their owners'."""
    return {
        pod["metadata"]["uid"]: {
            "resources": [container["resources"] for container in pod["spec"]["containers"]],
            "labels": pod["metadata"]["labels"],
            "annotations": pod["metadata"]["annotations"],
        }
        for pod in story.pods("sized")
    }


def counts_in(objects: dict[str, Document]) -> dict[str, int]:
    """Counts of the Deployments, which are the HPAs' own: within a tolerance of a tenth they stay as they came."""
    return {key: document["spec"]["replicas"] for key, document in objects.items() if key.startswith("Deployment ")}


def without_counts(objects: dict[str, Document]) -> dict[str, Document]:
    """Copy the objects without their counts."""
    copies = json.loads(json.dumps(objects))
    for document in copies.values():
        if document["kind"] in {"Deployment", "ReplicaSet"}:
            del document["spec"]["replicas"]
            for annotation in ("deployment.kubernetes.io/desired-replicas", "deployment.kubernetes.io/max-replicas"):
                document["metadata"].get("annotations", {}).pop(annotation, None)
    return copies  # type: ignore[no-any-return]


def annotate(story: Story, annotation: str) -> None:
    story.plane.kubectl("annotate", "hpa", f"--namespace={SHOP}", "--selector=arm=floor", annotation)


def account_of(by_arm: dict[str, Carried]) -> str:
    """Print a line for each arm."""
    lines = [
        f"{arm}: {carried.unserved / carried.demand:.3%} unserved, {carried.pod_seconds / 3600:.1f} pod-hours"
        for arm, carried in by_arm.items()
    ]
    return "\n".join(["", *lines, ""])


def uninstalled(story: Story) -> None:
    """Uninstall as the README says."""
    story.plane.kubectl("annotate", "lease", "forecaster", f"--namespace={NAMESPACE}", "forecaster.dev/pause=true")
    assert story.release()
    annotate(story, "forecaster.dev/mode-")
    story.plane.kubectl("delete", "apiservice", EXTERNAL)
    story.plane.kubectl("delete", "-k", str(START), "--ignore-not-found")


def apart(before: dict[str, int], now: dict[str, int]) -> list[str]:
    """An HPA rests wherever its tolerance of a tenth lets it, from above and from below, with a pod of rounding."""
    return [name for name, count in before.items() if abs(now[name] - count) > 1 + 0.25 * count]


def at_rest_as_before(story: Story) -> None:
    """The demand is what it was at the beginning, and so is everything else."""
    story.fleet.minute = story.begins
    story.fleet.until_at_rest()
    after = everything(story.plane)
    assert differences(without_counts(story.before), without_counts(after)) == {}
    before = counts_in(story.before)
    assert before.keys() == counts_in(after).keys()

    def rested() -> bool:
        story.fleet.until_at_rest()
        return not apart(before, counts_in(everything(story.plane)))

    wait_until(rested, goal="the counts of this demand")
    now = counts_in(everything(story.plane))
    assert all(now[name] == count for name, count in before.items() if "/scale-" in name or "/sized-" in name)
    left = [*story.hpas(), *(document for arm in ALONE for document in (*story.deployments(arm), *story.pods(arm)))]
    assert "forecaster" not in {
        field["manager"] for document in left for field in document["metadata"]["managedFields"]
    }
