"""A forecast may act after good evidence, and no longer after worse evidence, without going back and forth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecaster.domain.decision import ForecastState, Reason, Scale
from forecaster.horizontal.gate import BETTER, best
from forecaster.horizontal.gate_states import (
    ACTING,
    GATE_STATES,
    MIN_SHORTAGE,
    MODEL,
    OBSERVE,
    PROMOTED,
    TOO_SHORT,
    Gate,
    GateForecaster,
    Gates,
    GateState,
)
from tests.support.builders import NOON, outlooks, policy
from tests.support.gates import NEW, Days, Way, evidence_of, gate_of, judged, too_short
from tests.support.horizontal import decided


def evidence(model: float, reactive: float = 0.1, seasonal: float | None = None, days: float = 3.0) -> Days:
    return Days(days, reactive, Way(model), Way(seasonal) if seasonal is not None else None)


def after_all(*rounds: Days | None, gates: Gates = NEW) -> Gates:
    for minute, days in enumerate(rounds):
        gates = judged(gates, *([days] if days else []), minute=minute)
    return gates


PROMOTED_ONE = replace(
    NEW, standing=np.array([ACTING]), verdict=np.array([PROMOTED]), since=np.array([NOON.timestamp()])
)


def standing(gates: Gates) -> GateState:
    return gate_of(gates).standing


def test_a_new_workload_is_observed() -> None:
    assert gate_of(NEW) == Gate(GateState.OBSERVE, GateForecaster.MODEL, None, "not judged yet")


def test_good_evidence_makes_a_trial_and_once_more_lets_it_act() -> None:
    assert standing(after_all(evidence(0.05))) is GateState.TRIAL
    assert standing(after_all(evidence(0.05), evidence(0.06))) is GateState.ACTING


def test_a_trial_that_fails_is_over() -> None:
    assert standing(after_all(evidence(0.05), evidence(0.12))) is GateState.OBSERVE


@pytest.mark.parametrize("gates", [PROMOTED_ONE, judged(NEW, Days(3.0, 0.1, Way(0.12)))], ids=["acted", "observed"])
def test_what_could_not_be_judged_and_can_be_again_says_what_it_is_judged_by(gates: Gates) -> None:
    gate = gate_of(judged(too_short(gates, 2.0, minute=1), evidence(0.12), minute=2))
    assert (gate.state, "left 12.00% of the demand short" in gate.why) == (ForecastState.HELD_BACK, True)


def test_what_is_worse_is_demoted_and_says_so() -> None:
    gate = gate_of(after_all(evidence(0.11), gates=PROMOTED_ONE))
    assert gate.standing is GateState.OBSERVE
    assert gate.why == (
        "it acted before; for the same pod-hours decisions by the model left 11.00% of the demand short on the 3 days "
        "judged, measured demand alone 10.00%"
    )


def test_one_day_is_called_so() -> None:
    assert "was short on the day judged; the model" in gate_of(after_all(evidence(0.0, reactive=0.0, days=1.0))).why


def test_between_the_margins_every_forecast_stays_where_it_is() -> None:
    between = evidence(0.1 * (BETTER + 1) / 2)
    assert gate_of(after_all(between, gates=PROMOTED_ONE)) == gate_of(PROMOTED_ONE)
    assert standing(after_all(between, between)) is GateState.OBSERVE


def test_no_evidence_and_hours_of_it_change_nothing() -> None:
    assert gate_of(after_all(None, evidence(0.9, days=0.5), gates=PROMOTED_ONE)) == gate_of(PROMOTED_ONE)


def test_yesterday_is_used_where_it_decides_better() -> None:
    gate = gate_of(after_all(evidence(0.08, seasonal=0.04), evidence(0.08, seasonal=0.04)))
    assert (gate.standing, gate.forecaster) == (GateState.ACTING, GateForecaster.SEASONAL)


def test_a_difference_that_is_no_shortage_leaves_it_to_the_model() -> None:
    assert best(evidence_of([evidence(MIN_SHORTAGE / 2, seasonal=0.0)])) == MODEL


def test_where_nothing_is_short_there_is_something_to_gain_only_if_pods_are_saved() -> None:
    saves = Days(3.0, 0.0, Way(0.0, saving=0.2))
    idle = Days(3.0, 0.0, Way(0.0, saving=0.01))
    assert standing(after_all(saves, saves)) is GateState.ACTING
    assert standing(after_all(idle, idle)) is GateState.OBSERVE


def test_a_difference_within_the_noise_demotes_no_forecast_and_keeps_none_out() -> None:
    """Both sides decide nearly perfectly: measured demand leaves 0.07 % of the demand short, the forecast 0.10 %."""

    def nearly_perfect(*, saving: float, noise: float) -> Days:
        return Days(3.0, 0.0007, Way(0.0010, saving=saving, noise=noise))

    by_chance = nearly_perfect(saving=0.0, noise=0.0005)
    assert standing(after_all(by_chance, by_chance, gates=PROMOTED_ONE)) is GateState.ACTING
    assert standing(after_all(by_chance, by_chance)) is GateState.ACTING
    assert "a difference that chance explains" in after_all(by_chance, by_chance).why(0)
    dearer = nearly_perfect(saving=-0.05, noise=0.0005)
    assert standing(after_all(dearer, dearer)) is GateState.OBSERVE
    worse = nearly_perfect(saving=0.05, noise=0.0001)
    assert standing(after_all(worse, gates=PROMOTED_ONE)) is GateState.OBSERVE


def test_decisions_that_cannot_be_as_lean_never_act() -> None:
    dear = Days(3.0, 0.1, None)
    assert standing(after_all(dear, dear)) is GateState.OBSERVE


def test_rows_are_judged_apart_and_a_row_with_fewer_targets_by_those_it_has() -> None:
    good, bad, none = (
        evidence_of([evidence(0.05)]),
        evidence_of([evidence(0.2)]),
        evidence_of([evidence(0, days=np.nan)]),
    )
    second = [np.concatenate(parts, axis=-2) for parts in zip(good, none, strict=True)]
    both = [np.concatenate(parts, axis=-2) for parts in zip(good, bad, strict=True)]
    rows = type(good)(*(np.concatenate(parts, axis=-1) for parts in zip(second, both, strict=True)))
    from forecaster.horizontal import gate  # noqa: PLC0415  the arrays themselves

    gates = gate.judged(NEW.take(np.array([0, 0])), rows, NOON.timestamp())
    assert [gates.gate(row).standing for row in (0, 1)] == [GateState.TRIAL, GateState.OBSERVE]


def test_columns_are_saved_as_plain_arrays() -> None:
    gates = after_all(evidence(0.05), evidence(0.06))
    assert gate_of(Gates.of_arrays(gates.arrays())) == gate_of(gates)


@given(
    st.lists(st.builds(evidence, st.floats(0, 1), st.floats(0, 1), st.none() | st.floats(0, 1)), max_size=8),
    st.floats(0, 1),
    st.floats(0, 1),
    st.floats(0, 1),
)
def test_a_model_that_is_worse_than_both_baselines_never_acts(
    earlier: list[Days], model: float, reactive: float, seasonal: float
) -> None:
    gate = gate_of(after_all(*earlier, evidence(model, reactive, seasonal)))
    if gate.standing is GateState.ACTING and gate.forecaster is GateForecaster.MODEL:
        assert model < max(reactive, MIN_SHORTAGE) or model <= seasonal


@pytest.mark.parametrize(
    ("gate", "state"),
    [
        (Gate(GateState.OBSERVE, why="because"), "learning"),
        (Gate(GateState.TRIAL, GateForecaster.MODEL, NOON, "because", judged=True), "observing"),
        (Gate(GateState.OBSERVE, GateForecaster.MODEL, NOON, "because", judged=True), "held back"),
    ],
    ids=["new", "trial", "judged"],
)
def test_a_forecast_that_does_not_act_is_recorded_and_moves_nothing(gate: Gate, state: str) -> None:
    record = decided(outlooks(cpu=2.0, cpu_ahead=9.0), under=policy(gate=True), gate=gate)
    assert isinstance(record.replicas, Scale)
    assert (record.replicas.replicas, record.replicas.reason) == (4, Reason.GATED)
    assert record.replicas.message == f"measured demand alone; forecast {state}: because"
    assert record.signals[0].forecast_replicas == 18
    assert record.shadow


def test_without_a_gate_in_the_policy_a_forecast_acts() -> None:
    watched = Gate(GateState.OBSERVE)
    assert decided(outlooks(cpu=2.0, cpu_ahead=9.0), under=policy(gate=False), gate=watched).recommended_replicas == 18


def test_what_is_said_of_a_signal_stays_with_it_when_others_come_before() -> None:
    short = {"verdict": np.array([TOO_SHORT]), "signal": np.array([0]), "days": np.array([1.0])}
    moved = replace(Gates.new(1, ["requests"]), **short).with_signals(("cpu", "requests"))
    assert moved.why(0).startswith("1.0 days of requests history")


def test_standings_are_coded_in_their_order() -> None:
    assert GATE_STATES[OBSERVE] is GateState.OBSERVE
    assert GATE_STATES[ACTING] is GateState.ACTING
