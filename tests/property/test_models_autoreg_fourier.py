"""AutoReg with Fourier terms against statsmodels: the same path ahead, from the end and from any past origin."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from models import AutoregFourier, Panel
from models.autoreg_fourier import continued, library_model, wave_frequencies, waves
from tests.support.panels import HOUR, panel

STEPS = 30


@given(seed=st.integers(0, 2**16), days=st.integers(4, 8), size=st.sampled_from([1e-3, 1.0, 1e6]))
def test_the_expected_path_is_the_forecast_of_statsmodels(seed: int, days: int, size: float) -> None:
    history = _noisy(seed, days, size)
    values = history.values[0]

    ours = AutoregFourier().fit(history).learned.expects.expected(history, STEPS)[0]

    columns = waves(np.arange(len(values) + STEPS), wave_frequencies(24, AutoregFourier.daily))[:, 1:]
    model = library_model(values / size, (1, 2, 3, 24), columns[: len(values)])
    theirs = model.fit().forecast(STEPS, exog=columns[len(values) :]) * size
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)


@given(seed=st.integers(0, 2**16), origin=st.integers(30, 90))
def test_a_past_origin_expects_what_it_would_have_expected_then(seed: int, origin: int) -> None:
    history = _noisy(seed, 5, 1.0)
    equation = AutoregFourier().fit(history).learned.expects
    drive = equation.drive(origin + 1, STEPS)[:, None]

    from_within = continued(history.values, np.array([origin]), equation, drive)
    from_the_end = continued(history.values[:, : origin + 1], np.array([origin]), equation, drive)

    np.testing.assert_allclose(from_within, from_the_end, rtol=1e-12)


def _noisy(seed: int, days: int, size: float) -> Panel:
    rng = np.random.default_rng(seed)
    bins = np.arange(24 * days)
    return panel(size * (10 + 3 * np.sin(bins / 24 * 2 * np.pi) + rng.normal(0, 0.5, len(bins))), step=HOUR)
