"""Decisions by CPU start pods, and starting pods use CPU: this loop must come to rest."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pytest

from forecaster.demand.fresh import DemandContext, FreshHistory, fresh
from forecaster.domain.decision import Scale
from forecaster.domain.signal import CPU, Measured
from forecaster.domain.window import FIVE_MINUTES, MINUTE, Window
from forecaster.domain.workload import Resources
from forecaster.forecasting.forecaster import Forecaster, PeakSpan
from forecaster.horizontal.state import State
from tests.support.builders import NOON, hpa, minutes, policy, workload
from tests.support.horizontal import decide
from tests.support.outlook import SignalForecast
from tests.support.recommendations import ahead_of

if TYPE_CHECKING:
    from datetime import datetime

    from forecaster.domain.workload import Workload, WorkloadId

DEMAND = 20.0
"""Demand in cores; at half a core a pod it needs forty pods."""
EXTRA, LONG, START = 0.4, 4, 3
"""A pod is ready after START minutes, and uses EXTRA cores more for LONG minutes."""
HISTORY, RECENT = 4 * 1440, 180
SPAN = PeakSpan(minutes(3), minutes(3))
POLICY = policy(scale_down_stabilization=minutes(5))


class Rest(NamedTuple):
    """The course of the loop: the decided count and the highest forecast of each minute."""

    counts: list[int]
    forecasts: list[float]


@dataclass
class Loop:
    """A cluster of one workload, simulated by the minute."""

    cleaning: bool
    pods: list[float] = field(default_factory=list)
    usage: list[float] = field(default_factory=list)
    coming: list[int] = field(default_factory=lambda: [40] * START)
    forecaster: Forecaster = field(default_factory=lambda: Forecaster("adaptive"))
    state: State = field(default_factory=lambda: State.new(1))

    def __post_init__(self) -> None:
        """Play four days in which pods go now and then, and the HPA brings them back."""
        for minute in range(HISTORY):
            self.tick(34 if minute % 29 in range(12) else 40)

    def tick(self, ready: float) -> None:
        """Play a minute in which `ready` pods are ready."""
        self.pods.append(ready)
        rises = np.maximum(np.diff(self.pods[-LONG - 1 :]), 0.0)
        self.usage.append(DEMAND + EXTRA * float(rises.sum()))

    def decided(self, minute: int) -> tuple[int, float]:
        """The count that is decided now, and the forecast behind it."""
        now, ready = NOON + minute * MINUTE, round(self.pods[-1])
        web = workload(
            replicas=self.coming[-1], ready=ready, resources=Resources(cpu_request=1.0), autoscaler=hpa(highest=500)
        )
        peaks = self.forecaster.peaks(CPU, self._shown(now, web), [SPAN], now)[SPAN]
        ahead = ahead_of(peaks, web.id, 0.9)
        outlook = SignalForecast(CPU, Measured(self.usage[-1], now), ahead)
        recommendation, self.state = decide(web, {CPU: outlook}, POLICY, self.state, now)
        verdict = recommendation.replicas
        return (verdict.replicas if isinstance(verdict, Scale) else web.replicas), float(peaks.values[0, -3])

    def _shown(self, now: datetime, web: Workload) -> FreshHistory:
        ready, cpu = (_windows(web.id, np.array(part[-HISTORY:]), now) for part in (self.pods, self.usage))
        return fresh(*cpu, DemandContext(CPU, fresh(*ready), {web.id: web}) if self.cleaning else None)


def _windows(id_: WorkloadId, values: np.ndarray, now: datetime) -> tuple[Window, Window]:
    over = int(now.timestamp()) // 60 % 5
    points = (len(values) - over) // 5
    means = values[len(values) - over - 5 * points : len(values) - over].reshape(1, points, 5).mean(axis=2)
    end = now - minutes(over)
    weeks = Window((id_,), end - (points - 1) * FIVE_MINUTES, FIVE_MINUTES, means.astype(np.float32))
    recent = values[None, -RECENT:].astype(np.float32)
    return weeks, Window((id_,), now - (RECENT - 1) * MINUTE, MINUTE, recent)


def played(*, cleaning: bool, long: int) -> Rest:
    """Play a loop in which half the pods were gone for a while, and every decided count is reached."""
    loop, rest = Loop(cleaning), Rest([], [])
    for _ in range(12):
        loop.tick(20)
    loop.coming = [20] * START
    for minute in range(long):
        loop.tick(loop.coming[-START])
        count, forecast = loop.decided(minute)
        loop.coming.append(count)
        rest.counts.append(count)
        rest.forecasts.append(forecast)
    return rest


def test_a_constant_demand_is_forecast_while_pods_start_and_the_count_settles() -> None:
    rest = played(cleaning=True, long=90)
    assert max(rest.forecasts) == pytest.approx(DEMAND, rel=0.02)
    assert set(rest.counts[-60:]) == {40}


def test_without_cleaning_the_forecast_follows_our_own_scaling() -> None:
    rest = played(cleaning=False, long=30)
    assert max(rest.forecasts) > 1.05 * DEMAND
