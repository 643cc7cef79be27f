"""Harmonic regression: one batch gives what each series would get alone, and gaps count nothing."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from models.harmonic import HARMONIC_PENALTY, coefficients, wave_frequencies, waves

COLUMNS = waves(np.arange(96), wave_frequencies(24, 3, 0))


@given(seed=st.integers(0, 2**16), gaps=st.floats(0, 0.5))
def test_series_with_gaps_get_the_least_squares_of_what_is_known(seed: int, gaps: float) -> None:
    rng = np.random.default_rng(seed)
    values = rng.uniform(0, 10, (3, 96))
    values[1:][rng.random((2, 96)) < gaps] = np.nan

    for row, found in zip(values, coefficients(values, COLUMNS), strict=True):
        known = np.isfinite(row)
        mean = row[known].mean()
        rows = np.concatenate([COLUMNS[known], np.sqrt(HARMONIC_PENALTY) * np.eye(COLUMNS.shape[1])])
        alone = np.linalg.lstsq(rows, np.concatenate([row[known] - mean, np.zeros(COLUMNS.shape[1])]), rcond=None)[0]
        alone[0] += mean
        np.testing.assert_allclose(found, alone, rtol=1e-6, atol=1e-8)


@given(seed=st.integers(0, 2**16))
def test_waves_are_found_again(seed: int) -> None:
    rng = np.random.default_rng(seed)
    true = rng.normal(size=(2, COLUMNS.shape[1]))
    found = coefficients(true @ COLUMNS.T, COLUMNS)
    np.testing.assert_allclose(found, true, atol=0.03 * np.abs(true).max())
