"""Objects of bad owners on the real control plane: written, undone, released, expired, the others get what is theirs.

One at a time and all at once. The table is that of the API server in memory (tests/support/bad_objects.py), with a full
quota beside it; what is slow hangs for as long as a client waits.
"""

from __future__ import annotations

import threading
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from forecaster.app.effects import released_objects
from forecaster.domain.decision import Hold, Reason
from forecaster.domain.policy import Policy
from forecaster.domain.workload import WorkloadId
from forecaster.kube.client import ApiClient
from forecaster.kube.config import client_config_source
from forecaster.kube.lease import REQUEST_SECONDS
from tests.cluster.test_faults_of_counts_and_sizes import COUNTS, SIZE, SIZES, Mode
from tests.support.bad_objects import BAD, SLOW
from tests.support.control_plane.acting import ActingReplica, apply_components
from tests.support.control_plane.binaries import CORE, why_not
from tests.support.control_plane.deployed import NAMESPACE
from tests.support.control_plane.plane import ControlPlane
from tests.support.control_plane.workloads import deployment, external_hpa, replicas
from tests.support.faulty_api_server import FaultyApiServer
from tests.support.recommendations import recommendation, signal_view
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from forecaster.actuators.release import ReleaseLine
    from forecaster.sources.live import LiveCluster
    from tests.support.control_plane.api import Document
    from tests.support.http_server import HttpRequest

FLOORS = Mode(
    "floor",
    {"floor": {"enabled": True, "lower_after": "1m"}, "policy": {"mode": "floor"}},
    "/horizontalpodautoscalers/",
    "",
    "forecaster-floor",
    "forecaster.dev/floor",
)
MODES = [
    mode._replace(settings={**mode.settings, mode.part: {**mode.settings[mode.part], "most_workloads": 1.0}})
    for mode in (FLOORS, COUNTS, SIZES)
]
"""Modes with limits that leave room for all of the table in one cycle."""
GOOD = ("alpha", "middle", "zulu")
QUOTA = "full quota"
NAMES = [*(name for name, bad in BAD.items() if not bad.in_memory), QUOTA]
CASES = [*([name] for name in NAMES), NAMES]
STATED, WISHED = {"floor": 1, "scale": 1, "resize": "100m"}, {"floor": 4, "scale": 4, "resize": "300m"}
KINDS = {"floor": "HorizontalPodAutoscaler", "scale": "Deployment", "resize": "Pod"}


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A cluster of its own with all components that write: what is bad here is in no other test's way."""
    if absent := why_not(*CORE):
        pytest.skip(absent)
    with ControlPlane(tmp_path_factory.mktemp("bad-objects"), services="127.130") as running:
        apply_components(running, tmp_path_factory.mktemp("bad"), "floor", "scale", "vertical")
        for resource in ("horizontalpodautoscalers.autoscaling", "deployments.apps", "pods"):
            running.until_allowed(f"{NAMESPACE}/forecaster", "patch", resource)
        yield running


