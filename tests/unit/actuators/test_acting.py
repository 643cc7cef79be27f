"""One or two replicas on a fake cluster: which of them writes, when, and what its report and log say."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from forecaster.actuators.floor.actuator import FloorActuator
from forecaster.actuators.floor.plan import released
from forecaster.actuators.floor.values import Write, WrittenFloor
from forecaster.actuators.queue import WriteQueue
from forecaster.actuators.release import ReleaseLine, release
from forecaster.actuators.settings import ActingSettings, FloorSettings
from forecaster.actuators.writes import Change
from forecaster.domain.decision import Reason
from forecaster.domain.policies import Policies
from forecaster.domain.policy import Policy
from forecaster.domain.workload import WorkloadId
from forecaster.kube.client import ApiError, UnreachableError
from forecaster.resources.neighbours import Neighbours, ScaledObject
from tests.support.autoscalers import OWNER, FakeAutoscalers, live_hpa
from tests.support.decided_records import RecordPublisher
from tests.support.fences import Fence, Log
from tests.support.recommendations import NOON, SAID, recommendation, signal_view

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from forecaster.domain.report import Effected

MINUTE = timedelta(minutes=1)


def replace_namespace(id_: WorkloadId, namespace: str) -> WorkloadId:
    return id_._replace(namespace=namespace)


class Replica:
    """A forecaster in mode floor; `cycle` states the replicas of `web` that the forecast asks for, None holds."""

    def __init__(self, cluster: FakeAutoscalers, mode: str = "floor", **settings: object) -> None:
        self.cluster, self.log, self.fence = cluster, Log(cluster), Fence()
        self.beside = Neighbours()
        self.policies = Policies(Policy(mode=mode))  # type: ignore[arg-type]
        writer = WriteQueue("floor", self.fence, ActingSettings(**settings), self.log)  # type: ignore[arg-type]
        self.actuator = FloorActuator(
            cluster, writer, self.policies, FloorSettings(enabled=True), lambda _: self.beside
        )
        self.publisher = RecordPublisher(self.policies, {"floor": self.actuator})
        self.now = NOON

    def cycle(self, forecast: int | None = 7, *, watched: bool = False) -> Effected:
        view = replace(signal_view("cpu", self.now), forecast_replicas=forecast, reactive_replicas=3)
        reason = Reason.FORECAST if forecast else Reason.NO_DATA
        record = recommendation(live_hpa().target, at=self.now, now=4, replicas=forecast, reason=reason)
        self.publisher.publish(self.now, [replace(record, signals=(view,), clamps=(), shadow=watched)])
        effected = self.actuator.act(self.now)
        self.now += MINUTE
        return effected

    def cycles(self, count: int, forecast: int | None = 7) -> None:
        for _ in range(count):
            self.cycle(forecast)


def release_lines(cluster: FakeAutoscalers, now: datetime = NOON, *, expired: bool = False) -> list[ReleaseLine]:
    return list(release(cluster, cluster.listed(marked=True), lambda hpa: released(hpa, now, expired=expired), now))


@pytest.fixture
def cluster() -> FakeAutoscalers:
    return FakeAutoscalers.of(live_hpa())


@pytest.fixture
def replica(cluster: FakeAutoscalers) -> Replica:
    return Replica(cluster)


@pytest.mark.parametrize("paused", ["", "autoscaling.keda.sh/paused-scale-in"])
def test_what_a_scaled_object_scales_has_no_floor_and_one_that_is_on_ends(replica: Replica, paused: str) -> None:
    replica.cycle(7)
    scaled_object = ScaledObject("web", live_hpa().target, paused)
    replica.beside = Neighbours(scaled_objects=[scaled_object])
    assert replica.cycle(9).writes == {("restore", "written"): 1}
    assert replica.cycle(9).states == {"owned": 1}
    assert replica.log.lines[-1][1]["first"] == [
        f"HPA shop/web: {scaled_object} scales its target; state its minimum there"
    ]


def test_without_knowing_scaled_objects_floors_go_on_by_the_makers_of_hpas(replica: Replica) -> None:
    replica.beside = Neighbours(unknown={"/apis/keda.sh/v1alpha1/scaledobjects": "403"})
    assert replica.cycle(7).writes == {("raise", "written"): 1}


def test_a_forecast_that_acts_raises_the_floor_at_once_and_keeps_the_owners_value(replica: Replica) -> None:
    effected = replica.cycle(7)
    hpa = replica.cluster.only()
    assert (hpa.min_replicas, hpa.floor and hpa.floor.before) == (7, 2)
    assert hpa.floor is not None
    assert hpa.floor.expires == NOON + 15 * MINUTE
    assert effected.writes == {("raise", "written"): 1}
    assert replica.cluster.recorded[0].reason == f"the forecast asks for 7. {SAID}"


def test_each_write_is_noted_before_it_is_sent(replica: Replica) -> None:
    replica.cycle(7)
    ((event, facts),) = replica.log.lines
    assert (event, replica.log.sent) == ("cluster_write", [0])
    assert (facts["object"], facts["count"], facts["was"], facts["before"]) == ("HPA shop/web", 7, 2, 2)


def test_a_forecast_that_is_only_watched_raises_nothing(replica: Replica) -> None:
    assert replica.cycle(7, watched=True).writes == {}


def test_nothing_is_written_twice(replica: Replica) -> None:
    replica.cycles(6)
    assert len(replica.cluster.written) == 1


def test_a_floor_is_renewed_while_it_is_asked_for(replica: Replica) -> None:
    replica.cycles(60)
    floor = replica.cluster.only().floor
    assert floor is not None
    assert floor.expires > replica.now
    assert len(replica.cluster.written) == 8


def test_it_goes_down_five_minutes_after_the_last_that_asked_for_it(replica: Replica) -> None:
    replica.cycles(3, 7)
    replica.cycles(3, 5)
    assert replica.cluster.only().min_replicas == 7
    replica.cycles(3, 5)
    assert replica.cluster.only().min_replicas == 5
    replica.cycles(7, 1)
    hpa = replica.cluster.only()
    assert (hpa.min_replicas, hpa.floor, hpa.marked) == (2, None, False)


def test_a_new_leader_lowers_nothing_until_it_has_looked_for_as_long(replica: Replica) -> None:
    replica.cycle(7)
    other = Replica(replica.cluster)
    other.now = replica.now
    other.cycles(5, 3)
    assert replica.cluster.only().min_replicas == 7
    other.cycles(1, 3)
    assert replica.cluster.only().min_replicas == 3


def test_while_nothing_is_known_it_stays_for_an_hour_and_then_ends(replica: Replica) -> None:
    replica.cycle(7)
    replica.cycles(59, None)
    assert replica.cluster.only().min_replicas == 7
    replica.cycles(20, None)
    assert replica.cluster.only().min_replicas == 2


def test_offers_of_another_cycle_are_not_acted_on(replica: Replica) -> None:
    """If publishing failed or the source is down, the last offers do not describe the present."""
    replica.cycle(3)
    replica.actuator.offered = replace(replica.actuator.offered, at=NOON - MINUTE)  # type: ignore[type-var]
    replica.cluster.change(min_replicas=1)
    assert replica.actuator.act(replica.now).writes == {}


class TestOtherWriters:
    def test_the_owners_new_value_stays_and_the_hpa_is_left_alone_for_an_hour(self, replica: Replica) -> None:
        replica.cycle(7)
        replica.cluster.owner_sets(4)
        replica.cycles(55)
        assert replica.cluster.only().min_replicas == 4
        assert [write.change for write in replica.cluster.recorded] == ["raise", "yield"]
        assert replica.cluster.recorded[1].reason == f"{OWNER} wrote minReplicas 4; left alone for 1h"
        replica.cycles(10)
        hpa = replica.cluster.only()
        assert (hpa.min_replicas, hpa.floor and hpa.floor.before) == (7, 4)

    def test_a_pipeline_that_replaces_the_hpa_without_our_marks_every_minute_gets_two_writes_an_hour(
        self, replica: Replica
    ) -> None:
        for _ in range(60):
            replica.cycle(7)
            replica.cluster.replaced(live_hpa())
        assert [write.change for write in replica.cluster.recorded] == ["raise", "yield"]
        assert replica.cycle(7).states == {"second-writer": 1}

    def test_another_replica_leaves_it_alone_as_long(self, replica: Replica) -> None:
        replica.cycle(7)
        replica.cluster.owner_sets(4)
        replica.cycle(7)
        other = Replica(replica.cluster)
        other.now = replica.now
        assert other.cycle(7).states == {"second-writer": 1}
        assert replica.cluster.only().min_replicas == 4

    def test_an_hpa_that_is_made_from_another_object_is_refused_and_said_once(self) -> None:
        replica = Replica(FakeAutoscalers.of(replace(live_hpa(), controller="ScaledObject web")))
        assert replica.cycle(7).states == {"owned": 1}
        replica.cycle(7)
        ((event, facts),) = replica.log.lines
        assert event == "writes_refused"
        assert facts["codes"] == {"owned": 1}
        assert facts["first"] == ["HPA shop/web is made from ScaledObject web; state its minimum there"]

    def test_two_hpas_of_one_workload_are_refused(self) -> None:
        twin = replace(live_hpa("twin"), target=live_hpa().target)
        replica = Replica(FakeAutoscalers.of(live_hpa(), twin))
        assert replica.cycle(7).states == {"ambiguous": 2}

    def test_without_the_annotation_that_keeps_the_owners_value_nothing_is_written(self, replica: Replica) -> None:
        replica.cycle(7)
        replica.cluster.change(floor=None, fault="annotation is gone")
        assert replica.cycle(9).states == {"unreadable": 1}
        assert len(replica.cluster.written) == 1


class TestUndo:
    def test_another_mode_restores_in_the_next_cycle(self, replica: Replica) -> None:
        replica.cycle(7)
        other = Replica(replica.cluster, mode="publish")
        other.now = replica.now
        assert other.cycle(7).writes == {("restore", "written"): 1}
        assert replica.cluster.only().min_replicas == 2

    def test_a_floor_ends_where_its_hpa_gets_another_target_though_a_write_fails(self, replica: Replica) -> None:
        replica.cycle(7)
        replica.cluster.change(target=WorkloadId("shop", "Deployment", "other"))
        replica.cluster.fails = [ApiError("conflict", 409)]
        replica.cycles(2)
        assert (replica.cluster.only().min_replicas, replica.cluster.only().floor) == (2, None)

    def test_a_floor_ends_where_its_hpa_got_another_target_while_no_replica_ran(self, replica: Replica) -> None:
        replica.cycle(7)
        replica.cluster.change(target=WorkloadId("shop", "Deployment", "other"))
        restarted = Replica(replica.cluster)
        assert restarted.cycle(7).writes == {("restore", "written"): 1}
        assert (replica.cluster.only().min_replicas, replica.cluster.only().floor) == (2, None)

    @pytest.mark.parametrize("change", [Change.RESTORE, Change.ROLL_BACK])
    def test_part_of_an_undo_keeps_the_marks_that_say_what_the_rest_is(self, change: Change) -> None:
        hpa = replace(live_hpa(lowest=7), floor=WrittenFloor(50, NOON), marked=True)
        part = Write(hpa, change, 50, "another mode").bounded(17, "17 in this cycle, by its rate limits")
        assert (part.change, part.min_replicas, part.floor) == (Change.RAISE, 17, hpa.floor)

    def test_a_restoring_that_was_cut_off_is_finished(self, replica: Replica) -> None:
        replica.cycle(7)
        other = Replica(replica.cluster, mode="observe")
        replica.cluster.dies = True
        other.cycle(7)
        assert (replica.cluster.only().min_replicas, replica.cluster.only().marked) == (2, True)
        assert other.cycle(7).writes == {("forget", "written"): 1}
        assert not replica.cluster.only().marked

    def test_the_annotation_of_an_hpa_stands_over_the_settings(self) -> None:
        replica = Replica(FakeAutoscalers.of(replace(live_hpa(), mode="floor")), mode="observe")
        replica.cycle(7)  # this cycle's offer was made before the annotation was read
        replica.cycle(7)
        assert replica.cluster.only().min_replicas == 7
        replica.cluster.change(mode=None)
        replica.cycle(7)
        assert replica.cluster.only().min_replicas == 2

    def test_release_restores_everything_or_what_has_expired(self, replica: Replica) -> None:
        replica.cycle(7)
        assert release_lines(replica.cluster, NOON, expired=True) == []
        late = NOON + 15 * MINUTE
        assert release_lines(replica.cluster, late, expired=True) == [
            ("HPA shop/web: minReplicas 2, was 7: its expiry has passed", True)
        ]
        assert release_lines(replica.cluster, late) == []

    def test_release_keeps_the_value_of_another_writer(self, replica: Replica) -> None:
        replica.cycle(7)
        replica.cluster.owner_sets(4)
        assert len(release_lines(replica.cluster)) == 1
        assert (replica.cluster.only().min_replicas, replica.cluster.only().marked) == (4, False)

    def test_one_that_cannot_be_released_does_not_keep_the_others(self) -> None:
        cluster = FakeAutoscalers.of(live_hpa("a"), live_hpa("b"), live_hpa("c"))
        for name in ("a", "b", "c"):
            cluster.change(name, marked=True, fault="the owner's value is gone" if name == "a" else "")
        cluster.fails = [ApiError("denied by a webhook", 403)]
        lines = release_lines(cluster)
        assert [line.done for line in lines] == [False, False, True]
        assert lines[1].line == "HPA shop/b: left at minReplicas 2: denied by a webhook"

    def test_one_that_is_deleted_meanwhile_does_not_keep_the_others(self) -> None:
        cluster = FakeAutoscalers.of(live_hpa("a"), live_hpa("b"))
        cluster.change("a", marked=True)
        cluster.change("b", marked=True)
        cluster.before_write = lambda: cluster.delete("a")
        assert [line.done for line in release_lines(cluster)] == [True]
        assert not cluster.only().marked

    def test_a_mode_that_cannot_be_read_ends_the_floor_and_is_reported(self, replica: Replica) -> None:
        replica.cycle(7)
        replica.cluster.change(mode="observe", misread="annotation is 'off'")
        assert replica.cycle(7).writes == {("restore", "written"): 1}
        assert replica.cycle(7).states == {"unreadable": 1}

    def test_release_looks_again_where_the_hpa_is_written_meanwhile(self, replica: Replica) -> None:
        replica.cycle(7)
        replica.cluster.before_write = lambda: replica.cluster.change(replicas=9)
        assert len(release_lines(replica.cluster)) == 1
        assert replica.cluster.only().min_replicas == 2


def test_a_start_without_state_gives_no_floor_back_before_its_gate_is_judged(replica: Replica) -> None:
    """An upgrade with an empty state directory is such a start: no gate has judged the forecast yet."""
    replica.cycle(7)
    upgraded = Replica(replica.cluster)
    upgraded.now = replica.now
    upgraded.actuator.unjudged = lambda _: True
    for _ in range(14):
        assert upgraded.cycle(7, watched=True).states == {"raised": 1, "unjudged": 1}
    assert replica.cluster.only().min_replicas == 7
    upgraded.actuator.unjudged = lambda _: False
    for _ in range(10):
        upgraded.cycle(7, watched=True)
    assert replica.cluster.only().min_replicas == 2


class TestFailures:
    def test_a_new_status_meanwhile_is_no_conflict(self, replica: Replica) -> None:
        replica.cluster.before_write = lambda: replica.cluster.change(replicas=9)
        assert replica.cycle(7).writes == {("raise", "written"): 1}

    def test_a_new_value_meanwhile_is_one_and_is_decided_on_in_the_next_cycle(self, replica: Replica) -> None:
        replica.cluster.before_write = lambda: replica.cluster.owner_sets(3)
        effected = replica.cycle(7)
        assert effected.writes == {("raise", "conflict"): 1}
        assert effected.failures[0].startswith("HPA shop/web: minReplicas 7 not written")
        replica.cycle(7)
        hpa = replica.cluster.only()
        assert (hpa.min_replicas, hpa.floor and hpa.floor.before) == (7, 3)

    @pytest.mark.parametrize(
        "error", [UnreachableError("no answer"), ApiError("busy", 429), ApiError("etcd", 500)], ids=str
    )
    def test_an_api_server_in_trouble_is_left_alone_after_five_writes(self, error: ApiError) -> None:
        replica = self.over_namespaces(*(f"team-{number}" for number in range(9)))
        replica.cluster.fails = [error] * 9
        effected = replica.cycle(7)
        assert replica.cluster.written == []
        assert effected.failures[5:] == ("floor: 4 changes left for the next cycle",)

    def test_trouble_that_a_success_ends_is_counted_anew(self) -> None:
        replica = self.over_namespaces(*(f"team-{number}" for number in range(9)))
        replica.cluster.fails = [*[ApiError("etcd", 500)] * 4, None, *[ApiError("etcd", 500)] * 4]
        assert replica.cycle(7).writes == {("forget", "failed"): 8, ("forget", "written"): 1}

    @pytest.mark.parametrize(
        "error", [UnreachableError("no answer"), ApiError("webhook", 500), ValueError("bug")], ids=str
    )
    def test_an_object_that_always_fails_harms_itself_only(self, error: Exception) -> None:
        """An object whose webhook answers late or with 500 is tried last, after the others are written."""
        replica = self.over_namespaces("bad", *(f"team-{number}" for number in range(20)))
        tries = []

        def fails_for_bad(write: Write, send: Callable[[Write], None] = replica.cluster.write) -> None:
            if write.subject.namespace == "bad":
                tries.append(replica.now)
                raise error
            send(write)

        replica.cluster.write = fails_for_bad  # type: ignore[method-assign]
        effected = replica.cycle(7)
        assert len(replica.cluster.written) == 20
        assert effected.writes == {("forget", "written"): 20, ("forget", "failed"): 1}
        replica.cycles(9)
        assert len(tries) == 10

    def test_many_objects_that_always_fail_take_turns_and_are_all_written_once_they_can_be(self) -> None:
        """A namespace with a full quota gets twenty tries a cycle, not one for each of its objects."""
        replica = self.over_namespaces(*["full"] * 50, "team")
        replica.cluster.refuses = {"full": ApiError("exceeded quota", 403)}
        tried = [
            [failure.split()[1] for failure in replica.cycle(7).failures if "not written" in failure] for _ in range(4)
        ]
        assert [len(names) for names in tried[1:]] == [20, 20, 20]
        assert len({name for names in tried[1:] for name in names}) == 50
        replica.cluster.refuses = {}
        replica.cycle(7)
        assert Counter(write.subject.namespace for write in replica.cluster.written) == {"full": 50, "team": 1}

    def test_release_goes_on_past_an_object_whose_write_is_not_answered(self) -> None:
        replica = self.over_namespaces("bad", "shop", "team")
        replica.cluster.refuses = {"bad": UnreachableError("no answer")}
        assert [line.done for line in release_lines(replica.cluster)] == [False, True, True]

    def test_a_namespace_of_failing_objects_comes_last(self) -> None:
        replica = self.over_namespaces(*["bad"] * 30, *(f"team-{number}" for number in range(20)))
        replica.cluster.refuses = {"bad": UnreachableError("no answer")}
        replica.cycle(7)
        assert len(replica.cluster.written) == 20

    @staticmethod
    def over_namespaces(*namespaces: str) -> Replica:
        """A replica over one HPA in each of these namespaces, each with an old mark of ours to be removed."""
        hpas = [
            replace(
                live_hpa(f"web-{number}"),
                namespace=namespace,
                target=replace_namespace(live_hpa(f"web-{number}").target, namespace),
                marked=True,
            )
            for number, namespace in enumerate(namespaces)
        ]
        return Replica(FakeAutoscalers.of(*hpas), mode="publish")

    def test_writes_that_take_too_long_wait_for_the_next_cycle(self) -> None:
        names = ("a", "b", "c")
        replica = Replica(FakeAutoscalers.of(*map(live_hpa, names)), mode="publish")
        for name in names:
            replica.cluster.change(name, marked=True)
        replica.actuator.writer.seconds = iter([0.0, 1.0, 15.0, 21.0]).__next__
        assert replica.cycle(7).failures == ("floor: 1 change left for the next cycle",)
        assert len(replica.cluster.written) == 2

    def test_one_that_is_refused_does_not_stop_the_others(self) -> None:
        replica = Replica(FakeAutoscalers.of(live_hpa("a"), live_hpa("b")), mode="publish")
        for name in ("a", "b"):
            replica.cluster.change(name, marked=True)
        replica.cluster.fails = [ApiError("forbidden", 403)]
        assert replica.cycle(7).writes == {("forget", "failed"): 1, ("forget", "written"): 1}

    def test_a_leader_that_dies_before_the_answer_leaves_what_the_next_one_goes_on_with(self, replica: Replica) -> None:
        replica.cluster.mute = True
        assert replica.cycle(7).writes == {("raise", "failed"): 1}
        replica.cluster.mute = False
        other = Replica(replica.cluster)
        other.now = replica.now
        assert other.cycle(7).writes == {}
        hpa = replica.cluster.only()
        assert (hpa.min_replicas, hpa.floor and hpa.floor.before) == (7, 2)

    def test_a_lost_event_is_only_logged(self, replica: Replica, monkeypatch: pytest.MonkeyPatch) -> None:
        def lost(*_: object) -> None:
            raise ApiError("forbidden", 403)

        monkeypatch.setattr(replica.cluster, "record", lost)
        assert replica.cycle(7).writes == {("raise", "written"): 1}
        assert replica.log.events() == ["cluster_write", "cluster_event_lost"]


class TestFence:
    def test_a_replica_that_does_not_lead_looks_and_writes_nothing(self, replica: Replica) -> None:
        replica.fence.left = 0
        effected = replica.cycle(7)
        assert (effected.leading, effected.writes, effected.failures) == (False, {}, ())
        assert replica.cluster.written == []

    def test_a_lease_that_ends_within_a_cycle_ends_its_writes(self) -> None:
        names = ("a", "b", "c")
        replica = Replica(FakeAutoscalers.of(*map(live_hpa, names)), mode="publish")
        for name in names:
            replica.cluster.change(name, marked=True)
        replica.fence.left = 2
        replica.cycle(7)
        assert len(replica.cluster.written) == 2

    def test_a_write_is_not_repeated_once_the_lease_has_ended(self, replica: Replica) -> None:
        replica.fence.left = 1
        replica.cluster.before_write = lambda: replica.cluster.change(replicas=9)
        replica.cycle(7)
        assert replica.cluster.written == []

    def test_a_pause_stops_everything_silently(self, replica: Replica) -> None:
        replica.cycle(7)
        replica.fence.paused = True
        assert replica.cycle(9).failures == ()
        paused = Replica(replica.cluster, paused=True)
        assert (paused.cycle(9).failures, len(replica.cluster.written)) == ((), 1)

    def test_a_lease_that_cannot_be_had_is_a_line_of_the_report(self, replica: Replica) -> None:
        replica.fence.fault = "there is no such Lease"
        assert replica.cycle(7).failures == ("floor: there is no such Lease",)

    def test_two_that_both_believe_to_lead_write_once(self, replica: Replica) -> None:
        """The election rules this out, and the version of the object stops the second write."""
        other = Replica(replica.cluster)
        replica.cluster.before_write = lambda: other.cycle(7) and None
        replica.cycle(7)
        hpa = replica.cluster.only()
        assert len(replica.cluster.written) == 1
        assert (hpa.min_replicas, hpa.floor and hpa.floor.before) == (7, 2)


def test_a_dry_run_is_reported_as_one(cluster: FakeAutoscalers) -> None:
    replica = Replica(cluster, dry_run=True)
    assert replica.cycle(7).writes == {("raise", "dry-run"): 1}
    assert replica.log.lines[0][1]["dry_run"] is True


def test_a_clock_that_went_back_begins_anew(replica: Replica) -> None:
    replica.cycle(7)
    replica.now = NOON - timedelta(hours=2)
    replica.cycles(8, 7)
    floor = replica.cluster.only().floor
    assert floor is not None
    assert floor.expires - replica.now <= 15 * MINUTE
