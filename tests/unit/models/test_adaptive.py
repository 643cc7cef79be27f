"""The adaptive model starts from the prior and learns which expert is right about a series."""

import numpy as np

from models import DAY, Adaptive, Panel, Prior, StepWindow
from models.evaluate import coverage, pinball
from models.experts import FIRST, ONE, within_reach
from models.fitted import FittedRule
from tests.support.panels import FIVE_MINUTES, HOUR, MONDAY, daily_waves, panel

LEVELS = (0.5, 0.9, 0.95)


def test_ten_minutes_of_history_are_enough_to_speak() -> None:
    young = panel([1.0, 2.0, 1.5], step=FIVE_MINUTES)
    answer = Adaptive().fit(young).forecast(12, LEVELS)
    assert answer.provenance.models == ("adaptive",)


def test_two_samples_are_carried_forward_however_long_ago_they_were() -> None:
    """Ages are rounded down; what was rounded off once held the only samples, and the forecast was 0."""
    values = np.full((90, 3 * 288), np.nan)
    for silent, row in enumerate(values):
        row[len(row) - silent - 2 : len(row) - silent] = 5.0
    quiet = Panel(values, MONDAY, FIVE_MINUTES, tuple(map(str, range(len(values)))))
    forecast = Adaptive().fit(quiet).forecast(1, (0.5,))
    np.testing.assert_allclose(forecast.values, 5.0, rtol=0.01)


def test_without_history_to_replay_it_is_the_prior() -> None:
    young = daily_waves(1, days=1)
    adaptive, prior = (model.fit(young).forecast(6, LEVELS).values for model in (Adaptive(), Prior()))
    np.testing.assert_allclose(adaptive, prior, rtol=1e-6)


def test_series_of_all_ages_get_what_they_get_alone() -> None:
    whole = daily_waves(1, days=12, step=FIVE_MINUTES).values[0]
    ages = [5, 40, 300, 2000, len(whole)]
    values = np.stack([np.where(np.arange(len(whole)) < len(whole) - age, np.nan, whole) for age in ages])
    together = Prior().fit(Panel(values, MONDAY, FIVE_MINUTES, tuple(map(str, ages)))).forecast(3, LEVELS).values
    for row, age in zip(together, ages, strict=True):
        rounded = Panel(whole[None, -age:], MONDAY, FIVE_MINUTES, ("one",))
        alone = Prior().fit(rounded).forecast(3, LEVELS).values[0]
        np.testing.assert_allclose(row, alone, rtol=1e-3)


def test_a_day_wave_is_followed_with_true_quantiles() -> None:
    whole = daily_waves(8, days=21)
    hits = []
    for hour in range(14 * 24, 21 * 24 - 6, 5):
        past = whole.until(MONDAY + hour * HOUR)
        forecast = Adaptive(replays=24).fit(past).forecast(6, LEVELS)
        hits.append(coverage(whole.values[:, hour : hour + 6], forecast.values))
    np.testing.assert_allclose(np.mean(hits, axis=(0, 1)), LEVELS, atol=0.12)


def test_the_peak_of_a_window_lies_above_each_of_its_steps() -> None:
    fitted = Adaptive().fit(daily_waves(2, days=10, step=FIVE_MINUTES, noise=0.3))
    path, peak = fitted.forecast(8, (0.5,)).values, fitted.forecast_peak(StepWindow(1, 8), (0.5,)).values
    assert (peak[:, 0] >= path[:, 0].max(axis=1)).all()


def test_more_than_a_day_ahead_is_left_to_the_last_value() -> None:
    answer = Adaptive().fit(daily_waves(1)).forecast(30, (0.5,))
    assert answer.provenance.models == ("last-value",)
    assert answer.provenance.reasons == ("adaptive looks 24 h ahead, not 30 h; the last value is held",)


def weights(values: np.ndarray) -> np.ndarray:
    """[series, expert] in the median of a near step, for series [series, time] of five minutes."""
    keys = tuple(map(str, range(len(values))))
    learned = Adaptive().fit(Panel(values, MONDAY, FIVE_MINUTES, keys)).learned
    return np.asarray(learned.losses.weights(FIRST[:, None])[:, ONE, 2])


def test_a_rhythm_that_only_the_ridge_can_follow_gives_it_the_larger_share() -> None:
    every_55_minutes = 1.0 + 9.0 * (np.arange(10 * 288) % 11 == 0)
    noise = np.random.default_rng(1).random((1, 10 * 288))
    assert weights(every_55_minutes[None] + 0.1 * noise)[0, 1] > 0.5


