"""Similar moments: what followed on them is told where there was enough to choose from, and only what was known."""

from datetime import timedelta

import numpy as np
import pytest

from benchmarks.switching import switching
from models import StepWindow, create
from models.prior import NEAR_BINS
from models.similar import NEAREST, followed, similar_moments
from models.situation import situation_at
from tests.support.panels import FIVE_MINUTES, panel

DAY, AHEAD = 288, 15
RANKS = np.array([0.1, 0.5, 0.9])[:, None]
WINDOWS = (StepWindow(1, 1), StepWindow(3, 9))
RESTLESS = np.abs(np.cumsum(np.random.default_rng(0).standard_normal((3, 10 * DAY)), axis=1) + 50).astype(np.float32)


def features_of(values: np.ndarray, origins: np.ndarray, ahead: int = AHEAD) -> tuple[np.ndarray, np.ndarray]:
    """Features of the origins, and of their windows."""
    situation = situation_at(values, origins, DAY)
    moments = similar_moments(situation, ahead)
    return moments.context, followed(situation, moments, WINDOWS)


def test_a_jagged_load_is_followed_by_what_followed_on_the_same_tooth() -> None:
    teeth = np.tile(np.arange(40, dtype=np.float32), 36)[None] + 1
    situation = situation_at(teeth, np.array([teeth.shape[1] - 11]), DAY)
    moments = similar_moments(situation, AHEAD)
    assert set((teeth[0, moments.bins.ravel()]).tolist()) == {30.0}
    np.testing.assert_allclose(
        followed(situation, moments, WINDOWS)[0, 0, 0], np.arcsinh(1 / situation.scale[0, 0]), rtol=1e-5
    )


@pytest.mark.parametrize("ahead", [AHEAD, DAY])
def test_many_origins_are_told_what_each_is_told_alone(ahead: int) -> None:
    origins = np.array([20, 60, 100, 400, 700, 2300, 2700])
    for each, together in zip(origins, np.moveaxis(features_of(RESTLESS, origins, ahead)[1], 1, 0), strict=True):
        alone = features_of(RESTLESS[:, : each + 1], np.array([each]), ahead)[1][:, 0]
        np.testing.assert_allclose(together, alone, atol=1e-5)


def test_nothing_is_told_where_there_is_little_to_choose_from() -> None:
    context, windows = features_of(RESTLESS, np.array([2 * NEAREST + AHEAD - 2, 2 * NEAREST + AHEAD - 1]))
    assert not context[:, 0].any()
    assert not windows[:, 0].any()
    assert (context[:, 1, 0] == 1).all()


def test_peaks_of_load_that_switches_are_forecast_better_than_by_the_default() -> None:
    whole, window, levels = np.stack(list(switching(10, DAY, seed=7)))[:, : 16 * DAY], StepWindow(1, 3), RANKS[:, 0]
    lost: dict[str, list[np.ndarray]] = {"analog": [], "adaptive": []}
    for name, of_origins in lost.items():
        for end in range(15 * DAY, 16 * DAY - window.last, DAY // 3):
            peaks = create(name).fit(panel(*whole[:, :end], step=FIVE_MINUTES)).forecast_peak(window, levels).values
            came = whole[:, end : end + window.last].max(axis=1, keepdims=True)
            of_origins.append(np.abs(came - peaks) * np.where(came > peaks, levels, 1 - levels))
    ratio = np.mean(lost["analog"], axis=(0, 2)) / np.mean(lost["adaptive"], axis=(0, 2))
    assert np.exp(np.log(ratio).mean()) < 0.97


@pytest.mark.parametrize(("minutes_of_step", "soon"), [(1, 15), (5, 3), (15, 1)])
def test_all_but_peaks_of_the_next_quarter_of_an_hour_know_similar_moments_in_every_model(
    minutes_of_step: int, soon: int
) -> None:
    history = panel(*RESTLESS, step=timedelta(minutes=minutes_of_step))
    plain, alike = (create(spec).fit(history) for spec in ("prior", "prior(similar=True)"))
    path, path_of_similar = (fitted.forecast(NEAR_BINS, (0.5, 0.9)).values for fitted in (plain, alike))
    np.testing.assert_array_equal(path, path_of_similar)
    for window in (StepWindow(1, soon), StepWindow(soon, soon + 1)):
        peaks = [fitted.forecast_peak(window, (0.9,)).values for fitted in (plain, alike)]
        assert (peaks[0] == peaks[1]).all() == (window.last > soon)
    np.testing.assert_allclose(plain.forecast(1, (0.5, 0.9)).values[..., 0], path[..., 0])
