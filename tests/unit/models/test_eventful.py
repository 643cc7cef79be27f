"""Events that are known beforehand: what they did in the past is what they will do."""

from collections.abc import Callable
from datetime import timedelta
from unittest.mock import patch

import numpy as np
import pytest

from models import Model, Panel, Ridge, SeasonalNaive, StepWindow, eventful
from models.calendar import Event
from models.checks import CHECKS
from models.eventful import Eventful, lifts
from tests.support.panels import HOUR, MONDAY, daily_waves

DAY = timedelta(days=1)


def sale(day: int) -> Event:
    return Event("sale", MONDAY + day * DAY + 10 * HOUR, MONDAY + day * DAY + 14 * HOUR)


def history_with(event: Event, factor: float) -> Panel:
    waves = daily_waves(1, days=12, noise=0.02)
    values = waves.values.copy()
    first = (event.start - waves.start) // HOUR
    values[:, first : first + 4] *= factor
    return Panel(values, waves.start, HOUR, waves.keys)


def test_the_next_sale_has_the_effect_of_the_last_one() -> None:
    history, coming = history_with(sale(9), 3.0), sale(12)
    usual = SeasonalNaive().fit(history).forecast(24, (0.5,)).values[0, 0]
    with_event = Eventful(SeasonalNaive(), (sale(9), coming)).fit(history).forecast(24, (0.5,)).values[0, 0]
    np.testing.assert_allclose(with_event[10:14], 3 * usual[10:14], rtol=0.1)
    np.testing.assert_allclose(with_event[:10], usual[:10])


def test_the_day_after_a_sale_is_not_taken_for_a_sale() -> None:
    history = history_with(sale(11), 3.0)
    path = Eventful(SeasonalNaive(), (sale(11),)).fit(history).forecast(24, (0.5,)).values[0, 0]
    untold = SeasonalNaive().fit(history).forecast(24, (0.5,)).values[0, 0]
    assert path[12] < 0.5 * untold[12]


def test_the_peak_of_a_window_with_a_sale_is_that_of_the_sale() -> None:
    fitted = Eventful(SeasonalNaive(), (sale(9), sale(12))).fit(history_with(sale(9), 3.0))
    before, during = (
        fitted.forecast_peak(window, (0.5,)).values[0, 0] for window in (StepWindow(7, 10), StepWindow(11, 14))
    )
    assert during > 2 * before * 0.9


def test_an_event_that_was_never_seen_changes_nothing() -> None:
    history = daily_waves(1, days=12)
    new = Event("launch", history.end, history.end + DAY)
    with_event, usual = (model.fit(history).forecast(6, (0.5,)) for model in (Eventful(Ridge(), (new,)), Ridge()))
    np.testing.assert_array_equal(with_event.values, usual.values)
    assert with_event.provenance.models == ("ridge-with-events",)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_keeps_the_contract(check: Callable[[Model], None]) -> None:
    check(Eventful(SeasonalNaive(), ()))


def test_kept_without_samples_it_says_the_same_once_it_is_given_a_window() -> None:
    history = history_with(sale(9), 3.0)
    fitted = Eventful(SeasonalNaive(), (sale(9), sale(12))).fit(history)
    restored = fitted.without_history().update(history)
    np.testing.assert_array_equal(restored.forecast(24, (0.5,)).values, fitted.forecast(24, (0.5,)).values)


def test_each_name_is_looked_up_once_however_often_it_was_on() -> None:
    history = history_with(sale(9), 3.0)
    with patch.object(eventful, "within", wraps=eventful.within) as looked:
        assert lifts(history, [sale(day) for day in range(2, 10)]).keys() == {"sale"}
    assert looked.call_count == 2
