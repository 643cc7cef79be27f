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
    """Inputs of one group of rows, at irregular times."""
    random = np.random.default_rng(seed)
    rules = rules_of(random)
    policy, targets = policy_of(random, rows, rules), targets_of(random, rows, rules)
    times = BEGIN + np.cumsum(random.choice([15.0, 60.0, 61.0, 400.0], cycles))
    return [(float(now), inputs_of(random, rules, policy, targets)) for now in times]


def numbers(decisions: Decisions) -> dict[str, Any]:
    """All numbers of a decision, rows on the last axis."""
    proposals = {
        f"proposal {i} {j}": values for i, side in enumerate(decisions.proposals) for j, values in enumerate(side)
    }
    counts = {f"clamp {i}": np.where(decisions.scales, values, 0) for i, values in enumerate(decisions.counts)}
    names = ("replicas", "reason", "failed", "unseen", "reactive", "forecast")
    return {name: getattr(decisions, name) for name in names} | proposals | counts


def remembered(state: State) -> dict[str, Any]:
    """All remembered arrays of a state, rows on the last axis."""
    return {name: values for name, values in state.arrays().items() if name != "signals" and not name.endswith("_at")}


def same(left: dict[str, Any], right: dict[str, Any], these: Any, those: Any) -> None:
    """Compare two sides; instants that only one of them has, for another row's longer window, are left out."""
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
            decided, dirty = decide(poisoned(random, inputs, bad), dirty, now)
        same(numbers(expected), numbers(decided), good, good)
        same(remembered(clean), remembered(dirty), good, good)
        given_counts = decided.replicas[bad][decided.scales[bad]]
        assert ((given_counts >= 0) & (given_counts < 2**31)).all()


@settings(deadline=None)
@given(SEEDS, st.integers(2, 12))
def test_what_is_offered_keeps_to_the_maximum_that_its_policy_states(seed: int, rows: int) -> None:
    state = State.new(rows)
    for now, inputs in courses(seed, rows):
        decided, state = decide(inputs, state, now)
        assert (decided.offered <= inputs.policy.own_max_replicas).all()


@settings(deadline=None)
@given(SEEDS, st.integers(2, 12))
def test_a_failed_row_leaves_no_trace(seed: int, rows: int) -> None:
    state = State.new(rows)
    for now, inputs in courses(seed, rows):
        before = state
        decided, state = decide(poisoned(np.random.default_rng(seed), inputs, np.array([0])), state, now)
        if decided.reason[0] == FAILED:
            untouched = remembered(before.opened(now, inputs.policy.possible.keep, inputs.rules.signals))
            untouched.pop("recommendations")
            same(untouched, remembered(state), [0], [0])


@settings(deadline=None)
@given(SEEDS, st.integers(1, 12), SEEDS)
def test_the_order_of_rows_is_irrelevant(seed: int, rows: int, shuffle: int) -> None:
    order = np.random.default_rng(shuffle).permutation(rows)
    straight, other = State.new(rows), State.new(rows)
    for now, inputs in courses(seed, rows):
        expected, straight = decide(inputs, straight, now)
        shuffled, other = decide(take(inputs, order), other, now)
        same(numbers(expected), numbers(shuffled), order, np.arange(rows))
        same(remembered(straight), remembered(other), order, np.arange(rows))


@settings(deadline=None)
@given(SEEDS, st.integers(2, 12))
def test_groups_that_are_taken_and_put_back_are_decided_as_one_table(seed: int, rows: int) -> None:
    parts = np.array_split(np.arange(rows), 2)
    whole, fleet = State.new(rows), State.new(0).take(np.full(rows, -1))
    for now, inputs in courses(seed, rows):
        expected, whole = decide(inputs, whole, now)
        fleet = fleet.opened(now, inputs.policy.keep, inputs.rules.signals)
        for part in parts:
            decided, after = decide(take(inputs, part), fleet.take(part), now)
            same(numbers(expected), numbers(decided), part, np.arange(len(part)))
            fleet = fleet.put(part, after)
    same(remembered(whole), remembered(fleet), np.arange(rows), np.arange(rows))


@settings(deadline=None)
@given(SEEDS, st.integers(1, 8), st.integers(0, 6))
def test_going_on_from_saved_arrays_equals_one_run(seed: int, rows: int, cut: int) -> None:
    whole, stored = State.new(rows), State.new(rows)
    for cycle, (now, inputs) in enumerate(courses(seed, rows)):
        stored = State.of_arrays(stored.arrays()) if cycle == cut else stored
        expected, whole = decide(inputs, whole, now)
        decided, stored = decide(inputs, stored, now)
        same(numbers(expected), numbers(decided), np.arange(rows), np.arange(rows))
    same(remembered(whole), remembered(stored), np.arange(rows), np.arange(rows))


@settings(deadline=None)
@given(SEEDS, st.integers(1, 8))
def test_deciding_leaves_what_it_was_given_as_it_was(seed: int, rows: int) -> None:
    state = State.new(rows)
    for now, inputs in courses(seed, rows, 3):
        before = {name: values.copy() for name, values in state.arrays().items()}
        _, after = decide(inputs, state, now)
        for name, values in state.arrays().items():
            np.testing.assert_array_equal(values, before[name])
        state = after
