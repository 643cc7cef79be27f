"""Resizing composed with the health of a workload: its pods and errors are compared with those before the change."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from forecaster.actuators.headroom import AdmissionAt, NamespaceAdmission
from forecaster.actuators.queue import WriteQueue
from forecaster.actuators.resize.actuator import ResizeActuator
from forecaster.actuators.resize.sized_pod import ResizablePod, ResizeWrite
from forecaster.actuators.rollback import Health
from forecaster.actuators.settings import ActingSettings, ResizeSettings
from forecaster.domain.decision import Reason, Resize
from forecaster.domain.policies import Policies
from forecaster.domain.policy import Policy
from forecaster.domain.workload import ContainerSize, Resources, WorkloadId
from forecaster.kube.client import ApiError
from forecaster.resources.neighbours import Neighbours
from forecaster.vertical.cluster_rules.pod import Container, Pod, Requirements
from forecaster.vertical.cluster_rules.resize import ResizeStatus
from forecaster.vertical.cluster_rules.server import LATEST_SERVER
from tests.support.decided_records import RecordPublisher
from tests.support.fences import Fence, Log
from tests.support.recommendations import NOON, recommendation

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

WEB = WorkloadId("shop", "Deployment", "web")
MIB = 2**20
SMALL, LARGE = (Resources(cpu_request=cpu, memory_request=memory * MIB) for cpu, memory in ((0.1, 64.0), (0.3, 128.0)))
WELL = Health(desired=2, ready=2, restarted=0, release="web-1", errors=0.01, limit=0.05)


def block(resources: Resources) -> Requirements:
    return Requirements(
        {"cpu": round(1000 * (resources.cpu_request or 0)), "memory": 1000 * int(resources.memory_request or 0)}
    )


class OnePod:
    """A cluster with one pod, whose resizePolicy may restart its container for memory; a cycle a minute."""

    def __init__(self, *, restarts: bool = False, events: Sequence[Mapping[str, object]] = ()) -> None:
        policy = {} if not restarts else {"memory": "RestartContainer"}
        pod = Pod((Container("app", block(SMALL), resize_policy=policy),))
        self.pod = ResizablePod("shop", "web-1", "uid", "1", WEB, pod, node="n1")
        self.health, self.now, self.written = WELL, NOON, list[ResizeWrite]()
        stated = {"vertical": {"mode": "in-place", "evict": True}, "horizontal": {"events": events}}
        policies, self.read, self.ready = Policies(Policy.model_validate(stated)), 0, 1
        rules, none = ResizeSettings(enabled=True, restarts=restarts), Neighbours()
        cluster: Any = self
        writer = WriteQueue("resize", Fence(), ActingSettings(), Log(self))
        self.actuator = ResizeActuator(
            cluster,
            lambda _: self.running(),
            writer,
            policies,
            rules,
            lambda _: none,
            lambda *_: {WEB: self.health},
        )
        self.publisher = RecordPublisher(policies, {"resize": self.actuator})

    def running(self) -> Iterator[tuple[WorkloadId, str, str, Resources]]:
        own = self.pod.sizes["app"] == block(SMALL)
        for name in ("web-1", "web-2")[: self.ready]:
            yield WEB, "shop", name, SMALL if own else LARGE

    def marked(self, *, settled: bool = False) -> list[ResizablePod]:
        return [self.pod] if self.pod.marked and self.pod.settled is settled else []

    def of(self, _namespace: str, _name: str) -> ResizablePod:
        self.read += 1
        return self.pod

    def admission(self) -> AdmissionAt:
        return lambda _: NamespaceAdmission(LATEST_SERVER, (), ())

    def write(self, write: ResizeWrite) -> None:
        self.written.append(write)
        containers = tuple(
            replace(container, resources=write.sizes[container.name]) for container in self.pod.pod.containers
        )
        self.pod = replace(
            self.pod,
            pod=replace(self.pod.pod, containers=containers),
            resized=write.resized,
            marked=True,
            backed_off_until=write.backed_off_until,
            writers=frozenset({"forecaster"}),
        )

    def record(self, _write: ResizeWrite, _at: object) -> None:
        """Ignore the Event; other tests read it."""

    def cycle(self) -> tuple[dict[tuple[str, str], int], dict[str, int]]:
        size = ContainerSize("app", SMALL, LARGE, None, None, "")
        decided = recommendation(WEB, at=self.now, now=2, replicas=2, reason=Reason.FORECAST)
        self.publisher.publish(self.now, [replace(decided, resources=Resize(LARGE, Reason.SIZED, "sized", (size,)))])
        done = self.actuator.act(self.now)
        self.now += timedelta(minutes=1)
        return dict(done.writes), dict(done.states)


@pytest.mark.parametrize(
    ("errors", "writes"),
    [(0.2, {("roll-back", "written"): 1}), (0.04, {}), (None, {})],
    ids=["worse", "well", "unknown"],
)
def test_errors_after_a_size_take_it_back(errors: float | None, writes: dict[tuple[str, str], int]) -> None:
    cluster = OnePod()
    assert cluster.cycle()[0] == {("resize", "written"): 1}
    assert cluster.pod.resized is not None
    assert cluster.pod.resized.errors == 0.01
    cluster.health = Health(2, 2, 0, "web-1", errors, 0.05)
    assert cluster.cycle()[0] == writes
    assert (cluster.pod.sizes["app"] == block(SMALL)) is bool(writes)


@pytest.mark.parametrize(("ready", "resized"), [(2, True), (1, False), (None, False)])
def test_a_container_is_restarted_while_all_pods_are_ready(ready: int | None, *, resized: bool) -> None:
    cluster = OnePod(restarts=True)
    cluster.health = Health(2, ready, 0, "web-1", 0.01, 0.05)
    writes, states = cluster.cycle()
    assert (bool(writes), "restarts" in states) == (resized, not resized)


NIGHTS = {"name": "nights", "sizes": True, "cron": "0 2 * * mon-fri", "duration": "3h", "time_zone": "Europe/Berlin"}


class TestChangeWindows:
    """NOON is a Sunday in winter."""

    def test_outside_of_them_a_size_stays_and_its_pod_is_not_even_read(self) -> None:
        cluster = OnePod(events=[NIGHTS])
        assert cluster.cycle() == ({}, {"outside-window": 1})
        assert cluster.read == 0
        (why,) = cluster.actuator.writer.lasting.values()
        assert why.message == ("shop/web: its size changes during nights (0 2 * * mon-fri for 3h, Europe/Berlin)")

    @pytest.mark.parametrize(
        ("at", "opens"),
        [
            ("2026-03-02T00:59", False),
            ("2026-03-02T01:00", True),
            ("2026-03-02T03:59", True),
            ("2026-03-02T04:00", False),
            ("2026-03-30T00:00", True),
            ("2026-03-30T03:00", False),
            ("2026-03-07T01:30", False),
        ],
        ids=["before two", "two in winter", "before five", "five", "two in summer", "five in summer", "Saturday"],
    )
    def test_they_open_by_the_clock_of_their_zone(self, at: str, *, opens: bool) -> None:
        cluster = OnePod(events=[NIGHTS])
        cluster.now = datetime.fromisoformat(at).replace(tzinfo=UTC)
        assert bool(cluster.cycle()[0]) is opens

    def test_several_are_open_one_after_the_other(self) -> None:
        noon = {"name": "noon", "sizes": True, "start": NOON, "end": NOON + timedelta(hours=1)}
        assert OnePod(events=[NIGHTS, noon]).cycle()[0] == {("resize", "written"): 1}

    def test_a_freeze_holds_sizes_too_whatever_is_open(self) -> None:
        span = {"start": NOON, "end": NOON + timedelta(hours=1)}
        cluster = OnePod(events=[{"name": "open", "sizes": True, **span}, {"name": "repair", "freeze": True, **span}])
        assert cluster.cycle() == ({}, {"outside-window": 1})
        assert "repair changes nothing until 2026-03-01 13:00 UTC" in cluster.actuator.writer.lasting[WEB].message

    def test_what_is_worse_off_has_its_own_size_again_outside_too(self) -> None:
        cluster = OnePod(events=[{"name": "short", "sizes": True, "start": NOON, "end": NOON + timedelta(seconds=30)}])
        assert cluster.cycle()[0] == {("resize", "written"): 1}
        cluster.health = Health(2, 2, 0, "web-1", 0.2, 0.05)
        assert cluster.cycle()[0] == {("roll-back", "written"): 1}

    @pytest.mark.parametrize(("minutes", "evicted"), [(90, True), (20, False)], ids=["open", "closed"])
    def test_nothing_is_evicted_outside(self, minutes: float, *, evicted: bool) -> None:
        cluster = OnePod(
            events=[{"name": "open", "sizes": True, "start": NOON, "end": NOON + timedelta(minutes=minutes)}]
        )
        cluster.cycle()
        cluster.pod = replace(cluster.pod, status=ResizeStatus.DEFERRED)
        cluster.ready = 2
        cluster.now += timedelta(minutes=40)
        assert ("evict" in {change for change, _ in cluster.cycle()[0]}) is evicted


def test_pods_that_their_budget_keeps_each_time_leave_no_other_on_a_node_without_room() -> None:
    """Ten minutes lie between two attempts on a pod; a cycle tries five pods."""
    one_pod = OnePod()
    one_pod.cycle()
    ids = [WEB._replace(name=f"w{number:02}") for number in range(55)]
    stuck = replace(one_pod.pod, status=ResizeStatus.DEFERRED)
    pods, tried = [replace(stuck, name=f"{id_.name}-1", workload=id_) for id_ in ids], set[str]()

    def refused(write: ResizeWrite) -> None:
        tried.add(write.subject.name)
        raise ApiError("its disruption budget keeps it", 423)

    cluster: Any = SimpleNamespace(marked=lambda **_: pods, admission=one_pod.admission, write=refused)
    one_pod.actuator.pods, one_pod.actuator.running = (
        cluster,
        lambda _: ((id_, "shop", "", SMALL) for id_ in (*ids, *ids)),
    )
    one_pod.now += timedelta(minutes=40)
    for _ in range(15):
        one_pod.actuator.act(one_pod.now)
        one_pod.now += timedelta(minutes=1)
    assert len(tried) == len(pods)


def test_an_eviction_that_was_not_sent_is_sent_in_the_next_cycle() -> None:
    cluster = OnePod()
    cluster.cycle()
    cluster.pod, cluster.ready = replace(cluster.pod, status=ResizeStatus.DEFERRED), 2
    cluster.now += timedelta(minutes=40)
    cluster.actuator.writer.fence = Fence(paused=True)
    assert cluster.cycle()[0] == {}
    cluster.actuator.writer.fence = Fence()
    assert {change for change, _ in cluster.cycle()[0]} == {"evict"}


@pytest.mark.parametrize("new", [False, True], ids=["resized", "made with its size"])
def test_a_pod_that_has_settled_gets_its_own_size_back_in_another_mode_unless_it_never_had_one(*, new: bool) -> None:
    cluster = OnePod()
    cluster.cycle()
    assert cluster.pod.resized is not None
    cluster.pod = replace(cluster.pod, settled=True, resized=cluster.pod.resized._replace(new=new))
    cluster.now += timedelta(hours=1)
    assert cluster.cycle()[0] == {}
    cluster.actuator.policies = Policies(Policy())
    cluster.cycle()
    assert (cluster.pod.sizes["app"] == block(SMALL)) is not new
