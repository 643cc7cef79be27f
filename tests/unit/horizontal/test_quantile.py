"""Prices become quantiles, and quantiles are moved by what they covered."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecaster.domain.policy import PRICES, HorizontalPolicy
from forecaster.horizontal.quantile import corrected, newsvendor, stated_quantile


@pytest.mark.parametrize(("name", "quantile"), [("economy", 0.8), ("standard", 0.9), ("critical", 0.95)])
def test_a_class_is_a_price_and_a_price_a_quantile(name: str, quantile: float) -> None:
    assert newsvendor(PRICES[name]) == pytest.approx(quantile)
    assert stated_quantile(HorizontalPolicy.model_validate({"availability": name})) == pytest.approx(quantile)


def test_a_price_comes_before_a_class_and_a_quantile_before_both() -> None:
    assert stated_quantile(HorizontalPolicy(price=1, availability="critical")) == 0.5
    assert stated_quantile(HorizontalPolicy(quantile=0.7, price=99)) == 0.7


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
