"""The live comparison leaves out hours that no cycle had the time to replay, and keeps none without end."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import numpy as np
import pytest

from forecaster.config.settings import Settings
from forecaster.cycle.benefit import REPLAY_LATEST, LiveBenefit
from forecaster.domain.signal import CPU, PODS, Signal
from forecaster.domain.window import MINUTE, Window
from forecaster.hpa.behavior import Behavior, ScalingRules
from forecaster.hpa.spec import CrossVersionObjectReference, HpaSpec
from tests.support.builders import after, workload

if TYPE_CHECKING:
    from datetime import datetime

    from forecaster.cycle.steps import TimeShare
    from forecaster.ports import Histories
    from forecaster.publish.publisher import OfferedCycle
    from forecaster.sources.live_objects import LiveHpa

WEB = workload("web")
NO_TIME = cast("TimeShare", lambda: False)
NO_HISTORY = cast("Histories", None)
"""No history: a test that replays anything fails."""


def decided(at: datetime, count: int) -> OfferedCycle:
    columns = SimpleNamespace(recommended=np.array([count]))
    return cast("OfferedCycle", SimpleNamespace(at=at, ids=(WEB.id,), decided=columns))


def test_hours_that_no_cycle_had_time_for_are_left_out() -> None:
    benefit, late = LiveBenefit(), REPLAY_LATEST // MINUTE + 1
    for minute in range(late + 1):
        benefit.receive(decided(after(minute), minute % 7 + 1))
    benefit.renew([WEB], NO_HISTORY, Settings().policies, after(late), NO_TIME)
    assert benefit.pasts[WEB.id].until == after(late)


def test_a_replay_has_the_decisions_of_its_warm_up_and_the_one_in_force_before() -> None:
    benefit = LiveBenefit()
    for minute, count in ((0, 3), (60, 4), (240, 5), (300, 6)):
        benefit.receive(decided(after(minute), count))
    benefit.renew([WEB], NO_HISTORY, Settings().policies, after(301), NO_TIME)
    assert [count for _, count in benefit.decided[WEB.id]] == [4, 5, 6]


def test_a_workload_that_comes_is_no_other_decision_about_the_others() -> None:
    """In a fleet that gets a workload every minute, each would have 60 decisions an hour to keep and replay."""
    benefit, other = LiveBenefit(), workload("cart").id
    for minute in range(10):
        ids = (WEB.id, *[other] * (minute % 2))
        columns = SimpleNamespace(recommended=np.full(len(ids), 3))
        benefit.receive(cast("OfferedCycle", SimpleNamespace(at=after(minute), ids=ids, decided=columns)))
    benefit.renew([WEB], NO_HISTORY, Settings().policies, after(10), NO_TIME)
    assert len(benefit.decided[WEB.id]) == 1


class Minutes:
    """Eleven hours of CPU by the minute, of which the last two ask for five times as many pods."""

    signals = (CPU,)

    def window(self, signal: Signal, step: timedelta) -> Window:
        cores = np.full((1, 660), 2.0, np.float32)
        cores[:, -120:] = 10.0
        values = {CPU: cores, PODS: np.full_like(cores, 4.0)}
        return Window((WEB.id,), after(-660 + 61), step, values[signal])


def test_the_hpa_alone_has_its_own_behavior() -> None:
    """An HPA that may not scale up has four pods in the hour in which another one has twenty."""
    still = ScalingRules((), timedelta(), "Disabled")
    hours = []
    for behavior in (None, Behavior(still, still)):
        spec = HpaSpec(CrossVersionObjectReference("Deployment", "web", "apps/v1"), 100, (), 1, behavior)
        watched = cast("LiveHpa", SimpleNamespace(spec=spec))
        benefit = LiveBenefit(scalers=lambda _, watched=watched: [("web", watched)])  # type: ignore[misc]
        benefit.receive(decided(after(0), 4))
        benefit.renew([WEB], cast("Histories", Minutes()), Settings().policies, after(61), NO_TIME)
        assert benefit.pasts[WEB.id].left_out == ""
        hours.append(benefit.view.periods["day"].hpa.pod_hours)
    assert hours == [pytest.approx(20.0, rel=0.1), pytest.approx(4.0, rel=0.1)]


class Steady:
    """Four hours until `now` in which four pods carry the same load."""

    signals = (CPU,)
    now = after(0)

    def window(self, signal: Signal, step: timedelta) -> Window:
        values = np.full((1, 240), {CPU: 2.0, PODS: 4.0}[signal], np.float32)
        return Window((WEB.id,), self.now - 239 * MINUTE, step, values)


def test_the_numbers_are_of_the_time_that_stands_beside_them() -> None:
    """Sums are of six hours: what is known of the last day at nine in the evening begins at midnight."""
    benefit, history = LiveBenefit(), Steady()
    benefit.receive(decided(after(0), 4))
    for hour in range(1, 34):
        history.now = after(60 * hour)
        benefit.renew([WEB], cast("Histories", history), Settings().policies, history.now, NO_TIME)
    day, week = (benefit.view.periods[name] for name in ("day", "week"))
    assert [period.until for period in (day, week)] == [after(33 * 60)] * 2
    assert [period.since for period in (day, week)] == [after(12 * 60), after(0)]
    assert [period.hpa.pod_hours for period in (day, week)] == [pytest.approx(4.0 * hours) for hours in (21, 33)]
    assert "in the last day" in day.said
    assert "this week" not in week.said


def test_a_workload_that_cannot_be_replayed_is_left_out_and_says_why() -> None:
    benefit, late = LiveBenefit(), 61
    benefit.receive(decided(after(0), 3))
    benefit.renew([WEB], NO_HISTORY, Settings().policies, after(late), NO_TIME)
    assert benefit.pasts[WEB.id].until == after(late)
    assert "AttributeError" in benefit.pasts[WEB.id].left_out
    assert b"not known: " in benefit.texts.texts[WEB.id]
