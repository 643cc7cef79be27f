"""Cycles over a workload of four pods with steady demand, and the faults that may happen around it."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from forecaster.cycle.sizes import PodSizes
from forecaster.cycle.steps import PATIENCE
from forecaster.domain.decision import Hold, LeadTime, Reason, Resize, Scale
from forecaster.domain.policies import Policies
from forecaster.domain.policy import HorizontalPolicy, Policy, PolicySelector
from forecaster.domain.report import Effected
from forecaster.domain.signal import CPU, DEMAND, MEMORY, PODS, REQUESTS
from forecaster.domain.window import FIVE_MINUTES, MINUTE
from forecaster.domain.workload import Resources
from forecaster.errors import SourceRefused
from forecaster.forecasting.shards import Shards
from forecaster.horizontal.sentences import explanation
from forecaster.kube.client import ApiError
from forecaster.store.history import HistorySettings
from forecaster.vertical.sizing.memory import OOM_RAISE
from models import LastValue
from tests.support.builders import GIB, NOON, after, minutes, workload
from tests.support.fakes import CycleOnFakes, Load, load, named, nobody_answers, steady, stored_values

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forecaster.cycle.run import Outcome
    from models import Fitted, Panel, Peak, StepWindow

WEB = load().workload.id
BERLIN = ZoneInfo("Europe/Berlin")


def reasons(outcome: Outcome) -> set[Reason]:
    return {record.replicas.reason for record in outcome.recommendations}


@pytest.mark.parametrize(("zone", "expected"), [("Europe/Berlin", 10.0), ("UTC", 1.0)])
def test_on_the_day_of_a_change_the_morning_is_expected_by_the_clock_of_the_policy(zone: str, expected: float) -> None:
    """The load steps from 1 to 10 cores at 08:00 in Berlin; the cycle runs ten minutes before."""
    now = datetime(2026, 3, 29, 5, 50, tzinfo=UTC)
    daily = {CPU: lambda at: 10.0 if 8 <= (at - MINUTE).astimezone(BERLIN).hour < 18 else 1.0, PODS: steady(4.0)}
    horizontal = HorizontalPolicy(gate=False, lead_time=minutes(8), window=minutes(10))
    stage = CycleOnFakes(
        Load(workload("web"), daily),
        policies=Policies(Policy(time_zone=zone, horizontal=horizontal)),
        model="seasonal-naive-day",
        settings=HistorySettings(minutes_kept=minutes(180), weeks_kept=timedelta(days=14)),
        start=now,
    )
    (web,) = stage.run(now).recommendations
    (cpu,) = [view for view in web.signals if view.signal == "cpu"]
    assert cpu.forecast is not None
    assert cpu.forecast.median == pytest.approx(expected, rel=0.1)


class TestQuiet:
    def test_cycle_decides_about_every_workload_and_hands_it_on(self) -> None:
        stage = CycleOnFakes(load("web"), load("cart"))
        outcome = stage.run()
        assert [record.id.name for record in outcome.recommendations] == ["web", "cart"]
        assert stage.publisher.published == [(NOON, tuple(outcome.recommendations))]
        ((at, recorded),) = stage.ledger.recorded
        assert (at, [record.id for record in recorded]) == (NOON, [record.id for record in outcome.recommendations])
        assert outcome.report.failures == ()

    def test_cycle_on_a_day_of_history_sizes_pods_too(self) -> None:
        """An HPA acts on utilization of CPU, so only memory is sized: 2 GiB over four pods, with room to grow."""
        (record,) = CycleOnFakes(load()).run().recommendations
        assert isinstance(record.resources, Resize)
        assert record.resources.resources.cpu_request == 1.0
        request = record.resources.resources.memory_request
        assert request is not None
        assert request == pytest.approx(OOM_RAISE * 0.5 * GIB)

    def test_minutes_that_are_kept_for_longer_decide_nothing_else(self) -> None:
        """Only the gate reads all minutes; decisions use the latest hours."""
        wave = {CPU: lambda at: 2.0 + (at.hour * 60 + at.minute) % 97 / 64, PODS: steady(4.0)}
        spans = (HistorySettings(minutes_kept=minutes(60 * hours), weeks_kept=minutes(4 * 1440)) for hours in (3, 72))
        short, long = (
            CycleOnFakes(Load(workload("web"), wave), settings=settings, model="ridge") for settings in spans
        )
        for outcome, other in zip(short.run_minutes(0, 3), long.run_minutes(0, 3), strict=True):
            assert list(outcome.recommendations) == list(other.recommendations)

    def test_first_cycle_fills_the_history_minutes_before_weeks(self) -> None:
        stage = CycleOnFakes(load())
        stage.run()
        steps = [question.step for question in stage.source.questions]
        assert steps == sorted(steps)
        assert set(steps) == {MINUTE, FIVE_MINUTES}
        assert not np.isnan(stored_values(stage.history, CPU, WEB)).any()

    def test_second_cycle_asks_each_signal_for_the_newest_minute_alone(self) -> None:
        stage = CycleOnFakes(load())
        stage.run()
        stage.run(after(1))
        assert {(question.signal, question.start, question.end) for question in stage.source.questions} == {
            (signal, after(1), after(1)) for signal in DEMAND
        }

    def test_cycle_never_asks_for_single_workloads(self) -> None:
        few, many = CycleOnFakes(load()), CycleOnFakes(*(load(f"web-{i}") for i in range(20)))
        few.run(), many.run()
        assert few.source.questions == many.source.questions

    def test_newest_minute_reaches_the_decision(self) -> None:
        jump = Load(workload(), {CPU: lambda at: 4.0 if at > NOON else 2.0})
        before, now = CycleOnFakes(jump).run_minutes(0, 1)
        assert [outcome.recommendations[0].recommended_replicas for outcome in (before, now)] == [4, 8]
        assert now.recommendations[0].signals[0].measured_at == after(1)

    def test_report_counts_verdicts_series_and_the_age_of_samples(self) -> None:
        stage = CycleOnFakes(load("web"), load("cart"))
        report = stage.run().report
        assert dict(report.verdicts) == {("scale", "reactive"): 2}
        assert dict(report.series) == {CPU: 2, MEMORY: 2, REQUESTS: 0}
        assert dict(report.newest_sample_age) == {CPU: 0.0, MEMORY: 0.0}

    def test_what_decides_comes_before_what_may_be_late(self) -> None:
        report = CycleOnFakes(load(), learns_first=False).run().report
        needed = ["targets", "observations", "demand", "forecasts", "decisions", "offers"]
        assert list(report.steps) == [*needed, "fits", "sizes", "gates", "scores"]
        assert all(seconds > 0 for seconds in report.steps.values())


class TestOptionalWork:
    def test_that_fails_costs_one_line_and_no_decision(self) -> None:
        stage = CycleOnFakes(load(cpu=3.0), learns_first=False)
        stage.cycle.sizes = BrokenSizes()
        outcome = stage.run()
        assert named(outcome, "web").recommended_replicas == 6
        (failure,) = outcome.report.failures
        assert re.fullmatch(r"sizes: RuntimeError: no size today \(cycle/\w+\.py:\d+\)", failure)
        assert len(stage.publisher.published) == 1

    def test_waits_for_the_next_cycle_where_the_budget_is_spent_and_says_so(self) -> None:
        stage = CycleOnFakes(load(cpu=3.0), learns_first=False)
        stage.cycle.budget = timedelta(seconds=2)
        outcome = stage.run()
        assert named(outcome, "web").recommended_replicas == 6
        assert outcome.report.late_steps == ("fits", "sizes", "gates", "scores")

    def test_is_left_to_the_next_process_where_this_one_ends(self) -> None:
        stage = CycleOnFakes(load(cpu=3.0), learns_first=False)
        stage.cycle.ending = True
        outcome = stage.run()
        assert named(outcome, "web").recommended_replicas == 6
        assert outcome.report.late_steps == ("fits", "sizes", "gates", "scores")

    def test_that_waited_too_long_is_left_to_the_next_process_too(self) -> None:
        stage = CycleOnFakes(load(cpu=3.0), learns_first=False)
        stage.cycle.budget = timedelta(seconds=2)
        stage.run_minutes(1, PATIENCE)
        stage.cycle.ending = True
        outcome = stage.run(NOON + (PATIENCE + 1) * MINUTE)
        assert outcome.report.late_steps == ("fits", "sizes", "gates", "scores")

    def test_a_service_forecasts_from_its_second_cycle_on(self) -> None:
        """The first one decides by measured demand and fits its models afterwards."""
        outcomes = CycleOnFakes(load(), learns_first=False).run_minutes(0, 1)
        assert [outcome.recommendations[0].signals[0].forecast is not None for outcome in outcomes] == [False, True]


class BrokenSizes(PodSizes):
    def renew(self, *args: object, **kwargs: object) -> None:
        raise RuntimeError("no size today")


def test_a_forecast_is_of_the_largest_minute_not_of_the_mean_of_five() -> None:
    """A load that is three cores in one minute of five and one core in the others: its five-minute mean is 1.4."""

    def spiking(at: datetime) -> float:
        return 3.0 if at.minute % 5 == 0 else 1.0

    web = load("web")
    stage = CycleOnFakes(replace(web, demand={**web.demand, CPU: spiking}))
    spike = {}
    for outcome in stage.run_minutes(0, 20):
        (cpu,) = (view for view in named(outcome, "web").signals if view.signal == CPU)
        if cpu.forecast:
            spike[cpu.forecast.until.minute % 5] = cpu.forecast.median
    assert spike == pytest.approx({0: 3.0, 1: 3.0, 2: 3.0, 3: 1.0, 4: 1.0}, rel=0.01)
    assert [score.upper for score in stage.ledger.scores] == pytest.approx(
        [score.actual for score in stage.ledger.scores], rel=0.01
    )


class TestSourceDown:
    def test_every_workload_is_held_and_the_reason_reported_once(self) -> None:
        stage = CycleOnFakes(load("web"), load("cart"))
        stage.run()
        stage.source.down = nobody_answers()
        outcome = stage.run(after(1))
        assert len(outcome.recommendations) == 2
        assert reasons(outcome) == {Reason.SOURCE_DOWN}
        assert outcome.report.failures == (str(nobody_answers()),)

    def test_holds_are_published_too(self) -> None:
        stage = CycleOnFakes(load())
        stage.run()
        stage.source.down = nobody_answers()
        outcome = stage.run(after(1))
        assert stage.publisher.published[-1] == (after(1), tuple(outcome.recommendations))

    def test_from_the_start_nothing_is_invented(self) -> None:
        stage = CycleOnFakes(load())
        stage.source.down = nobody_answers()
        outcome = stage.run()
        assert list(outcome.recommendations) == []
        assert outcome.report.failures == (str(nobody_answers()),)

    def test_is_asked_once_in_a_cycle(self) -> None:
        stage = CycleOnFakes(load())
        stage.run()
        stage.source.refuses = dict.fromkeys(DEMAND, nobody_answers())
        outcome = stage.run(after(1))
        assert len(stage.source.questions) == 1
        assert outcome.report.failures == (str(nobody_answers()),)

    @pytest.mark.parametrize("outage", [1, 4, 30, 200])
    def test_no_point_is_lost_once_it_is_back(self, outage: int) -> None:
        growing = Load(workload(), {CPU: lambda at: 10.0 + (at - NOON) / MINUTE / 1000})
        disturbed, calm = CycleOnFakes(growing), CycleOnFakes(growing)
        disturbed.run()
        disturbed.source.down = nobody_answers()
        disturbed.run_minutes(1, min(outage, 5))
        disturbed.source.down = None
        disturbed.run(after(outage + 1))
        calm.run(after(outage + 1))
        assert stored_values(disturbed.history, CPU, WEB) == stored_values(calm.history, CPU, WEB)
        for step in (MINUTE, FIVE_MINUTES):
            both = [stage.history.window(CPU, step).values for stage in (disturbed, calm)]
            np.testing.assert_allclose(both[0], both[1], rtol=1e-6)

    def test_recovery_decides_again_at_once(self) -> None:
        stage = CycleOnFakes(load())
        stage.run()
        stage.source.down = nobody_answers()
        stage.run(after(1))
        stage.source.down = None
        assert reasons(stage.run(after(2))) == {Reason.REACTIVE}

    def test_stabilization_remembers_what_was_before_the_outage(self) -> None:
        falling = Load(workload(replicas=8), {CPU: lambda at: 4.0 if at <= NOON else 1.0})
        stage = CycleOnFakes(falling)
        stage.run()
        stage.source.down = nobody_answers()
        stage.run(after(1))
        stage.source.down = None
        assert stage.run(after(2)).recommendations[0].recommended_replicas == 8


class TestSignalRefused:
    def test_is_one_line_and_the_others_go_on(self) -> None:
        stage = CycleOnFakes(load())
        stage.run()
        stage.source.refuses = {MEMORY: SourceRefused("memory: parse error at char 7")}
        outcome = stage.run(after(1))
        assert outcome.report.failures == ("memory: parse error at char 7",)
        assert {question.signal for question in stage.source.questions} == set(DEMAND)
        assert reasons(outcome) == {Reason.REACTIVE}

    def test_is_one_line_too_where_minutes_and_weeks_are_missing(self) -> None:
        stage = CycleOnFakes(load())
        stage.source.refuses = {MEMORY: SourceRefused("memory: parse error at char 7")}
        assert stage.run().report.failures == ("memory: parse error at char 7",)

    def test_is_asked_again_until_it_answers(self) -> None:
        stage = CycleOnFakes(load())
        stage.run()
        stage.source.refuses = {MEMORY: SourceRefused("memory: parse error at char 7")}
        stage.run_minutes(1, 3)
        stage.source.refuses = {}
        stage.run(after(4))
        memory = [question for question in stage.source.questions if question.signal == MEMORY]
        assert [(question.start, question.end) for question in memory] == [(after(1), after(4))]
        assert not np.isnan(stored_values(stage.history, MEMORY, WEB)).any()


class TestSeries:
    def test_that_stops_is_used_while_fresh_and_then_held_as_stale(self) -> None:
        stage = CycleOnFakes(load())
        stage.source.mute = {CPU: after(1)}
        outcomes = stage.run_minutes(0, 7)
        assert [next(iter(reasons(outcome))) for outcome in outcomes] == [Reason.REACTIVE] * 6 + [Reason.STALE] * 2

    def test_that_comes_back_is_used_again(self) -> None:
        stage = CycleOnFakes(load())
        stage.source.mute = {CPU: after(1)}
        stage.run_minutes(0, 7)
        stage.source.mute = {}
        assert reasons(stage.run(after(8))) == {Reason.REACTIVE}

    def test_that_never_was_holds_without_data(self) -> None:
        silent = Load(workload(), {MEMORY: steady(GIB)})
        assert reasons(CycleOnFakes(silent).run()) == {Reason.NO_DATA}

    def test_of_ten_minutes_scales_by_measured_demand_and_says_why(self) -> None:
        (record,) = CycleOnFakes(load(cpu=3.0, since=after(-9))).run().recommendations
        assert isinstance(record.replicas, Scale)
        assert (record.replicas.replicas, record.replicas.reason) == (6, Reason.FALLBACK)
        assert "10m of history" in record.replicas.message

    def test_of_ten_minutes_sizes_nothing(self) -> None:
        (record,) = CycleOnFakes(load(since=after(-9))).run().recommendations
        assert isinstance(record.resources, Hold)
        assert record.resources.reason in {Reason.NO_DATA, Reason.SHORT_HISTORY}

    def test_of_an_hour_gets_a_forecast(self) -> None:
        (record,) = CycleOnFakes(load(since=after(-59))).run().recommendations
        assert record.signals[0].forecast is not None


class TestWorkload:
    def test_that_appears_is_decided_about_at_once(self) -> None:
        stage = CycleOnFakes(load("web"), load("late", since=after(1)))
        assert [len(outcome.recommendations) for outcome in stage.run_minutes(0, 1)] == [1, 2]

    def test_that_disappears_leaves_no_recommendation_and_keeps_its_row_for_a_day(self) -> None:
        stage = CycleOnFakes(load("web"), load("gone", until=after(1)))
        assert [len(outcome.recommendations) for outcome in stage.run_minutes(0, 2)] == [2, 2, 1]
        assert {id_.name for id_ in stage.cycle.decider.observed.fleet.row} == {"web", "gone"}
        stage.run(after(24 * 60 + 10))
        assert {id_.name for id_ in stage.cycle.decider.observed.fleet.row} == {"web"}
        assert stage.cycle.decider.observed.state.rows == 1

    def test_that_comes_back_goes_on_with_what_was_remembered_of_it(self) -> None:
        """Eight replicas were recommended before it left; the window of stabilization is five minutes."""
        falling = Load(workload("away", replicas=8), {CPU: lambda at: 4.0 if at <= NOON else 1.0})
        stage = CycleOnFakes(load("web"), falling)
        stage.run()
        stage.source.loads.remove(falling)
        stage.run(after(1))
        stage.source.loads.insert(0, falling)
        assert named(stage.run(after(2)), "away").recommended_replicas == 8

    def test_that_disappears_gives_its_history_back_in_time(self) -> None:
        settings = CycleOnFakes().history.settings.model_copy(update={"forget_after": timedelta(hours=3)})
        stage = CycleOnFakes(load("web"), load("gone", until=NOON), settings=settings)
        stage.run()
        stage.run(after(240))
        assert [id_.name for id_ in stage.history.window(CPU, FIVE_MINUTES).keys] == ["web"]

    def test_that_fails_is_one_line_and_the_others_go_on(self) -> None:
        broken = Load(workload("broken", resources=Resources(cpu_request=float("inf"))), {CPU: steady(2.0)})
        stage = CycleOnFakes(load("web"), broken, load("cart"))
        outcome = stage.run()
        (failure,) = outcome.report.failures
        assert failure.startswith("shop/broken: OverflowError")
        assert named(outcome, "broken").replicas.reason is Reason.FAILED
        assert named(outcome, "web").replicas.reason is named(outcome, "cart").replicas.reason is Reason.REACTIVE

    def test_whose_inventory_is_odd_is_reported_and_the_others_go_on(self) -> None:
        stage = CycleOnFakes(load("web"))
        stage.source.faults = ("shop/odd: an HPA without a target",)
        outcome = stage.run()
        assert outcome.report.failures == stage.source.faults
        assert reasons(outcome) == {Reason.REACTIVE}

    def test_faults_of_owners_come_after_what_failed(self) -> None:
        """A log shows the first few, and an owner can make up any number."""
        stage = CycleOnFakes(load())
        stage.source.faults = tuple(f"HPA team/h{i}: not understood" for i in range(9))
        stage.run()
        stage.source.refuses = {MEMORY: SourceRefused("memory: parse error at char 7")}
        failures = stage.run(after(1)).report.failures
        assert failures == ("memory: parse error at char 7", *stage.source.faults)

    def test_gets_its_own_policy(self) -> None:
        own = {"horizontal": {"max_replicas": 5, "lead_time": "10m"}}
        stage = CycleOnFakes(
            load("web", cpu=9.0),
            load("cart", cpu=9.0),
            policies=Policies(Policy(), ((PolicySelector(name="cart"), own),)),
        )
        outcome = stage.run()
        assert [named(outcome, name).recommended_replicas for name in ("web", "cart")] == [18, 5]
        forecast = named(outcome, "cart").signals[0].forecast
        assert forecast is not None
        assert (forecast.begin, forecast.until) == (after(10), after(13))

    def test_none_at_all_is_a_quiet_cycle(self) -> None:
        outcome = CycleOnFakes().run()
        assert list(outcome.recommendations) == []
        assert outcome.report.failures == ()


class TestModelThatFails:
    """Other signals and the measured demand go on; the failed model is tried again in its turn."""

    def test_is_one_line_and_measured_demand_decides(self) -> None:
        stage = CycleOnFakes(load("web", cpu=3.0), load("cart"))
        stage.cycle.forecaster.signals = {CPU: Shards(Broken(fitting=True))}
        outcome = stage.run()
        assert outcome.report.failures == (
            "forecast of cpu: the model failed with ZeroDivisionError: no fit today (2 of 2 parts)",
        )
        (record,) = (record for record in outcome.recommendations if record.id == WEB)
        assert (record.recommended_replicas, record.replicas.reason) == (6, Reason.FALLBACK)
        assert "no fit today" in record.replicas.message

    def test_when_it_is_asked_costs_its_own_workloads_their_forecast(self) -> None:
        stage = CycleOnFakes(load(cpu=3.0))
        stage.cycle.forecaster.signals = {CPU: Shards(Broken(fitting=False))}
        outcome = stage.run()
        assert "no word today" in outcome.report.failures[0]
        assert reasons(outcome) == {Reason.FALLBACK}

    @pytest.mark.parametrize("fitting", [True, False], ids=["in its fits", "when it is asked"])
    def test_on_one_workload_costs_the_others_of_its_part_their_forecast_for_some_cycles_only(
        self, *, fitting: bool
    ) -> None:
        stage = CycleOnFakes(*(load(f"web-{i}", cpu=3.0) for i in range(20)))
        stage.cycle.forecaster.signals = {CPU: Shards(BrokenOn("web-7", fitting=fitting))}
        *_, outcome = stage.run_minutes(0, 12)
        words = {row.id.name: row.replicas.message for row in outcome.recommendations}
        assert [name for name, message in words.items() if "the model failed" in message] == ["web-7"]
        (failure,) = outcome.report.failures
        assert failure.startswith("forecast of cpu: the model failed with ZeroDivisionError: not web-7 (1 of ")


@dataclass(frozen=True)
class BrokenOn:
    """The last value, but not of one workload: it fails when it is fitted on it, or when it is asked about it."""

    workload: str
    fitting: bool
    name: str = "broken"

    def fit(self, panel: Panel) -> BrokenOn:
        return self._checked(panel) if self.fitting else self

    def update(self, panel: Panel) -> Fitted:
        self._checked(panel)
        return LastValue().fit(panel)

    def _checked(self, panel: Panel) -> BrokenOn:
        if any(key.endswith(self.workload) for key in panel.keys):
            raise ZeroDivisionError(f"not {self.workload}")
        return self


@dataclass(frozen=True)
class Broken:
    """A model that fails when it is fitted, or when it is asked."""

    fitting: bool
    name: str = "broken"

    def fit(self, panel: Panel) -> Broken:
        if self.fitting:
            raise ZeroDivisionError("no fit today")
        return self

    def update(self, panel: Panel) -> Broken:
        return self

    def forecast_peak(self, window: StepWindow, quantiles: Sequence[float]) -> Peak:
        raise FloatingPointError("no word today")


class TestKeeping:
    def test_a_ledger_that_is_full_keeps_no_number_from_those_who_wait(self) -> None:
        stage = CycleOnFakes(load())
        stage.ledger.full = True
        outcome = stage.run()
        assert len(stage.publisher.published) == 1
        assert set(outcome.report.failures) == {"ledger: the disk is full"}

    def test_a_table_that_cannot_be_written_is_recorded_all_the_same(self) -> None:
        stage = CycleOnFakes(load())
        stage.publisher.full = True
        outcome = stage.run()
        assert len(stage.ledger.recorded) == 1
        assert outcome.report.failures == ("table: the disk is full",)

    def test_a_clock_that_was_hours_ahead_is_followed_back_and_decisions_go_on(self) -> None:
        stage = CycleOnFakes(load(cpu=3.0))
        stage.run()
        stage.run(after(360))
        back, settled = stage.run_minutes(1, 2)
        assert named(back, "web").recommended_replicas == named(settled, "web").recommended_replicas == 6
        assert named(back, "web").signals[0].measured_at == after(1)
        assert settled.report.failures == ()
        assert not np.isnan(stored_values(stage.history, CPU, WEB)).any()

    def test_a_clock_that_is_set_back_costs_no_forecast(self) -> None:
        """Models forecast a window before the last one without a new fit."""
        stage = CycleOnFakes(load(), learns_first=False)
        stage.run_minutes(30, 31)
        back = stage.run(after(20))
        assert back.report.failures == ()
        assert named(back, "web").signals[0].forecast is not None


@dataclass
class Hands:
    """An actuator that records how many tables were published before each time it acted."""

    stage: CycleOnFakes
    fault: str = ""
    tables: list[int] = field(default_factory=list)

    def act(self, now: datetime) -> dict[str, Effected]:
        self.tables.append(len(self.stage.publisher.published))
        if self.fault:
            raise ApiError(self.fault)
        failed = Counter({("raise", "failed"): 1})
        return {"floor": Effected(leading=True, writes=failed, states=Counter(), failures=("HPA a: no",))}


class TestEffects:
    def test_they_come_after_the_offers_and_what_failed_is_in_the_report(self) -> None:
        stage = CycleOnFakes(load())
        stage.cycle.effects.actuator = hands = Hands(stage)
        report = stage.run().report
        assert hands.tables == [1]
        assert report.failures == ("HPA a: no",)
        assert report.effected["floor"].writes == {("raise", "failed"): 1}

    def test_acting_that_fails_as_a_whole_is_one_line_and_costs_nothing_else(self) -> None:
        stage = CycleOnFakes(load())
        stage.cycle.effects.actuator = Hands(stage, fault="GET hpas: 403")
        outcome = stage.run()
        assert outcome.report.failures == ("effects: ApiError: GET hpas: 403",)
        assert outcome.report.effected == {}
        assert len(stage.ledger.recorded) == 1


class TestScores:
    def test_come_when_the_window_of_the_forecast_is_over(self) -> None:
        """The forecast is made at noon for the time from 12:03 to 12:06."""
        stage = CycleOnFakes(*(load(f"web-{i}") for i in range(20)))
        outcomes = stage.run_minutes(0, 6)
        assert [len(outcome.report.scores) for outcome in outcomes[:6]] == [0] * 6
        scores = outcomes[6].report.scores
        assert {(score.made_at, score.matured_at) for score in scores} == {(NOON, after(6))}
        assert {score.signal for score in scores} == {CPU}
        assert stage.ledger.scores == list(scores)

    def test_of_forecasts_made_before_the_clock_was_set_back_never_come(self) -> None:
        """Otherwise they would wait until the clock has caught up, and each cycle would add more."""
        stage = CycleOnFakes(load("web"))
        stage.run_minutes(1000, 1003)
        stage.run_minutes(0, 2)
        assert {score.made_at for score in stage.cycle.scoring.pending} == {NOON, after(1), after(2)}

    def test_compare_the_peak_within_that_window_and_nothing_else(self) -> None:
        """The highest minute after 12:03 and up to 12:06 is the last one; before and after it is higher."""
        peaks = {after(3): 3.0, after(6): 2.7, after(7): 5.0}
        bumpy = [Load(workload(f"web-{i}"), {CPU: lambda at: peaks.get(at, 2.0)}) for i in range(10)]
        outcomes = CycleOnFakes(*bumpy).run_minutes(0, 6)
        assert {round(score.actual, 3) for score in outcomes[6].report.scores} == {2.7}

    def test_are_of_the_window_that_the_policy_of_the_workload_looks_at(self) -> None:
        own = Policies(Policy(), ((PolicySelector(name="late-*"), {"horizontal": {"lead_time": "5m"}}),))
        stage = CycleOnFakes(*(load(f"{kind}-{i}") for i in range(10) for kind in ("web", "late")), policies=own)
        stage.run_minutes(0, 12)
        waited = {(s.id.name.split("-")[0], s.matured_at - s.made_at) for s in stage.ledger.scores}
        assert waited == {("web", minutes(6)), ("late", minutes(8))}

    def test_give_every_workload_its_turn(self) -> None:
        stage = CycleOnFakes(*(load(f"web-{i}") for i in range(15)))
        stage.run_minutes(0, 16)
        scored = [score.id.name for score in stage.ledger.scores if score.signal == CPU]
        assert set(scored) == {f"web-{i}" for i in range(15)}

    def test_are_left_out_where_less_than_half_of_the_window_was_measured(self) -> None:
        stage = CycleOnFakes(*(load(f"web-{i}") for i in range(20)))
        stage.source.mute = {CPU: after(5)}
        outcomes = stage.run_minutes(0, 6)
        assert not outcomes[6].report.scores


def test_two_replicas_of_the_service_come_to_the_same_numbers() -> None:
    wave = Load(workload(), {CPU: lambda at: 2.0 + np.sin(at.timestamp() / 3600)})
    first, second = CycleOnFakes(wave, model="seasonal-naive-day"), CycleOnFakes(wave, model="seasonal-naive-day")
    assert [list(outcome.recommendations) for outcome in first.run_minutes(0, 3)] == [
        list(outcome.recommendations) for outcome in second.run_minutes(0, 3)
    ]


def test_unless_the_policy_says_otherwise_a_new_workload_is_watched_and_explain_says_why() -> None:
    record = named(CycleOnFakes(load("web"), policies=Policies(Policy())).run(), "web")
    assert record.signals[0].forecast_replicas is not None
    assert "forecast learning: 2.0 days of cpu history; 3 are the least" in "".join(explanation(record))


def test_a_forecast_of_the_daily_peak_raises_the_count_before_the_load_comes() -> None:
    """Every day at 12:04 the demand doubles for half an hour."""

    def daily(at: datetime) -> float:
        past_noon = (at - NOON) % timedelta(days=1)
        return 4.0 if minutes(4) <= past_noon < minutes(34) else 2.0

    (record,) = CycleOnFakes(Load(workload(), {CPU: daily}), model="seasonal-naive-day").run().recommendations
    assert isinstance(record.replicas, Scale)
    assert record.replicas.reason is Reason.FORECAST
    assert record.recommended_replicas >= 7


class TestWhatIf:
    def test_decides_the_same_cycle_under_another_policy(self) -> None:
        stage = CycleOnFakes(load("web", cpu=3.0))
        before = stage.run()
        other = Policies(Policy(horizontal=HorizontalPolicy(gate=False, max_replicas=5)))
        assert named(before, "web").recommended_replicas == 6
        (alternative,) = stage.cycle.what_if(other, NOON)
        assert alternative.recommended_replicas == 5
        assert [clamp.rule for clamp in alternative.clamps] == ["bounds"]

    def test_of_the_same_policy_is_the_same_record(self) -> None:
        stage = CycleOnFakes(load("web", cpu=3.0), load("cart"))
        stage.run()
        outcome = stage.run(after(1))
        assert list(stage.cycle.what_if(stage.cycle.policies, after(1))) == list(outcome.recommendations)

    def test_a_lead_time_that_is_tried_is_in_the_record(self) -> None:
        stage = CycleOnFakes(load("web", cpu=3.0))
        stage.run()
        other = Policies(Policy(horizontal=HorizontalPolicy(gate=False, lead_time=minutes(10))))
        (alternative,) = stage.cycle.what_if(other, NOON)
        assert alternative.lead_time == LeadTime(minutes(10), "configured")

    def test_what_is_held_stays_held(self) -> None:
        stage = CycleOnFakes(load("web"), load("cart"))
        stage.source.partly = {WEB: "no series has the maxReplicas of its HPA web"}
        outcome = stage.run()
        assert isinstance(named(outcome, "web").replicas, Hold)
        assert list(stage.cycle.what_if(stage.cycle.policies, NOON)) == list(outcome.recommendations)
        stage.source.down = nobody_answers()
        outcome = stage.run(after(1))
        assert reasons(outcome) == {Reason.SOURCE_DOWN}
        assert list(stage.cycle.what_if(stage.cycle.policies, after(1))) == list(outcome.recommendations)

    def test_is_not_remembered(self) -> None:
        stage, alone = CycleOnFakes(load("web")), CycleOnFakes(load("web"))
        stage.run(), alone.run()
        stage.cycle.what_if(Policies(Policy(horizontal=HorizontalPolicy(gate=False, min_replicas=40))), NOON)
        assert list(stage.run(after(1)).recommendations) == list(alone.run(after(1)).recommendations)
