"""The queue that all actuators share: the brake over a fleet, and the writes that count against limits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import count
from typing import TYPE_CHECKING

import pytest

from forecaster.actuators.floor.values import Write, WrittenFloor
from forecaster.actuators.limits import MIN_FALLING, CycleLimits
from forecaster.actuators.queue import RESUME_DURATION, WriteQueue
from forecaster.actuators.scale.plan import ScaleWrite
from forecaster.actuators.settings import ActingSettings, FloorSettings, ScaleSettings
from forecaster.actuators.writes import MANAGER, Change
from forecaster.kube.client import ApiError, UnreachableError
from tests.support.autoscalers import FakeAutoscalers, live_hpa
from tests.support.builders import NOON
from tests.support.fences import Fence, Log
from tests.support.scales import FakeScales, live_scale_of

if TYPE_CHECKING:
    from datetime import datetime

    from forecaster.actuators.headroom import QuotaFit
    from forecaster.domain.report import Effected
    from forecaster.domain.workload import WorkloadId

MINUTE = timedelta(minutes=1)


@dataclass
class Fleet:
    """A leader in mode scale over `size` workloads with ten replicas each."""

    size: int = 40

    def __post_init__(self) -> None:
        self.cluster = FakeScales.of_all(*(live_scale_of(f"w{number:02}", 10) for number in range(self.size)))
        self.fence = Fence()
        self.queue = WriteQueue("scale", self.fence, ActingSettings(), Log(self.cluster))

    def cycle(self, lowered: int, to: int, at: datetime, *, raised: int = 0) -> Effected:
        live = list(self.cluster.workloads.values())
        changes = [(Change.LOWER, to)] * lowered + [(Change.RAISE, 12)] * raised
        writes = [
            ScaleWrite(scale, change, count, "a test", before=2)
            for scale, (change, count) in zip(live, changes, strict=False)
        ]
        limits = CycleLimits.of([scale.replicas for scale in live], ScaleSettings(enabled=True))
        return self.queue.effected(self.cluster, writes, [], at, limits=limits)


def test_a_large_part_of_the_fleet_does_not_go_down_in_one_cycle_and_a_person_is_asked() -> None:
    fleet = Fleet()
    effected = fleet.cycle(13, 2, NOON, raised=3)
    assert effected.writes == {("raise", "written"): 3}
    assert (effected.braked, effected.states["braked"]) == (True, 13)
    why = "braked since 12:00 UTC, 13 of 40 workloads would go down in one cycle"
    assert effected.failures == (f"scale: {why}; find out why, then `forecaster resume` lets them",)


def test_the_brake_stays_on_until_a_person_says_so_and_their_word_lasts_an_hour() -> None:
    fleet = Fleet()
    fleet.cycle(13, 2, NOON)
    assert fleet.cycle(1, 2, NOON + MINUTE).writes == {}
    fleet.fence.resumed_at = NOON + 2 * MINUTE
    effected = fleet.cycle(13, 2, NOON + 3 * MINUTE)
    assert (effected.braked, effected.writes) == (False, {("lower", "written"): 8})  # a fifth of the fleet
    later = NOON + 2 * MINUTE + RESUME_DURATION
    assert fleet.cycle(20, 1, later).braked


@pytest.mark.parametrize(
    ("size", "lowered", "to"),
    [(40, 12, 2), (MIN_FALLING, MIN_FALLING - 1, 2), (40, 40, 9)],
    ids=["a share", "a small fleet", "an evening that takes single pods"],
)
def test_what_is_ordinary_brakes_nothing(size: int, lowered: int, to: int) -> None:
    effected = Fleet(size).cycle(lowered, to, NOON)
    assert not effected.braked
    assert effected.writes[("lower", "written")] > 0


def test_every_raise_comes_before_the_first_lowering_whatever_namespaces_they_are_in() -> None:
    falling = replace(live_hpa("b", 9), namespace="night", floor=WrittenFloor(2, NOON))
    writes = [Write(falling, Change.LOWER, 4, "a test"), *(Write(live_hpa(name), Change.RAISE, 7, "") for name in "cd")]
    ordered = WriteQueue("floor", Fence(), ActingSettings(), Log(FakeAutoscalers.of())).turns.ordered(writes)
    assert [write.change for write in ordered] == [Change.RAISE, Change.RAISE, Change.LOWER]


def test_a_replica_that_does_not_lead_brakes_nothing() -> None:
    fleet = Fleet()
    fleet.fence.left = 0
    assert not fleet.cycle(40, 2, NOON).braked


def test_floors_that_are_held_by_the_brake_do_not_run_out() -> None:
    due = WrittenFloor(2, NOON + MINUTE)
    hpas = [replace(live_hpa(f"w{n}", 9), marked=True, floor=due, writers=frozenset({MANAGER})) for n in range(20)]
    cluster = FakeAutoscalers.of(*hpas)
    renewed = WrittenFloor(2, NOON + timedelta(minutes=15))
    writes = [Write(hpa, Change.RESTORE, 2, "gone") for hpa in hpas]
    renewals = {hpa.key: Write(hpa, Change.RENEW, 9, "its change waits", renewed) for hpa in hpas}
    queue = WriteQueue("floor", Fence(), ActingSettings(), Log(cluster))
    limits = CycleLimits.of([4] * 20, FloorSettings(enabled=True))
    effected = queue.effected(cluster, writes, [], NOON, limits=limits, meanwhile=renewals)
    assert effected.writes == {("renew", "written"): 20}
    assert {(hpa.min_replicas, hpa.floor) for hpa in cluster.listed()} == {(9, renewed)}


def test_a_write_that_fails_takes_nothing_from_the_limits() -> None:
    """Twenty objects are refused by their own webhook; five others still get their floors."""
    hpas = [live_hpa(f"bad-{number}", replicas=2) for number in range(20)]
    free = [live_hpa(f"free-{number}", replicas=2) for number in range(5)]
    free = [replace(hpa, namespace="free", target=hpa.target._replace(namespace="free")) for hpa in free]
    cluster = FakeAutoscalers.of(*hpas, *free)
    cluster.refuses = {"shop": ApiError("denied by a webhook", 403)}
    floor = WrittenFloor(2, NOON + timedelta(minutes=15))
    writes = [Write(hpa, Change.RAISE, 4, "asked for", floor) for hpa in (*hpas, *free)]
    queue = WriteQueue("floor", Fence(), ActingSettings(), Log(cluster))
    limits = CycleLimits.of([2] * 25, FloorSettings(enabled=True))
    effected = queue.effected(cluster, writes, [], NOON, limits=limits)
    assert [write.subject.namespace for write in cluster.written] == ["free"] * 5
    assert effected.reasons[("failed", "403")] > 0


def test_quotas_that_are_not_answered_hold_a_cycle_no_longer_than_its_budget() -> None:
    """Each query for a quota waits ten seconds for an API server that is away."""
    now, queried = 0.0, list[int]()

    def reserve(_: WorkloadId, more: int) -> QuotaFit:
        nonlocal now
        now += 10.0
        queried.append(more)
        raise UnreachableError("no answer within 10 s")

    hpas = [live_hpa(f"web-{number}", replicas=2) for number in range(50)]
    cluster = FakeAutoscalers.of(*hpas)
    writes = [Write(hpa, Change.RAISE, 4, "asked for", WrittenFloor(2, NOON)) for hpa in hpas]
    queue = WriteQueue("floor", Fence(), ActingSettings(), Log(cluster), seconds=lambda: now)
    limits = CycleLimits.of([2] * 50, FloorSettings(enabled=True))
    effected = queue.effected(cluster, writes, [], NOON, limits=limits, reserve=reserve)
    assert len(queried) == 3
    assert "floor: 47 changes left for the next cycle" in effected.failures


def in_namespace(namespace: str, number: int) -> Write:
    hpa = live_hpa(f"w{number}", replicas=2)
    hpa = replace(hpa, namespace=namespace, target=hpa.target._replace(namespace=namespace))
    return Write(hpa, Change.RAISE, 4, "asked for", WrittenFloor(2, NOON + timedelta(minutes=15)))


def test_a_namespace_that_waits_while_another_takes_every_cycle_is_measured_and_named() -> None:
    """Each cycle has time for one write, and the first namespace has a change each time."""
    clock = count(0.0, 15.0)
    greedy, waiting = [in_namespace("a", number) for number in range(40)], in_namespace("z", 0)
    cluster = FakeAutoscalers.of(*(write.subject for write in (*greedy, waiting)))
    queue = WriteQueue("floor", Fence(), ActingSettings(), Log(cluster), seconds=lambda: next(clock))

    def cycle(minute: int, *writes: Write) -> Effected:
        return queue.effected(cluster, writes, [], NOON + minute * MINUTE)

    waits = {minute: cycle(minute, greedy[minute], waiting) for minute in (0, 5, 10, 31)}
    assert [effected.longest_wait // MINUTE for effected in waits.values()] == [0, 5, 10, 31]
    failure = "floor: changes in z wait since 12:00 UTC while others are tried"
    assert [failure in effected.failures for effected in waits.values()] == [False, False, True, True]
    assert {write.subject.namespace for write in cluster.written} == {"a"}
    served = cycle(32, waiting)
    assert (served.longest_wait, cluster.written[-1].subject.namespace) == (timedelta(), "z")


def test_nobody_is_starved_where_nobody_is_written() -> None:
    queue = WriteQueue("floor", Fence(), ActingSettings(paused=True), Log(FakeAutoscalers.of()))
    effected = queue.effected(FakeAutoscalers.of(), [in_namespace("z", 0)], [], NOON)
    assert effected.longest_wait == timedelta()


@dataclass
class Namespaces:
    """A leader in mode floor over one object in each of these namespaces; a cycle states which writes are refused."""

    names: tuple[str, ...]

    def __post_init__(self) -> None:
        self.writes = {name: in_namespace(name, 0) for name in self.names}
        self.cluster = FakeAutoscalers.of(*(write.subject for write in self.writes.values()))
        self.queue = WriteQueue("floor", Fence(), ActingSettings(), Log(self.cluster))

    def cycle(self, minute: int, due: tuple[str, ...], *, refused: tuple[str, ...], status: int = 403) -> Effected:
        self.cluster.refuses = dict.fromkeys(refused, ApiError("denied by a webhook", status))
        live = {hpa.namespace: hpa for hpa in self.cluster.listed()}
        writes = [replace(self.writes[name], subject=live[name]) for name in due]
        return self.queue.effected(self.cluster, writes, [], NOON + minute * MINUTE)


def test_one_tenant_whose_webhook_refuses_is_no_failure_of_the_platform() -> None:
    fleet = Namespaces(("bad", "good"))
    everyone = [fleet.cycle(minute, fleet.names, refused=("bad",)) for minute in range(3)]
    assert [effected.blocked for effected in everyone] == [0, 0, 0]
    quiet = [fleet.cycle(minute, ("bad",), refused=("bad",)) for minute in (30, 60, 600)]
    assert [(effected.blocked, effected.states["failing"]) for effected in quiet] == [(0, 1)] * 3


def test_a_right_that_is_taken_away_is_a_failure_of_the_platform_ten_minutes_later() -> None:
    fleet = Namespaces(("a", "b", "c", "quiet"))
    fleet.cycle(0, fleet.names, refused=())
    blocked = [fleet.cycle(minute, ("a", "b"), refused=fleet.names).blocked for minute in (1, 10, 11)]
    assert blocked == [0, 0, 2]
    assert fleet.cycle(12, ("a", "b"), refused=()).blocked == 0


def test_in_a_cluster_of_one_namespace_a_failing_write_is_a_failure_of_the_platform_at_once() -> None:
    fleet = Namespaces(("only",))
    assert fleet.cycle(0, fleet.names, refused=fleet.names).blocked == 1


def test_an_object_whose_writes_conflict_each_time_counts_as_failing_and_comes_last() -> None:
    """A webhook may answer 409 for ever, while another writer of the object causes it once."""
    fleet = Namespaces(("bad", "good"))
    effects = [fleet.cycle(minute, fleet.names, refused=("bad",), status=409) for minute in range(2)]
    assert [effect.states["failing"] for effect in effects] == [1, 1]
    assert [line["object"] for event, line in fleet.queue.log.lines if event == "cluster_write"][-1] == "HPA bad/w0"
