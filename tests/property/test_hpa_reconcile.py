"""Promises for whole passes: no crash, a fixed point stays, stored state is the state (docs/hpa.md, section 3)."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from forecaster.hpa.observation import Observation, ScaleSubresource, observe_totals
from forecaster.hpa.reconcile import reconcile
from forecaster.hpa.state import HpaState
from tests.property.hpa_strategies import NOW, Cluster, controllers, seeds, specs

if TYPE_CHECKING:
    from forecaster.hpa.outcome import Pass
    from forecaster.hpa.spec import Controller, HpaSpec


@given(seeds, specs(), controllers)
def test_a_pass_takes_whatever_a_cluster_shows(seed: int, spec: HpaSpec, controller: Controller) -> None:
    state, cluster = HpaState(), Cluster(seed)
    for step in range(3):
        observed = cluster.observation(spec)
        outcome = reconcile(spec, observed, state, NOW + timedelta(seconds=15 * step), controller)
        state = outcome.state
        check(spec, observed, outcome)


def check(spec: HpaSpec, observed: Observation, outcome: Pass) -> None:
    desired = outcome.desired
    assert outcome.conditions == outcome.state.conditions
    assert len({condition.type for condition in outcome.conditions}) == len(outcome.conditions)
    if desired.written:
        assert spec.bounds.min_replicas <= desired.replicas <= spec.max_replicas
        assert desired.events[-1].reason == "SuccessfulRescale"
        assert isinstance(observed.scale, ScaleSubresource)
        assert desired.replicas != observed.scale.spec_replicas


@given(
    specs(),
    st.integers(1, 30),
    st.dictionaries(st.sampled_from(["cpu", "memory", "qps", "queue"]), st.integers(0, 10**9)),
    st.integers(1, 10**6),
    controllers,
)
def test_at_a_fixed_point_another_pass_changes_nothing(
    spec: HpaSpec, replicas: int, totals: dict[str, int], request: int, controller: Controller
) -> None:
    observed = observe_totals(spec, replicas, totals, {"cpu": request, "memory": request}, NOW)
    once = reconcile(spec, observed, HpaState(), NOW, controller)
    if once.desired.written or once.desired.replicas != replicas:
        return
    twice = reconcile(spec, observed, once.state, NOW, controller)
    assert twice.desired.replicas == once.desired.replicas
    assert not twice.desired.written
    assert [condition[:3] for condition in twice.conditions] == [condition[:3] for condition in once.conditions]
