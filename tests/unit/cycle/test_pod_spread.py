"""Pods to spare for the loss of a node or a zone: how many, and what is said of them and where they cannot be."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecaster.domain.policies import Policies
from forecaster.domain.signal import CPU
from forecaster.domain.workload import NO_SPREAD, Spread
from forecaster.horizontal.clamps.spare import with_spare
from forecaster.horizontal.explain import explanation
from forecaster.publish.decided import DecidedRows
from tests.support.builders import hpa, policy, workload
from tests.support.fakes import CycleOnFakes, Load, named, steady

if TYPE_CHECKING:
    from forecaster.domain.decision import Recommendation

NEEDED = 6
CORES = 0.5 * NEEDED
"""Load of so many pods of a core at a target of half of it."""


def cycled(spread: Spread, survive: str = "node") -> tuple[Recommendation, str]:
    """What a workload should have whose load needs NEEDED pods, and the sentences of it."""
    one = replace(workload(replicas=4), spread=spread)
    cycle = CycleOnFakes(Load(one, {CPU: steady(CORES)}), policies=Policies(policy(survive=survive, gate=False)))
    outcome = cycle.run()
    assert outcome.report.failures == ()
    found = named(outcome, "web")
    return found, "\n".join(explanation(found))


def test_as_many_stay_as_are_needed_without_the_fullest_node() -> None:
    found, told = cycled(Spread(node=1 / 3))
    assert found.recommended_replicas == 9
    assert found.offered == 9
    assert "3 more, so that 6 stay when the node with the most of its pods is lost" in told


def test_a_zone_is_another_share() -> None:
    found, told = cycled(Spread(node=0.1, zone=0.5), "zone")
    assert found.recommended_replicas == 12
    assert "when the zone with the most of its pods is lost" in told


def test_where_no_place_is_known_nothing_is_added_and_the_count_says_so() -> None:
    found, told = cycled(NO_SPREAD, "zone")
    assert found.recommended_replicas == NEEDED
    assert "survive zone adds nothing: it is not known in which zone its pods are; enable live facts" in told


def test_where_all_pods_are_on_one_node_a_single_one_is_added() -> None:
    found, _ = cycled(Spread(node=1.0))
    assert found.recommended_replicas == NEEDED + 1


def test_without_the_policy_a_spread_changes_nothing() -> None:
    found, told = cycled(Spread(node=1.0), "none")
    assert found.recommended_replicas == NEEDED
    assert "survive" not in told


@pytest.mark.parametrize(("spread", "most", "spare"), [(1 / 3, 50, 3), (1 / 3, 7, 1), (1 / 3, 6, 0), (np.nan, 50, 0)])
def test_what_is_recorded_says_how_many_pods_are_spare(spread: float, most: int, spare: int) -> None:
    """Six are needed and nine are decided; a maximum below leaves fewer to spare."""
    one = replace(workload(replicas=4, autoscaler=hpa(highest=most)), spread=Spread(node=spread))
    cycle = CycleOnFakes(Load(one, {CPU: steady(CORES)}), policies=Policies(policy(survive="node", gate=False)))
    decided = cycle.run().recommendations
    assert isinstance(decided, DecidedRows)
    assert (decided[0].spare_replicas, decided.summary(0).spare_replicas) == (spare, spare)


@given(st.integers(0, 10_000), st.floats(0.0, 1.0))
def test_spare_pods_never_lower_and_are_as_many_again_at_most(count: int, share: float) -> None:
    (found,) = with_spare(np.array([count]), np.array([share])).tolist()
    assert count <= found <= max(2 * count, count + (share >= 1.0))


@given(st.integers(1, 10_000), st.integers(2, 50))
def test_alike_on_all_nodes_enough_are_left_without_one(count: int, nodes: int) -> None:
    (found,) = with_spare(np.array([count]), np.array([1 / nodes])).tolist()
    assert found - found / nodes >= count - 1e-6
    assert found - 1 - (found - 1) / nodes < count


@pytest.mark.parametrize("share", [0.0, np.nan])
def test_nothing_to_survive_and_nothing_known_add_nothing(share: float) -> None:
    assert with_spare(np.array([7]), np.array([share])).tolist() == [7]
