"""Models of many workloads are fitted in parts and in rotation, and updated with every sample."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np
import pytest

import models
from forecaster.demand.fresh import FreshHistory
from forecaster.domain.signal import CPU, MEMORY, PeakForecast, Unknown
from forecaster.domain.window import FIVE_MINUTES, Window
from forecaster.forecasting.forecaster import Forecaster, PeakSpan, steps_between
from forecaster.forecasting.shards import ROWS, Shards
from models import LastValue
from tests.support.builders import NOON, minutes
from tests.support.recommendations import ahead_of, workload_id

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from forecaster.domain.workload import WorkloadId
    from forecaster.forecasting.peaks import PeakForecasts
    from models import Fitted, Panel

SOON = PeakSpan(minutes(3), minutes(3))
HOUR = timedelta(hours=1)


@dataclass
class Counting:
    """A model of the last value that records the number of series of each fit."""

    fits: list[int] = field(default_factory=list)
    name: str = "counting"

    def fit(self, panel: Panel) -> Fitted:
        self.fits.append(len(panel))
        return LastValue().fit(panel)


def window(count: int, *, at: datetime = NOON, value: float = 1.0) -> Window:
    """A day of equal five-minute points, for `count` workloads."""
    ids = tuple(workload_id(f"web-{i}") for i in range(count))
    return Window(ids, at - 287 * FIVE_MINUTES, FIVE_MINUTES, np.full((count, 288), value, np.float32))


def whole(weeks: Window) -> FreshHistory:
    """A history that ends on the grid of five minutes."""
    return FreshHistory(weeks, np.empty((len(weeks.keys), 0), np.float32), weeks.end)


def forecaster_with(model: Counting, fits: int = 100) -> Forecaster:
    return Forecaster("last-value", HOUR, fits, {signal: Shards(model) for signal in (CPU, MEMORY)})


def test_every_workload_gets_its_own_forecast() -> None:
    weeks = window(3)
    values = weeks.values * np.array([[1.0], [2.0], [3.0]], np.float32)
    peaks = Forecaster("last-value").peaks(
        CPU, whole(Window(weeks.keys, weeks.start, weeks.step, values)), [SOON], NOON
    )
    medians = [ahead_of(peaks[SOON], id_, 0.5).median for id_ in weeks.keys]
    assert medians == pytest.approx([1.0, 2.0, 3.0])


def test_the_forecast_is_for_the_time_after_the_lead_time() -> None:
    peaks = Forecaster("last-value").peaks(CPU, whole(window(1)), [SOON], NOON)[SOON]
    assert (peaks.begin, peaks.until) == (NOON + minutes(3), NOON + minutes(6))


def test_each_span_is_answered() -> None:
    later = PeakSpan(minutes(10), minutes(5))
    peaks = Forecaster("last-value").peaks(CPU, whole(window(1)), [SOON, later], NOON)
    assert [peaks[span].begin - NOON for span in (SOON, later)] == [minutes(3), minutes(10)]


@dataclass
class Listening:
    """A model of the last value that records the windows of each question, and its number of series."""

    questions: list[tuple[int, tuple[models.StepWindow, ...]]] = field(default_factory=list)
    fitted: Fitted | None = None
    name: str = "listening"

    def fit(self, panel: Panel) -> Listening:
        return Listening(self.questions, LastValue().fit(panel))

    def update(self, panel: Panel) -> Listening:
        assert self.fitted
        return Listening(self.questions, self.fitted.update(panel))

    def forecast(self, steps: int, quantiles: Sequence[float]) -> models.Forecast:
        raise NotImplementedError

    def forecast_peak(self, window: models.StepWindow, quantiles: Sequence[float]) -> models.Peak:
        return self.forecast_peaks((window,), quantiles)[window]

    def forecast_peaks(
        self, windows: Sequence[models.StepWindow], quantiles: Sequence[float]
    ) -> Mapping[models.StepWindow, models.Peak]:
        assert self.fitted
        peaks = {window: self.fitted.forecast_peak(window, quantiles) for window in windows}
        self.questions.append((len(next(iter(peaks.values())).keys), tuple(windows)))
        return peaks


def test_a_span_is_forecast_for_the_workloads_that_ask_for_it() -> None:
    later, weeks = PeakSpan(minutes(20), minutes(3)), window(3)
    first, second, third = weeks.keys
    peaks = Forecaster("last-value").peaks_by_span(CPU, whole(weeks), {SOON: [first, third], later: [second]}, NOON)
    assert [set(peaks[span].row) for span in (SOON, later)] == [{first, third}, {second}]
    assert isinstance(ahead_of(peaks[later], first, 0.9), Unknown)


def test_spans_that_are_the_same_steps_to_a_model_are_asked_for_once() -> None:
    model, weeks = Listening(), window(2)
    ids_by_span = {SOON: weeks.keys[:1], PeakSpan(minutes(4), minutes(3)): weeks.keys[1:]}
    forecaster = Forecaster("listening", HOUR, 100, {CPU: Shards(model)})
    peaks = forecaster.peaks_by_span(CPU, whole(weeks), ids_by_span, NOON)
    assert model.questions == [(2, (models.StepWindow(1, 2),))]
    assert [ahead.begin - NOON for ahead in peaks.values()] == [minutes(3), minutes(4)]


def test_a_part_is_not_asked_for_spans_of_other_parts_alone() -> None:
    model, weeks = Listening(), window(ROWS + 1)
    ids_by_span = {SOON: weeks.keys[:ROWS], PeakSpan(minutes(20), minutes(3)): weeks.keys[ROWS:]}
    Forecaster("listening", HOUR, 100, {CPU: Shards(model)}).peaks_by_span(CPU, whole(weeks), ids_by_span, NOON)
    assert model.questions == [(ROWS, (models.StepWindow(1, 2),)), (1, (models.StepWindow(5, 5),))]


@dataclass
class Learning:
    """A model of the last value that counts its updates, and needs no history for them."""

    updates: int = 0
    fitted: Fitted = field(default_factory=lambda: LastValue().fit(models.Panel(np.ones((0, 1)), NOON, HOUR, ())))
    name: str = "learning"

    def fit(self, panel: Panel) -> Learning:
        return Learning(0, LastValue().fit(panel))

    def update(self, panel: Panel) -> Learning:
        return Learning(self.updates + 1, self.fitted.update(panel))

    def without_history(self) -> Learning:
        return Learning(self.updates, self.fitted)

    def forecast(self, steps: int, quantiles: Sequence[float]) -> models.Forecast:
        return self.fitted.forecast(steps, quantiles)

    def forecast_peak(self, window: models.StepWindow, quantiles: Sequence[float]) -> models.Peak:
        return self.fitted.forecast_peak(window, quantiles)


def test_what_a_model_learns_from_new_samples_stays_until_its_next_fit() -> None:
    shards = Shards(Learning())
    forecaster = Forecaster("learning", HOUR, 100, {CPU: shards})
    for minute in range(0, 15, 5):
        at = NOON + minutes(minute)
        forecaster.peaks(CPU, whole(window(2, at=at)), [SOON], at)
    assert [shard.fitted for shard in shards.shards if isinstance(shard.fitted, Learning) and shard.fitted.updates == 3]


def test_workloads_without_history_are_unknown() -> None:
    peaks = Forecaster("last-value").peaks(CPU, whole(window(1)), [SOON], NOON)[SOON]
    assert ahead_of(peaks, workload_id("new"), 0.9) == Unknown("no history yet")


def test_a_cluster_without_this_signal_is_no_failure() -> None:
    peaks = Forecaster("last-value").peaks(CPU, whole(window(0)), [SOON], NOON)[SOON]
    assert peaks.values.shape[0] == 0


def _model_of(peaks: PeakForecasts, id_: WorkloadId) -> str:
    ahead = ahead_of(peaks, id_, 0.9)
    assert isinstance(ahead, PeakForecast)
    return ahead.model


class TestRotation:
    def test_a_start_fits_so_many_parts_in_one_round_and_the_rest_wait(self) -> None:
        model, weeks = Counting(), window(2 * ROWS + 7)
        peaks = forecaster_with(model, fits=2).peaks(CPU, whole(weeks), [SOON], NOON)[SOON]
        assert model.fits == [ROWS, ROWS]
        waiting = ahead_of(peaks, weeks.keys[-1], 0.9)
        assert waiting == Unknown("its model is being fitted; parts that wait: 1 of 3")

    def test_the_prior_forecasts_for_parts_that_wait_for_their_first_fit(self) -> None:
        weeks, default = window(ROWS + 2), Forecaster("adaptive", fits=1)
        rounds = [default.peaks(CPU, whole(weeks), [SOON], NOON + minutes(minute))[SOON] for minute in range(2)]
        speaking = [[_model_of(peaks, id_) for id_ in (weeks.keys[0], weeks.keys[-1])] for peaks in rounds]
        assert speaking == [["adaptive", "prior"], ["adaptive", "adaptive"]]

    def test_the_rest_is_fitted_in_the_next_round(self) -> None:
        model, weeks = Counting(), window(2 * ROWS + 7)
        all_parts = forecaster_with(model, fits=2)
        for minute in range(2):
            peaks = all_parts.peaks(CPU, whole(weeks), [SOON], NOON + minutes(minute))[SOON]
        assert model.fits == [ROWS, ROWS, 7]
        assert isinstance(ahead_of(peaks, weeks.keys[-1], 0.9), PeakForecast)

    def test_a_young_model_is_not_fitted_again(self) -> None:
        model = Counting()
        forecaster = forecaster_with(model)
        for minute in range(0, 60, 5):
            forecaster.peaks(CPU, whole(window(3, at=NOON + minutes(minute))), [SOON], NOON + minutes(minute))
        assert model.fits == [3]

    def test_old_models_are_fitted_one_a_round_over_all_signals(self) -> None:
        model, later = Counting(), NOON + HOUR
        forecaster = forecaster_with(model)
        for signal in (CPU, MEMORY):
            forecaster.peaks(signal, whole(window(ROWS + 1)), [SOON], NOON)
        model.fits.clear()
        for minute in range(5):
            for signal in (CPU, MEMORY):
                forecaster.peaks(signal, whole(window(ROWS + 1, at=later)), [SOON], later + minutes(minute))
        assert sorted(model.fits) == [1, 1, ROWS, ROWS]

    def test_so_many_are_renewed_in_a_round_that_each_has_its_turn_in_time(self) -> None:
        """Seven parts may be three minutes old, so three are renewed in each round of a minute."""
        model = Counting()
        forecaster, weeks = forecaster_with(model), window(7 * ROWS)
        forecaster.refit_after = minutes(3)
        forecaster.peaks(CPU, whole(weeks), [SOON], NOON)
        counts = []
        for minute in range(3, 6):
            before = len(model.fits)
            forecaster.peaks(CPU, whole(weeks), [SOON], NOON + minutes(minute))
            counts.append(len(model.fits) - before)
        assert counts == [3, 3, 1]

    def test_a_model_fitted_while_the_clock_was_ahead_is_renewed(self) -> None:
        model = Counting()
        forecaster, history = forecaster_with(model), whole(window(1))
        for now in (NOON + timedelta(days=2), NOON, NOON + minutes(1)):
            forecaster.peaks(CPU, history, [SOON], now)
        assert model.fits == [1, 1]

    def test_a_workload_that_is_left_out_for_a_while_takes_the_model_from_no_other(self) -> None:
        counting = Counting()
        forecaster, history = forecaster_with(counting), whole(window(3))
        ids = history.weeks.keys
        forecaster.peaks_by_span(CPU, history, {SOON: ids}, NOON)
        for requested in (ids[:2], ids):
            answers = forecaster.peaks_by_span(CPU, history, {SOON: requested}, NOON + minutes(1), learn=False)[SOON]
            assert all(isinstance(ahead_of(answers, id_, 0.5), PeakForecast) for id_ in requested)
        assert counting.fits == [3]

    def test_a_part_of_which_most_are_left_out_is_made_anew(self) -> None:
        counting = Counting()
        forecaster, history = forecaster_with(counting), whole(window(3))
        forecaster.peaks_by_span(CPU, history, {SOON: history.weeks.keys}, NOON)
        forecaster.peaks_by_span(CPU, history, {SOON: history.weeks.keys[:1]}, NOON + minutes(1))
        assert counting.fits == [3, 1]

    def test_a_workload_that_comes_is_fitted_alone_and_the_others_keep_their_models(self) -> None:
        model = Counting()
        forecaster = forecaster_with(model)
        forecaster.peaks(CPU, whole(window(ROWS + 1)), [SOON], NOON)
        forecaster.peaks(CPU, whole(window(ROWS + 2)), [SOON], NOON + minutes(1))
        assert model.fits == [ROWS, 1, 1]


def test_the_newest_sample_reaches_the_forecast_without_a_fit() -> None:
    model = Counting()
    forecaster = forecaster_with(model)
    forecaster.peaks(CPU, whole(window(1)), [SOON], NOON)
    raised = window(1, at=NOON + minutes(5), value=1.0)
    values = raised.values.copy()
    values[:, -1] = 3.0
    newer = Window(raised.keys, raised.start, raised.step, values)
    ahead = ahead_of(forecaster.peaks(CPU, whole(newer), [SOON], NOON + minutes(5))[SOON], raised.keys[0], 0.5)
    assert ahead.median == pytest.approx(3.0)
    assert model.fits == [1]


@dataclass
class Forgetful:
    """A model of the last value whose update fails while `forgot` is set."""

    forgot: bool
    fits: int = 0
    name: str = "forgetful"

    def fit(self, panel: Panel) -> Forgetful:
        self.fits += 1
        return self

    def update(self, panel: Panel) -> Fitted:
        if self.forgot:
            raise OverflowError("too many samples")
        return LastValue().fit(panel)


class TestModelThatFails:
    def ask(self, forecaster: Forecaster, at: datetime) -> PeakForecast | Unknown:
        return ahead_of(forecaster.peaks(CPU, whole(window(1)), [SOON], at)[SOON], workload_id("web-0"), 0.9)

    def test_on_the_way_says_so_and_is_fitted_anew_in_the_next_round(self) -> None:
        model = Forgetful(forgot=False)
        forecaster = Forecaster("last-value", HOUR, 100, {CPU: Shards(model)})
        assert isinstance(self.ask(forecaster, NOON), PeakForecast)
        model.forgot = True
        assert self.ask(forecaster, NOON + minutes(1)) == Unknown(
            "the model failed with OverflowError: too many samples"
        )
        assert len(forecaster.failures()) == 1
        model.forgot = False
        assert isinstance(self.ask(forecaster, NOON + minutes(2)), PeakForecast)
        assert (model.fits, forecaster.failures()) == (2, [])

    def test_as_soon_as_it_is_fitted_waits_for_its_turn_and_goes_on_saying_so(self) -> None:
        model = Forgetful(forgot=True)
        forecaster = Forecaster("last-value", HOUR, 100, {CPU: Shards(model)})
        for minute in range(60):
            assert isinstance(self.ask(forecaster, NOON + minutes(minute)), Unknown)
            assert len(forecaster.failures()) == 1
        assert model.fits == 1
        self.ask(forecaster, NOON + HOUR)
        assert model.fits == 2


@pytest.mark.parametrize(
    ("begin", "until", "steps"),
    [
        pytest.param(3, 6, (1, 2), id="from within the first bin to within the second"),
        pytest.param(5, 10, (2, 2), id="exactly the second bin"),
        pytest.param(0, 5, (1, 1), id="exactly the first bin"),
        pytest.param(12, 13, (3, 3), id="within one bin"),
        pytest.param(-4, 1, (1, 1), id="what has begun already"),
    ],
)
def test_steps_are_those_that_the_span_touches(begin: int, until: int, steps: Sequence[int]) -> None:
    chosen = steps_between(minutes(begin), minutes(until), FIVE_MINUTES)
    assert (chosen.first, chosen.last) == steps
