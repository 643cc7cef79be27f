"""What decisions would have cost on past days: bills add up, and records are read at equal cost."""

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
    """One series, by the minute, in pods; without forecasts what is seen is expected."""
    seen = np.r_[demand[0], demand[:-1]]
    known = np.repeat(seen[:, None], len(LEVELS), axis=1) if peaks is None else peaks
    return PolicyBacktest(demand[None], seen[None], known[None], (seen if yesterday is None else yesterday)[None])


def counts_at(target: float, demand: list[float]) -> tuple[float, float]:
    """Pod-minutes and shortage of measured demand alone, with pods that start at once."""
    one = Strategies((target,), (None,), ("nothing",))
    (bill,) = bills(days_of(np.array(demand)), LEVELS, one, [PLAIN], np.array([0]))
    return float(bill.spent[0, 0]), float(bill.short[0, 0])


def test_within_tolerance_measured_demand_alone_keeps_its_count() -> None:
    """8 pods' demand at 80 % are 10 pods; 8.5 is within a tenth of it, 9.5 is not and asks for 12."""
    assert counts_at(0.8, [8.0, 8.0, 8.5, 8.5, 9.5, 9.5])[0] == 5 * 10 + 12


def test_a_bill_has_the_pods_and_the_share_of_demand_above_the_ready_ones() -> None:
    """A jump from 2 to 3 is seen a minute later and served two minutes after that."""
    demand = np.array([2.0, 3.0, 3.0, 3.0, 3.0])
    (bill,) = bills(days_of(demand), LEVELS, Strategies((1.0,), (None,), ("nothing",)), [PLAIN], np.array([2]))
    assert bill.spent.tolist() == [[2 + 2 + 3 + 3 + 3]]
    assert bill.short[0, 0] == pytest.approx(3 / 14)
    assert bill.by_block.sum() == pytest.approx(bill.short[0, 0])


def test_a_bill_may_begin_later_and_has_what_came_before_decided_too() -> None:
    demand = np.array([2.0, 3.0, 3.0, 3.0, 3.0, 3.0])
    one = Strategies((1.0,), (None,), ("nothing",))
    whole, rest = bills(days_of(demand), LEVELS, one, [PLAIN], np.array([2]), sinces=(0, 3))
    assert whole.spent[0, 0] - rest.spent[0, 0] == 2 + 2 + 3
    assert rest.short[0, 0] == pytest.approx(1 / 9)


def test_many_workloads_at_once_cost_what_each_costs_alone() -> None:
    rng = np.random.default_rng(1)
    demand = np.floor(8 + 6 * np.sin(np.arange(120) / 9) + rng.uniform(-2, 2, 120)) + 0.4
    peaks = demand[:, None] * np.sort(rng.uniform(0.6, 1.6, (120, len(LEVELS))), axis=1)
    one, other = days_of(demand, peaks), days_of(40 * demand, 40 * peaks)
    both = PolicyBacktest(*(np.concatenate(parts) for parts in zip(one, other, strict=True)))
    sweep = Strategies((1.0, 1.0), (None, Setting(0.1)), ("nothing", "model"))
    under = [policy(sizing="newsvendor", scale_in_by_forecast=True).horizontal] * 2
    (together,) = bills(both, LEVELS, sweep, under, np.array([2, 3]))
    for place, (alone, start_up) in enumerate(((one, 2), (other, 3))):
        (found,) = bills(alone, LEVELS, sweep, under[:1], np.array([start_up]))
        assert found.spent[:, 0].tolist() == together.spent[:, place].tolist()
        assert found.short[:, 0] == pytest.approx(together.short[:, place])


def bill_of(spent: list[float], short: list[float]) -> Bill:
    """The budget first, then a sweep; each shortage is that of a single hour of two."""
    by_block = np.array([short, [0.0] * len(short)])[..., None]
    return Bill(np.array(spent)[:, None], np.array(short)[:, None], by_block)


def test_a_record_is_read_at_equal_cost_and_is_none_outside_the_sweep() -> None:
    found = records(bill_of([15.0, 10.0, 20.0], [0.1, 0.2, 0.0]), np.array([1, 2]))
    assert found.short.tolist() == pytest.approx([0.1])
    assert np.isnan(records(bill_of([5.0, 10.0, 20.0], [0.1, 0.2, 0.0]), np.array([1, 2])).short).all()


def test_the_saving_is_that_of_the_cheapest_that_leaves_no_more_short_than_chance_explains() -> None:
    found = records(bill_of([20.0, 10.0, 20.0], [0.1, 0.2, 0.0]), np.array([1, 2]))
    assert found.noise[0] == pytest.approx(0.1 / np.sqrt(2))
    assert found.saving[0] == pytest.approx(1 - (10 + (0.1 - found.noise[0]) / 0.02) / 20)


def test_the_noise_of_a_difference_is_what_one_hour_more_or_less_makes() -> None:
    """All of the difference in one of two hours: its standard error is nearly the difference itself."""
    found = records(bill_of([20.0, 10.0, 20.0], [0.1, 0.3, 0.05]), np.array([1, 2]))
    assert found.noise[0] == pytest.approx(0.05 / np.sqrt(2))


@pytest.mark.parametrize(("sizing", "peak"), [("newsvendor", 5.7), ("quantile", 6.0)])
def test_a_forecast_that_sees_the_peak_coming_has_the_better_record(sizing: str, peak: float) -> None:
    """Six pods of load, or nearly, for five minutes of each hour; the model knows, and yesterday was the same."""
    demand = np.where(np.arange(2880) % 60 < 5, peak, peak / 4)
    coming = np.lib.stride_tricks.sliding_window_view(np.r_[demand, demand[:5]], 6).max(axis=1)
    days = days_of(demand, np.repeat(coming[:, None], len(LEVELS), axis=1), coming)
    under = HorizontalPolicy.model_validate({"sizing": sizing, "scale_down_stabilization": timedelta(minutes=2)})
    whole, newer = evidence_of(days, LEVELS, [under], np.array([2]))
    assert whole.model.short[0] < 0.2 * whole.reactive[0]
    assert whole.seasonal.short[0] < 0.2 * whole.reactive[0]
    assert (whole.days, newer.days) == (2.0, 1.0)
    assert list(TARGETS) == sorted(TARGETS, reverse=True)