@dataclass
class Table:
    """Good objects and bad ones of one mode, each in a namespace of its own, and one replica that leads."""

    plane: ControlPlane
    faulty: FaultyApiServer
    replica: ActingReplica
    mode: Mode
    live: LiveCluster
    now: datetime = field(default_factory=lambda: datetime.now(UTC))

    def __post_init__(self) -> None:
        part = self.mode.part
        self.bad = {name: f"bad-{part}-b{number:02}" for number, name in enumerate(NAMES)}
        self.good = [f"bad-{part}-{name}" for name in GOOD]
        for space in (*self.good, *self.bad.values()):
            self.plane.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space}})
        for space in (*self.good, *self.bad.values()):
            wait_until(lambda: self.plane.api.has("ServiceAccount", "default", space), goal="its account")  # noqa: B023
            self.plane.api.create(deployment("web", 1), space)
            if part == "floor":
                self.plane.api.create(external_hpa("web", target="1", most=10), space)
        for space in (*self.good, *self.bad.values()):
            wait_until(lambda: replicas(self.plane.api, "web", space).ready == 1, goal="a pod")  # noqa: B023
        if part == "floor":  # before its controller has looked once a workload counts as scaled to zero
            wait_until(lambda: all(self._current(space) for space in self.good), goal="the controller of HPAs")
        quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "full"}, "spec": {"hard": FULL}}
        self.plane.api.ask("POST", f"/api/v1/namespaces/{self.bad[QUOTA]}/resourcequotas", quota)

    def _current(self, space: str) -> int:
        return int(
            self.plane.api.read("HorizontalPodAutoscaler", "web", space).get("status", {}).get("currentReplicas", 0)
        )

    def object_in(self, space: str) -> Document:
        """The object that is written in a namespace."""
        if self.mode.part != "resize":
            return self.plane.api.read(KINDS[self.mode.part], "web", space)
        pods: list[Document] = self.plane.api.get(f"/api/v1/namespaces/{space}/pods")["items"]
        return pods[0]

    def value(self, space: str) -> Any:
        spec = self.object_in(space)["spec"]
        if self.mode.part == "resize":
            return spec["containers"][0]["resources"]["requests"]["cpu"]
        return spec.get("minReplicas", spec.get("replicas"))

    def values(self) -> list[Any]:
        """Values of the good objects."""
        return [self.value(space) for space in self.good]

    def spoil(self, names: Sequence[str]) -> None:
        """Have the owners of these objects write what is bad about them."""
        for name in names:
            if name not in BAD or (self.mode.part == "resize" and name == "owned by another"):
                continue  # every pod is owned
            document: Document = {"metadata": {}, "spec": {}, "status": {}}
            BAD[name].spoil(document, "")
            space, meta = self.bad[name], document["metadata"]
            for owner in meta.get("ownerReferences", ()):
                owner["uid"] = self._owner(space)
            if meta:
                there = self.object_in(space)["metadata"]["name"]
                self.plane.api.merge(KINDS[self.mode.part], there, {"metadata": meta}, space)

    def _owner(self, space: str) -> str:
        shop = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "shop"}}
        return str(self.plane.api.put(shop, space)["metadata"]["uid"])

    def turn_bad(self, names: Sequence[str]) -> None:
        """From now on requests about these objects are answered as they are."""
        answers = {f"/namespaces/{self.bad[name]}/": BAD[name].answer for name in names if name in BAD}

        def fault(request: HttpRequest) -> int:
            answer = next((reply for place, reply in answers.items() if place in request.path), None)
            if answer is SLOW and request.method == "PATCH":
                threading.Event().wait(REQUEST_SECONDS + 0.5)  # a webhook that hangs: the client has gone by then
                return 504
            return answer if isinstance(answer, int) else 0

        self.faulty.fault = fault

    def cycle(self, names: Sequence[str], *, acts: bool = True) -> None:
        """One cycle over the good objects and these bad ones."""
        policy = {"vertical": {"mode": "observe"}} if not acts else {}
        self.replica.settings.policies.restate(Policy.model_validate(policy or self.mode.settings["policy"]), ())
        ids = [WorkloadId(space, "Deployment", "web") for space in (*self.good, *(self.bad[name] for name in names))]
        self.replica.publisher.publish(self.now, [self._decided(id_, acts=acts) for id_ in ids])
        self.replica.actuators.act(self.now)
        self.now += timedelta(minutes=1)

    def _decided(self, id_: WorkloadId, *, acts: bool) -> Any:
        count = WISHED["scale"] if acts else 1
        decided = recommendation(
            id_, at=self.now, now=replicas(self.plane.api, "web", id_.namespace).desired, replicas=count
        )
        view = replace(signal_view("cpu", self.now), forecast_replicas=count, reactive_replicas=count)
        resources = SIZE if acts and self.mode.part == "resize" else Hold(Reason.SHORT_HISTORY, "nothing is known")
        return replace(decided, signals=(view,), clamps=(), resources=resources)

    def until_watched(self) -> None:
        """Wait until the watch of pods has what was written."""
        if self.mode.part == "resize":
            sizes = {space: float(self.value(space)[:-1]) / 1000 for space in self.good}
            pods = self.live.pods.objects
            wait_until(
                lambda: all(
                    {pod.resources.cpu_request for (at, _), pod in list(pods.items()) if at == space} == {size}
                    for space, size in sizes.items()
                ),
                goal="the watch of pods",
            )

    def raised(self, names: Sequence[str]) -> None:
        """Raise the good objects, for which one cycle is enough."""
        self.until_watched()
        self.cycle(names)
        assert self.values() == [WISHED[self.mode.part]] * len(GOOD)

    def released(self, *, expired: bool = False) -> list[ReleaseLine]:
        """`forecaster release`, or the expiry, through what answers badly."""
        given = {"expired": expired, "dry_run": False, "at_once": True}
        later = self.now + timedelta(hours=1)
        begin = f"bad-{self.mode.part}-"
        with closing(ApiClient(client_config_source(self.faulty.kubeconfig), timeout=REQUEST_SECONDS)) as client:
            lines = released_objects(
                client, self.replica.settings, later, **given, chosen=lambda space, _: space.startswith(begin)
            )
            return list(lines)


FULL = {"pods": "1"}
"""Quota that the namespace's one pod uses up."""


@pytest.fixture(scope="module", params=MODES, ids=lambda mode: mode.part)
def table(
    request: pytest.FixtureRequest, plane: ControlPlane, live: LiveCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Table]:
    mode: Mode = request.param
    plane.api.merge("Lease", "forecaster", {"spec": {"holderIdentity": None}}, NAMESPACE)
    with ExitStack() as parts:
        folder = tmp_path_factory.mktemp(f"bad-{mode.part}")
        faulty = parts.enter_context(FaultyApiServer(plane, folder, "forecaster", NAMESPACE))
        rights = {"kubeconfig": str(faulty.kubeconfig)}
        watched = live if mode.part == "resize" else None
        replica = ActingReplica(plane, parts, {**mode.settings, "acting": rights, "kubernetes": rights}, watched)
        replica.until_leading()
        yield Table(plane, faulty, replica, mode, live)


@pytest.mark.parametrize("names", CASES, ids=[*NAMES, "all at once"])
def test_the_others_are_written_undone_released_and_expire(table: Table, names: list[str]) -> None:
    """Each by the first cycle, or the first run of the command, in which it is due; what failed is named."""
    part = table.mode.part
    stated = [STATED[part]] * len(GOOD)
    table.spoil(names)
    table.turn_bad(names)
    table.raised(names)
    for _ in range(3):
        table.cycle(names, acts=False)
    assert table.values() == stated
    for expired in (False, True) if part == "floor" else (False,):
        table.faulty.mended()
        table.released()
        table.turn_bad(names)
        table.raised(names)
        lines = table.released(expired=expired)
        assert table.values() == stated
        assert all("-b" in line.line for line in lines if not line.done), lines
    table.faulty.mended()
    table.released()
