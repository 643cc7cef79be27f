"""What we decide starts pods, pods that start use CPU, and CPU is what we decide by: the loop must come to rest."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pytest

from forecaster.demand.fresh import DemandContext, FreshHistory, fresh
from forecaster.domain.decision import Scale
from forecaster.domain.forecast import Measured
from forecaster.domain.signal import CPU
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
"""Cores; at half a core a pod it is the work of forty."""
EXTRA, LONG, START = 0.4, 4, 3
"""A pod is ready three minutes after it was asked for, and uses so much more for four minutes."""
HISTORY, RECENT = 4 * 1440, 180
SPAN = PeakSpan(minutes(3), minutes(3))
POLICY = policy(scale_down_stabilization=minutes(5))


class Rest(NamedTuple):
    """How the loop went: counts that were asked for, and the highest forecast of each minute."""

    counts: list[int]
    forecasts: list[float]


@dataclass
class Loop:
    """A cluster of one workload, by the minute."""

    cleaning: bool
    pods: list[float] = field(default_factory=list)
    usage: list[float] = field(default_factory=list)
    coming: list[int] = field(default_factory=lambda: [40] * START)
    forecaster: Forecaster = field(default_factory=lambda: Forecaster("adaptive"))
    state: State = field(default_factory=lambda: State.new(1))

    def __post_init__(self) -> None:
        """Four days in which somebody now and then took pods away, and the HPA brought them back."""
        for minute in range(HISTORY):
            self.tick(34 if minute % 29 in range(12) else 40)

    def tick(self, ready: float) -> None:
        """A minute in which so many pods are ready."""
        self.pods.append(ready)
        rises = np.maximum(np.diff(self.pods[-LONG - 1 :]), 0.0)
        self.usage.append(DEMAND + EXTRA * float(rises.sum()))

    def decided(self, minute: int) -> tuple[int, float]:
        """What is asked for now, and what was forecast."""
        now, ready = NOON + minute * MINUTE, round(self.pods[-1])
        one = workload(
            replicas=self.coming[-1], ready=ready, resources=Resources(cpu_request=1.0), autoscaler=hpa(highest=500)
        )
        peaks = self.forecaster.peaks(CPU, self._shown(now, one), [SPAN], now)[SPAN]
        ahead = ahead_of(peaks, one.id, 0.9)
        outlook = SignalForecast(CPU, Measured(self.usage[-1], now), ahead)
        recommendation, self.state = decide(one, {CPU: outlook}, POLICY, self.state, now)
        verdict = recommendation.replicas
        return (verdict.replicas if isinstance(verdict, Scale) else one.replicas), float(peaks.values[0, -3])

    def _shown(self, now: datetime, one: Workload) -> FreshHistory:
        ready, cpu = (_windows(one.id, np.array(part[-HISTORY:]), now) for part in (self.pods, self.usage))
        return fresh(*cpu, DemandContext(CPU, fresh(*ready), {one.id: one}) if self.cleaning else None)


def _windows(id_: WorkloadId, values: np.ndarray, now: datetime) -> tuple[Window, Window]:
    over = int(now.timestamp()) // 60 % 5
    points = (len(values) - over) // 5
    means = values[len(values) - over - 5 * points : len(values) - over].reshape(1, points, 5).mean(axis=2)
    end = now - minutes(over)
    weeks = Window((id_,), end - (points - 1) * FIVE_MINUTES, FIVE_MINUTES, means.astype(np.float32))
    recent = values[None, -RECENT:].astype(np.float32)
    return weeks, Window((id_,), now - (RECENT - 1) * MINUTE, MINUTE, recent)


def played(*, cleaning: bool, long: int) -> Rest:
    """Half the pods were gone for a while; whatever is asked for comes."""
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


def test_without_it_the_forecast_follows_our_own_scaling() -> None:
    rest = played(cleaning=False, long=30)
    assert max(rest.forecasts) > 1.05 * DEMAND
