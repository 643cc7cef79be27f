"""One origin is answered directly, many from sums; both say the same."""

import numpy as np
import pytest

from models.trailing import Extremes, Trailing, change, newest_of, running_maximum

DAY = 48
VALUES = np.random.default_rng(3).gamma(2.0, size=(3, 10 * DAY))
ORIGINS = np.array([0, 5, 3 * DAY, 10 * DAY - 1])


@pytest.mark.parametrize("width", [1, 3, 6, 13, DAY, 7 * DAY, 20 * DAY])
@pytest.mark.parametrize("back", [0, DAY])
def test_means_of_one_origin_and_of_many_agree_with_the_definition(width: int, back: int) -> None:
    many = Trailing(VALUES, ORIGINS).mean(width, back=back)
    one = np.hstack([Trailing(VALUES, ORIGINS[i : i + 1]).mean(width, back=back) for i in range(len(ORIGINS))])
    last = np.maximum(ORIGINS - back, 0) + 1
    expected = np.stack([VALUES[:, max(0, end - width) : end].mean(axis=1) for end in last], axis=1)
    np.testing.assert_allclose(many, expected)
    np.testing.assert_allclose(one, expected)


@pytest.mark.parametrize("width", [1, 2, 5, 12, DAY, 7 * DAY])
def test_extremes_of_one_origin_and_of_many_agree_with_the_definition(width: int) -> None:
    high, low = Extremes(VALUES, ORIGINS).of(width)
    for i, origin in enumerate(ORIGINS.tolist()):
        window = VALUES[:, max(0, origin + 1 - width) : origin + 1]
        alone = Extremes(VALUES, ORIGINS[i : i + 1]).of(width)
        np.testing.assert_array_equal(high[:, i], window.max(axis=1))
        np.testing.assert_array_equal(low[:, i], window.min(axis=1))
        np.testing.assert_array_equal(np.hstack(alone), np.stack([high[:, i], low[:, i]], axis=1))


@pytest.mark.parametrize("width", [1, 2, 3, 7, 8])
def test_a_running_maximum_never_looks_ahead(width: int) -> None:
    found = running_maximum(VALUES[:1, :20], width)
    assert found[0].tolist() == [VALUES[0, max(0, t + 1 - width) : t + 1].max() for t in range(20)]


def test_a_change_needs_an_earlier_value() -> None:
    assert change(np.array([[1.0, 4.0, 2.0]]), 1).tolist() == [[0, 3, 2]]
    assert change(np.array([[1.0, 4.0]]), 5).tolist() == [[0, 0]]


def test_the_newest_of_one_origin_say_the_same_about_it() -> None:
    origin = ORIGINS[2:3]
    part, place = newest_of(VALUES, origin, 13)
    assert part.shape == (3, 13)
    np.testing.assert_allclose(Trailing(part, place).mean(13), Trailing(VALUES, origin).mean(13))


@pytest.mark.parametrize("origins", [ORIGINS, ORIGINS[1:2]], ids=["many", "a short history"])
def test_the_newest_of_many_origins_or_of_a_short_history_are_all(origins: np.ndarray) -> None:
    part, places = newest_of(VALUES, origins, 13)
    assert part is VALUES
    assert places is origins
