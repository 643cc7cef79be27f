"""Modes floor and scale take back a change after which a workload is worse off, and hold the workload."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from forecaster.actuators.floor.actuator import FloorActuator
from forecaster.actuators.floor.autoscalers import applied, listed_autoscaler
from forecaster.actuators.floor.plan import floor_plan, released
from forecaster.actuators.floor.values import FloorOffer
from forecaster.actuators.queue import WriteQueue
from forecaster.actuators.rollback import WATCH, Health, RecentChange, Rollback, watch_of, watch_text
from forecaster.actuators.scale.actuator import ScaleActuator
from forecaster.actuators.scale.scales import BEFORE, LABEL
from forecaster.actuators.settings import ActingSettings, FloorSettings, ScaleSettings
from forecaster.actuators.writes import Change
from forecaster.domain.decision import Reason
from forecaster.domain.policies import Policies
from forecaster.domain.policy import Policy
from forecaster.kube.objects import HorizontalPodAutoscaler
from forecaster.resources.neighbours import Neighbours
from tests.support.autoscalers import FakeAutoscalers, live_hpa
from tests.support.decided_records import RecordPublisher
from tests.support.fake_api_server import FakeApiServer
from tests.support.fences import Fence, Log
from tests.support.hands import Hands, object_of, path_of
from tests.support.recommendations import NOON, recommendation, signal_view
from tests.support.scales import FakeScales, live_scale_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from forecaster.domain.report import Effected
    from forecaster.domain.workload import WorkloadId

WEB = live_scale_of().id
WELL = Health(desired=3, ready=3, restarted=0, release="web-1", errors=0.01, limit=0.05)
BAD: dict[str, Health] = {
    "2 of 3 pods are not ready, 0 were before": msgspec.structs.replace(WELL, ready=1),
    "3 pods restarted, 0 had before": msgspec.structs.replace(WELL, restarted=3),
    "errors are 0.2, above the limit of 0.05, and were 0.01": msgspec.structs.replace(WELL, errors=0.2),
}
NO_EVIDENCE = {
    "one pod of ten": (Health(10, 10, 0, "web-1"), Health(10, 9, 1, "web-1")),
    "not known": (WELL, Health(limit=0.05)),
    "was not known": (
        Health(release="web-1", limit=0.05),
        BAD["errors are 0.2, above the limit of 0.05, and were 0.01"],
    ),
    "another release": (WELL, msgspec.structs.replace(WELL, ready=0, errors=0.9, release="web-2")),
    "as bad before": (msgspec.structs.replace(WELL, errors=0.3), msgspec.structs.replace(WELL, errors=0.31)),
    "below its limit": (WELL, msgspec.structs.replace(WELL, errors=0.04)),
}


class World:
    """A leader in mode scale or floor over one workload, whose health a test states; a cycle a minute."""

    def __init__(self, mode: str) -> None:
        self.mode, self.health, self.now = mode, WELL, NOON
        self.cluster: Any = FakeScales.of_all(live_scale_of()) if mode == "scale" else FakeAutoscalers.of(live_hpa())
        self.log = Log(self.cluster)
        self.restart()

    def restart(self, policy_mode: str = "") -> None:
        """Let another leader take over, which remembers nothing."""
        bounds = {"min_replicas": 1, "max_replicas": 20}
        policies = Policies(Policy.model_validate({"mode": policy_mode or self.mode, "horizontal": bounds}))
        writer = WriteQueue(self.mode, Fence(), ActingSettings(), self.log)
        if self.mode == "scale":
            rules = ScaleSettings(enabled=True)
            none = Neighbours()
            actuator: Any = ScaleActuator(
                self.cluster, list, writer, policies, rules, lambda _: none, self.health_since
            )
        else:
            rules_of_floor = FloorSettings(enabled=True)
            actuator = FloorActuator(
                self.cluster, writer, policies, rules_of_floor, lambda _: Neighbours(), self.health_since
            )
        self.actuator = actuator
        self.publisher = RecordPublisher(policies, {self.mode: actuator})

    def health_since(self, since: Mapping[WorkloadId, datetime], now: datetime) -> Mapping[WorkloadId, Health]:
        return dict.fromkeys(since, self.health)

    @property
    def count(self) -> int:
        live = self.cluster.workload() if self.mode == "scale" else self.cluster.only()
        return int(live.replicas if self.mode == "scale" else live.min_replicas)

    def cycle(self, forecast: int | None, reactive: int | None = 3) -> Effected:
        reason = Reason.FORECAST if forecast else Reason.NO_DATA
        now = self.count if self.mode == "scale" else 4
        record = recommendation(WEB, at=self.now, now=now, replicas=forecast, reason=reason)
        view = replace(signal_view("cpu", self.now), forecast_replicas=forecast, reactive_replicas=reactive)
        self.publisher.publish(self.now, [replace(record, signals=(view,), clamps=())])
        done: Effected = self.actuator.act(self.now)
        self.now += timedelta(minutes=1)
        return done

    def cycles(self, count: int, forecast: int | None, reactive: int | None = 3) -> None:
        for _ in range(count):
            self.cycle(forecast, reactive)


@pytest.mark.parametrize(("mode", "before"), [("scale", 3), ("floor", 2)])
@pytest.mark.parametrize("why", BAD)
def test_what_is_worse_off_gets_its_count_back_and_is_held_with_the_reason(mode: str, before: int, why: str) -> None:
    world = World(mode)
    assert world.cycle(6).writes == {("raise", "written"): 1}
    world.restart()
    world.health = BAD[why]
    assert world.cycle(6).writes == {("roll-back", "written"): 1}
    assert world.count == before
    event, facts = world.log.lines[-1]
    assert (event, facts["change"], facts["was"]) == ("cluster_write", "roll-back", 6)
    assert facts["reason"] == f"worse off since the last change: {why}; held for 1h"
    world.health = WELL
    effected = world.cycle(6)
    assert (effected.writes, effected.states["rolled-back"]) == ({}, 1)
    lasting = world.actuator.writer.lasting[WEB]
    assert (lasting.code, why in lasting.message) == ("rolled-back", True)


@pytest.mark.parametrize("mode", ["scale", "floor"])
@pytest.mark.parametrize("case", NO_EVIDENCE)
def test_what_is_not_known_or_not_ours_takes_nothing_back(mode: str, case: str) -> None:
    world = World(mode)
    world.health, after = NO_EVIDENCE[case]
    world.cycle(6)
    world.health = after
    world.cycles(5, 6)
    assert world.count == 6


def test_a_floor_that_was_lowered_is_not_lowered_further_for_harm_that_came_since() -> None:
    """The harm comes within the ten minutes for which the raise is watched."""
    world = World("floor")
    world.cycle(8)
    world.cycles(6, 5)
    assert world.count == 5
    world.health = BAD["2 of 3 pods are not ready, 0 were before"]
    assert world.cycle(5).writes == {}
    assert world.count == 5
    world.health = WELL
    world.cycle(7)
    world.health = BAD["2 of 3 pods are not ready, 0 were before"]
    assert world.cycle(7).writes == {("roll-back", "written"): 1}
    assert world.count == 2


@pytest.mark.parametrize("mode", ["scale", "floor"])
def test_what_gets_worse_after_the_window_is_not_ours(mode: str) -> None:
    world = World(mode)
    world.cycles(11, 6)
    world.health = BAD["3 pods restarted, 0 had before"]
    world.cycle(6)
    assert world.count == 6


@pytest.mark.parametrize("mode", ["scale", "floor"])
def test_a_hold_ends_and_the_next_one_is_twice_as_long_until_all_was_well(mode: str) -> None:
    world, bad = World(mode), BAD["3 pods restarted, 0 had before"]

    def rolled_back() -> str:
        world.health = WELL
        world.cycle(6)
        world.health = bad
        world.cycle(6)
        return str(world.log.lines[-1][1]["reason"]).rpartition(" ")[2]

    assert rolled_back() == "1h"
    world.now += timedelta(hours=1)
    assert rolled_back() == "2h"
    world.now += timedelta(hours=1)
    assert world.cycle(6).writes == {}
    world.now += timedelta(hours=1)
    world.health = WELL
    world.cycles(12, 6)
    world.cycle(8)
    world.health = bad
    world.cycle(8)
    assert str(world.log.lines[-1][1]["reason"]).endswith("held for 1h")


def test_counts_that_follow_each_other_go_back_to_the_one_before_the_first() -> None:
    world = World("scale")
    world.cycle(5)
    world.cycle(8)
    world.health = BAD["3 pods restarted, 0 had before"]
    world.cycle(8)
    assert world.count == 3


def test_measured_demand_is_never_undercut_and_raises_while_the_workload_is_held() -> None:
    world = World("scale")
    world.cycle(8)
    world.health = BAD["3 pods restarted, 0 had before"]
    world.cycle(8, reactive=5)
    assert world.count == 5
    world.cycle(8, reactive=7)
    assert world.count == 7
    world.cycles(10, 2, reactive=2)
    assert world.count == 7


def test_what_measured_demand_asks_for_is_not_taken_back_but_no_forecast_raises_it() -> None:
    world = World("scale")
    world.cycle(6)
    world.health = BAD["3 pods restarted, 0 had before"]
    effected = world.cycle(9, reactive=6)
    assert (effected.writes, effected.states["rolled-back"], world.count) == ({}, 1, 6)


@pytest.mark.parametrize("forecast", [None, 8])
def test_while_measured_demand_is_not_known_no_count_is_lowered(forecast: int | None) -> None:
    world = World("scale")
    world.cycle(7)
    world.health = BAD["3 pods restarted, 0 had before"]
    world.cycle(forecast, reactive=None if forecast is None else 7)
    assert world.count == 7


def test_a_lowered_count_comes_back() -> None:
    world = World("scale")
    world.cycle(7)
    world.cycles(8, 4)
    assert world.count == 4
    world.health = msgspec.structs.replace(WELL, ready=1)
    assert world.cycle(4).writes == {("roll-back", "written"): 1}
    assert world.count == 7


def test_another_mode_gives_the_owners_value_back_while_a_workload_is_held() -> None:
    world = World("scale")
    world.cycle(8)
    world.health = BAD["3 pods restarted, 0 had before"]
    world.cycle(8, reactive=5)
    scale = world.cluster.workload()
    assert (scale.replicas, scale.before, isinstance(scale.watch, Rollback)) == (5, 3, True)
    world.restart("publish")
    assert world.cycle(8).writes == {("restore", "written"): 1}
    scale = world.cluster.workload()
    assert (scale.replicas, scale.before, scale.watch, scale.marked) == (3, None, None, False)


def test_a_floor_that_was_rolled_back_is_left_by_the_expiry_while_it_counts_and_goes_with_a_release() -> None:
    world = World("floor")
    world.cycle(6)
    world.health = BAD["3 pods restarted, 0 had before"]
    world.cycle(6)
    hpa = world.cluster.only()
    assert (hpa.floor, hpa.marked, hpa.writers) == (None, True, frozenset())
    assert released(hpa, world.now, expired=True) is None
    assert released(hpa, world.now + timedelta(days=3), expired=True) is not None
    back = released(hpa, world.now, expired=False)
    assert back is not None
    assert (back.change, back.min_replicas) == (Change.FORGET, 2)


class TestAnnotation:
    def test_what_is_watched_is_read_as_it_was_written(self) -> None:
        watched = RecentChange(3, raised=True, since=NOON, at=NOON, health=WELL, times=2)
        held = Rollback(NOON, 1, "3 pods restarted")
        assert [watch_of({WATCH: watch_text(watch)}) for watch in (watched, held)] == [watched, held]

    @pytest.mark.parametrize(
        "text", ["", "{}", "null", '{"type":"rolled-back","until":"2026-01-01T00:00:00","times":1}']
    )
    def test_what_cannot_be_read_tells_nothing(self, text: str) -> None:
        assert watch_of({WATCH: text}) is None

    def test_a_floor_is_applied_with_what_is_watched_and_read_again(self) -> None:
        world = World("floor")
        world.cycle(6)
        (write,) = world.cluster.written
        raw = msgspec.to_builtins(applied(write))
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
        raw["spec"] = {"scaleTargetRef": target, "minReplicas": 6, "maxReplicas": 20}
        hpa = listed_autoscaler(msgspec.json.decode(msgspec.json.encode(raw), type=HorizontalPodAutoscaler))
        assert hpa.watch == write.watch
        assert isinstance(hpa.watch, RecentChange)
        assert hpa.watch.health == WELL


class TestAHostileAnnotation:
    """Any owner of an HPA may forge the annotation in which a change is noted."""

    FOREVER = '{"type":"rolled-back","until":"9999-12-31T23:59:59Z","times":1,"why":"x"}'
    ENDLESS = watch_text(
        RecentChange(3, raised=False, since=NOON, at=NOON, health=Health(3, 3, release="web-1"))
    ).replace('"count":3', f'"count":1{"0" * 309}')

    @pytest.mark.parametrize(
        "text",
        [
            FOREVER,
            FOREVER.replace("9999", "0001"),
            FOREVER.replace('"times":1', '"times":-9223372036854775808'),
            FOREVER.replace('"x"', f'"{"x" * 2000}"'),
            FOREVER.replace("9999-12-31T23:59:59Z", "9999-12-31T23:59:59-23:59"),
            "[" * 900,
            ENDLESS,
        ],
        ids=["for ever", "long ago", "times", "long", "zone", "nested", "count"],
    )
    def test_that_no_write_of_ours_leaves_states_nothing(self, text: str) -> None:
        assert watch_of({WATCH: text}) is None

    def test_of_a_count_beyond_all_numbers_keeps_no_other_workload_from_its_count(self) -> None:
        """The count would be restored to a workload whose pods fail, and raises of all workloads are sorted by it."""
        server = FakeApiServer()
        for namespace in ("bad", "shop"):
            server.add(path_of("scale", namespace), object_of("scale"))
        pieces = [self.ENDLESS.encode()[at : at + 45] for at in range(0, len(self.ENDLESS), 45)]
        watch = {f"{WATCH}-{number}": f"x{urlsafe_b64encode(piece).decode()}x" for number, piece in enumerate(pieces)}
        marks = {LABEL: "scaled", BEFORE: "3", **watch}
        server.objects[path_of("scale", "bad")]["metadata"] |= {"labels": marks, "managedFields": []}
        hands = Hands(server, "scale")
        ill = msgspec.structs.replace(WELL, ready=0)
        hands.actuator.health = lambda since, _: {id_: ill if id_.namespace == "bad" else WELL for id_ in since}
        hands.cycle()
        assert server.objects[path_of("scale", "shop")]["spec"]["replicas"] == 6

    def test_stops_no_other_object(self) -> None:
        """Even past the checks of reading it, a forged instant does not keep another HPA from its floor."""
        forged = Rollback(datetime.max.replace(tzinfo=UTC), 1, "x")
        hpas = [replace(live_hpa("bad"), watch=forged, marked=True), live_hpa("web")]
        offers = {hpa.target: FloorOffer(6) for hpa in hpas}
        plan = floor_plan(hpas, offers, lambda _: True, {}, NOON, FloorSettings(enabled=True))
        assert {write.subject.name: write.change for write in plan.writes} == {
            "bad": Change.RAISE,
            "web": Change.RAISE,
        }
