"""Cleaning looks back only, and leaves alone what it is not told to mend."""

import numpy as np
import pytest

from models import Panel
from models.calendar import Event
from models.clean import FEW_COLUMNS, bounded, filled, masked
from tests.support.panels import HOUR, daily_waves, panel


def filled_one_by_one(row: list[float]) -> list[float]:
    latest = next((value for value in row if not np.isnan(value)), 0.0)
    return [latest := latest if np.isnan(value) else value for value in row]


@pytest.mark.parametrize("columns", [FEW_COLUMNS, 4 * FEW_COLUMNS], ids=["few", "many"])
def test_gaps_have_the_latest_earlier_sample_and_leading_ones_the_first(columns: int) -> None:
    rng = np.random.default_rng(3)
    values = np.where(rng.random((4, columns)) < 0.5, np.nan, rng.random((4, columns)))
    values[0, :9], values[1], values[2, -9:] = np.nan, np.nan, np.nan
    assert filled(values).tolist() == [filled_one_by_one(row) for row in values.tolist()]


def test_a_span_of_one_series_is_a_gap_in_that_series_only() -> None:
    waves = daily_waves(2, days=2)
    throttled = Event("throttled", waves.start + 3 * HOUR, waves.start + 5 * HOUR)
    gaps = np.isnan(masked(waves, {"s1": [throttled]}).values)
    assert gaps[0].sum() == 0
    assert np.flatnonzero(gaps[1]).tolist() == [3, 4]


def test_a_fault_a_thousand_times_too_high_is_cut_off_and_nothing_else_is() -> None:
    waves = daily_waves(1, days=14)
    faulty = waves.values.copy()
    faulty[0, 200:202] = 1e6
    cut = bounded(Panel(faulty, waves.start, HOUR, waves.keys)).values
    assert cut[0, 200:202].max() <= 10 * waves.values.max()
    others = np.delete(np.arange(waves.length), [200, 201])
    np.testing.assert_array_equal(cut[:, others], waves.values[:, others])


def test_a_series_that_is_nearly_always_nothing_is_left_as_it_is() -> None:
    rare = panel([0.0] * 400 + [9.0], step=HOUR)
    assert bounded(rare).values.tolist() == rare.values.tolist()
