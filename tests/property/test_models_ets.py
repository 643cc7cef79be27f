"""ETS against statsmodels: the same states and the same forecasts, to the last digits."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from models.ets import Parameters, States, ahead, library_model, track

SHARE = st.floats(0.01, 0.98)


@given(
    seed=st.integers(0, 2**16),
    day=st.integers(2, 24),
    bins=st.integers(2, 120),
    level=SHARE,
    trend=SHARE,
    season=SHARE,
    damping=st.floats(0.8, 0.98),
)
def test_states_and_forecasts_are_those_of_statsmodels(
    seed: int, day: int, bins: int, level: float, trend: float, season: float, damping: float
) -> None:
    rng = np.random.default_rng(seed)
    values, first = rng.uniform(0, 10, bins + day), States(np.array([5.0]), np.zeros(1), rng.normal(size=(day, 1)))
    numbers = (level, trend * level, season * (1 - level), damping)
    parameters = Parameters(*(np.array([number]) for number in numbers))

    theirs = library_model(values, first).smooth(np.array([*numbers, *_first(first)]))
    ours = track(values[:, None], parameters, first)

    np.testing.assert_allclose(ours.level[:, 0], theirs.level, atol=1e-9)
    np.testing.assert_allclose(ours.trend[:, 0], theirs.slope, atol=1e-9)
    np.testing.assert_allclose(ours.season[day:, 0], theirs.season, atol=1e-9)
    forecast = ahead(parameters, ours.after(len(values)), 2 * day)[:, 0]
    np.testing.assert_allclose(forecast, theirs.forecast(2 * day), atol=1e-9)


@given(seed=st.integers(0, 2**16), cut=st.integers(1, 59))
def test_states_carried_in_two_parts_are_those_of_one(seed: int, cut: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.uniform(0, 10, (60, 3))
    values[rng.random((60, 3)) < 0.1] = np.nan
    parameters = Parameters(*(rng.uniform(0, 0.9, 3) for _ in range(4)))
    first = States(np.full(3, 5.0), np.zeros(3), rng.normal(size=(8, 3)))

    whole = track(values, parameters, first).after(60)
    parts = track(values[cut:], parameters, track(values[:cut], parameters, first).after(cut)).after(60 - cut)

    for one, other in zip(whole, parts, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def _first(states: States) -> list[float]:
    """As statsmodels orders its first states: level, trend, then the season from the newest back."""
    return [states.level[0], states.trend[0], *states.season[::-1, 0]]
