"""Quantiles are moved by what they covered."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecaster.horizontal.quantile import corrected


def test_a_p90_that_covers_what_it_says_stays() -> None:
    assert corrected(0.9, 0.9, 1000) == pytest.approx(0.9)


def test_nothing_matured_corrects_nothing() -> None:
    assert corrected(0.9, 0.0, 0) == 0.9


def test_few_forecasts_correct_less_than_many() -> None:
    assert 0.9 < corrected(0.9, 0.8, 20) < corrected(0.9, 0.8, 400)


@given(st.floats(0.5, 0.99), st.floats(0, 1), st.integers(0, 10_000))
def test_too_little_coverage_raises_and_too_much_lowers(quantile: float, coverage: float, matured: int) -> None:
    moved = corrected(quantile, coverage, matured)
    assert 0.5 <= moved <= 0.99
    if matured > 10 and 0.01 < coverage < 0.99:
        assert (moved >= quantile - 1e-9) if coverage <= quantile else (moved <= quantile + 1e-9)
