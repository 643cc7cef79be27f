"""Analogs: load that switches between two levels goes on at one of them, never in between."""

import numpy as np
import pytest

from models import Adaptive, Analog, create
from models.analog import pooled
from tests.support.panels import FIVE_MINUTES, panel

ON, LEVELS, STEPS = 100.0, (0.1, 0.5, 0.9), 36


def switching(bins: int, seed: int = 3) -> np.ndarray:
    """Runs of one to six hours on and off, in turn."""
    rng, parts = np.random.default_rng(seed), []
    while sum(map(len, parts)) < bins:
        parts += [np.full(rng.integers(12, 72), level) for level in (0.0, ON)]
    return np.concatenate(parts)[:bins]


def test_forecasts_of_load_that_switches_lie_on_its_levels() -> None:
    values = Analog().fit(panel(switching(14 * 288), step=FIVE_MINUTES)).forecast(STEPS, LEVELS).values[0]
    between = (values > 0.2 * ON) & (values < 0.8 * ON)
    assert between.mean() < 0.1


@pytest.mark.parametrize("seed", range(2))
def test_it_loses_less_there_than_the_default(seed: int) -> None:
    whole, lost = switching(16 * 288, seed), {}
    for model in (Analog(), Adaptive()):
        for end in range(14 * 288, 16 * 288 - STEPS, 2 * STEPS):
            said = model.fit(panel(whole[:end], step=FIVE_MINUTES)).forecast(STEPS, LEVELS).values[0]
            off = whole[end : end + STEPS] - said
            ranks = np.array(LEVELS)[:, None]
            lost[model.name] = lost.get(model.name, 0.0) + np.maximum(ranks * off, (ranks - 1) * off).sum()
    assert lost["analog"] < 0.95 * lost["adaptive"]


def test_a_young_series_has_the_default_alone() -> None:
    young = panel(switching(2 * 288), step=FIVE_MINUTES)
    ours, default = (model.fit(young).forecast(STEPS, LEVELS).values for model in (Analog(), Adaptive()))
    np.testing.assert_array_equal(ours, default)


def test_what_lies_before_a_gap_and_in_it_is_no_moment() -> None:
    values = switching(8 * 288)
    values[200:1200] = np.nan
    assert np.isfinite(Analog().fit(panel(values, step=FIVE_MINUTES)).forecast(STEPS, LEVELS).values).all()


def test_a_share_that_is_stated_holds_for_all() -> None:
    fitted = create("analog(share=0.7)").fit(panel(switching(4 * 288), step=FIVE_MINUTES))
    assert set(fitted.learned.share.flat) == {0.7}


def test_load_that_grows_has_been_nowhere_before_and_keeps_the_default() -> None:
    bins = np.arange(14 * 288)
    growing = panel(10 + bins / 288 + np.sin(bins * 2 * np.pi / 288), step=FIVE_MINUTES)
    assert Analog().fit(growing).learned.share.max() <= 0.15


def test_a_pool_of_two_samples_weighs_each_by_its_share() -> None:
    said, after = np.zeros((1, 40, 1)), np.ones((1, 80, 1))
    share = np.array([[[0.25]]])
    assert pooled(said, after, share, (0.7, 0.8)).ravel().tolist() == [0.0, 1.0]
