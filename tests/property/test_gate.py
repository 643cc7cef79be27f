"""The gate under any evidence: nobody acts who is worse, nobody flickers, everyone begins by being watched."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from forecaster.decisions.gate import (
    BETTER,
    LEAST_SHORT,
    WORSE,
    Evidence,
    Gate,
    Record,
    Standing,
    Voice,
    judged_on_all,
    unjudged,
)
from tests.support.builders import after

SHARES = st.floats(0, 1) | st.sampled_from([0.0, LEAST_SHORT / 2, LEAST_SHORT, 2 * LEAST_SHORT])
RECORDS = st.builds(Record, SHARES, st.floats(-0.5, 0.9))
ONE = st.builds(Evidence, st.sampled_from([0.5, 1.0, 3.0]), SHARES, st.none() | RECORDS, st.none() | RECORDS)
TARGETS = st.lists(ONE, max_size=3).map(tuple)
SHORT = "2.1 days of cpu history; 3 are the least"
SEQUENCES = st.lists(TARGETS | st.just(SHORT), max_size=12)


def after_all(sequence: list[tuple[Evidence, ...] | str]) -> list[Gate]:
    """Where a new workload stands after each piece of evidence, or after it was found that there is too little."""
    gate, stood = Gate(), []
    for minute, found in enumerate(sequence):
        now = after(minute)
        gate = unjudged(gate, found, now) if isinstance(found, str) else judged_on_all(gate, found, now)
        stood.append(gate)
    return stood


def worse(record: Record | None, baseline: float) -> bool:
    """By what counts as a shortage."""
    return record is None or record.short > max(baseline, LEAST_SHORT)


@given(SEQUENCES, TARGETS.filter(lambda targets: bool(targets) and min(one.days for one in targets) >= 1))
def test_nobody_acts_who_is_worse_than_measured_demand_alone_on_any_target(
    before: list[tuple[Evidence, ...] | str], newest: tuple[Evidence, ...]
) -> None:
    gate = after_all([*before, newest])[-1]
    if gate.standing is Standing.ACTING:
        assert not any(worse(one.of(gate.voice), one.reactive) for one in newest)


@given(SEQUENCES, ONE.filter(lambda one: one.days >= 1))
def test_the_model_acts_only_where_it_is_not_worse_than_both_baselines(
    before: list[tuple[Evidence, ...] | str], newest: Evidence
) -> None:
    """Against yesterday's load by the margin, too: nobody changes the speaker for less."""
    gate = after_all([*before, (newest,)])[-1]
    if gate.standing is Standing.ACTING and gate.voice is Voice.MODEL:
        assert not worse(newest.model, newest.reactive)
        assert newest.ratio(Voice.MODEL) * BETTER <= newest.ratio(Voice.SEASONAL) or not worse(
            newest.model, newest.seasonal.short + LEAST_SHORT if newest.seasonal else 0.0
        )


@given(SEQUENCES)
def test_nobody_acts_before_good_evidence_came_twice(sequence: list[tuple[Evidence, ...] | str]) -> None:
    stood = [Gate(), *after_all(sequence)]
    for before, now in pairwise(stood):
        if now.standing is Standing.ACTING:
            assert before.standing is not Standing.OBSERVE


@given(SEQUENCES)
def test_too_little_history_watches_whatever_was_allowed_before(sequence: list[tuple[Evidence, ...] | str]) -> None:
    gate = after_all([*sequence, SHORT])[-1]
    assert gate.standing is Standing.OBSERVE
    assert SHORT in gate.why


@given(
    st.floats(0.5, 1.5),
    st.lists(st.floats(-1, 1), min_size=1, max_size=60),
    st.sampled_from([Standing.OBSERVE, Standing.TRIAL, Standing.ACTING]),
)
def test_noise_narrower_than_the_margin_changes_the_standing_at_most_twice(
    centre: float, noise: list[float], first: Standing
) -> None:
    """Up by way of the trial, or down: what promotes and what demotes are further apart than the noise reaches."""
    width = 0.99 * (WORSE - BETTER) / 2
    gate, moves = Gate(first), 0
    for minute, error in enumerate(noise):
        one = Evidence(3.0, 0.1, Record(0.1 * (centre + width * error)))
        standing, gate = gate.standing, judged_on_all(gate, (one,), after(minute))
        moves += gate.standing is not standing
    assert moves <= 2


@given(SEQUENCES)
def test_a_gate_that_did_not_move_is_the_same(sequence: list[tuple[Evidence, ...] | str]) -> None:
    """Since when and why are those of the move, so that nothing is told twice."""
    stood = after_all(sequence)
    for before, now, found in zip(stood, stood[1:], sequence[1:], strict=False):
        if (now.standing, now.voice) == (before.standing, before.voice) and before.since and not isinstance(found, str):
            assert now is before
