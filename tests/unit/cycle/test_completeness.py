"""Answers with success that lack a part: the decision, the history, and the second query."""

from __future__ import annotations

import numpy as np
import pytest

from forecaster.cycle.completeness import ARRIVE_LATE, IncompleteInstants
from forecaster.domain.decision import Hold
from forecaster.domain.signal import CPU
from forecaster.domain.window import MINUTE, Gap
from forecaster.domain.workload import WorkloadId
from tests.support.builders import NOON, after, workload
from tests.support.fakes import CycleOnFakes, Load, Question, load, named, steady, stored_values

WEB = workload("web").id


def with_partial_answers(*minutes: int) -> CycleOnFakes:
    """A web of four pods with two cores of demand; answers at these minutes after noon have half of it."""
    stage = CycleOnFakes(load("web", cpu=2.0), learns_first=False)
    stage.source.partial = {after(minute): 0.5 for minute in minutes}
    return stage


class TestPartialAnswer:
    def test_lowers_nothing_and_is_named(self) -> None:
        stage = with_partial_answers(*range(1, 12))
        for outcome in stage.run_minutes(0, 11):
            assert named(outcome, "web").recommended_replicas == 4
        assert outcome.report.incomplete["cpu", "partial-answer"] == 1
        assert "cpu: the answer is partial: a store is down" in outcome.report.failures

    def test_holds_when_nothing_complete_is_fresh_any_more(self) -> None:
        outcome = with_partial_answers(*range(1, 12)).run_minutes(0, 11)[-1]
        verdict = named(outcome, "web").replicas
        assert isinstance(verdict, Hold)
        assert verdict.message == "not going down while a signal is incomplete: cpu: the server's answer was partial"

    def test_raises_by_what_is_there(self) -> None:
        stage = with_partial_answers(1)
        stage.run_minutes(0, 0)
        stage.source.loads[0].demand[CPU] = steady(8.0)
        assert named(stage.run_minutes(1, 1)[0], "web").recommended_replicas == 8

    def test_is_not_learned(self) -> None:
        stage = with_partial_answers(3)
        stage.run_minutes(0, 3)
        known = stored_values(stage.history, CPU, WEB)[-4:]
        assert known[:3] == [2.0, 2.0, 2.0]
        assert np.isnan(known[3])

    def test_is_asked_again_and_heals(self) -> None:
        stage = with_partial_answers(3)
        stage.run_minutes(0, 3)
        stage.source.partial.clear()
        stage.run_minutes(4, 4)
        assert Question(CPU, after(3), after(3), MINUTE) in stage.source.questions
        assert stored_values(stage.history, CPU, WEB)[-5:] == [2.0] * 5

    @pytest.mark.parametrize("spare", [1024, 0], ids=["of a few", "of most of a large fleet"])
    def test_that_lacks_whole_workloads_is_asked_again_too(self, spare: int, monkeypatch: pytest.MonkeyPatch) -> None:
        """A shard is away, and the server does not say so."""
        monkeypatch.setattr("forecaster.demand.latest.SPARE_ROWS", spare)
        stage = CycleOnFakes(load("web"), load("cart"), learns_first=False)
        stage.run_minutes(0, 3)
        stage.source.mute = {CPU: after(4)}
        stage.run_minutes(4, 5)
        stage.source.mute.clear()
        stage.run_minutes(6, 6)
        assert stored_values(stage.history, CPU, WEB)[-7:-1] == [2.0] * 6

    def test_of_nobody_for_an_hour_and_a_half_is_asked_again_too(self) -> None:
        """An agent that could not write sends its backlog some minutes after the newest samples."""
        stage = CycleOnFakes(load("web"), load("cart"), learns_first=False)
        stage.run_minutes(0, 3)
        gap = [(CPU, after(minute)) for minute in range(4, 94)]
        stage.source.unwritten = set(gap)
        stage.run_minutes(4, 97)
        stage.source.unwritten.clear()
        stage.run_minutes(98, 105)
        assert stored_values(stage.history, CPU, WEB)[-102:] == [2.0] * 102

    def test_of_half_an_hour_is_asked_again_as_one_span_when_answers_are_whole(self) -> None:
        stage = with_partial_answers(*range(1, 31))
        stage.run_minutes(0, 30)
        stage.source.partial.clear()
        stage.run_minutes(31, 31)
        assert Question(CPU, after(1), after(30), MINUTE) in stage.source.questions
        assert stored_values(stage.history, CPU, WEB)[-32:] == [2.0] * 32


class TestAgain:
    """Instants of a signal that are queried again."""

    def test_each_once_after_two_minutes_while_answers_stay_incomplete(self) -> None:
        again = IncompleteInstants()
        for minute in range(2):
            again.answered(after(minute), after(minute), incomplete=True)
        assert again.due(CPU, after(1)) == []
        assert again.due(CPU, after(2)) == [Gap(CPU, after(0), after(0), MINUTE)]

    def test_not_for_ten_minutes_after_three_questions_in_vain(self) -> None:
        again, questions = IncompleteInstants(), 0
        for minute in range(60):
            again.answered(after(minute), after(minute), incomplete=True)
            for gap in again.due(CPU, after(minute)):
                questions += 1
                again.answered(gap.start, after(minute), incomplete=True)
        assert questions <= 60 * 3 / 12

    def test_at_most_twice_when_answers_are_whole_again(self) -> None:
        again, asked_at = IncompleteInstants(), []
        again.answered(after(0), after(0), incomplete=True)
        for minute in range(1, 60):
            again.answered(after(minute), after(minute), incomplete=False)
            for gap in again.due(CPU, after(minute)):
                asked_at.append(minute)
                again.answered(gap.start, after(minute), incomplete=True)
        assert asked_at == [1, 2, 11]

    def test_the_last_time_comes_where_no_cycle_is_ten_minutes_after_the_first(self) -> None:
        again, asked_at = IncompleteInstants(), []
        again.answered(after(0), after(0), incomplete=True)
        for minute in range(3, 60, 3):
            again.answered(after(minute), after(minute), incomplete=False)
            for gap in again.due(CPU, after(minute)):
                asked_at.append(minute)
                again.answered(gap.start, after(minute), incomplete=True)
        assert asked_at == [3, 15]


def test_a_glitch_is_neither_acted_on_nor_learned() -> None:
    """The source reports 8,000 cores for four pods with a limit of two cores each."""
    stage = CycleOnFakes(load("web", cpu=2.0), learns_first=False)
    stage.run_minutes(0, 3)
    stage.source.loads[0].demand[CPU] = steady(8000.0)
    outcome = stage.run_minutes(4, 4)[0]
    assert named(outcome, "web").recommended_replicas == 4
    assert np.isnan(stored_values(stage.history, CPU, WEB)[-1])
    assert "cpu of shop/web: 8000 is more than its pods can use (32)" in outcome.report.failures
    assert outcome.report.incomplete == {("cpu", "beyond-limit"): 1}


def test_series_of_one_owner_that_come_and_go_are_no_late_samples_of_all() -> None:
    """A tenant's pod may export a series whenever it likes, which is no reason to delay cycles."""
    now = [NOON]
    tenant = workload(id=WorkloadId("tenant", "Deployment", "odd"))
    shows = Load(tenant, {CPU: lambda at: np.nan if at == now[0] > NOON else 2.0})
    stage = CycleOnFakes(load("web"), shows, learns_first=False)
    for minute in range(8):
        now[0] = after(minute)
        failures = stage.run(now[0]).report.failures
    assert f"cpu: {ARRIVE_LATE}" not in failures
