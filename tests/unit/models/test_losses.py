"""Losses are the textbook ones; what was not measured is not scored."""

import numpy as np
import pytest

from models.evaluate import (
    cost_of_reserve,
    coverage,
    mean_absolute_scaled_error,
    pinball,
    scaled_quantile_loss,
    seasonal_scale,
)

ACTUAL = np.array([10.0, 20.0])
QUANTILES = np.array([[10.0, 10.0], [15.0, 15.0]])


def test_pinball_charges_the_level_for_missing_and_the_rest_for_idle() -> None:
    np.testing.assert_allclose(pinball(ACTUAL, QUANTILES, (0.5, 0.9)), [[0, 5], [0.5, 4.5]])


def test_scaled_quantile_loss_is_twice_the_mean_pinball_over_the_scale() -> None:
    assert scaled_quantile_loss(ACTUAL, QUANTILES, (0.5, 0.9), np.array(2.0)) == pytest.approx(2 * 2.5 / 2)


def test_a_value_on_the_quantile_is_covered() -> None:
    np.testing.assert_allclose(coverage(ACTUAL, QUANTILES), [0.5, 0.5])


def test_gaps_are_not_scored() -> None:
    known = np.array([10.0, np.nan])
    assert coverage(known, QUANTILES).tolist() == [1, 1]
    assert mean_absolute_scaled_error(known, np.array([11.0, 11.0]), np.array(2.0)) == 0.5


def test_a_missing_unit_costs_nineteen_idle_ones() -> None:
    assert cost_of_reserve(np.array([10.0]), np.array([9.0])) == 19
    assert cost_of_reserve(np.array([10.0]), np.array([11.0])) == 1


def test_the_cheapest_reserve_is_the_quantile_of_the_price() -> None:
    demand = np.arange(1000.0)
    costs = [float(cost_of_reserve(demand, np.full(1000, reserve))) for reserve in range(1000)]
    assert int(np.argmin(costs)) == pytest.approx(950, abs=2)


def test_the_scale_is_the_mean_change_over_a_season() -> None:
    assert seasonal_scale(np.array([[1.0, 2.0, 3.0, 6.0]]), 2).tolist() == [3]
