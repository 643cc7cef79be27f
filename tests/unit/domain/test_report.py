from __future__ import annotations

import pytest

from forecaster.domain.report import ForecastScore
from forecaster.domain.signal import CPU
from tests.support.recommendations import NOON, workload_id


def score(actual: float) -> ForecastScore:
    return ForecastScore(workload_id(), CPU, NOON, NOON, "ridge", 0.9, median=2.0, upper=3.0, actual=actual)


def test_a_peak_at_the_quantile_is_covered() -> None:
    assert score(3.0).covered
    assert not score(3.1).covered


def test_too_little_costs_nine_times_what_too_much_does_at_the_quantile_of_nine_tenths() -> None:
    assert score(4.0).pinball_loss == pytest.approx(0.9)
    assert score(2.0).pinball_loss == pytest.approx(0.1)


def test_the_error_is_that_of_the_median() -> None:
    assert score(1.5).absolute_error == 0.5
