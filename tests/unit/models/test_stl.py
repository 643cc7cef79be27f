"""STL: the season of the newest day and what remains of being off it."""

import numpy as np

from models import Stl
from models.stl import Season, newest_day
from tests.support.panels import daily_waves


def test_the_season_is_continued() -> None:
    history = daily_waves(1, days=10, noise=0.05)
    ahead = np.arange(10 * 24, 10 * 24 + 12)
    expected = 2 + np.sin(2 * np.pi * ahead / 24)
    np.testing.assert_allclose(Stl().fit(history).forecast(12, (0.5,)).values[0, 0], expected, atol=0.15)


def test_the_newest_day_stands_around_the_newest_trend() -> None:
    values = daily_waves(1, days=10, noise=0.0).values[0] + np.repeat([0.0, 3.0], 120)
    assert newest_day(values, 24, 13).mean() > 4


def test_a_season_repeats_from_the_bin_where_its_day_began() -> None:
    season = Season(np.array([[10.0, 20.0, 30.0]]), first=2)
    assert season.at(np.array([2, 3, 4, 5])).tolist() == [[10.0, 20.0, 30.0, 10.0]]
