from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecaster.domain.outlook import PeakForecast
from forecaster.forecasting.peaks import LEVELS, PeakForecasts
from tests.support.builders import after
from tests.support.recommendations import workload_id

WEB = workload_id()
VALUES = (1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 9.0)
ONE = np.zeros(1, np.int32)
PEAKS = PeakForecasts(after(3), after(6), (WEB,), {WEB: 0}, np.array([VALUES]), ONE, ONE, ("ridge",), ("held",))


def ahead(quantile: float, peaks: PeakForecasts = PEAKS) -> PeakForecast:
    one = peaks.ahead(WEB, quantile)
    assert isinstance(one, PeakForecast)
    return one


@pytest.mark.parametrize(("quantile", "value"), list(zip(LEVELS, VALUES, strict=True)))
def test_a_level_that_was_forecast_is_read(quantile: float, value: float) -> None:
    assert ahead(quantile).peak == value


def test_a_level_between_two_is_on_the_line_between_them() -> None:
    assert ahead(0.97).peak == pytest.approx(7.0)


@given(st.floats(0.01, 0.999), st.lists(st.floats(0, 1e12), min_size=len(LEVELS), max_size=len(LEVELS)).map(sorted))
def test_it_is_what_numpy_reads_between_two_levels(quantile: float, values: list[float]) -> None:
    assert ahead(quantile, replace(PEAKS, values=np.array([values]))).peak == np.interp(quantile, LEVELS, values)


def test_the_interval_and_who_spoke_come_with_it() -> None:
    one = ahead(0.9)
    assert (one.low, one.median, one.high, one.model, one.note) == (1.0, 2.0, 5.0, "ridge", "held")
    assert (one.begin, one.until) == (after(3), after(6))
    assert (one.levels, one.peaks) == (LEVELS, VALUES)


@given(st.floats(0.5, 0.99), st.floats(0.5, 0.99))
def test_a_higher_level_never_gives_a_lower_peak(one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert ahead(low).peak <= ahead(high).peak
