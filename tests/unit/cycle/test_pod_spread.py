"""Spare pods for the loss of a node or a zone: their number, and the sentences that explain them."""

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
from forecaster.horizontal.clamps import with_spare
from forecaster.horizontal.sentences import explanation
from forecaster.publish.decided import DecidedRows
from tests.support.builders import hpa, policy, workload
from tests.support.fakes import CycleOnFakes, Load, named, steady

if TYPE_CHECKING:
    from forecaster.domain.decision import Recommendation

NEEDED = 6
CORES = 0.5 * NEEDED
"""Load of NEEDED pods with a core each, at a target of half a core."""


def cycled(spread: Spread, survive: str = "node") -> tuple[Recommendation, str]:
    """Recommendation for a workload whose load needs NEEDED pods, and its explanation."""
    web = replace(workload(replicas=4), spread=spread)
    cycle = CycleOnFakes(Load(web, {CPU: steady(CORES)}), policies=Policies(policy(survive=survive, gate=False)))
    outcome = cycle.run()
    assert outcome.report.failures == ()
    record = named(outcome, "web")
    return record, "\n".join(explanation(record))


def test_as_many_stay_as_are_needed_without_the_fullest_node() -> None:
    record, text = cycled(Spread(node=1 / 3))
    assert record.recommended_replicas == 9
    assert record.offered == 9
    assert "3 more, so that 6 stay when the node with the most of its pods is lost" in text


def test_a_zone_is_another_share() -> None:
    record, text = cycled(Spread(node=0.1, zone=0.5), "zone")
    assert record.recommended_replicas == 12
    assert "when the zone with the most of its pods is lost" in text


def test_where_no_place_is_known_nothing_is_added_and_the_count_says_so() -> None:
    record, text = cycled(NO_SPREAD, "zone")
    assert record.recommended_replicas == NEEDED
    assert "survive zone adds nothing: it is not known in which zone its pods are; enable live facts" in text


def test_where_all_pods_are_on_one_node_a_single_one_is_added() -> None:
    record, _ = cycled(Spread(node=1.0))
    assert record.recommended_replicas == NEEDED + 1


def test_without_the_policy_a_spread_changes_nothing() -> None:
    record, text = cycled(Spread(node=1.0), "none")
    assert record.recommended_replicas == NEEDED
    assert "survive" not in text


@pytest.mark.parametrize(("spread", "most", "spare"), [(1 / 3, 50, 3), (1 / 3, 7, 1), (1 / 3, 6, 0), (np.nan, 50, 0)])
def test_a_record_has_the_number_of_spare_pods(spread: float, most: int, spare: int) -> None:
    """Six are needed and nine are decided; a maximum below leaves fewer to spare."""
    web = replace(workload(replicas=4, autoscaler=hpa(highest=most)), spread=Spread(node=spread))
    cycle = CycleOnFakes(Load(web, {CPU: steady(CORES)}), policies=Policies(policy(survive="node", gate=False)))
    decided = cycle.run().recommendations
    assert isinstance(decided, DecidedRows)
    assert (decided[0].spare_replicas, decided.summary(0).spare_replicas) == (spare, spare)


@given(st.integers(0, 10_000), st.floats(0.0, 1.0))
def test_spare_pods_never_lower_and_are_as_many_again_at_most(count: int, share: float) -> None:
    (total,) = with_spare(np.array([count]), np.array([share])).tolist()
    assert count <= total <= max(2 * count, count + (share >= 1.0))


@given(st.integers(1, 10_000), st.integers(2, 50))
def test_alike_on_all_nodes_enough_are_left_without_one(count: int, nodes: int) -> None:
    (total,) = with_spare(np.array([count]), np.array([1 / nodes])).tolist()
    assert total - total / nodes >= count - 1e-6
    assert total - 1 - (total - 1) / nodes < count


@pytest.mark.parametrize("share", [0.0, np.nan])
def test_a_share_of_nothing_or_an_unknown_one_adds_nothing(share: float) -> None:
    assert with_spare(np.array([7]), np.array([share])).tolist() == [7]
