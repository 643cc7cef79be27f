"""A learned policy learns what pays, repeats by its seed, and is saved as plain arrays."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from benchmarks.policy_training import DISCOUNT, Lessons, empty_table, fit, learn, save
from forecaster.domain.workload import Resources, Target, TargetType
from forecaster.horizontal.decide import decide
from forecaster.horizontal.state import State
from forecaster.replay.learned import (
    CHANGES,
    FEATURES,
    LATEST,
    LEARNED_KINDS,
    STAY,
    LearnedPolicy,
    Situation,
    advised,
    cells,
    counts,
    features_of,
    load,
    median_of,
)
from tests.support.builders import NOON, hpa, outlooks, policy, workload
from tests.support.one_row import Subject, inputs_of_one

if TYPE_CHECKING:
    from pathlib import Path

    from forecaster.horizontal.inputs import Inputs

RISE = int(np.argmax(CHANGES))


def situation(rows: int = 4, **parts: float) -> Situation:
    given = {"measured": 4.0, "median": 4.0, "upper": 5.0, "before": 4.0, "desired": 5.0, "ready": 5.0, **parts}
    return Situation(**{name: np.full(rows, value) for name, value in given.items()}, minute_of_day=600)


def lessons(seed: int = 1, count: int = 4000) -> Lessons:
    """A rise pays where the peak is above the pods, and costs elsewhere."""
    rng = np.random.default_rng(seed)
    before = rng.uniform(-1, 1, (count, len(FEATURES)))
    taken = rng.integers(0, len(CHANGES), count)
    worth = np.where(before[:, 1] > 0, 1.0, -1.0) * CHANGES[taken]
    return Lessons(before, taken, worth, rng.uniform(-1, 1, (count, len(FEATURES))))


def test_features_are_finite_whatever_is_unknown() -> None:
    unknown = situation(median=np.nan, upper=np.nan, before=np.nan, ready=0.0, desired=0.0)
    assert np.isfinite(features_of(unknown)).all()
    assert np.isfinite(features_of(situation(measured=np.nan))).all()


def test_a_change_is_a_pod_at_least_and_never_takes_the_last() -> None:
    few, many = np.array([1.0, 1.0]), np.array([40.0, 40.0])
    down_up = np.array([0, RISE])
    assert counts(few, down_up).tolist() == [1.0, 2.0]
    assert counts(many, down_up).tolist() == [20.0, 70.0]
    assert counts(many, np.array([STAY, STAY])).tolist() == [40.0, 40.0]


def test_the_table_learns_what_pays() -> None:
    table, school = empty_table(), lessons(count=60_000)
    for part in np.array_split(np.arange(60_000), 300):
        learn(
            table, cells(school.before[part]), school.taken[part], school.reward[part], cells(school.after[part]), 0.1
        )
    wants = school.before[:200].copy()
    wants[:, 1] = 0.6
    known = table.tried[cells(wants)].min(axis=1) >= 30
    assert (table.choose(wants)[known] == RISE).all()


def test_what_was_never_tried_is_not_chosen() -> None:
    assert (empty_table().choose(features_of(situation())) == STAY).all()


def test_the_forest_learns_what_pays_and_repeats_by_its_seed() -> None:
    forest, again = fit(lessons(), 0.1, seed=3), fit(lessons(), 0.1, seed=3)
    features = np.zeros((2, len(FEATURES)))
    features[:, 1] = [0.7, -0.7]
    worth = forest.action_values(features)
    assert worth[0, RISE] > worth[0, STAY] > worth[0, 0]
    assert worth[1, 0] > worth[1, STAY] > worth[1, RISE]
    assert np.array_equal(worth, again.action_values(features))
    assert 0 < DISCOUNT < 1


@pytest.mark.parametrize("kind", LEARNED_KINDS)
def test_weights_are_plain_arrays_and_come_back_as_they_were(kind: str, tmp_path: Path) -> None:
    chooser = empty_table() if kind == "tabular" else fit(lessons(), 0.1, seed=3)
    save(kind, chooser, tmp_path)  # type: ignore[arg-type]
    with np.load(tmp_path / f"{kind}.npz", allow_pickle=False) as arrays:
        assert arrays.files
    loaded = load(kind, tmp_path)  # type: ignore[arg-type]
    assert np.array_equal(loaded.chooser.choose(lessons().before), chooser.choose(lessons().before))


@pytest.mark.parametrize("kind", LEARNED_KINDS)
def test_the_weights_that_ship_say_a_count_and_nothing_where_nothing_is_measured(kind: str) -> None:
    learned = load(kind)  # type: ignore[arg-type]
    assert (learned.counts(situation()) >= 1).all()
    assert np.isnan(learned.counts(situation(measured=np.nan))).all()


TABULAR = LearnedPolicy("tabular", empty_table())
"""Policy that tried nothing, so the count stays."""
NEVER = np.array([np.nan])


def inputs(**known: float) -> Inputs:
    """Four pods at 50 % of a core."""
    under = policy().horizontal
    return inputs_of_one(Subject(workload(), under, outlooks(**known), ""), NOON)


def advice(decision_inputs: Inputs) -> Inputs:
    return advised(decision_inputs, TABULAR, NEVER, NOON.timestamp())


def test_the_advice_is_in_the_forecasts_place_as_one_value_without_a_distribution() -> None:
    """Just under four pods at 50 % of a core, which rounds up to four."""
    advice_inputs = advice(inputs(cpu=1.5, cpu_ahead=9.0))
    assert advice_inputs.peak[0, 0] == pytest.approx(3.5 * 0.5)
    assert all(np.isnan(quantile).all() for quantile in advice_inputs.quantiles)


def test_the_same_decision_takes_it_as_it_takes_a_forecast() -> None:
    decided, _ = decide(advice(inputs(cpu=1.5, cpu_ahead=9.0)), State.new(1), NOON.timestamp())
    assert decided.forecast.tolist() == [4]


def test_without_a_forecast_or_a_measurement_the_learned_policy_is_silent_too() -> None:
    for silent in (inputs(cpu=1.5), inputs(cpu_ahead=9.0)):
        assert advice(silent) is silent


def test_a_workload_whose_targets_cannot_be_computed_keeps_its_inputs() -> None:
    """History of a signal that decides nothing does no harm."""
    under = policy().horizontal
    undriven = workload(autoscaler=hpa(Target("queue", TargetType.AVERAGE_VALUE, 5.0)), resources=Resources())
    unchanged = inputs_of_one(Subject(undriven, under, outlooks(cpu=1.5, cpu_ahead=9.0), ""), NOON)
    assert advice(unchanged) is unchanged


def test_what_was_forecast_before_is_what_the_median_was() -> None:
    plain = inputs(cpu=1.5, cpu_ahead=2.0)
    spread = replace(plain, rules=plain.rules._replace(levels=(0.4, 0.9)), quantiles=[np.array([[1.5], [2.0]])])
    assert median_of(spread).tolist() == pytest.approx([1.6])
    assert median_of(plain).tolist() == [2.0]
    assert LATEST == 5
