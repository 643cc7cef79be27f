"""Demand is open-loop: changes of the count of pods leave no trace in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from forecaster.demand.fresh import DemandContext, fresh
from forecaster.demand.warm_up import starting, without_warm_up
from forecaster.domain.signal import CPU
from forecaster.domain.window import FIVE_MINUTES, MINUTE, Window
from forecaster.domain.workload import Resources
from forecaster.forecasting.forecaster import Forecaster, PeakSpan
from tests.support.builders import NOON, hpa, minutes, workload

if TYPE_CHECKING:
    from datetime import datetime

    from forecaster.demand.fresh import FreshHistory
    from forecaster.domain.workload import WorkloadId

DAYS = 4
WHOLE, RECENT = DAYS * 1440, 180
STEPS = st.lists(st.tuples(st.integers(10, 40), st.integers(1, 40)), min_size=1, max_size=20)
"""For how many minutes how many pods. What goes up and down again within ten minutes is lost in means of five."""
STARTS = np.repeat([4.0, 9.0, 3.0, 8.0, 5.0, 10.0], 14)


def path_of(steps: list[tuple[int, int]], length: int) -> np.ndarray:
    """The steps over and over, the last one whole."""
    once = np.concatenate([np.full(long, float(pods)) for long, pods in steps])
    return np.tile(once, -(-length // len(once)))[-length:]


def wandering(seed: int, length: int) -> np.ndarray:
    """A count that holds for half an hour to five hours."""
    rng = np.random.default_rng(seed)
    path = np.repeat(rng.integers(1, 40, 200), rng.integers(30, 300, 200))[:length].astype(float)
    path[-30:] = path[-31]
    return path


def usage_of(pods: np.ndarray, demand: float, extra: float, long: int) -> np.ndarray:
    """Each pod that has become ready uses as much more for so many minutes."""
    rises = np.maximum(np.diff(pods, prepend=pods[:1]), 0.0)
    return demand + extra * np.convolve(rises, np.ones(long))[: len(pods)]


def by_five(values: np.ndarray) -> np.ndarray:
    return values.reshape(1, -1, 5).mean(axis=2).astype(np.float32)


@given(STEPS, st.floats(0.1, 100), st.floats(0, 5), st.integers(1, 5), st.integers(0, 4))
def test_a_constant_demand_is_constant_under_any_path_of_the_count(
    steps: list[tuple[int, int]], demand: float, extra: float, long: int, phase: int
) -> None:
    once = path_of(steps, sum(long for long, _ in steps))
    pods = np.concatenate([np.ones(20 + phase), once, once, np.full(20 + -(phase + 2 * len(once)) % 5, 2.0)])
    counts = by_five(pods)
    estimate = without_warm_up(by_five(usage_of(pods, demand, extra, long)), counts, np.array([extra * long / 5]))
    assert np.allclose(estimate, demand, rtol=1e-4)


@settings(deadline=None, max_examples=25, derandomize=True)
@given(st.integers(0, 99), STEPS, st.floats(0.5, 20), st.floats(0, 2), st.integers(1, 5), st.integers(0, 4))
def test_and_so_is_its_forecast_once_some_starts_were_seen(
    seed: int, steps: list[tuple[int, int]], demand: float, extra: float, long: int, phase: int
) -> None:
    """Days of some path, three hours with five starts, and an hour of any path.

    Yesterday is one of the experts, and of its starts, before any was seen whole, a part may be left in it: a bound on
    a model's forecast and no law, so the examples are always the same.
    """
    pods = np.concatenate([wandering(seed, WHOLE - RECENT), np.resize(STARTS, RECENT)])
    extra = extra if extra > demand / 100 else 0.0
    first = Forecaster("adaptive")
    first.peaks(CPU, history(pods, demand, extra, long, 0), [SOON], NOON)
    passed = 60 + phase
    later = np.concatenate([pods, np.full(10, 5.0), path_of(steps, passed)[: passed - 10]])[-WHOLE:]
    ahead = first.peaks(CPU, history(later, demand, extra, long, passed), [SOON], NOON + minutes(passed))
    peaks = ahead[SOON].values[0]
    assert np.allclose(peaks[:-1], demand, rtol=0.08)
    assert demand * 0.92 <= peaks[-1] <= demand * 1.35, "the outermost level still covers the starts of past days"


SOON = PeakSpan(minutes(3), minutes(3))


def history(pods: np.ndarray, demand: float, extra: float, long: int, passed: int) -> FreshHistory:
    """History as the service holds it, so many minutes after noon."""
    at, workload_ = NOON + minutes(passed), workload(resources=Resources(cpu_request=1.0), autoscaler=hpa(highest=1000))
    usage = usage_of(pods, demand, extra, long)
    (cpu, cpu_minutes), (ready, ready_minutes) = (cut((workload_.id,), values, at) for values in (usage, pods))
    around = DemandContext(CPU, fresh(ready, ready_minutes), {workload_.id: workload_})
    return fresh(cpu, cpu_minutes, around)


def cut(ids: tuple[WorkloadId, ...], values: np.ndarray, at: datetime) -> tuple[Window, Window]:
    """By five minutes up to the clock's cut, and the newest three hours by the minute."""
    over = int(at.timestamp()) // 60 % 5
    whole = values[: len(values) - over]
    points = len(whole) // 5
    means = by_five(whole[len(whole) - 5 * points :])
    end = at - minutes(over)
    weeks = Window(ids, end - (points - 1) * FIVE_MINUTES, FIVE_MINUTES, means)
    recent = values[None, -RECENT:].astype(np.float32)
    return weeks, Window(ids, at - (RECENT - 1) * MINUTE, MINUTE, recent)


@given(STEPS, st.floats(0, 5))
def test_demand_is_never_negative_and_never_above_usage(steps: list[tuple[int, int]], each: float) -> None:
    pods = by_five(path_of(steps, 300))
    usage = pods * np.float32(0.5)
    estimate = without_warm_up(usage, pods, np.array([each]))
    assert (estimate >= 0).all()
    assert (estimate <= usage).all()


def test_pods_may_be_starting_next_to_where_they_are_seen() -> None:
    assert starting(np.array([[2.0, 2.0, 2.4, 3.0, 3.0, 3.0]])).tolist() == [[0, 1, 2, 2, 1, 0]]
