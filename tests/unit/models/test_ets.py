"""ETS follows a day wave, carries its states, and says which series its library could not fit."""

import numpy as np
import pytest

from models import Ets, Panel, ets
from tests.support.panels import HOUR, MONDAY, daily_waves, panel


def test_a_wave_that_rises_is_continued() -> None:
    bins = np.arange(6 * 24)
    history = panel(20 + bins / 24 + 3 * np.sin(2 * np.pi * bins / 24), step=HOUR)
    ahead = np.arange(6 * 24, 6 * 24 + 6)
    expected = 20 + ahead / 24 + 3 * np.sin(2 * np.pi * ahead / 24)
    np.testing.assert_allclose(Ets().fit(history).forecast(6, (0.5,)).values[0, 0], expected, rtol=0.05)


def test_what_comes_after_fitting_moves_a_level_that_wandered_before() -> None:
    wandering = 20 + np.cumsum(np.random.default_rng(2).normal(0, 0.3, 10 * 24))
    history = panel(wandering, step=HOUR)
    fitted = Ets().fit(history)
    shifted = Panel(history.values[:, -6:] + 5, history.end, HOUR, history.keys)
    before, after = fitted.forecast(3, (0.5,)).values, fitted.update(shifted).forecast(3, (0.5,)).values
    assert (after > before + 3).all()


def test_two_days_are_too_few_and_the_last_value_is_held_with_a_reason() -> None:
    forecast = Ets().fit(daily_waves(1, days=2)).forecast(3, (0.5,))
    assert forecast.provenance.models == ("last-value",)
    assert forecast.provenance.reasons == ("2 d of history is too short for ets; the last value is held",)


def test_a_series_that_the_library_refuses_is_held_with_its_reason_and_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuses_large(values: np.ndarray, first: ets.States, iterations: int) -> ets.Parameters:
        if first.level[0] > 10:
            raise np.linalg.LinAlgError("singular matrix")
        return ets.STILL_PARAMETERS

    monkeypatch.setattr(ets, "fitted_parameters", refuses_large)
    waves = daily_waves(2, days=8, noise=0.1).values
    history = Panel(np.stack([waves[0], waves[1] / 10 + 20]), MONDAY, HOUR, ("moves", "refused"))
    provenance = Ets().fit(history).forecast(3, (0.5, 0.9)).provenance
    assert provenance.models == ("ets", "last-value")
    assert provenance.reasons == (
        "",
        "ets could not be fitted (LinAlgError: singular matrix); the last value is held",
    )


def test_days_of_too_many_bins_are_refused_with_a_reason() -> None:
    fine = Panel(np.ones((1, 4 * 2880)), MONDAY, HOUR / 120, ("a",))
    assert Ets().fit(fine).forecast(3, (0.5,)).provenance.reasons == (
        "a day of 2880 bins is too long for ets; the last value is held",
    )
