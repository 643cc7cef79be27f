"""Models forecast five-minute points, and pods must carry the largest minute: how far it lies above is looked up."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from forecaster.demand.fresh import FreshHistory, fresh
from forecaster.domain.signal import CPU
from forecaster.domain.window import FIVE_MINUTES, MINUTE, MINUTES_A_POINT, Window
from forecaster.forecasting.forecaster import Forecaster, PeakSpan
from forecaster.forecasting.minutes import POINTS, Minutes, joined, of_minutes, ratios
from forecaster.forecasting.peaks import LEVELS, PeakForecasts
from models import StepWindow
from tests.support.builders import NOON, minutes
from tests.support.recommendations import ahead_of, workload_id

WEB = workload_id("web")
WHOLE_POINT = Minutes(steps=1, first=0, last=MINUTES_A_POINT)
NEXT = PeakSpan(minutes(5), minutes(5))
SPIKES = np.tile(np.array([1.0, 1.0, 1.0, 1.0, 3.0], np.float32), POINTS)
"""The mean of five minutes is 1.4, the largest of them 3."""


def history(values: np.ndarray, known: int | None = None) -> FreshHistory:
    """A day of one workload that repeats these three hours, of which the last `known` minutes are kept."""
    day = np.tile(values, 8)[None]
    points = day.reshape(1, -1, MINUTES_A_POINT).mean(axis=2, dtype=np.float32)
    weeks = Window((WEB,), NOON - (points.shape[1] - 1) * FIVE_MINUTES, FIVE_MINUTES, points)
    latest = values[None, len(values) - (len(values) if known is None else known) :]
    return fresh(weeks, Window((WEB,), NOON - (latest.shape[1] - 1) * MINUTE, MINUTE, latest))


def peaks_of(known: FreshHistory, span: PeakSpan = NEXT) -> PeakForecasts:
    return Forecaster("last-value").peaks(CPU, known, [span], NOON)[span]


def median(known: FreshHistory, span: PeakSpan) -> float:
    return ahead_of(peaks_of(known, span), WEB, 0.5).median


@pytest.mark.parametrize(
    ("lead", "length", "largest"),
    [(3, 3, 3.0), (5, 5, 3.0), (5, 2, 1.0)],
    ids=["across two points", "a whole point", "the quiet part of a point"],
)
def test_the_largest_minute_is_forecast_and_not_the_mean_around_it(lead: int, length: int, largest: float) -> None:
    assert median(history(SPIKES), PeakSpan(minutes(lead), minutes(length))) == pytest.approx(largest, rel=1e-3)


def test_within_the_first_hour_of_a_workload_the_points_are_what_is_known() -> None:
    assert median(history(SPIKES, known=50), PeakSpan(minutes(5), minutes(5))) == pytest.approx(1.4, rel=1e-3)


def test_workloads_without_minutes_keep_the_forecast_of_their_points() -> None:
    known = history(SPIKES)
    assert known.minutes is not None
    other = Window((workload_id("other"),), known.minutes.start, MINUTE, known.minutes.values)
    peaks = of_minutes(peaks_of(replace(known, minutes=None)), replace(known, minutes=other), StepWindow(2, 2))
    assert ahead_of(peaks, WEB, 0.5).median == pytest.approx(1.4, rel=1e-3)


def test_a_window_of_hours_keeps_the_forecast_of_its_points() -> None:
    assert median(history(SPIKES), PeakSpan(minutes(5), timedelta(hours=2))) == pytest.approx(1.4, rel=1e-3)


def test_minutes_that_are_not_known_say_nothing() -> None:
    gaps = SPIKES.copy()
    gaps[MINUTES_A_POINT - 1 :: MINUTES_A_POINT] = np.nan
    assert ratios(gaps[None], WHOLE_POINT) == pytest.approx(np.ones((1, len(LEVELS))))
    assert ratios(np.full((1, POINTS * MINUTES_A_POINT), np.nan, np.float32), WHOLE_POINT).tolist() == [
        [1.0] * len(LEVELS)
    ]


def test_a_load_that_is_zero_has_no_ratio() -> None:
    assert ratios(np.zeros((1, POINTS * MINUTES_A_POINT), np.float32), WHOLE_POINT).tolist() == [[1.0] * len(LEVELS)]


@pytest.mark.parametrize(
    ("window", "begin", "length", "expected"),
    [
        (StepWindow(1, 2), 3, 3, Minutes(2, 3, 6)),
        (StepWindow(2, 2), 5, 4, Minutes(1, 0, 4)),
        (StepWindow(1, 1), -4, 5, Minutes(1, 0, 1)),
    ],
)
def test_minutes_of_a_window_are_counted_from_its_first_point(
    window: StepWindow, begin: int, length: int, expected: Minutes
) -> None:
    assert Minutes.of(window, minutes(begin), minutes(length)) == expected


AMOUNTS = arrays(np.float64, (3, len(LEVELS)), elements=st.floats(0.0, 1e6)).map(lambda values: np.sort(values, axis=1))
RATIOS = arrays(np.float64, (3, len(LEVELS)), elements=st.floats(0.01, 5.0)).map(lambda values: np.sort(values, axis=1))


@given(AMOUNTS, RATIOS)
def test_joined_quantiles_ascend_and_are_no_amounts_below_zero(points: np.ndarray, ratio: np.ndarray) -> None:
    values = joined(points, ratio)
    assert (values >= 0).all()
    assert (np.diff(values, axis=1) >= 0).all()


@given(AMOUNTS, st.floats(0.01, 5.0))
def test_a_ratio_that_is_always_the_same_is_a_factor(points: np.ndarray, ratio: float) -> None:
    assert joined(points, np.full_like(points, ratio)) == pytest.approx(points * ratio, rel=1e-9, abs=1e-9)


@given(arrays(np.float32, (2, POINTS * MINUTES_A_POINT), elements=st.floats(0.0, 1e6, width=32)))
def test_no_minute_counts_for_more_than_five(load: np.ndarray) -> None:
    """The bound of what an owner can do to a forecast of their own by spikes of a minute."""
    assert (ratios(load, WHOLE_POINT) <= MINUTES_A_POINT * (1 + 1e-5)).all()
