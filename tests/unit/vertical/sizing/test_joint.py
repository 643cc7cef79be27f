"""Replicas and size together, for ten cores of load; an idle pod takes a quarter of a core and half a GiB."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecaster.vertical.sizing.joint import (
    Infeasible,
    JointBounds,
    LoadStretch,
    PodModel,
    ResourceCosts,
    SizePlan,
    joint_choice,
    least_replicas,
    size_plan,
)
from tests.support.recommendations import GIB

MODEL = PodModel(base_cpu=0.25, base_memory=0.5 * GIB, cpu_per_load=1.0, memory_per_load=0.1 * GIB)
BOUNDS = JointBounds(2, 20)
COSTS = ResourceCosts()


def all_day(load: float) -> list[LoadStretch]:
    return [LoadStretch(24.0, load)]


def chosen(load: float = 10.0, bounds: JointBounds = BOUNDS, costs: ResourceCosts = COSTS, now: int = 4) -> SizePlan:
    plan = joint_choice(all_day(load), MODEL, bounds, costs, now)
    assert isinstance(plan, SizePlan), plan
    return plan


def test_pods_that_cost_something_by_themselves_are_few_and_large() -> None:
    assert chosen().replicas == 2


def test_an_hpa_that_allows_two_billion_pods_is_answered_at_once() -> None:
    """The loads that a pod is known to carry bound the counts that are compared."""
    assert chosen(bounds=JointBounds(1, 2**31 - 1, least_load=0.5, most_load=2.0)).replicas == 5


def test_a_cluster_that_refuses_every_size_is_not_asked_for_each_count() -> None:
    """Asking about 15,000 counts of one workload took 33 ms each in a namespace that allows nothing."""
    counts: list[int] = []

    def refusal(plan: SizePlan) -> str:
        counts.append(plan.replicas)
        return f"{plan.replicas} are too many"

    bounds = JointBounds(1, 2**31 - 1, least_load=0.25, most_load=1.0)
    choice = joint_choice(all_day(5000.0), MODEL, bounds, COSTS, 4, refusal)
    assert choice == Infeasible("5000 are too many")
    assert len(counts) < 250


def test_dear_starts_keep_the_count() -> None:
    assert chosen(costs=replace(COSTS, pod_start=1000.0)).replicas == 4


def test_the_size_carries_the_load_at_the_utilization() -> None:
    plan = chosen()
    assert plan.replicas * (plan.cpu * COSTS.utilization - MODEL.base_cpu) == pytest.approx(10.0)
    assert least_replicas(10.0, MODEL, plan.cpu, COSTS.utilization) == plan.replicas


@given(st.floats(0.1, 500), st.integers(1, 30))
def test_choosing_again_changes_nothing(load: float, now: int) -> None:
    """The forecast total does not depend on the choice, so the second choice is the first: no shrink, no growth."""
    first = joint_choice(all_day(load), MODEL, JointBounds(1, 30), COSTS, now)
    assert isinstance(first, SizePlan)
    again = joint_choice(all_day(load), MODEL, JointBounds(1, 30), COSTS, first.replicas)
    assert isinstance(again, SizePlan)
    assert again[:3] == first[:3]


@given(st.floats(0.1, 200), st.floats(1.0, 3.0))
def test_more_load_is_never_given_less(load: float, factor: float) -> None:
    less, more = chosen(load), chosen(load * factor)
    assert more.replicas * more.cpu >= less.replicas * less.cpu - 1e-9


DAY_AND_NIGHT = [LoadStretch(8.0, 10.0), LoadStretch(16.0, 1.0)]
LEAN = replace(MODEL, base_cpu=0.0, base_memory=0.01 * GIB)


def test_small_pods_follow_a_quiet_night() -> None:
    """Two large pods would be idle all night; small ones cost little to start and are removed."""
    plan = joint_choice(DAY_AND_NIGHT, LEAN, BOUNDS, COSTS, 4)
    assert isinstance(plan, SizePlan)
    assert plan.replicas == 20
    assert plan.least == 2


def test_starts_that_cost_something_speak_for_fewer_and_larger_pods() -> None:
    dear = joint_choice(DAY_AND_NIGHT, LEAN, BOUNDS, replace(COSTS, pod_start=20.0), 2)
    assert isinstance(dear, SizePlan)
    assert dear.replicas < 20


def test_a_pod_is_not_given_more_than_a_pod_is_known_to_carry() -> None:
    assert chosen(bounds=replace(BOUNDS, most_load=2.0)).replicas == 5


def test_where_no_count_gives_a_pod_such_a_load_it_is_infeasible() -> None:
    choice = joint_choice(all_day(10.0), MODEL, replace(BOUNDS, most_load=0.1), COSTS, 4)
    assert isinstance(choice, Infeasible)
    assert "no count from 2 to 20" in choice.reason


def test_an_hpa_that_may_go_to_zero_still_has_a_pod_at_the_peak() -> None:
    assert chosen(bounds=replace(BOUNDS, min_replicas=0)).replicas == 1


def test_what_the_cluster_refuses_gives_way_to_the_next_cheapest() -> None:
    plan = joint_choice(
        all_day(10.0), MODEL, BOUNDS, COSTS, 4, lambda candidate: "LimitRange" if candidate.cpu > 3.0 else ""
    )
    assert isinstance(plan, SizePlan)
    assert plan.cpu <= 3.0
    assert plan.replicas == 6


def test_todays_size_is_accounted_for_in_the_same_way() -> None:
    plan = chosen()
    same = size_plan(all_day(10.0), plan.cpu, plan.memory, MODEL, BOUNDS, COSTS, 4)
    assert same == plan
