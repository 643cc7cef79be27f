"""A forecast answers questions about time and level, and says for whom it has no answer."""

from typing import Any

import numpy as np
import pytest

from models import (
    CATALOGUE,
    DAY,
    Forecast,
    LastValue,
    Panel,
    Provenance,
    QuestionError,
    SeasonalNaive,
    StepWindow,
    create,
)
from models.forecast import checked_levels
from tests.support.panels import FIVE_MINUTES, HOUR, MONDAY, daily_waves, panel


def forecast() -> Forecast:
    values = np.array([[[1.0, 5.0, 2.0], [2.0, 6.0, 4.0]]])
    return Forecast(
        values, MONDAY, HOUR, (0.5, 0.9), Provenance(("web",), ("ridge",), ("",), {"db": "there is no sample"})
    )


def test_a_level_that_was_not_asked_for_is_refused() -> None:
    with pytest.raises(QuestionError, match=r"0\.95"):
        forecast().quantile(0.95)


def test_rows_lead_back_to_workloads() -> None:
    assert forecast().provenance.rows(["db", "web", "other"]).tolist() == [-1, 0, -1]


def test_the_row_of_an_unknown_series_gives_the_reason() -> None:
    with pytest.raises(QuestionError, match="there is no sample"):
        forecast().provenance.row("db")


@pytest.mark.parametrize("levels", [(), (0.9, 0.5), (0.5, 0.5), (0.0, 0.5), (0.5, 1.0)])
def test_levels_ascend_within_0_and_1(levels: tuple[float, ...]) -> None:
    with pytest.raises(QuestionError):
        checked_levels(levels)


@pytest.mark.parametrize(("first", "last"), [(0, 1), (3, 2)])
def test_a_window_holds_a_step(first: int, last: int) -> None:
    with pytest.raises(QuestionError):
        StepWindow(first, last)


def test_a_series_without_samples_is_unknown_and_the_others_are_not() -> None:
    answer = LastValue().fit(panel([np.nan] * 5, [1, 1, 1, 1, 1])).forecast(2, (0.5,))
    assert answer.keys == ("s1",)
    assert answer.unknown == {"s0": "there is no sample"}


def test_a_series_that_stopped_two_days_ago_is_unknown() -> None:
    answer = LastValue().fit(panel([1.0] * 24 + [np.nan] * 48)).forecast(2, (0.5,))
    assert answer.unknown == {"s0": "the latest sample is 2 d old"}


@pytest.mark.parametrize("step", [FIVE_MINUTES / 20, FIVE_MINUTES / 5, FIVE_MINUTES])
@pytest.mark.parametrize("hours", [3, 12, 24])
@pytest.mark.parametrize("name", [name for name in CATALOGUE if name != "boosting"])
def test_demand_that_is_silent_for_hours_is_carried_forward_and_not_called_0(name: str, hours: int, step: Any) -> None:
    """The newest sample lay further back than the bins that were looked at: the answer was 0."""
    values = np.full((1, 2 * DAY // step), 100.0)
    values[:, -(hours * HOUR // step) :] = np.nan
    fitted = create(name).fit(Panel(values, MONDAY, step, ("web",)))
    path, peak = fitted.forecast(2, (0.5,)).values, fitted.forecast_peak(StepWindow(2, 4), (0.5,)).values
    np.testing.assert_allclose([*path.ravel(), *peak.ravel()], 100.0, rtol=0.1)


def test_a_series_without_a_forecast_is_held_and_says_so() -> None:
    """A model that answers NaN has a reason that is true, too: its history need not be short."""
    answer = SeasonalNaive().fit(daily_waves(1).last(3 * HOUR)).forecast(2, (0.5,))
    assert answer.provenance.models == ("last-value",)
    assert answer.provenance.reasons == ("3 h of history gives seasonal-naive-day no forecast; the last value is held",)


def test_no_forecast_rises_above_three_times_everything_seen() -> None:
    steep = panel(np.concatenate([np.ones(200), 2.0 ** np.arange(10)]).tolist())
    assert create("ridge").fit(steep).forecast(12, (0.99,)).values.max() <= 3 * 512


def test_zero_steps_are_refused() -> None:
    with pytest.raises(QuestionError, match="0 steps"):
        LastValue().fit(panel([1, 2])).forecast(0, (0.5,))


def test_an_unknown_model_names_those_there_are() -> None:
    with pytest.raises(QuestionError, match="ridge"):
        create("arima")


def test_history_grows_with_every_update_until_the_next_model_can_speak() -> None:
    whole = daily_waves(1, days=3)
    fitted = SeasonalNaive().fit(whole.until(MONDAY + 3 * HOUR))
    for hour in range(4, 40):
        fitted = fitted.update(whole.until(MONDAY + hour * HOUR).last(HOUR))
    assert fitted.forecast(1, (0.5,)).provenance.models == ("seasonal-naive-day",)
