from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecaster.domain.window import FIVE_MINUTES
from forecaster.forecasting.peaks import LEVELS, ModelAnswers, PeakForecasts, SpanRows, at_quantile
from models import Peak, Provenance, StepWindow
from tests.support.builders import after
from tests.support.recommendations import ahead_of, workload_id

if TYPE_CHECKING:
    from collections.abc import Sequence

WEB = workload_id()
VALUES = (1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 9.0)
ONE = np.zeros(1, np.int32)
PEAKS = PeakForecasts(after(3), after(6), (WEB,), {WEB: 0}, np.array([VALUES]), ONE, ONE, ("ridge",), ("held",))


def peak_at(quantile: float, values: Sequence[float] = VALUES) -> float:
    return float(at_quantile(np.array([values]).T, np.array([quantile]))[0])


@pytest.mark.parametrize(("quantile", "value"), list(zip(LEVELS, VALUES, strict=True)))
def test_a_level_that_was_forecast_is_read(quantile: float, value: float) -> None:
    assert peak_at(quantile) == value


def test_a_level_between_two_is_on_the_line_between_them() -> None:
    assert peak_at(0.97) == pytest.approx(7.0)


@given(st.floats(0.01, 0.999), st.lists(st.floats(0, 1e12), min_size=len(LEVELS), max_size=len(LEVELS)).map(sorted))
def test_it_is_what_numpy_reads_between_two_levels(quantile: float, values: list[float]) -> None:
    assert peak_at(quantile, values) == np.interp(quantile, LEVELS, values)


@given(st.floats(0.5, 0.99), st.floats(0.5, 0.99))
def test_a_higher_level_never_gives_a_lower_peak(first: float, second: float) -> None:
    low, high = sorted((first, second))
    assert peak_at(low) <= peak_at(high)


OTHER, SILENT, NEW = (workload_id(name) for name in ("other", "silent", "new"))
SEVERAL = PeakForecasts(
    begin=after(3),
    until=after(6),
    ids=(WEB, OTHER, SILENT),
    place={WEB: 0, OTHER: 1, SILENT: 2},
    values=np.array([VALUES, np.array(VALUES) * 2, np.full(len(LEVELS), np.nan)]),
    model=np.array([0, 1, 0], np.int32),
    note=np.array([0, 0, 1], np.int32),
    models=("ridge", "prior"),
    notes=("", "there is no sample"),
)


def test_only_workloads_with_a_forecast_have_a_row() -> None:
    assert dict(SEVERAL.row) == {WEB: 0, OTHER: 1}
    assert PEAKS.row is PEAKS.place


def test_a_remark_follows_what_is_noted_already() -> None:
    remarked = replace(SEVERAL, notes=("held", "there is no sample")).remarked(
        {WEB: "masked", SILENT: "masked", NEW: "-"}
    )
    assert [getattr(ahead_of(remarked, id_, 0.9), "note", "") for id_ in (WEB, OTHER, SILENT)] == [
        "held; masked",
        "held",
        "there is no sample",
    ]


def test_answers_of_a_model_are_laid_on_the_rows_of_their_series() -> None:
    answers = ModelAnswers(np.arange(4))
    values = np.array([VALUES, np.array(VALUES) * 2])
    provenance = Provenance(("c", "a"), ("prior", "last-value"), ("", "short"), {"b": "silent"})
    answers.take(
        np.arange(1, 4), ("a", "b", "c"), Peak(values, StepWindow(1, 1), after(0), FIVE_MINUTES, LEVELS, provenance)
    )
    answers.set_unknown(np.arange(4) == 0, "its model is being fitted")
    ids = tuple(workload_id(name) for name in "xabc")
    peaks = answers.forecasts(after(3), after(6), SpanRows.of(ids, {id_: row for row, id_ in enumerate(ids)}))
    assert [getattr(ahead, "peak", None) for ahead in (ahead_of(peaks, id_, 0.5) for id_ in ids)] == [
        None,
        4.0,
        None,
        2.0,
    ]
    assert [ahead_of(peaks, id_, 0.5).note for id_ in ids] == ["its model is being fitted", "short", "silent", ""]
    assert [peaks.models[peaks.model[row]] for row in (1, 3)] == ["last-value", "prior"]


def test_a_sample_of_forecasts_has_memory_of_its_own() -> None:
    sample = SEVERAL.sample(1, 2)
    assert (sample.ids, dict(sample.row)) == ((OTHER,), {OTHER: 0})
    assert ahead_of(sample, OTHER, 0.9) == ahead_of(SEVERAL, OTHER, 0.9)
    assert sample.values.base is None
    assert SEVERAL.sample(5, 10).ids == ()
