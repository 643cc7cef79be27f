"""Between two fits the experts are weighed by what comes true."""

from dataclasses import replace

import numpy as np

from models import Adaptive, Panel
from models.adaptive import NEW, TURN, turns_of
from models.evaluate import coverage, pinball
from tests.support.panels import FIVE_MINUTES, MONDAY, daily_waves

DAY = 288
LEVELS = (0.5, 0.9, 0.95)
FIT_AT = 9 * DAY
CALM = daily_waves(16, days=10, step=FIVE_MINUTES)
FITTED = Adaptive(replays=32).fit(CALM.until(MONDAY + FIT_AT * FIVE_MINUTES))


def known(panel: Panel, bins: int) -> Panel:
    """Panel that is known so many bins after the fit."""
    return panel.until(MONDAY + (FIT_AT + bins) * FIVE_MINUTES)


def after(hours: float, values: np.ndarray) -> Panel:
    """Day waves that are calm up to so many hours after the fit, and go on with these values."""
    at = FIT_AT + int(12 * hours)
    return replace(CALM, values=np.concatenate([CALM.values[:, :at], values[:, at:]], axis=1))


def scored(panel: Panel, *, follows: bool) -> tuple[np.ndarray, float]:
    """Coverage [level] and loss of the forecasts at the hours 2 to 11 after the fit, with updates every hour."""
    fitted, hits, losses = FITTED, [], []
    for bins in range(12, 12 * 12, 12):
        updated = fitted.update(known(panel, bins))
        fitted = updated if follows else replace(updated, learned=FITTED.learned)
        forecast, actual = fitted.forecast(12, LEVELS).values, panel.values[:, FIT_AT + bins : FIT_AT + bins + 12]
        hits.append(coverage(actual, forecast).mean(axis=0))
        losses.append(pinball(actual, forecast, LEVELS).mean())
    return np.mean(hits[1:], axis=0), float(np.mean(losses[1:]))


def test_after_a_shift_between_two_fits_coverage_recovers_quicker() -> None:
    shifted = after(1, 1.8 * CALM.values)
    (following, following_loss), (fixed, fixed_loss) = (scored(shifted, follows=follows) for follows in (True, False))
    assert (following >= fixed).all()
    assert following_loss < 0.97 * fixed_loss


def test_after_a_fall_between_two_fits_less_is_reserved() -> None:
    fallen = after(1, 0.5 * CALM.values)
    (following, following_loss), (fixed, fixed_loss) = (scored(fallen, follows=follows) for follows in (True, False))
    assert abs(following[0] - 0.5) < abs(fixed[0] - 0.5)
    assert following_loss < 0.97 * fixed_loss


def test_a_series_that_stays_as_it_was_loses_nothing() -> None:
    (_, following), (_, fixed) = (scored(CALM, follows=follows) for follows in (True, False))
    assert following < 1.01 * fixed


def test_bins_one_by_one_and_all_at_once_teach_the_same() -> None:
    shifted = after(0, 1.8 * CALM.values)
    one_by_one = FITTED
    for bins in range(1, NEW + TURN + 1):
        one_by_one = one_by_one.update(known(shifted, bins).last(FIVE_MINUTES))
    at_once = FITTED.update(known(shifted, NEW + TURN))
    np.testing.assert_allclose(one_by_one.learned.losses.regret, at_once.learned.losses.regret, atol=1e-4)
    assert (at_once.learned.losses.regret != FITTED.learned.losses.regret).any(axis=(1, 2, 3)).all()


def test_a_model_without_samples_learns_the_same_from_windows() -> None:
    whole, forgot = FITTED, FITTED.without_history()
    for bins in (5, 12, 19):
        whole, forgot = whole.update(known(CALM, bins)), forgot.update(known(CALM, bins)).without_history()
    np.testing.assert_array_equal(whole.learned.losses.regret, forgot.learned.losses.regret)


def test_a_series_has_the_same_turn_alone_as_among_others() -> None:
    assert turns_of(("shop/web", "shop/cart"))[1:].tolist() == turns_of(("shop/cart",)).tolist()


def test_what_was_known_at_the_fit_teaches_nothing_new() -> None:
    updated = FITTED.update(known(after(0, 1.8 * CALM.values), NEW))
    assert updated.learned is FITTED.learned


def test_an_hour_with_a_gap_teaches_nothing() -> None:
    gappy = CALM.values.copy()
    gappy[:, FIT_AT + TURN - 1] = np.nan
    updated = FITTED.update(known(after(0, gappy), 2 * TURN - 1))
    np.testing.assert_array_equal(updated.learned.losses.regret, FITTED.learned.losses.regret)
