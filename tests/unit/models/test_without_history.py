"""A model that is kept without samples answers like one that kept them, once it has a window again."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pytest

from models import CATALOGUE, Forgets, StepWindow, create
from models.checks import ordinary

LEVELS = (0.5, 0.9)


@pytest.mark.parametrize("name", ["adaptive", "last-value", "prior", "ridge", "seasonal-naive-day"])
def test_a_window_brings_everything_back(name: str) -> None:
    assert name in CATALOGUE
    panel = ordinary()
    fitted = create(name).fit(panel.until(panel.end - timedelta(hours=1)))
    assert isinstance(fitted, Forgets)
    whole, forgot = fitted.update(panel), fitted.without_history().update(panel)
    np.testing.assert_array_equal(
        whole.forecast_peak(StepWindow(1, 2), LEVELS).values, forgot.forecast_peak(StepWindow(1, 2), LEVELS).values
    )


@pytest.mark.parametrize("name", ["adaptive", "last-value", "prior", "ridge", "seasonal-naive-day"])
def test_a_window_that_ends_before_what_was_forgotten_leaves_no_hole(name: str) -> None:
    """The clock was set back by an hour: what was learned stays."""
    panel = ordinary()
    earlier = panel.until(panel.end - timedelta(hours=1))
    back = create(name).fit(panel).without_history().update(earlier)  # type: ignore[attr-defined]
    assert np.isfinite(back.forecast_peak(StepWindow(1, 2), LEVELS).values).all()
    assert back.history.end == earlier.end
