"""A newcomer borrows the past of a relative only when it is shown that shapes are shared."""

import numpy as np

from models import Panel, lent
from models.donors import followed
from tests.support.panels import FIVE_MINUTES, MONDAY, daily_waves

DAY = 288


def family(*rows: np.ndarray) -> Panel:
    return Panel(np.stack(rows), MONDAY, FIVE_MINUTES, tuple(f"web-{i}" for i in range(len(rows))))


def young(values: np.ndarray, bins: int) -> np.ndarray:
    return np.where(np.arange(len(values)) < len(values) - bins, np.nan, values)


WAVE, OTHER, THIRD = daily_waves(3, days=8, step=FIVE_MINUTES).values


def test_two_relatives_that_move_together_lend_from_the_first_samples() -> None:
    loan = lent(family(WAVE, 3 * OTHER, young(10 * THIRD, 12)), ("web",) * 3)
    assert loan.lenders.keys() == {"web-2"}
    assert np.isfinite(loan.panel.values[2]).all()


def test_the_borrowed_past_has_the_level_of_the_newcomer() -> None:
    loan = lent(family(WAVE, 3 * OTHER, young(10 * THIRD, 12)), ("web",) * 3)
    np.testing.assert_allclose(loan.panel.values[2].mean(), 10 * THIRD.mean(), rtol=0.1)


def test_own_samples_are_left_as_they_are() -> None:
    newcomer = young(10 * THIRD, 12)
    loan = lent(family(WAVE, OTHER, newcomer), ("web",) * 3)
    np.testing.assert_array_equal(loan.panel.values[2, -12:], newcomer[-12:])


def test_a_single_relative_lends_after_half_a_day_of_samples_that_follow_it() -> None:
    assert not lent(family(WAVE, young(OTHER, 12)), ("web", "web")).lenders
    assert lent(family(WAVE, young(OTHER, 144)), ("web", "web")).lenders == {"web-1": "web-0"}


def test_relatives_that_do_not_move_together_lend_nothing() -> None:
    rng = np.random.default_rng(5)
    noise = rng.random((2, len(WAVE)))
    panel = family(noise[0], noise[1], young(THIRD, 12))
    assert lent(panel, ("web",) * 3).panel is not None
    assert not lent(panel, ("web",) * 3).lenders


def test_a_newcomer_that_goes_its_own_way_stops_borrowing() -> None:
    opposite = 4 - THIRD
    assert not lent(family(WAVE, OTHER, young(opposite, 200)), ("web",) * 3).lenders


def test_strangers_and_grown_series_borrow_nothing() -> None:
    assert not lent(family(WAVE, OTHER, young(THIRD, 12)), ("web", "web", "batch")).lenders
    assert not lent(family(WAVE, OTHER, young(THIRD, 12)), ("web", "web", None)).lenders
    assert not lent(family(WAVE, OTHER, young(THIRD, 3 * DAY)), ("web",) * 3).lenders


def test_an_idle_relative_has_no_level_to_scale() -> None:
    idle = np.zeros_like(WAVE)
    assert not lent(family(idle, idle, young(THIRD, 144)), ("web",) * 3).lenders


def test_the_same_shape_at_another_level_is_followed_wholly() -> None:
    skill, factor = followed(WAVE, np.stack([2 * WAVE, np.ones_like(WAVE)]))
    np.testing.assert_allclose(skill, [1, 0], atol=1e-9)
    np.testing.assert_allclose(factor, [0.5, WAVE.mean()])
