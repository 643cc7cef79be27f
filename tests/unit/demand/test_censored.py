"""Where what was measured is only what was served."""

from __future__ import annotations

import numpy as np
import pytest

from forecaster.demand.censored import at_maximum, cut_off, masked, on_ceiling, outages, throttled

NAN = float("nan")


@pytest.mark.parametrize(
    ("measured", "verdict"),
    [
        pytest.param(2.0, True, id="all that four pods carry"),
        pytest.param(1.995, True, id="nearly"),
        pytest.param(1.9, False, id="less than they can"),
        pytest.param(2.4, False, id="more than they can: it is measured before them"),
    ],
)
def test_usage_at_the_capacity_of_the_ready_pods_is_cut_off(measured: float, verdict: bool) -> None:  # noqa: FBT001  the expectation
    assert cut_off(measured, 4, 0.5) is verdict


def test_without_pods_nothing_is_cut_off() -> None:
    assert not cut_off(0.0, 0, 0.5)


def test_full_pods_at_the_maximum_hide_what_more_there_was() -> None:
    usage = np.array([[1.0, 3.9, 3.9]])
    mask = at_maximum(usage, np.array([[2.0, 4.0, 3.0]]), np.array([4.0]), np.array([1.0]))
    assert mask.tolist() == [[False, True, False]]


def test_throttling_beyond_bursts_is_censoring_and_unknown_is_not() -> None:
    assert throttled(np.array([[0.1, 0.5, NAN]])).tolist() == [[False, True, False]]


def test_a_stretch_on_the_ceiling_is_censored_and_a_single_peak_is_not() -> None:
    cut = [1.0, 2.0, 5.0, 5.0, 5.0, 3.0, 2.0, 1.0, 1.0, 2.0]
    single = [1.0, 2.0, 5.0, 4.0, 3.0, 3.0, 2.0, 1.0, 1.0, 2.0]
    mask = on_ceiling(np.array([cut, single]))
    assert mask[0].nonzero()[0].tolist() == [2, 3, 4]
    assert not mask[1].any()


def test_a_constant_series_is_no_ceiling() -> None:
    assert not on_ceiling(np.full((1, 20), 3.0)).any()
    assert not on_ceiling(np.zeros((1, 20))).any()


def test_an_outage_and_the_thundering_return_are_censored() -> None:
    usual = np.full((1, 60), 10.0)
    seen = usual.copy()
    seen[0, 20:30], seen[0, 30:34] = 0.0, 22.0
    assert outages(seen, usual)[0].nonzero()[0].tolist() == list(range(20, 34))


def test_load_that_stays_away_has_moved() -> None:
    usual = np.full((1, 400), 10.0)
    seen = usual.copy()
    seen[0, 50:] = 0.0
    assert not outages(seen, usual).any()


def test_what_is_masked_is_a_gap() -> None:
    out = masked(np.array([[1.0, 2.0]]), np.array([[False, True]]))
    assert out[0, 0] == 1.0
    assert np.isnan(out[0, 1])
