"""Demand of a panic window lowers no count, whatever else a decision is made of."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from forecaster.horizontal.decide import decide
from forecaster.horizontal.state import State
from tests.support.rows import POISONS, inputs_of, policy_of, rules_of, targets_of

BEGIN = 1.77e9


@settings(deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 12))
def test_demand_of_a_panic_window_lowers_nothing(seed: int, rows: int) -> None:
    """In one cycle, after some without one: counts, what is held, and what an HPA reads."""
    random = np.random.default_rng(seed)
    rules = rules_of(random)
    policy, targets, state = policy_of(random, rows, rules), targets_of(random, rows, rules), State.new(rows)
    for minute in range(3):
        _, state = decide(inputs_of(random, rules, policy, targets), state, BEGIN + 60.0 * minute)
    inputs = inputs_of(random, rules, policy, targets)
    panic = random.uniform(0.0, 60.0, inputs.measured.shape)
    panic = np.where(random.random(panic.shape) < 0.3, random.choice(np.array(POISONS), panic.shape), panic)
    calm, _ = decide(inputs, state, BEGIN + 180.0)
    raised, _ = decide(replace(inputs, panic=panic), state, BEGIN + 180.0)
    assert (raised.replicas >= calm.replicas)[calm.scales].all()
    assert (raised.replicas >= np.minimum(inputs.current, policy.max_replicas))[raised.scales & ~calm.scales].all()
    assert (raised.offered >= calm.offered)[calm.scales].all()
    assert not (calm.scales & ~raised.scales).any()


@given(st.integers(0, 2**32 - 1))
@settings(deadline=None)
def test_a_panic_window_of_which_nothing_is_known_changes_nothing(seed: int) -> None:
    random = np.random.default_rng(seed)
    rules = rules_of(random)
    inputs = inputs_of(random, rules, policy_of(random, 9, rules), targets_of(random, 9, rules))
    silent = replace(inputs, panic=np.full(inputs.measured.shape, np.nan))
    one, other = (decide(given_, State.new(9), BEGIN)[0] for given_ in (inputs, silent))
    np.testing.assert_array_equal(one.replicas, other.replicas)
    np.testing.assert_array_equal(one.reason, other.reason)
    np.testing.assert_array_equal(one.inputs.measured, other.inputs.measured)
