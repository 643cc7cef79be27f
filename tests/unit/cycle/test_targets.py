"""Workloads that vanish together point to an incomplete source; one that vanishes alone is gone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from forecaster.cycle.targets import WorkloadTracker
from forecaster.domain.decision import Hold, Reason
from tests.support.builders import NOON, after, workload
from tests.support.fakes import CycleOnFakes, FakeSource, Load, load, named, nobody_answers

FLEET = tuple(load(f"web-{i}") for i in range(10))


def listed(tracker: WorkloadTracker, source: FakeSource, minute: int) -> list[str]:
    return [workload.id.name for workload in tracker.find(source, after(minute)).inventory.workloads]


def in_namespace(namespace: str, name: str) -> Load:
    moved = load(name)
    return replace(moved, workload=replace(moved.workload, id=moved.workload.id._replace(namespace=namespace)))


class TestSource:
    def test_that_answers_replaces_what_was_known(self) -> None:
        tracker, source = WorkloadTracker(), FakeSource([*FLEET, load("gone")])
        tracker.find(source, NOON)
        source.loads = [*FLEET, load("new")]
        assert listed(tracker, source, 1) == [*(f"web-{i}" for i in range(10)), "new"]

    def test_that_is_down_leaves_what_was_known_and_says_why(self) -> None:
        tracker, source = WorkloadTracker(), FakeSource(list(FLEET))
        tracker.find(source, NOON)
        source.down = nobody_answers()
        targets = tracker.find(source, after(1))
        assert (len(targets.inventory.workloads), targets.down) == (10, str(nobody_answers()))

    def test_that_was_never_up_leaves_none(self) -> None:
        assert listed(WorkloadTracker(), FakeSource([], down=nobody_answers()), 0) == []


class TestCollapse:
    """While kube-state-metrics restarts, queries succeed with an empty vector."""

    def test_of_all_holds_every_workload_with_the_reason_and_says_so_once(self) -> None:
        stage = CycleOnFakes(*FLEET)
        stage.run()
        stage.source.loads = []
        outcome = stage.run(after(1))
        assert {record.replicas.reason for record in outcome.recommendations} == {Reason.SOURCE_DOWN}
        assert len(outcome.recommendations) == 10
        (failure,) = outcome.report.failures
        assert "0 of 10 workloads in all are listed" in failure
        assert dict(outcome.report.verdicts) == {("hold", "source-down"): 10}

    def test_of_half_holds_the_missing_half_and_decides_about_the_rest(self) -> None:
        stage = CycleOnFakes(*FLEET)
        stage.run()
        stage.source.loads = list(FLEET[:5])
        outcome = stage.run(after(1))
        assert [named(outcome, f"web-{i}").replicas.reason for i in (0, 4, 5, 9)] == [
            Reason.REACTIVE,
            Reason.REACTIVE,
            Reason.SOURCE_DOWN,
            Reason.SOURCE_DOWN,
        ]

    def test_keeps_what_was_learned_and_goes_on_at_once_when_it_is_over(self) -> None:
        stage = CycleOnFakes(*FLEET)
        stage.run_minutes(0, 2)
        rows = dict(stage.cycle.decider.observed.fleet.row)
        stage.source.loads = []
        stage.run_minutes(3, 6)
        stage.source.loads = list(FLEET)
        outcome = stage.run(after(7))
        assert {record.replicas.reason for record in outcome.recommendations} == {Reason.REACTIVE}
        assert stage.cycle.decider.observed.fleet.row == rows

    def test_is_believed_after_a_quarter_of_an_hour(self) -> None:
        tracker, source = WorkloadTracker(), FakeSource(list(FLEET))
        tracker.find(source, NOON)
        source.loads = list(FLEET[5:])
        assert [len(listed(tracker, source, minute)) for minute in (1, 15, 16)] == [10, 10, 5]

    def test_of_everything_is_believed_after_a_day(self) -> None:
        """kube-state-metrics may stay away, or the clock be hours ahead; a 404 would mean a deleted workload."""
        tracker, source = WorkloadTracker(), FakeSource(list(FLEET))
        tracker.find(source, NOON)
        source.loads = []
        assert [len(listed(tracker, source, hours * 60)) for hours in (1, 24, 25)] == [10, 10, 0]

    @pytest.mark.parametrize(
        ("count", "gone", "held"), [(10, 1, 0), (10, 2, 0), (10, 3, 0), (10, 4, 4), (10, 5, 5), (9, 3, 3), (6, 2, 0)]
    )
    def test_is_no_name_for_a_few_that_were_deleted(self, count: int, gone: int, held: int) -> None:
        tracker, source = WorkloadTracker(), FakeSource(list(FLEET[:count]))
        tracker.find(source, NOON)
        source.loads = list(FLEET[gone:count])
        assert len(listed(tracker, source, 1)) == count - gone + held

    def test_of_the_last_workload_is_held_too(self) -> None:
        tracker, source = WorkloadTracker(), FakeSource([load("web")])
        tracker.find(source, NOON)
        source.loads = []
        assert listed(tracker, source, 1) == ["web"]

    def test_of_one_is_held_where_the_list_is_partial_by_its_own_word(self) -> None:
        stage = CycleOnFakes(*FLEET)
        stage.run()
        stage.source.loads = list(FLEET[1:])
        stage.source.partial = {after(1): 1.0}
        outcome = stage.run(after(1))
        why = "the answer that lists workloads is partial: a store is down; held until 2026-03-02 12:00 UTC"
        assert named(outcome, "web-0").replicas == Hold(Reason.SOURCE_DOWN, why)
        assert len(outcome.recommendations) == 10
        assert any("the list of workloads is incomplete" in failure for failure in outcome.report.failures)
        assert len(stage.run(after(2)).recommendations) == 9


class TestTenant:
    """The owner of a namespace deletes everything in it, in the minute in which another owner deletes one workload."""

    TENANT = tuple(in_namespace("tenant", f"t-{i}") for i in range(20))
    OTHERS = tuple(in_namespace(f"team-{i % 5}", f"web-{i}") for i in range(20))

    def test_holds_no_deletion_of_another_namespace(self) -> None:
        tracker, source = WorkloadTracker(), FakeSource([*self.TENANT, *self.OTHERS])
        tracker.find(source, NOON)
        source.loads = list(self.OTHERS[1:])
        assert listed(tracker, source, 1) == [load.workload.id.name for load in (*self.OTHERS[1:], *self.TENANT)]

    def test_is_not_told_from_a_shard_that_is_away_by_its_size(self) -> None:
        tracker, source = WorkloadTracker(), FakeSource([*self.TENANT, *self.OTHERS])
        tracker.find(source, NOON)
        source.loads = [*self.TENANT[8:], *self.OTHERS[6:]]
        assert len(listed(tracker, source, 1)) == 40


def test_nothing_is_published_over_the_last_table_while_nothing_is_known() -> None:
    """The service restarts while its source is down; an empty table would answer every HPA with 404."""
    stage = CycleOnFakes(*FLEET)
    stage.source.down = nobody_answers()
    stage.run()
    assert stage.publisher.published == []
    stage.source.down = None
    stage.run(after(1))
    assert len(stage.publisher.published) == 1


def test_a_workload_that_is_known_in_part_is_held_and_the_others_go_on() -> None:
    """Its HPA has no maximum yet, and the policy's targets would be a guess."""
    stage = CycleOnFakes(load("web", cpu=4.0), load("cart", cpu=4.0))
    stage.source.partly = {workload("web").id: "no series has the maxReplicas of its HPA web"}
    outcome = stage.run()
    assert named(outcome, "web").replicas == Hold(Reason.SOURCE_DOWN, "no series has the maxReplicas of its HPA web")
    assert named(outcome, "cart").recommended_replicas == 8
