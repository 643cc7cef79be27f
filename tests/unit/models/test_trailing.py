"""One origin is answered directly, many from sums; both say the same."""

import numpy as np
import pytest

from models.trailing import SERIES_AT_ONCE, AtLatest, AtOrigins, change, running_maximum, trailing

DAY = 48
VALUES = np.random.default_rng(3).gamma(2.0, size=(3, 10 * DAY)).round(1)
ORIGINS = np.array([0, 5, 3 * DAY, 10 * DAY - 1])
WIDTHS = (3, 6, 13, DAY, 7 * DAY)


def alone(origin: int) -> AtLatest:
    latest = trailing(VALUES, np.array([origin]))
    assert isinstance(latest, AtLatest)
    return latest


@pytest.mark.parametrize("width", [1, 3, 6, 13, DAY, 7 * DAY, 20 * DAY])
@pytest.mark.parametrize("back", [0, DAY])
def test_means_of_one_origin_and_of_many_agree_with_the_definition(width: int, back: int) -> None:
    many = AtOrigins(VALUES, ORIGINS).mean(width, back=back)
    single = np.hstack([alone(origin).mean(width, back=back) for origin in ORIGINS])
    last = np.maximum(ORIGINS - back, 0) + 1
    expected = np.stack([VALUES[:, max(0, end - width) : end].mean(axis=1) for end in last], axis=1)
    np.testing.assert_allclose(many, expected)
    np.testing.assert_allclose(single, expected)


@pytest.mark.parametrize("width", [1, 2, 5, 12, DAY, 7 * DAY])
def test_extremes_of_one_origin_and_of_many_agree_with_the_definition(width: int) -> None:
    high, low = AtOrigins(VALUES, ORIGINS).extremes(width)
    for i, origin in enumerate(ORIGINS.tolist()):
        window = VALUES[:, max(0, origin + 1 - width) : origin + 1]
        np.testing.assert_array_equal(high[:, i], window.max(axis=1))
        np.testing.assert_array_equal(low[:, i], window.min(axis=1))
        pair = np.hstack(alone(origin).extremes(width))
        np.testing.assert_array_equal(pair, np.stack([high[:, i], low[:, i]], axis=1))


@pytest.mark.parametrize("lag", [1, 12, DAY])
def test_changes_of_one_origin_and_of_many_are_the_same_and_nothing_before_there_is_one(lag: int) -> None:
    many = AtOrigins(VALUES, ORIGINS).changes(lag, WIDTHS)
    moved = change(VALUES, lag)
    for i, origin in enumerate(ORIGINS.tolist()):
        single = alone(origin).changes(lag, WIDTHS)
        for width in WIDTHS:
            expected = moved[:, max(0, origin + 1 - width) : origin + 1].mean(axis=1)
            np.testing.assert_allclose(many[width][:, i], expected, atol=1e-12)
            np.testing.assert_allclose(single[width][:, 0], expected, atol=1e-12)


def test_changes_of_many_series_are_those_of_each() -> None:
    many = np.random.default_rng(4).gamma(2.0, size=(2 * SERIES_AT_ONCE + 3, 100))
    np.testing.assert_allclose(AtLatest(many).changes(7, (50,))[50][:, 0], change(many, 7)[:, -50:].mean(axis=1))


def test_variances_of_one_origin_and_of_many_agree_with_the_definition() -> None:
    many = AtOrigins(VALUES, ORIGINS).variances(WIDTHS)
    for i, origin in enumerate(ORIGINS.tolist()):
        expected = np.stack([VALUES[:, max(0, origin + 1 - width) : origin + 1].var(axis=1) for width in WIDTHS])
        np.testing.assert_allclose(many[:, :, i], expected, atol=1e-9)
        np.testing.assert_allclose(alone(origin).variances(WIDTHS)[:, :, 0], expected, atol=1e-9)


def test_shares_of_one_origin_and_of_many_agree_with_the_definition() -> None:
    flat = np.where(VALUES < 1, 0.0, VALUES)
    many = AtOrigins(flat, ORIGINS)
    for i, origin in enumerate(ORIGINS.tolist()):
        part = flat[:, : origin + 1]
        still = np.diff(part, axis=1, prepend=part[:, :1]) == 0
        single = AtLatest(part)
        for name, true in (("idle", part == 0), ("still", still)):
            expected = true[:, -DAY:].mean(axis=1)
            np.testing.assert_allclose(getattr(many, name)(DAY)[:, i], expected)
            np.testing.assert_allclose(getattr(single, name)(DAY)[:, 0], expected)


@pytest.mark.parametrize("width", [1, 2, 3, 7, 8])
def test_a_running_maximum_never_looks_ahead(width: int) -> None:
    maxima = running_maximum(VALUES[:1, :20], width)
    assert maxima[0].tolist() == [VALUES[0, max(0, t + 1 - width) : t + 1].max() for t in range(20)]


def test_a_change_needs_an_earlier_value() -> None:
    assert change(np.array([[1.0, 4.0, 2.0]]), 1).tolist() == [[0, 3, 2]]
    assert change(np.array([[1.0, 4.0]]), 5).tolist() == [[0, 0]]
