"""The gate under any evidence: no forecast acts that is worse, none flickers, each begins by being observed."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from forecaster.horizontal.gate import BETTER, WORSE, ratio
from forecaster.horizontal.gate_states import ACTING, MIN_SHORTAGE, TRIAL, Gate, GateForecaster, GateState
from tests.support.gates import NEW, Days, Way, evidence_of, gate_of, judged, too_short

SHARES = st.floats(0, 1) | st.sampled_from([0.0, MIN_SHORTAGE / 2, MIN_SHORTAGE, 2 * MIN_SHORTAGE])
WAYS = st.builds(Way, SHARES, st.floats(-0.5, 0.9), st.sampled_from([0.0, 0.0, 3e-4, 0.02]))
ONE = st.builds(Days, st.sampled_from([0.5, 1.0, 3.0]), SHARES, st.none() | WAYS, st.none() | WAYS, st.integers(-1, 2))
TARGETS = st.lists(ONE, max_size=3).map(tuple)
SHORT = 2.1
SEQUENCES = st.lists(TARGETS | st.just(SHORT), max_size=12)
Sequence = list[tuple[Days, ...] | float]


def after_all(sequence: Sequence) -> list[Gate]:
    """Gates of a new workload after each piece of evidence, or after each finding of too little."""
    gates, stood = NEW, []
    for minute, evidence in enumerate(sequence):
        gates = (
            too_short(gates, evidence, minute)
            if isinstance(evidence, float)
            else judged(gates, *evidence, minute=minute)
        )
        stood.append(gate_of(gates))
    return stood


def worse(way: Way | None, baseline: float) -> bool:
    """Whether the difference counts as a shortage, and is more than chance explains."""
    return way is None or way.short > max(baseline + max(way.noise, MIN_SHORTAGE), MIN_SHORTAGE)


def ratios(days: Days) -> tuple[float, float]:
    """Ratios of the model, and of yesterday's load."""
    model, seasonal = ratio(evidence_of([days]))[:, 0, 0].tolist()
    return model, seasonal


@given(SEQUENCES, TARGETS.filter(lambda targets: bool(targets) and min(target.days for target in targets) >= 1))
def test_no_forecast_acts_that_is_worse_than_measured_demand_alone_on_any_target(
    before: Sequence, latest: tuple[Days, ...]
) -> None:
    gate = after_all([*before, latest])[-1]
    if gate.standing is GateState.ACTING:
        assert not any(worse(target.of(gate.forecaster), target.reactive) for target in latest)


@given(SEQUENCES, ONE.filter(lambda days: days.days >= 1))
def test_the_model_acts_only_where_it_is_not_worse_than_both_baselines(before: Sequence, latest: Days) -> None:
    """The model also beats yesterday's load by the margin: for less the forecaster is not changed."""
    gate = after_all([*before, (latest,)])[-1]
    if gate.standing is GateState.ACTING and gate.forecaster is GateForecaster.MODEL:
        model, seasonal = ratios(latest)
        assert not worse(latest.model, latest.reactive)
        assert model * BETTER <= seasonal or not worse(
            latest.model, latest.seasonal.short + MIN_SHORTAGE if latest.seasonal else 0.0
        )


@given(SEQUENCES)
def test_no_forecast_acts_before_good_evidence_came_twice(sequence: Sequence) -> None:
    stood = [Gate(), *after_all(sequence)]
    for before, now in pairwise(stood):
        if now.standing is GateState.ACTING:
            assert before.standing is not GateState.OBSERVE


@given(SEQUENCES)
def test_too_little_history_observes_whatever_was_allowed_before(sequence: Sequence) -> None:
    gate = after_all([*sequence, SHORT])[-1]
    assert gate.standing is GateState.OBSERVE
    assert "2.1 days of cpu history; 3 are the least" in gate.why


@given(st.floats(0.5, 1.5), st.lists(st.floats(-1, 1), min_size=1, max_size=60), st.integers(0, 2).map(np.int8))
def test_noise_narrower_than_the_margin_changes_the_standing_at_most_twice(
    centre: float, noise: list[float], first: np.int8
) -> None:
    """Up by way of the trial, or down: what promotes and what demotes are further apart than the noise reaches.

    But for what leaves as much short, to what counts as a shortage: that promotes by a rule of its own.
    """
    width = 0.99 * (WORSE - BETTER) / 2
    shares = [0.1 * (centre + width * error) for error in noise]
    assume(not any(0.1 <= share <= 0.1 + MIN_SHORTAGE for share in shares))
    gates, moves = replace(NEW, standing=np.array([first])), 0
    for minute, share in enumerate(shares):
        before = gate_of(gates).standing
        gates = judged(gates, Days(3.0, 0.1, Way(share)), minute=minute)
        moves += gate_of(gates).standing is not before
    assert moves <= 2


@given(SEQUENCES)
def test_a_gate_that_did_not_move_is_the_same(sequence: Sequence) -> None:
    """Its time and reason are those of the move; a reason for not judging it ends when it is judged."""
    stood = after_all(sequence)
    for before, now, evidence in zip(stood, stood[1:], sequence[1:], strict=False):
        moved = (now.standing, now.forecaster) != (before.standing, before.forecaster)
        if not moved and before.since and "the least" not in before.why and not isinstance(evidence, float):
            assert now == before


@given(st.floats(2e-4, 0.01), st.floats(0.0, 0.99), st.floats(-0.5, 0.9), st.sampled_from([TRIAL, ACTING]))
def test_a_difference_that_is_noise_never_takes_the_say_away(
    reactive: float, part: float, saving: float, first: np.int8
) -> None:
    """0.10 % of the demand against 0.07 %, where one hour more or less makes as much."""
    noise = 0.5 * reactive
    latest = Days(3.0, reactive, Way(reactive + part * noise, saving, noise))
    before = replace(NEW, standing=np.array([first]))
    assert judged(before, latest).standing[0] in {first, ACTING}
