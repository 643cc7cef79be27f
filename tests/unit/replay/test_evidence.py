"""Costs of decisions on past days: bills add up, and records are read at equal cost."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pytest

from forecaster.domain.policy import HorizontalPolicy
from forecaster.forecasting.backtest import PolicyBacktest
from forecaster.replay.evidence import TARGETS, Bill, Setting, Strategies, bills, evidence_of, records
from tests.support.builders import policy

LEVELS = (0.1, 0.5, 0.9, 0.99)
PLAIN = policy().horizontal


def days_of(demand: np.ndarray, peaks: np.ndarray | None = None, yesterday: np.ndarray | None = None) -> PolicyBacktest:
    """A series by the minute, in pods; without `peaks` the forecast is the measured value."""
    measured = np.r_[demand[0], demand[:-1]]
    known = np.repeat(measured[:, None], len(LEVELS), axis=1) if peaks is None else peaks
    return PolicyBacktest(
        demand[None], measured[None], known[None], (measured if yesterday is None else yesterday)[None]
    )


def counts_at(target: float, demand: list[float]) -> tuple[float, float]:
    """Pod-minutes and shortage of measured demand alone, with pods that start at once."""
    strategies = Strategies((target,), (None,), ("nothing",))
    (bill,) = bills(days_of(np.array(demand)), LEVELS, strategies, [PLAIN], np.array([0]))
    return float(bill.spent[0, 0]), float(bill.short[0, 0])


def test_within_tolerance_measured_demand_alone_keeps_its_count() -> None:
    """Demand of 8 pods at 80 % needs 10 pods; 8.5 is within the tolerance of a tenth, 9.5 needs 12."""
    assert counts_at(0.8, [8.0, 8.0, 8.5, 8.5, 9.5, 9.5])[0] == 5 * 10 + 12


def test_a_bill_has_the_pods_and_the_share_of_demand_above_the_ready_ones() -> None:
    """A jump from 2 to 3 is measured a minute later and served two minutes after that."""
    demand = np.array([2.0, 3.0, 3.0, 3.0, 3.0])
    (bill,) = bills(days_of(demand), LEVELS, Strategies((1.0,), (None,), ("nothing",)), [PLAIN], np.array([2]))
    assert bill.spent.tolist() == [[2 + 2 + 3 + 3 + 3]]
    assert bill.short[0, 0] == pytest.approx(3 / 14)
    assert bill.by_block.sum() == pytest.approx(bill.short[0, 0])


def test_a_bill_that_begins_later_has_the_earlier_minutes_decided_too() -> None:
    demand = np.array([2.0, 3.0, 3.0, 3.0, 3.0, 3.0])
    strategies = Strategies((1.0,), (None,), ("nothing",))
    whole, rest = bills(days_of(demand), LEVELS, strategies, [PLAIN], np.array([2]), sinces=(0, 3))
    assert whole.spent[0, 0] - rest.spent[0, 0] == 2 + 2 + 3
    assert rest.short[0, 0] == pytest.approx(1 / 9)


def test_many_workloads_at_once_cost_what_each_costs_alone() -> None:
    rng = np.random.default_rng(1)
    demand = np.floor(8 + 6 * np.sin(np.arange(120) / 9) + rng.uniform(-2, 2, 120)) + 0.4
    peaks = demand[:, None] * np.sort(rng.uniform(0.6, 1.6, (120, len(LEVELS))), axis=1)
    small, large = days_of(demand, peaks), days_of(40 * demand, 40 * peaks)
    both = PolicyBacktest(*(np.concatenate(parts) for parts in zip(small, large, strict=True)))
    sweep = Strategies((1.0, 1.0), (None, Setting(0.1)), ("nothing", "model"))
    under = [policy(sizing="newsvendor", scale_in_by_forecast=True).horizontal] * 2
    (together,) = bills(both, LEVELS, sweep, under, np.array([2, 3]))
    for place, (alone, start_up) in enumerate(((small, 2), (large, 3))):
        (bill,) = bills(alone, LEVELS, sweep, under[:1], np.array([start_up]))
        assert bill.spent[:, 0].tolist() == together.spent[:, place].tolist()
        assert bill.short[:, 0] == pytest.approx(together.short[:, place])


def bill_of(spent: list[float], short: list[float]) -> Bill:
    """A bill of a budget and then a sweep; all shortage is in the first of two hours."""
    by_block = np.array([short, [0.0] * len(short)])[..., None]
    return Bill(np.array(spent)[:, None], np.array(short)[:, None], by_block)


def test_a_record_is_read_at_equal_cost_and_is_none_outside_the_sweep() -> None:
    record = records(bill_of([15.0, 10.0, 20.0], [0.1, 0.2, 0.0]), np.array([1, 2]))
    assert record.short.tolist() == pytest.approx([0.1])
    assert np.isnan(records(bill_of([5.0, 10.0, 20.0], [0.1, 0.2, 0.0]), np.array([1, 2])).short).all()


def test_the_saving_is_that_of_the_cheapest_that_leaves_no_more_short_than_chance_explains() -> None:
    record = records(bill_of([20.0, 10.0, 20.0], [0.1, 0.2, 0.0]), np.array([1, 2]))
    assert record.noise[0] == pytest.approx(0.1 / np.sqrt(2))
    assert record.saving[0] == pytest.approx(1 - (10 + (0.1 - record.noise[0]) / 0.02) / 20)


def test_the_noise_of_a_difference_is_what_one_hour_more_or_less_makes() -> None:
    """If all of the difference lies in one of two hours, its standard error is nearly the difference itself."""
    record = records(bill_of([20.0, 10.0, 20.0], [0.1, 0.3, 0.05]), np.array([1, 2]))
    assert record.noise[0] == pytest.approx(0.05 / np.sqrt(2))


@pytest.mark.parametrize(("sizing", "peak"), [("newsvendor", 5.7), ("quantile", 6.0)])
def test_a_forecast_that_sees_the_peak_coming_has_the_better_record(sizing: str, peak: float) -> None:
    """The load needs about six pods for five minutes of each hour; the model and yesterday both know it."""
    demand = np.where(np.arange(2880) % 60 < 5, peak, peak / 4)
    coming = np.lib.stride_tricks.sliding_window_view(np.r_[demand, demand[:5]], 6).max(axis=1)
    days = days_of(demand, np.repeat(coming[:, None], len(LEVELS), axis=1), coming)
    under = HorizontalPolicy.model_validate({"sizing": sizing, "scale_down_stabilization": timedelta(minutes=2)})
    whole, newer = evidence_of(days, LEVELS, [under], np.array([2]))
    assert whole.model.short[0] < 0.2 * whole.reactive[0]
    assert whole.seasonal.short[0] < 0.2 * whole.reactive[0]
    assert (whole.days, newer.days) == (2.0, 1.0)
    assert list(TARGETS) == sorted(TARGETS, reverse=True)
