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
    kept, forgot = fitted.update(panel), fitted.without_history().update(panel)
    np.testing.assert_array_equal(
        kept.forecast_peak(StepWindow(1, 2), LEVELS).values, forgot.forecast_peak(StepWindow(1, 2), LEVELS).values
    )
