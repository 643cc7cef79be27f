"""Evaluation forecasts what was unknown then, scores it per series, and ranks models."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import numpy as np
import pytest

from models import LastValue, Panel, QuestionError, SeasonalNaive
from models.evaluate import actual_after, cost_of_reserve, coverage, origins, pinball, seasonal_scale
from models.fitted import FittedRule
from models.leaderboard import compare
from tests.support.panels import HOUR, MONDAY, daily_waves, panel


def test_origins_lie_in_the_newest_part_and_leave_steps_behind_them() -> None:
    instants = origins(daily_waves(days=10), 5, steps=6)
    assert len(instants) == 5
    assert instants[0] == MONDAY + 144 * HOUR
    assert instants[-1] == MONDAY + 234 * HOUR


def test_a_panel_without_room_for_an_origin_is_refused() -> None:
    with pytest.raises(QuestionError, match="leaves no origin"):
        origins(panel([1, 2, 3]), 5, steps=6)


def test_an_origin_without_steps_after_it_is_refused() -> None:
    with pytest.raises(QuestionError, match="only 2 bins follow"):
        actual_after(panel([1, 2, 3, 4]), MONDAY + 2 * HOUR, 3)


def test_the_day_before_is_off_by_the_usual_change_over_a_day() -> None:
    score = compare(daily_waves(4, noise=0.2), [SeasonalNaive()], steps=6, count=8)["seasonal-naive-day"].score
    assert float(np.mean(score.mase)) == pytest.approx(1, abs=0.2)


def test_the_better_model_leads() -> None:
    table = compare(daily_waves(3, noise=0.05), [LastValue(), SeasonalNaive()], steps=6, count=4).table()
    assert table.index.tolist() == ["seasonal-naive-day", "last-value"]
    assert table.loc["seasonal-naive-day", "sQL_rel"] == pytest.approx(1.0)


@dataclass(frozen=True)
class Risen:
    """A hundredth above the latest value."""

    name: str = "risen"

    def fit(self, panel: Panel) -> FittedRule[None]:
        return FittedRule(self, panel, None)

    def paths(self, history: Panel, learned: None, steps: int, levels: tuple[float, ...]) -> np.ndarray:
        return np.tile(1.01 * history.values[:, -1:, None], (1, len(levels), steps))


def test_series_without_a_forecast_are_counted_and_not_scored() -> None:
    values = np.stack([daily_waves(1).values[0], np.full(240, np.nan)])
    history = Panel(values, MONDAY, HOUR, ("known", "silent"))
    test = compare(history, [LastValue()], steps=3, count=2)["last-value"]
    assert test.unanswered == 0.5
    assert np.isfinite(test.score.loss[0])
    assert np.isnan(test.score.loss[1])


ACTUAL = np.array([10.0, 20.0])
QUANTILES = np.array([[10.0, 10.0], [15.0, 15.0]])


def test_pinball_charges_the_level_for_missing_and_the_rest_for_idle() -> None:
    np.testing.assert_allclose(pinball(ACTUAL, QUANTILES, (0.5, 0.9)), [[0, 5], [0.5, 4.5]])


def test_a_value_on_the_quantile_is_covered() -> None:
    np.testing.assert_allclose(coverage(ACTUAL, QUANTILES), [0.5, 0.5])


def test_gaps_are_not_scored() -> None:
    known = np.array([10.0, np.nan])
    assert coverage(known, QUANTILES).tolist() == [1, 1]


def test_a_missing_unit_costs_nineteen_idle_ones() -> None:
    assert cost_of_reserve(np.array([10.0]), np.array([9.0])) == 19
    assert cost_of_reserve(np.array([10.0]), np.array([11.0])) == 1


def test_the_cheapest_reserve_is_the_quantile_of_the_price() -> None:
    demand = np.arange(1000.0)
    costs = [float(cost_of_reserve(demand, np.full(1000, reserve))) for reserve in range(1000)]
    assert int(np.argmin(costs)) == pytest.approx(950, abs=2)


def test_the_scale_is_the_mean_change_over_a_season() -> None:
    assert seasonal_scale(np.array([[1.0, 2.0, 3.0, 6.0]]), 2).tolist() == [3]


def test_a_panel_coarser_than_a_day_is_scored_in_changes_from_bin_to_bin() -> None:
    weeks = Panel(np.arange(1.0, 41)[None], MONDAY, timedelta(days=7), ("web",))
    assert np.isfinite(compare(weeks, ["last-value"], steps=2, count=3)["last-value"].score.mase).all()


def test_a_series_that_never_changes_has_no_scaled_loss_and_hides_none() -> None:
    values = np.stack([np.full(240, 5.0), daily_waves(1).values[0]])
    board = compare(Panel(values, MONDAY, HOUR, ("still", "web")), [LastValue(), Risen()], steps=3, count=5)
    assert np.isnan(board["risen"].score.mase).tolist() == [True, False]
    assert np.isfinite(board.table()["MASE"]).all()


def test_the_error_of_the_median_is_unknown_where_it_was_not_asked_for() -> None:
    board = compare(daily_waves(2), [LastValue()], steps=3, count=3, levels=(0.9, 0.95))
    assert np.isnan(board["last-value"].score.mase).all()
    assert np.isnan(board.table()["MASE"]).all()
