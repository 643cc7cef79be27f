"""Minutes in which the measured load is only the load that was served."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pytest

from forecaster.demand.censored import (
    LONGEST_OUTAGE,
    THROTTLED_FOR,
    ThrottledTime,
    Throttling,
    at_limit,
    at_maximum,
    ceiling_of,
    may_hold_outages,
    on_ceiling,
    outages,
    throttled,
)
from forecaster.domain.workload import ContainerFacts, ContainerId
from tests.support.builders import NOON
from tests.support.recommendations import workload_id

NAN = float("nan")


def test_full_pods_at_the_maximum_hide_what_more_there_was() -> None:
    usage = np.array([[1.0, 3.9, 3.9]])
    mask = at_maximum(usage, np.array([[2.0, 4.0, 3.0]]), np.array([4.0]), np.array([1.0]))
    assert mask.tolist() == [[False, True, False]]


@pytest.mark.parametrize(
    ("usage", "verdict"),
    [
        pytest.param(3.9, True, id="all pods at their limit"),
        pytest.param(3.0, False, id="below it"),
        pytest.param(6.0, False, id="clearly above it: the limit was another then"),
        pytest.param(NAN, False, id="unknown"),
    ],
)
def test_usage_at_the_limit_of_the_ready_pods_is_held_down(usage: float, verdict: bool) -> None:  # noqa: FBT001  the expectation
    assert at_limit(np.array([[usage]]), np.array([[4.0]]), np.array([1.0])).item() is verdict


def test_unknown_pods_and_limits_mask_nothing() -> None:
    assert not at_limit(np.array([[4.0, 4.0]]), np.array([[NAN, 0.0]]), np.array([1.0])).any()
    assert not at_limit(np.array([[4.0]]), np.array([[4.0]]), np.array([NAN])).any()


def test_throttling_beyond_bursts_is_censoring() -> None:
    assert throttled(0.5)
    assert not throttled(0.1)


def test_a_stretch_on_the_ceiling_is_censored_and_a_single_peak_is_not() -> None:
    cut = [1.0, 2.0, 5.0, 5.0, 5.0, 5.0, 2.0, 1.0, 1.0, 2.0]
    single = [1.0, 2.0, 5.0, 4.9, 4.8, 3.0, 2.0, 1.0, 1.0, 2.0]
    values = np.array([cut, single])
    mask = on_ceiling(values, ceiling_of(values))
    assert mask[0].nonzero()[0].tolist() == [2, 3, 4, 5]
    assert not mask[1].any()


def test_what_passes_the_old_ceiling_is_not_on_it() -> None:
    assert not on_ceiling(np.array([[6.0, 6.0, 6.0, 6.0]]), np.array([5.0])).any()


def test_a_constant_series_has_no_ceiling() -> None:
    assert np.isnan(ceiling_of(np.full((1, 20), 3.0))).all()
    assert np.isnan(ceiling_of(np.zeros((1, 20)))).all()


def test_an_outage_and_the_thundering_return_are_censored() -> None:
    usual = np.full((1, 60), 10.0)
    measured = usual.copy()
    measured[0, 20:30], measured[0, 30:34] = 0.0, 22.0
    assert outages(measured, usual, usual)[0].nonzero()[0].tolist() == list(range(20, 34))


def test_callers_who_come_back_after_a_silence_are_censored() -> None:
    usual = np.full((1, 60), 10.0)
    measured = usual.copy()
    measured[0, 20:30], measured[0, 30:34] = NAN, 22.0
    assert outages(measured, usual, usual)[0].nonzero()[0].tolist() == [30, 31, 32, 33]


@pytest.mark.parametrize(("columns", "masked"), [(LONGEST_OUTAGE, True), (LONGEST_OUTAGE + 1, False)])
def test_load_that_stays_away_has_moved(columns: int, masked: bool) -> None:  # noqa: FBT001  the expectation
    usual = np.full((1, 400), 10.0)
    measured = usual.copy()
    measured[0, 50 : 50 + columns] = 0.0
    assert outages(measured, usual, usual).any() == masked


def test_what_other_days_lack_too_is_no_outage() -> None:
    usual = np.full((1, 60), 10.0)
    measured = usual.copy()
    measured[0, 20:30] = 0.0
    assert not outages(measured, np.zeros((1, 60)), usual).any()


def test_only_load_far_below_its_level_or_high_after_a_silence_is_looked_at() -> None:
    steady, gone, back = [5.0, 4.0, 6.0], [5.0, 0.1, 5.0], [5.0, NAN, 9.0]
    assert may_hold_outages(np.array([steady, gone, back]), np.full(3, 5.0)).tolist() == [False, True, True]


HOUR = timedelta(hours=1)
WEB = workload_id("web")


def facts_of(share: float) -> ContainerFacts:
    return ContainerFacts(held_back={ContainerId(WEB, "app"): share, ContainerId(WEB, "sidecar"): 0.0})


def test_hours_in_which_a_container_was_throttled_are_kept_as_one() -> None:
    throttling = Throttling()
    for hour, share in enumerate((0.5, 0.4, 0.1, 0.5)):
        throttling.follow(facts_of(share), NOON + hour * HOUR)
    assert throttling.hours == {
        WEB: [ThrottledTime(NOON - HOUR, NOON + HOUR), ThrottledTime(NOON + 2 * HOUR, NOON + 3 * HOUR)]
    }


def test_hours_that_are_still_to_come_since_the_clock_was_ahead_are_forgotten() -> None:
    throttling = Throttling()
    for hour in (0, 10, 3):
        throttling.follow(facts_of(0.5), NOON + hour * HOUR)
    assert throttling.hours == {
        WEB: [ThrottledTime(NOON - HOUR, NOON), ThrottledTime(NOON + 2 * HOUR, NOON + 3 * HOUR)]
    }


def test_what_was_told_is_taken_in_once() -> None:
    throttling = Throttling()
    throttling.follow(facts_of(0.5), NOON)
    before = dict(throttling.hours)
    throttling.follow(facts_of(0.5), NOON)
    throttling.follow(facts_of(0.5), None)
    assert throttling.hours == before


def test_old_hours_are_forgotten() -> None:
    throttling = Throttling()
    throttling.follow(facts_of(0.5), NOON)
    throttling.follow(facts_of(0.0), NOON + THROTTLED_FOR)
    assert throttling.hours == {}
