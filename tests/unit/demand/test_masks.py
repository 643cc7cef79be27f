"""Usage becomes demand: what held it down is named, and the same time of other days stands in."""

from __future__ import annotations

import numpy as np
import pytest

from forecaster.demand.masks import COLUMNS_A_DAY, Cleaned, CleanedPart, Masked, cleaned, other_days, traits_of
from forecaster.domain.signal import CPU, MEMORY, REQUESTS, Signal
from forecaster.domain.workload import Resources, Workload
from tests.support.builders import hpa, workload

NOBODY = np.zeros(1)
LIMITED = workload(resources=Resources(cpu_request=0.5, cpu_limit=1.0), autoscaler=hpa(highest=4))
UNLIMITED = workload(resources=Resources(cpu_request=1.0), autoscaler=hpa(highest=4))


def days(count: int) -> np.ndarray:
    """Quiet nights, and noons at which four cores are wanted."""
    return (2.0 - 1.9 * np.cos(2 * np.pi * np.arange(count * COLUMNS_A_DAY) / COLUMNS_A_DAY))[None].astype(np.float32)


def clean(
    usage: np.ndarray, workload: Workload = LIMITED, pods: float = 4.0, throttled: slice | None = None
) -> Cleaned:
    mask = np.zeros(usage.shape, np.bool_)
    if throttled:
        mask[0, throttled] = True
    part = CleanedPart(usage, np.full(usage.shape, np.float32(pods)), mask)
    return cleaned(part, traits_of(CPU, [workload], usage, NOBODY), usage)


def test_free_demand_is_usage() -> None:
    usage = days(5)
    result = clean(usage, pods=8.0)
    assert not result.why.any()
    assert np.array_equal(result.values, usage)


def test_where_pods_are_at_their_limit_other_days_say_what_was_wanted() -> None:
    demand = days(6)
    usage = demand.copy()
    usage[0, -COLUMNS_A_DAY:] = np.minimum(usage[0, -COLUMNS_A_DAY:], 2.0)
    pods = np.full(usage.shape, np.float32(8.0))
    pods[0, -COLUMNS_A_DAY:] = 2.0
    result = cleaned(
        CleanedPart(usage, pods, np.zeros(usage.shape, np.bool_)),
        traits_of(CPU, [LIMITED], usage, NOBODY),
        usage,
    )
    assert set(result.why[0, -COLUMNS_A_DAY:].tolist()) == {0, Masked.LIMIT}
    assert result.values[0] == pytest.approx(demand[0], abs=0.15)


def test_what_is_held_down_every_day_is_at_least_what_was_measured() -> None:
    usage = np.minimum(days(6), 2.0)
    result = clean(usage, pods=2.0)
    assert (result.why == Masked.LIMIT).any()
    assert (result.values >= usage).all()


def test_full_pods_at_the_most_replicas_are_masked_where_no_limit_says_more() -> None:
    usage = days(5)
    assert (clean(usage, UNLIMITED, pods=3.0).why == 0).all()
    assert (clean(usage, UNLIMITED, pods=4.0).why == Masked.MAXIMUM).any()


@pytest.mark.parametrize("stated", [Resources(cpu_request=4.0, cpu_limit=0.0), Resources(cpu_request=0.0)])
def test_a_limit_or_request_of_nothing_makes_no_pod_full(stated: Resources) -> None:
    """Kubernetes takes a CPU limit of 0 for none."""
    usage = days(5)
    assert not clean(usage, workload(resources=stated, autoscaler=hpa(highest=4)), pods=4.0).why.any()


def test_a_throttled_hour_is_masked() -> None:
    hour = slice(4 * COLUMNS_A_DAY, 4 * COLUMNS_A_DAY + 12)
    usage = days(5)
    usage[0, hour] *= 0.5
    result = clean(usage, pods=8.0, throttled=hour)
    assert (result.why[0, hour] == Masked.THROTTLED).all()
    assert result.values[0, hour] == pytest.approx(days(5)[0, hour])


def test_an_outage_and_its_return_become_what_is_usual() -> None:
    noon = 4 * COLUMNS_A_DAY + COLUMNS_A_DAY // 2
    usage = days(5)
    usage[0, noon : noon + 10], usage[0, noon + 10 : noon + 14] = 0.0, 9.0
    result = clean(usage, pods=16.0)
    assert np.flatnonzero(result.why[0] == Masked.OUTAGE).tolist() == list(range(noon, noon + 14))
    assert result.values[0] == pytest.approx(days(5)[0], abs=1e-5)


def test_an_outage_on_the_first_days_is_not_told_from_a_new_level() -> None:
    usage = days(2)
    usage[0, -100:-90] = 0.0
    assert not clean(usage, pods=16.0).why.any()


@pytest.mark.parametrize("signal", [MEMORY, REQUESTS])
def test_pods_hold_down_cpu_alone(signal: Signal) -> None:
    usage = days(5)
    part = CleanedPart(usage, np.full(usage.shape, 4.0), np.zeros(usage.shape, np.bool_))
    assert not cleaned(part, traits_of(signal, [LIMITED], usage, NOBODY), usage).why.any()


def test_unknown_workloads_and_gaps_are_left_as_they_are() -> None:
    usage = days(5)
    usage[0, 100:200] = np.nan
    part = CleanedPart(usage, np.full(usage.shape, np.nan), np.zeros(usage.shape, np.bool_))
    result = cleaned(part, traits_of(CPU, [None], usage, NOBODY), usage)
    assert np.array_equal(result.values, usage, equal_nan=True)


@pytest.mark.parametrize("count", [1, 2])
def test_nothing_is_usual_before_three_other_days_are_known(count: int) -> None:
    least, usual = other_days(days(count), 0, COLUMNS_A_DAY)
    assert np.isnan(least).all()
    assert np.isnan(usual).all()


def test_the_same_weekday_of_another_week_is_nearer_than_the_other_days() -> None:
    usage = days(14)
    usage[0, 4 * COLUMNS_A_DAY : 5 * COLUMNS_A_DAY] *= 0.5
    usage[0, 11 * COLUMNS_A_DAY : 12 * COLUMNS_A_DAY] = np.nan
    first = 2 * COLUMNS_A_DAY
    usual = other_days(usage, first, COLUMNS_A_DAY).usual[0]
    assert usual[11 * COLUMNS_A_DAY - first : 12 * COLUMNS_A_DAY - first] == pytest.approx(0.5 * days(1)[0])
    assert usual[-COLUMNS_A_DAY:] == pytest.approx(days(1)[0], rel=1e-5)
