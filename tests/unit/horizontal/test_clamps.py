"""Clamps that bound a forecast: blast radius, outages, known events, and the worth of a pod."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np

from forecaster.domain.decision import Hold, Reason
from forecaster.domain.event import ScheduledEvent
from forecaster.domain.workload import Target, TargetType
from forecaster.horizontal.clamps import within_radius
from tests.support.builders import NO_SAMPLE, NOON, after, ahead, hpa, outlooks, policy, workload
from tests.support.horizontal import NOTHING_BEFORE, decide, decided, recommended_before

if TYPE_CHECKING:
    from forecaster.horizontal.state import State

SALE = ScheduledEvent(name="sale", replicas=12, start=after(2), end=after(60))
REPAIR = ScheduledEvent(name="repair", freeze=True, start=after(-5), end=after(60))


class TestSurge:
    def test_a_forecast_moves_no_further_than_its_radius(self) -> None:
        record = decided(outlooks(cpu=10.0, cpu_ahead=50.0), workload=workload(replicas=20), under=policy(surge=0.5))
        assert record.recommended_replicas == 30
        assert [clamp.rule for clamp in record.clamps] == ["forecast", "blast radius"]

    def test_what_is_measured_is_not_bounded(self) -> None:
        record = decided(outlooks(cpu=25.0, cpu_ahead=50.0), workload=workload(replicas=20), under=policy(surge=0.5))
        assert record.recommended_replicas == 50

    def test_a_move_of_four_pods_is_not_explained_by_a_share_that_is_smaller(self) -> None:
        record = decided(outlooks(cpu=2.0, cpu_ahead=50.0), workload=workload(replicas=4), under=policy(surge=0.1))
        assert [str(clamp.why) for clamp in record.clamps[1:]] == ["a forecast moves 10% at most, or 4 pods"]
        assert record.recommended_replicas == 8

    def test_four_pods_are_always_allowed(self) -> None:
        counts = np.array([9]), np.array([2]), np.array([0.05]), np.array([2])
        assert within_radius(*counts) == 6

    def test_a_forecast_that_keeps_some_of_what_measured_demand_gives_back_is_not_held_at_the_radius(self) -> None:
        record = decided(outlooks(cpu=2.0, cpu_ahead=3.0), workload=workload(replicas=20), under=policy(surge=0.5))
        assert record.recommended_replicas == 6

    def test_a_forecast_below_a_burst_does_not_hold_the_count_below_both(self) -> None:
        forecasts = outlooks(cpu=40.0, cpu_ahead=35.0)
        record = decided(forecasts, workload=workload(replicas=20), under=policy(surge=0.1, scale_in_by_forecast=True))
        assert record.recommended_replicas == 70


class TestOutage:
    KEEPS = policy(outage_hold=timedelta(minutes=30), sizing="newsvendor", scale_in_by_forecast=True)

    def at(self, minute: float, cpu: float, state: State, *, pods: int = 8) -> tuple[int, State]:
        forecasts = outlooks(cpu=cpu, cpu_ahead=max(cpu, 0.1))
        record, state = decide(workload(replicas=pods), forecasts, self.KEEPS, state, after(minute))
        return record.recommended_replicas, state

    def test_load_that_has_gone_leaves_the_pods_where_they_were(self) -> None:
        _, state = self.at(0, 4.0, NOTHING_BEFORE)
        gone, state = self.at(1, 0.0, state)
        later, _ = self.at(20, 0.0, state)
        assert (gone, later) == (8, 8)

    def test_for_the_stated_time_and_not_longer(self) -> None:
        _, state = self.at(0, 4.0, NOTHING_BEFORE)
        _, state = self.at(1, 0.0, state)
        assert self.at(40, 0.0, state)[0] == 1

    def test_from_when_the_load_is_back_it_runs_anew(self) -> None:
        _, state = self.at(0, 4.0, NOTHING_BEFORE)
        _, state = self.at(1, 0.0, state)
        _, state = self.at(25, 2.0, state)
        assert self.at(50, 0.3, state)[0] == 8

    def test_samples_that_were_missing_are_an_outage_too(self) -> None:
        _, state = decide(workload(replicas=8), outlooks(cpu=NO_SAMPLE), self.KEEPS, NOTHING_BEFORE, NOON)
        assert self.at(5, 1.0, state)[0] == 8

    def test_one_of_a_clock_that_was_ahead_ends_the_stated_time_after_it_is_right(self) -> None:
        """By a clock that is a day ahead every sample is stale."""
        forecasts = outlooks(cpu=NO_SAMPLE)
        _, state = decide(workload(replicas=8), forecasts, self.KEEPS, NOTHING_BEFORE, after(24 * 60))
        held, state = self.at(0, 1.0, state)
        assert (held, self.at(31, 1.0, state)[0]) == (8, 2)

    def test_a_fall_that_was_expected_is_none(self) -> None:
        low = outlooks(cpu=4.0, cpu_ahead=0.2)
        _, state = decide(workload(replicas=8), low, self.KEEPS, NOTHING_BEFORE, NOON)
        assert self.at(1, 0.1, state)[0] == 1


class TestEvents:
    def test_a_floor_is_raised_a_lead_time_before(self) -> None:
        record = decided(outlooks(cpu=2.0), under=policy(events=(SALE,), lead_time="3m"))
        assert record.recommended_replicas == 12
        assert "sale until 13:00 UTC" in record.clamps[-1].why

    def test_and_not_earlier(self) -> None:
        assert decided(outlooks(cpu=2.0), under=policy(events=(SALE,), lead_time="1m")).recommended_replicas == 4

    def test_the_maximum_is_still_the_maximum(self) -> None:
        assert decided(outlooks(cpu=2.0), under=policy(events=(SALE,), max_replicas=6)).recommended_replicas == 6

    def test_a_maintenance_window_changes_nothing(self) -> None:
        verdict = decided(outlooks(cpu=9.0), under=policy(events=(REPAIR,))).replicas
        assert isinstance(verdict, Hold)
        assert (verdict.reason, verdict.message) == (Reason.FROZEN, "repair until 2026-03-01 13:00 UTC")


class TestMaximaOfEvents:
    """Two measured cores need four pods; five forecast cores need ten."""

    NIGHT = ScheduledEvent(name="night", max_replicas=6, start=after(-60), end=after(60))
    STRICT = ScheduledEvent(name="budget", max_replicas=3, over_measured=True, start=after(-60), end=after(90))

    def capped(self, *events: ScheduledEvent, lead: str = "3m", cpu: float = 2.0) -> tuple[int | None, str]:
        record = decided(outlooks(cpu=cpu, cpu_ahead=5.0), under=policy(events=events, lead_time=lead))
        return record.recommended_replicas, " ".join(
            clamp.why for clamp in record.clamps if clamp.rule == "event maximum"
        )

    def test_a_forecast_asks_for_no_more(self) -> None:
        assert self.capped(self.NIGHT) == (6, "night allows 6 until 13:00 UTC; measured demand asks for 4")

    def test_measured_demand_is_served_beyond_it(self) -> None:
        assert self.capped(self.NIGHT, cpu=4.0) == (8, "night allows 6 until 13:00 UTC; measured demand asks for 8")

    def test_a_count_that_it_leaves_is_not_credited_to_the_forecast(self) -> None:
        verdict = decided(outlooks(cpu=4.0, cpu_ahead=5.0), under=policy(events=(self.NIGHT,), lead_time="3m")).replicas
        assert (verdict.reason, verdict.message) == (
            Reason.REACTIVE,
            "the forecast asks for 10, limits leave the measured 8",
        )

    def test_a_count_below_measured_demand_is_not_credited_to_a_forecast_that_asks_for_less(self) -> None:
        verdict = decided(
            outlooks(cpu=4.0, cpu_ahead=2.5), under=policy(events=(self.STRICT,), lead_time="3m")
        ).replicas
        assert (verdict.reason, verdict.message) == (
            Reason.REACTIVE,
            "the forecast asks for no more than the measured demand",
        )

    def test_unless_the_policy_says_not(self) -> None:
        assert self.capped(self.STRICT) == (3, "budget allows 3 until 13:30 UTC; measured demand asks for 4")

    def test_the_lowest_holds_each_in_its_way(self) -> None:
        assert self.capped(self.NIGHT, self.STRICT)[0] == 3
        lower = self.NIGHT.model_copy(update={"max_replicas": 2})
        assert self.capped(lower, self.STRICT.model_copy(update={"max_replicas": 5}), cpu=4.0) == (
            5,
            "night allows 2 until 13:00 UTC, budget allows 5 until 13:30 UTC; measured demand asks for 8",
        )

    def test_it_ends_a_lead_time_early_so_that_pods_are_there_when_it_ends(self) -> None:
        assert self.capped(self.NIGHT, lead="59m")[0] == 6
        assert self.capped(self.NIGHT, lead="1h") == (10, "")

    def test_where_the_next_one_follows_at_once_it_does_not_end(self) -> None:
        hourly = ScheduledEvent(name="hourly", max_replicas=6, cron="0 * * * *", duration=timedelta(hours=1))
        assert self.capped(hourly, lead="61m") == (6, "hourly allows 6 until 14:00 UTC; measured demand asks for 4")

    def test_and_of_two_maxima_the_higher_one_holds_a_lead_time_before_the_switch(self) -> None:
        day = ScheduledEvent(name="day", max_replicas=9, start=after(60), end=after(600))
        assert self.capped(self.NIGHT, day, lead="59m")[0] == 6
        allowed = "day allows 9 until 22:00 UTC; measured demand asks for 4"
        assert self.capped(self.NIGHT, day, lead="1h") == (9, allowed)

    def test_and_begins_no_lead_time_early(self) -> None:
        later = self.NIGHT.model_copy(update={"start": after(2)})
        assert self.capped(later) == (10, "")

    def test_a_floor_wins_over_it(self) -> None:
        floor = ScheduledEvent(name="sale", replicas=8, start=after(-60), end=after(60))
        assert self.capped(self.NIGHT, floor)[0] == 8

    def test_a_floor_above_the_maximum_of_the_workload_is_not_said_to_be_load(self) -> None:
        floor = ScheduledEvent(name="sale", replicas=8, start=after(-60), end=after(60))
        record = decided(outlooks(cpu=2.0), under=policy(events=(floor,), max_replicas=6))
        assert (record.recommended_replicas, "load" in record.clamps[-1].why) == (6, False)

    def test_the_count_goes_down_by_the_window_of_stabilization(self) -> None:
        """Ten pods were recommended two minutes ago; the event removes none before the window is over."""
        under = policy(events=(self.NIGHT,), lead_time="3m", scale_down_stabilization="5m")
        before = recommended_before((10, 2))
        record = decided(outlooks(cpu=2.0, cpu_ahead=5.0), workload=workload(replicas=10), under=under, state=before)
        assert record.recommended_replicas == 10
        assert [clamp.rule for clamp in record.clamps] == ["forecast", "event maximum", "stabilization"]


EACH_ONE = Target("s0-forecaster-requests", TargetType.AVERAGE_VALUE, 1.0)


class TestWorth:
    LEVELS = (0.1, 0.5, 0.9)

    def forecasts(self, now: float, peaks: tuple[float, ...], signal: str = "cpu") -> dict:
        forecasts = outlooks(**{signal: now, f"{signal}_ahead": peaks[-1]})
        ((name, outlook),) = forecasts.items()
        known = ahead(peaks[-1])
        return {name: replace(outlook, ahead=replace(known, levels=self.LEVELS, peaks=peaks))}

    def test_gives_back_what_neither_load_nor_forecast_needs(self) -> None:
        under = policy(sizing="newsvendor", scale_in_by_forecast=True)
        record = decided(self.forecasts(1.2, (1.0, 1.2, 1.6)), workload=workload(replicas=8), under=under)
        assert record.recommended_replicas == 2
        assert "each pod is expected to be used for 10% or more" in record.clamps[0].why

    def test_keeps_a_pod_that_is_there_and_still_of_some_use(self) -> None:
        under = policy(sizing="newsvendor", scale_in_by_forecast=True)
        peaks = (1.0, 1.2, 2.3)
        assert decided(self.forecasts(1.2, peaks), workload=workload(replicas=2), under=under).recommended_replicas == 2
        assert decided(self.forecasts(1.2, peaks), workload=workload(replicas=3), under=under).recommended_replicas == 3
        record = decided(self.forecasts(0.5, peaks), workload=workload(replicas=3), under=under)
        assert (record.signals[0].forecast_replicas, record.recommended_replicas) == (2, 3)
        assert "each present pod is expected to be used for 4% or more" in record.clamps[0].why

    def test_goes_beyond_full_pods(self) -> None:
        under = policy(sizing="newsvendor", scale_in_by_forecast=True)
        assert decided(self.forecasts(4.0, (4.0, 4.0, 4.0)), under=under).recommended_replicas > 4

    def test_wakes_a_workload_from_zero_before_the_load(self) -> None:
        under = policy(sizing="newsvendor", scale_in_by_forecast=True, min_replicas=0)
        coming, nothing = (self.forecasts(0.0, peaks, "requests") for peaks in ((2.0, 3.0, 4.0), (0.0, 0.0, 0.0)))
        asleep, awake = (workload(replicas=count, autoscaler=hpa(EACH_ONE)) for count in (0, 2))
        assert decided(coming, workload=asleep, under=under).recommended_replicas >= 3
        assert decided(nothing, workload=awake, under=under).recommended_replicas == 0

    def test_stays_asleep_where_only_one_quantile_is_known(self) -> None:
        under = policy(sizing="newsvendor", scale_in_by_forecast=True, min_replicas=0)
        asleep = workload(replicas=0, autoscaler=hpa(EACH_ONE))
        record = decided(outlooks(requests=0.0, requests_ahead=2.0), workload=asleep, under=under)
        assert isinstance(record.replicas, Hold)
        assert "no pod is requested" in record.replicas.message
