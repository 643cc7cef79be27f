"""Promises for every single metric, whatever the load (docs/hpa.md, sections 8 and 9)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from forecaster.hpa.evaluate import MetricContext, evaluate
from forecaster.hpa.observation import observe_totals
from forecaster.hpa.proposals import (
    CombinedProposal,
    MetricProposal,
    NoRecommendation,
    Share,
    Tolerance,
    Unmeasured,
    combine,
    from_average,
    from_total,
    from_utilization,
    per_pod_value,
)
from forecaster.hpa.samples import SampledPods
from forecaster.hpa.spec import SHIPPED, CrossVersionObjectReference, HpaMetricTarget, HpaSpec, MetricSpec
from tests.property.hpa_strategies import NOW, Cluster, loads, replicas, seeds, targets, tolerances

two_loads = st.tuples(loads, loads).map(sorted)
# A percentage is cut to 32 bits: 21 million times the request in use would wrap to a negative one.
uses = st.integers(0, 2 * 10**7)
two_uses = st.tuples(uses, uses).map(sorted)
percents = st.integers(1, 300)
few = st.integers(0, 20)


def replicas_of(proposal: MetricProposal | Unmeasured) -> int:
    assert isinstance(proposal, MetricProposal)
    return proposal.replicas


@given(two_uses, st.integers(1, 10**4), percents, replicas, tolerances)
def test_more_use_of_requests_never_asks_for_fewer_pods(
    use: list[int], request: int, target: int, current: int, tolerance: Tolerance
) -> None:
    low, high = (replicas_of(from_utilization(u, request * current, target, current, current, tolerance)) for u in use)
    assert low <= high


@given(two_loads, targets, replicas, tolerances)
def test_more_load_a_pod_never_asks_for_fewer_pods(
    load: list[int], target: int, current: int, tolerance: Tolerance
) -> None:
    low, high = (from_average(u, current, target, current, current, tolerance).replicas for u in load)
    assert low <= high


@given(two_loads, targets, replicas, few, few, few, tolerances)
def test_more_load_never_asks_for_fewer_pods_where_pods_are_filled_in(
    load: list[int], target: int, ready: int, missing: int, unready: int, more: int, tolerance: Tolerance
) -> None:
    """With missing or unready pods it takes only that no more pods are ready than the scale has."""
    current = ready + (more if missing or unready else 0)
    low, high = (
        from_average(u, ready, target, ready, current, tolerance, missing=missing, unready=unready).replicas
        for u in load
    )
    assert low <= high


@given(two_uses, st.integers(1, 10**4), percents, st.integers(1, 200), few, few, tolerances)
def test_more_use_never_asks_for_fewer_pods_where_pods_are_filled_in(
    use: list[int], request: int, target: int, ready: int, missing: int, unready: int, tolerance: Tolerance
) -> None:
    fill = missing * (request * max(100, target) // 100)
    low, high = (
        replicas_of(
            from_utilization(
                u,
                request * ready,
                target,
                ready,
                ready + missing + unready,
                tolerance,
                missing=Share(missing, missing * request, fill),
                unready=Share(unready, unready * request),
            )
        )
        for u in use
    )
    assert low <= high


@given(two_loads, targets, replicas, tolerances)
def test_a_larger_total_never_asks_for_fewer_pods(
    load: list[int], target: int, current: int, tolerance: Tolerance
) -> None:
    low, high = (from_total(u, target, current, current, tolerance).replicas for u in load)
    assert low <= high


@given(two_loads, targets, st.integers(0, 2000), tolerances)
def test_a_larger_shared_value_never_asks_for_fewer_pods(
    load: list[int], target: int, status: int, tolerance: Tolerance
) -> None:
    low, high = (per_pod_value(u, target, status, tolerance).replicas for u in load)
    assert low <= high


@given(loads, targets, replicas, replicas, tolerances)
def test_within_the_tolerance_nothing_moves(
    load: int, target: int, ready: int, current: int, tolerance: Tolerance
) -> None:
    average = from_average(load, ready, target, ready, current, tolerance)
    total = from_total(load, target, ready, current, tolerance)
    shared = per_pod_value(load, target, current, tolerance)
    for proposal in (average, total, shared):
        if tolerance.holds(proposal.ratio):
            assert (proposal.replicas, proposal.hold) == (current, "tolerance")
        else:
            assert proposal.hold is None


@given(loads, st.integers(1, 10**6), percents, replicas, tolerances)
def test_within_the_tolerance_utilization_moves_nothing(
    use: int, request: int, target: int, current: int, tolerance: Tolerance
) -> None:
    proposal = from_utilization(use, request * current, target, current, current, tolerance)
    assert isinstance(proposal, MetricProposal)
    assert (proposal.hold == "tolerance") == tolerance.holds(proposal.ratio)
    assert proposal.hold is None or proposal.replicas == current


@given(loads, targets, replicas, few, few, st.integers(0, 2000), tolerances)
def test_filled_in_pods_never_turn_the_direction_around(
    load: int, target: int, ready: int, missing: int, unready: int, current: int, tolerance: Tolerance
) -> None:
    first = from_average(load, ready, target, ready, current, tolerance)
    filled = from_average(load, ready, target, ready, current, tolerance, missing=missing + 1, unready=unready)
    if first.ratio > 1.0:
        assert filled.replicas >= current
    elif first.ratio < 1.0:
        assert filled.replicas <= current
    else:
        assert filled.replicas == current


@given(seeds, st.sampled_from(["cpu", "memory"]), percents, tolerances)
def test_the_order_of_pods_and_samples_is_irrelevant(
    seed: int, resource: str, percent: int, tolerance: Tolerance
) -> None:
    cluster = Cluster(seed)
    pods, taken = cluster.pods(), list(cluster.samples().items())
    metric = MetricSpec("Resource", resource, HpaMetricTarget("Utilization", percent))
    first = evaluate(metric, SampledPods(dict(taken)), MetricContext(5, 5, pods, tolerance, NOW, SHIPPED))
    cluster.random.shuffle(pods)
    cluster.random.shuffle(taken)
    other = evaluate(metric, SampledPods(dict(taken)), MetricContext(5, 5, pods, tolerance, NOW, SHIPPED))
    if isinstance(first, MetricProposal):
        assert first == other
    else:
        # With two pods at fault the message names whichever comes first.
        assert isinstance(other, Unmeasured)
        assert first.cause == other.cause


proposals = st.lists(
    st.integers(0, 50).map(lambda n: MetricProposal(n, 1.0)) | st.just(Unmeasured("api_failed", "no answer")),
    min_size=1,
    max_size=6,
)


@given(proposals, st.randoms(), st.integers(0, 50))
def test_the_order_of_metrics_is_irrelevant(
    sides: list[MetricProposal | Unmeasured], random: object, current: int
) -> None:
    shuffled = list(sides)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    first, other = combine(sides, current), combine(shuffled, current)
    if isinstance(first, CombinedProposal):
        assert isinstance(other, CombinedProposal)
        assert (first.replicas, first.partial) == (other.replicas, other.partial)
    else:
        assert isinstance(other, NoRecommendation)


@given(proposals, st.integers(0, 50))
def test_a_broken_metric_blocks_scaling_down_and_nothing_else(
    sides: list[MetricProposal | Unmeasured], current: int
) -> None:
    valid = [proposal.replicas for proposal in sides if isinstance(proposal, MetricProposal)]
    broken = len(valid) < len(sides)
    combined = combine(sides, current)
    blocked = not valid or (broken and max(valid) < current)
    assert isinstance(combined, NoRecommendation) == blocked
    if isinstance(combined, CombinedProposal):
        assert combined.replicas == max(valid)


@given(loads, st.integers(1, 10**6), percents, st.integers(1, 40), tolerances)
def test_totals_and_pods_that_are_alike_give_one_proposal(
    use: int, request: int, percent: int, current: int, tolerance: Tolerance
) -> None:
    """The functions over totals and the whole way over pods are one rule."""
    metric = MetricSpec("Resource", "cpu", HpaMetricTarget("Utilization", percent))
    spec = HpaSpec(CrossVersionObjectReference("Deployment", "d", "apps/v1"), 100, (metric,))
    observed = observe_totals(spec, current, {"cpu": use}, {"cpu": request}, NOW)
    situation = MetricContext(current, current, observed.pods, tolerance, NOW, SHIPPED)
    over_pods = evaluate(metric, observed.answers[0], situation)
    assert over_pods == from_utilization(use, request * current, percent, current, current, tolerance)


def test_fewer_ready_pods_than_replicas_may_break_the_order() -> None:
    """Inside the tolerance the answer is the whole size, just outside it the ready pods times the ratio."""
    inside = from_average(110 * 3, 3, 100, 3, 10, Tolerance())
    outside = from_average(120 * 3, 3, 100, 3, 10, Tolerance())
    assert (inside.replicas, outside.replicas) == (10, 4)


def test_a_percentage_past_32_bits_may_break_the_order() -> None:
    computed = [from_utilization(use, 1, 1, 1, 1, Tolerance()) for use in (21_474_836, 21_474_837)]
    assert [replicas_of(proposal) for proposal in computed] == [2_147_483_600, -2_147_483_596]
