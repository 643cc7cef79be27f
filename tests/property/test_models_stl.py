"""STL against statsmodels, and the shape that is made of it."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from models.stl import Season, library_model, newest_day


@settings(max_examples=50)
@given(seed=st.integers(0, 2**16), days=st.integers(3, 8), day=st.sampled_from([24, 48]))
def test_the_newest_day_and_the_rest_are_what_statsmodels_took_apart(seed: int, days: int, day: int) -> None:
    values = np.random.default_rng(seed).uniform(0, 10, days * day)
    parts = library_model(values, day, 13).fit()
    rebuilt = newest_day(values, day, 13) - parts.trend[-1] + parts.trend[-day:] + parts.resid[-day:]
    np.testing.assert_allclose(rebuilt, values[-day:], rtol=1e-9)


@given(day=st.integers(2, 48), length=st.integers(0, 400), bins=st.integers(0, 1000))
def test_a_season_goes_on_where_the_newest_day_ended(day: int, length: int, bins: int) -> None:
    season = Season(np.arange(day, dtype=float)[None], length % day)
    ahead = np.arange(length, length + bins)
    np.testing.assert_array_equal(season.at(ahead)[0], np.arange(bins) % day)
