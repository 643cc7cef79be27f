"""The mixture of experts is never much worse than the best of them, whatever they say and whatever comes."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from models.evaluate import pinball
from models.experts import ExpertLosses, mixed

FIRST = np.array([0.75, 0.2, 0.05])
LEVELS = (0.5, 0.95)
numbers = st.floats(-100, 100, width=32)


def played(actual: np.ndarray, forecasts: np.ndarray) -> tuple[ExpertLosses, np.ndarray, np.ndarray]:
    """Play [origin] actual values and [origin, level, expert] forecasts; return losses [level] and [level, expert]."""
    losses = ExpertLosses.none(len(LEVELS), len(FIRST))
    lost, each = np.zeros(len(LEVELS)), np.zeros((len(LEVELS), len(FIRST)))
    for came, quantiles in zip(actual, forecasts, strict=True):
        mixture = mixed(quantiles, losses.weights(FIRST))
        lost += pinball(np.array([came]), mixture[:, None], LEVELS)[:, 0]
        each += np.stack(
            [pinball(np.array([came]), forecast[:, None], LEVELS)[:, 0] for forecast in quantiles.T], axis=1
        )
        losses = losses.after(np.array([[came]]), quantiles[None, None], FIRST, LEVELS)
    return losses, lost, each


@st.composite
def games(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """Outcomes and the experts' forecasts, some of them often right."""
    origins = draw(st.integers(1, 40))
    actual = draw(arrays(np.float64, origins, elements=numbers))
    forecasts = draw(arrays(np.float64, (origins, len(LEVELS), len(FIRST)), elements=numbers))
    right = draw(arrays(np.bool_, forecasts.shape))
    return actual, np.where(right, actual[:, None, None], forecasts)


@given(games())
def test_regret_against_each_expert_is_within_the_bound(game: tuple[np.ndarray, np.ndarray]) -> None:
    """The bound is three times the root of energy times log of the first weight, and one largest difference."""
    actual, forecasts = game
    losses, lost, each = played(actual, forecasts)
    largest = np.abs(forecasts - actual[:, None, None]).max()
    bound = 3 * np.sqrt(losses.energy * -np.log(FIRST)) + 2 * largest
    assert (lost[:, None] - each <= bound + 1e-6).all()


@given(games())
def test_weights_are_shares_and_the_mixture_lies_among_the_experts(game: tuple[np.ndarray, np.ndarray]) -> None:
    losses, _, _ = played(*game)
    weights = losses.weights(FIRST)
    assert np.isfinite(weights).all()
    assert (weights >= 0).all()
    np.testing.assert_allclose(weights.sum(axis=-1), 1)
    mixture, quantiles = mixed(game[1][-1], weights), game[1][-1]
    assert (mixture <= quantiles.max(axis=-1) + 1e-9).all()
    assert (mixture >= quantiles.min(axis=-1) - 1e-9).all()


@given(games(), st.integers(0, 2))
def test_an_expert_that_sleeps_changes_nothing(game: tuple[np.ndarray, np.ndarray], sleeper: int) -> None:
    actual, forecasts = game
    asleep = forecasts.copy()
    asleep[:, :, sleeper] = np.nan
    losses, _, _ = played(actual, asleep)
    assert (losses.regret[:, sleeper] == 0).all()
    assert np.isfinite(losses.regret).all()


def test_the_share_of_an_expert_that_is_always_right_goes_to_one() -> None:
    rng = np.random.default_rng(0)
    actual = rng.normal(size=64)
    forecasts = actual[:, None, None] + rng.normal(size=(64, len(LEVELS), len(FIRST)))
    forecasts[:, :, 2] = actual[:, None]
    losses, lost, _ = played(actual, forecasts)
    assert (losses.weights(FIRST)[:, 2] > 0.95).all()
    assert (lost < 0.2 * np.abs(actual).sum()).all()
