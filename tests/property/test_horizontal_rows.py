"""Rows do not touch each other: nonsense in some, their order and their company change nothing in the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from forecaster.horizontal.decide import FAILED, decide
from forecaster.horizontal.state import State
from tests.support.rows import inputs_of, poisoned, policy_of, rules_of, take, targets_of

if TYPE_CHECKING:
    from forecaster.horizontal.decide import Decisions
    from forecaster.horizontal.inputs import Inputs

BEGIN = 1.77e9
SEEDS = st.integers(0, 2**32 - 1)


def courses(seed: int, rows: int, cycles: int = 6) -> list[tuple[float, Inputs]]:
    """What one group of rows is decided from, at irregular times."""
    random = np.random.default_rng(seed)
    rules = rules_of(random)
    policy, targets = policy_of(random, rows, rules), targets_of(random, rows, rules)
    times = BEGIN + np.cumsum(random.choice([15.0, 60.0, 61.0, 400.0], cycles))
    return [(float(now), inputs_of(random, rules, policy, targets)) for now in times]


def numbers(decisions: Decisions) -> dict[str, Any]:
    """Everything that was decided, rows on the last axis."""
    proposals = {f"proposal {i} {j}": one for i, side in enumerate(decisions.proposals) for j, one in enumerate(side)}
    counts = {f"clamp {i}": np.where(decisions.scales, one, 0) for i, one in enumerate(decisions.counts)}
    names = ("replicas", "reason", "failed", "unseen", "reactive", "forecast")
    return {name: getattr(decisions, name) for name in names} | proposals | counts


def remembered(state: State) -> dict[str, Any]:
    """Everything that is remembered, rows on the last axis."""
    return {name: one for name, one in state.arrays().items() if name != "signals" and not name.endswith("_at")}


def same(left: dict[str, Any], right: dict[str, Any], these: Any, those: Any) -> None:
    """What one side keeps for longer, since another row of it has a longer window, is not compared."""
    for name, column in left.items():
        latest = -min(len(column), len(right[name])) if name == "recommendations" else 0
        np.testing.assert_array_equal(column[latest:][..., these], right[name][latest:][..., those], err_msg=name)


@settings(deadline=None)
@given(SEEDS, st.integers(2, 12))
def test_nonsense_in_a_row_changes_no_byte_of_any_other(seed: int, rows: int) -> None:
    random = np.random.default_rng(seed)
    bad = np.unique(random.integers(0, rows, random.integers(1, rows)))
    good = np.setdiff1d(np.arange(rows), bad)
    clean, dirty = State.new(rows), State.new(rows)
    for now, inputs in courses(seed, rows):
        expected, clean = decide(inputs, clean, now)
        with np.errstate(all="raise", under="ignore"):
            found, dirty = decide(poisoned(random, inputs, bad), dirty, now)
        same(numbers(expected), numbers(found), good, good)
        same(remembered(clean), remembered(dirty), good, good)
        given_counts = found.replicas[bad][found.scales[bad]]
        assert ((given_counts >= 0) & (given_counts < 2**31)).all()


@settings(deadline=None)
@given(SEEDS, st.integers(2, 12))
def test_what_is_offered_keeps_to_the_maximum_that_its_policy_states(seed: int, rows: int) -> None:
    state = State.new(rows)
    for now, inputs in courses(seed, rows):
        found, state = decide(inputs, state, now)
        assert (found.offered <= inputs.policy.own_max_replicas).all()


@settings(deadline=None)
@given(SEEDS, st.integers(2, 12))
def test_a_failed_row_leaves_no_trace(seed: int, rows: int) -> None:
    state = State.new(rows)
    for now, inputs in courses(seed, rows):
        before = state
        found, state = decide(poisoned(np.random.default_rng(seed), inputs, np.array([0])), state, now)
        if found.reason[0] == FAILED:
            kept = remembered(before.opened(now, inputs.policy.possible.keep, inputs.rules.signals))
            kept.pop("recommendations")
            same(kept, remembered(state), [0], [0])


@settings(deadline=None)
@given(SEEDS, st.integers(1, 12), SEEDS)
def test_the_order_of_rows_is_irrelevant(seed: int, rows: int, shuffle: int) -> None:
    order = np.random.default_rng(shuffle).permutation(rows)
    one, other = State.new(rows), State.new(rows)
    for now, inputs in courses(seed, rows):
        expected, one = decide(inputs, one, now)
        found, other = decide(take(inputs, order), other, now)
        same(numbers(expected), numbers(found), order, np.arange(rows))
        same(remembered(one), remembered(other), order, np.arange(rows))


@settings(deadline=None)
@given(SEEDS, st.integers(2, 12))
def test_groups_that_are_taken_and_put_back_are_decided_as_one_table(seed: int, rows: int) -> None:
    parts = np.array_split(np.arange(rows), 2)
    whole, fleet = State.new(rows), State.new(0).take(np.full(rows, -1))
    for now, inputs in courses(seed, rows):
        expected, whole = decide(inputs, whole, now)
        fleet = fleet.opened(now, inputs.policy.keep, inputs.rules.signals)
        for part in parts:
            found, after = decide(take(inputs, part), fleet.take(part), now)
            same(numbers(expected), numbers(found), part, np.arange(len(part)))
            fleet = fleet.put(part, after)
    same(remembered(whole), remembered(fleet), np.arange(rows), np.arange(rows))


@settings(deadline=None)
@given(SEEDS, st.integers(1, 8), st.integers(0, 6))
def test_going_on_from_saved_arrays_equals_one_run(seed: int, rows: int, cut: int) -> None:
    whole, stored = State.new(rows), State.new(rows)
    for cycle, (now, inputs) in enumerate(courses(seed, rows)):
        stored = State.of_arrays(stored.arrays()) if cycle == cut else stored
        expected, whole = decide(inputs, whole, now)
        found, stored = decide(inputs, stored, now)
        same(numbers(expected), numbers(found), np.arange(rows), np.arange(rows))
    same(remembered(whole), remembered(stored), np.arange(rows), np.arange(rows))


@settings(deadline=None)
@given(SEEDS, st.integers(1, 8))
def test_deciding_leaves_what_it_was_given_as_it_was(seed: int, rows: int) -> None:
    state = State.new(rows)
    for now, inputs in courses(seed, rows, 3):
        before = {name: one.copy() for name, one in state.arrays().items()}
        _, after = decide(inputs, state, now)
        for name, one in state.arrays().items():
            np.testing.assert_array_equal(one, before[name])
        state = after
