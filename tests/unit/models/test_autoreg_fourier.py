"""AutoReg with Fourier terms."""

import numpy as np

from models import AutoregFourier, Panel
from tests.support.panels import HOUR, MONDAY, daily_waves, panel


def test_what_lingers_is_continued() -> None:
    rng, off = np.random.default_rng(3), np.zeros(14 * 24)
    for i in range(1, len(off)):
        off[i] = 0.9 * off[i - 1] + 0.1 * rng.standard_normal()
    history = panel(10 + off, step=HOUR)
    fitted = AutoregFourier().fit(history)
    high = Panel(np.full((1, 3), 12.0), history.end, HOUR, history.keys)
    path = fitted.update(high).forecast(12, (0.5,)).values[0, 0]
    assert path[0] > 11.3
    assert 10 < path[-1] < path[0]


def test_an_unstable_equation_does_not_run_away() -> None:
    grows = np.minimum(1.3 ** np.arange(96), 1e9)
    values = AutoregFourier().fit(Panel(grows[None], MONDAY, HOUR, ("a",))).forecast(48, (0.5, 0.99)).values
    assert np.isfinite(values).all()
    assert values.max() <= 3 * grows.max()


def test_a_still_series_stays() -> None:
    still = panel([7.0] * 120, step=HOUR)
    assert AutoregFourier().fit(still).forecast(5, (0.5, 0.99)).values.round(6).tolist() == [[[7.0] * 5] * 2]


def test_the_wave_is_continued() -> None:
    history = daily_waves(1, days=10, noise=0.02)
    ahead = np.arange(10 * 24, 10 * 24 + 24)
    path = AutoregFourier().fit(history).forecast(24, (0.5,)).values[0, 0]
    np.testing.assert_allclose(path, 2 + np.sin(2 * np.pi * ahead / 24), atol=0.1)
