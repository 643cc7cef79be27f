"""What decisions would have cost: the arrays decide as `decide` does, and bills add up."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from forecaster.decisions.horizontal import decide_replicas
from forecaster.decisions.rehearsal import Bill, Days, Rule, bills, evidence_of, record_at
from forecaster.decisions.state import ScalingState
from forecaster.decisions.sweeps import SETTINGS, TARGETS, Setting, reactive_counts, seasonal_counts, worth_counts
from forecaster.decisions.worth import pods_worth_having
from forecaster.domain.decision import Scale
from forecaster.domain.outlook import Measured, PeakForecast, SignalForecast
from forecaster.domain.policy import HorizontalPolicy
from forecaster.domain.signal import REQUESTS
from forecaster.domain.workload import Resources, Target, TargetType
from tests.support.builders import after, hpa, workload

LEVELS = (0.1, 0.5, 0.9, 0.99)


def drawn(minutes: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Demand that is never near a whole number of pods, and quantiles above and below it."""
    rng = np.random.default_rng(seed)
    seen = np.floor(8 + 6 * np.sin(np.arange(minutes) / 9) + rng.uniform(-2, 2, minutes)) + 0.4
    return seen, seen[:, None] * np.sort(rng.uniform(0.6, 1.6, (minutes, len(LEVELS))), axis=1)


@pytest.mark.parametrize("price", [0.05, 0.1, 0.3])
def test_rehearsed_counts_are_those_that_would_have_been_decided(price: float) -> None:
    seen, peaks = drawn(120)
    rehearsed = worth_counts(LEVELS, peaks, seen, [Setting(price)], window=3)[0]
    policy = HorizontalPolicy(
        price=(1 - price) / price,
        sizing="newsvendor",
        scale_in_by_forecast=True,
        requests_metric="rate",
        scale_down_stabilization=timedelta(minutes=2),
    )
    scaler = hpa(Target("rate", TargetType.AVERAGE_VALUE, 1000.0), lowest=1, highest=500)
    one = workload(replicas=int(rehearsed[0]), resources=Resources(), autoscaler=scaler)
    state, decided = ScalingState(), []
    for minute, (now, ahead) in enumerate(zip(seen * 1000, peaks * 1000, strict=True)):
        at = after(minute)
        known = PeakForecast(
            "m", 0.9, ahead[2], ahead[0], ahead[1], ahead[3], at, at, "", LEVELS, tuple(ahead.tolist())
        )
        outlook = SignalForecast(REQUESTS, Measured(float(now), at), known)
        result = decide_replicas(one, {REQUESTS: outlook}, policy, state, at)
        assert isinstance(result.verdict, Scale)
        state, count = result.state, result.verdict.replicas
        decided.append(count)
        one = replace(one, replicas=count, ready_replicas=count)
    assert decided == rehearsed.tolist()


def test_counts_of_many_workloads_at_once_are_those_of_each_alone_however_many_pods() -> None:
    """The second workload has so many pods that a table of them would be larger than it is worth."""
    (seen, peaks), (others, theirs) = drawn(60), drawn(60, seed=2)
    large, largest = 40 * others, 40 * theirs
    together = worth_counts(LEVELS, np.stack([peaks, largest]), np.stack([seen, large]), SETTINGS, window=3)
    for counts, now, ahead in zip(together, (seen, large), (peaks, largest), strict=True):
        assert (counts == worth_counts(LEVELS, ahead, now, SETTINGS, window=3)).all()
        assert counts[:, 0].tolist() == [
            max(pods_worth_having(LEVELS, (ahead[0] / one.share).tolist(), one.price, at_least=now[0] / one.share), 1)
            for one in SETTINGS
        ]


def test_a_bill_has_the_pods_and_the_share_of_demand_above_the_ready_ones() -> None:
    """Two pods, a third asked for in the second minute and ready two minutes later; demand three from there on."""
    counts = np.array([[2.0, 3.0, 3.0, 3.0]])
    found, _ = bills(counts, np.array([2.0, 3.0, 3.0, 3.0]), 2, (0, 1))
    assert found.spent.tolist() == [11.0]
    assert found.short[0] == pytest.approx(2 / 11)


def test_a_record_is_read_at_equal_cost_and_is_none_outside_the_sweep() -> None:
    sweep = Bill(np.array([10.0, 20.0]), np.array([0.2, 0.0]))
    record = record_at(sweep, 15.0, 0.1)
    assert record is not None
    assert record.short == pytest.approx(0.1)
    assert record_at(sweep, 5.0, 0.1) is None


def test_within_tolerance_the_hpa_keeps_its_count() -> None:
    counts = reactive_counts(np.array([8.0, 8.5, 8.5, 9.5]), np.array([0.8]))
    assert counts[0].tolist() == [10.0, 10.0, 10.0, 12.0]


def test_yesterday_is_a_floor_above_what_is_seen() -> None:
    counts = seasonal_counts(np.array([2.0, 2.0]), np.array([1.0, 5.0]), np.array([1.0]), window=1)
    assert counts[0].tolist() == [2.0, 5.0]


@pytest.mark.parametrize("sizing", ["newsvendor", "quantile"])
def test_who_sees_the_peak_coming_has_the_better_record(sizing: str) -> None:
    """Six pods of load for five minutes of each hour; the model knows, and yesterday was the same."""
    demand = np.where(np.arange(2880) % 60 < 5, 6.0, 1.5)
    seen = np.r_[demand[0], demand[:-1]]
    coming = np.lib.stride_tricks.sliding_window_view(np.r_[demand, demand[:5]], 6).max(axis=1)
    peaks = np.repeat(coming[:, None], len(LEVELS), axis=1)
    rule = Rule("newsvendor" if sizing == "newsvendor" else "quantile", 0.9, 3)
    whole, newer = evidence_of(Days(demand, seen, peaks, coming), LEVELS, 2, rule)
    assert whole.model is not None
    assert whole.model.short < 0.2 * whole.reactive
    assert (whole.days, newer.days) == (2.0, 1.0)
    assert len(TARGETS) == 11