def test_an_exact_wave_of_an_hour_is_followed() -> None:
    """Most who try a forecaster begin with a sine; it once was missed by a tenth of its height, now by a fortieth."""
    angle = 2 * np.pi * np.arange(14 * 288 + 12) / 12
    whole = Panel((60.0 + 40.0 * np.sin(angle))[None], MONDAY, FIVE_MINUTES, ("web",))
    forecast = Adaptive().fit(whole.until(MONDAY + 14 * DAY)).forecast(12, LEVELS).values
    np.testing.assert_allclose(forecast[0], whole.values[0, -12:, None].repeat(3, 1).T, atol=2.0)


def test_load_that_repeats_its_week_is_forecast_as_exactly_as_it_repeats_itself() -> None:
    week = np.random.default_rng(2).gamma(2.0, size=7 * 288)
    whole = Panel(np.tile(week, 3)[None], MONDAY, FIVE_MINUTES, ("web",))
    past, coming = whole.until(MONDAY + 15 * DAY), whole.values[:, 15 * 288 : 15 * 288 + 12]
    adaptive, prior = (
        pinball(coming, model.fit(past).forecast(12, LEVELS).values, LEVELS).mean() for model in (Adaptive(), Prior())
    )
    assert adaptive < 0.1 * prior


def test_a_series_too_short_to_judge_by_keeps_the_first_weights() -> None:
    np.testing.assert_allclose(weights(daily_waves(1, days=1, step=FIVE_MINUTES).values)[0], FIRST[ONE])


def test_several_windows_at_once_are_what_each_is_alone() -> None:
    """Near and far ones, one beyond what the ridge has learned, two beyond what anybody knows."""
    fitted = Adaptive(replays=8).fit(daily_waves(3, days=10, step=FIVE_MINUTES, noise=0.3))
    windows = (
        StepWindow(1, 1),
        StepWindow(2, 3),
        StepWindow(14, 20),
        StepWindow(7, 8),
        StepWindow(280, 300),
        StepWindow(290, 300),
    )
    together = fitted.forecast_peaks(windows, LEVELS)
    for window in windows:
        alone = fitted.forecast_peak(window, LEVELS)
        np.testing.assert_allclose(together[window].values, alone.values, rtol=1e-5)
        assert together[window].provenance == alone.provenance


FEW = daily_waves(5, days=10, step=FIVE_MINUTES, noise=0.3)


def fitted_apart(bins: int) -> tuple[FittedRule, FittedRule]:
    """Two models of two and three series; the second was fitted so many bins after the first."""
    early, model = FEW.end - 60 * FIVE_MINUTES, Adaptive(replays=8)
    first = model.fit(FEW.take(slice(0, 2)).until(early).last(8 * DAY))
    second = model.fit(FEW.take(slice(2, 5)).until(early + bins * FIVE_MINUTES).last(8 * DAY))
    return first, second


def test_several_fitted_models_are_asked_as_one() -> None:
    first, second = fitted_apart(7)
    together = first.stacked([second])
    windows = (StepWindow(1, 2), StepWindow(20, 30))
    forecasts = together.update(FEW).forecast_peaks(windows, LEVELS)
    alone = [model.update(FEW.select(model.history.keys)).forecast_peaks(windows, LEVELS) for model in (first, second)]
    for window in windows:
        values = np.concatenate([part[window].values for part in alone])
        np.testing.assert_allclose(forecasts[window].values, values, rtol=1e-5)
        assert forecasts[window].keys == FEW.keys


def test_what_several_learn_together_is_what_each_learns_alone() -> None:
    """Bin by bin as the service does it, and cut apart again."""
    apart = fitted_apart(7)
    begin = max(model.history.end for model in apart)
    apart = tuple(model.update(FEW.select(model.history.keys).until(begin)) for model in apart)
    together = apart[0].stacked(apart[1:])
    for bins in range(1, 20):
        now = FEW.until(begin + bins * FIVE_MINUTES).last(8 * DAY)
        together = together.update(now).without_history()
        apart = tuple(model.update(now.select(model.history.keys)).without_history() for model in apart)
    for rows, model in zip((slice(0, 2), slice(2, 5)), apart, strict=True):
        part = together.part(rows)
        assert part.history.keys == model.history.keys
        np.testing.assert_allclose(part.learned.losses.regret, model.learned.losses.regret, atol=1e-4)
    assert (together.learned.losses.regret[:2] != fitted_apart(7)[0].learned.losses.regret).any()


def test_models_that_reached_back_differently_far_are_not_asked_as_one() -> None:
    first, second = (Adaptive(replays=8).fit(FEW.last(days * DAY)) for days in (3, 8))
    assert first.stacked([second]) is None
    assert first.stacked([Prior().fit(FEW)]) is None
    assert Prior().fit(FEW).stacked([first]) is None


def test_however_far_equations_go_they_stay_within_the_range_of_the_prior_around_it() -> None:
    prior = np.array([1.0, 2.0, 5.0])
    assert within_reach(np.array([-99.0, 3.0, 99.0]), prior).tolist() == [-3.0, 3.0, 9.0]
