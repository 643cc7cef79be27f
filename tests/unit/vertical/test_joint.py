"""Replicas and size together: ten cores of load, and pods that take a quarter of a core and half a GiB idle."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecaster.vertical.joint import Bounds, Costs, Infeasible, Plan, PodModel, joint_choice, least_replicas
from tests.support.recommendations import GIB

MODEL = PodModel(base_cpu=0.25, base_memory=0.5 * GIB, cpu_per_load=1.0, memory_per_load=0.1 * GIB)
BOUNDS = Bounds(2, 20)
COSTS = Costs()


def chosen(load: float = 10.0, bounds: Bounds = BOUNDS, costs: Costs = COSTS, now: int = 4) -> Plan:
    plan = joint_choice(load, MODEL, bounds, costs, now)
    assert isinstance(plan, Plan), plan
    return plan


def test_pods_that_cost_something_by_themselves_are_few_and_large() -> None:
    assert chosen().replicas == 2


def test_a_node_bounds_the_size() -> None:
    plan = chosen(bounds=replace(BOUNDS, node_cpu=4.0))
    assert plan.cpu <= 4.0
    assert plan.replicas == 4


def test_a_quota_that_nothing_satisfies_is_told() -> None:
    refused = joint_choice(10.0, MODEL, replace(BOUNDS, quota_cpu=5.0), COSTS, 4)
    assert isinstance(refused, Infeasible)
    assert "exceed the quota" in refused.reason


def test_dear_starts_keep_the_count() -> None:
    assert chosen(costs=replace(COSTS, pod_start=1000.0)).replicas == 4


def test_the_size_carries_the_load_at_the_utilization() -> None:
    plan = chosen()
    assert plan.replicas * (plan.cpu * COSTS.utilization - MODEL.base_cpu) == pytest.approx(10.0)
    assert least_replicas(10.0, MODEL, plan.cpu, COSTS.utilization) == plan.replicas


@given(st.floats(0.1, 500), st.integers(1, 30))
def test_choosing_again_changes_nothing(load: float, now: int) -> None:
    """The forecast total does not depend on the choice, so the second choice is the first: no shrink, no growth."""
    first = joint_choice(load, MODEL, Bounds(1, 30), COSTS, now)
    assert isinstance(first, Plan)
    again = joint_choice(load, MODEL, Bounds(1, 30), COSTS, first.replicas)
    assert isinstance(again, Plan)
    assert again[:3] == first[:3]


@given(st.floats(0.1, 200), st.floats(1.0, 3.0))
def test_more_load_is_never_given_less(load: float, factor: float) -> None:
    less, more = chosen(load), chosen(load * factor)
    assert more.replicas * more.cpu >= less.replicas * less.cpu - 1e-9
