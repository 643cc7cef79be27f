"""Theta against statsmodels: both forecast the same at the end of the history."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from models import Theta
from models.theta import library_model
from tests.support.panels import HOUR, panel


@settings(max_examples=40)  # a fit takes 50 ms
@given(
    seed=st.integers(0, 2**16),
    days=st.integers(3, 7),
    theta=st.floats(1.0, 4.0),
    size=st.sampled_from([1e-3, 1.0, 1e6]),
)
def test_the_expected_path_is_the_forecast_of_statsmodels(seed: int, days: int, theta: float, size: float) -> None:
    rng = np.random.default_rng(seed)
    values = size * (10 + np.sin(np.arange(24 * days) / 24 * 2 * np.pi) + rng.normal(0, 0.3, 24 * days))

    history = panel(values, step=HOUR)
    path = Theta(theta=theta).fit(history).learned.expects.expected(history, 30)[0]

    scale = np.std(values)
    reference = library_model(values / scale, 24).fit().forecast(30, theta) * scale
    np.testing.assert_allclose(path, reference, rtol=1e-6)
