"""Promises between a recommendation and the desired count (docs/hpa.md, sections 10 and 11)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from forecaster.hpa.behavior import PastRecommendations, ScaleEvents, change_since, record_scale_event
from forecaster.hpa.limits import ReplicaBounds, limit, windows
from tests.property.hpa_strategies import NOW, behaviors, events, histories, policies, seconds

if TYPE_CHECKING:
    from datetime import timedelta

    from forecaster.hpa.behavior import Behavior, ScalingPolicy

sizes = st.integers(0, 2000)


@st.composite
def bounds_and_size(draw: st.DrawFn) -> tuple[ReplicaBounds, int]:
    low, current, high = sorted(draw(st.tuples(sizes, sizes, st.integers(1, 2000))))
    return ReplicaBounds(low, max(high, 1)), current


@given(sizes, bounds_and_size(), behaviors, histories, events, events)
def test_the_desired_count_stays_within_the_bounds(
    recommendation: int,
    inside: tuple[ReplicaBounds, int],
    behavior: Behavior | None,
    history: PastRecommendations,
    ups: ScaleEvents,
    downs: ScaleEvents,
) -> None:
    bounds, current = inside
    limited = limit(recommendation, current, bounds, behavior, history, NOW, scale_ups=ups, scale_downs=downs)
    assert bounds.min_replicas <= limited.replicas <= bounds.max_replicas


@given(sizes, bounds_and_size(), behaviors, histories, seconds)
def test_scaling_down_stops_at_the_highest_of_the_window(
    recommendation: int,
    inside: tuple[ReplicaBounds, int],
    behavior: Behavior | None,
    history: PastRecommendations,
    flag: timedelta,
) -> None:
    bounds, current = inside
    limited = limit(recommendation, current, bounds, behavior, history, NOW, downscale_stabilization=flag)
    window = flag if behavior is None else windows(behavior, flag)[1]
    highest = max((r.replicas for r in history if r.at > NOW - window), default=0)
    assert limited.replicas >= min(current, highest, bounds.max_replicas)


@given(sizes, bounds_and_size(), behaviors, histories, events, events)
def test_a_move_goes_towards_the_stabilised_count_and_not_past_it(
    recommendation: int,
    inside: tuple[ReplicaBounds, int],
    behavior: Behavior | None,
    history: PastRecommendations,
    ups: ScaleEvents,
    downs: ScaleEvents,
) -> None:
    bounds, current = inside
    limited = limit(recommendation, current, bounds, behavior, history, NOW, scale_ups=ups, scale_downs=downs)
    goal = min(max(limited.stabilized, bounds.min_replicas), bounds.max_replicas)
    low, high = sorted((current, goal))
    assert low <= limited.replicas <= high


@given(sizes, bounds_and_size(), behaviors, histories)
def test_a_recommendation_is_remembered_as_it_was(
    recommendation: int, inside: tuple[ReplicaBounds, int], behavior: Behavior | None, history: PastRecommendations
) -> None:
    bounds, current = inside
    stored = limit(recommendation, current, bounds, behavior, history, NOW).history
    assert (recommendation, NOW) in [tuple(entry) for entry in stored]
    assert len(stored) in {len(history), len(history) + 1}
    assert len(set(enumerate(stored)) - set(enumerate(history))) <= 1


@given(st.tuples(sizes, sizes).map(sorted), bounds_and_size(), behaviors, histories, events, events)
def test_a_higher_recommendation_never_gives_fewer_replicas(
    two: list[int],
    inside: tuple[ReplicaBounds, int],
    behavior: Behavior | None,
    history: PastRecommendations,
    ups: ScaleEvents,
    downs: ScaleEvents,
) -> None:
    bounds, current = inside
    low, high = (limit(r, current, bounds, behavior, history, NOW, scale_ups=ups, scale_downs=downs) for r in two)
    assert low.stabilized <= high.stabilized
    assert low.replicas <= high.replicas


@given(bounds_and_size(), behaviors, events, events)
def test_a_size_that_is_recommended_stays(
    inside: tuple[ReplicaBounds, int], behavior: Behavior | None, ups: ScaleEvents, downs: ScaleEvents
) -> None:
    bounds, current = inside
    limited = limit(current, current, bounds, behavior, (), NOW, scale_ups=ups, scale_downs=downs)
    assert (limited.replicas, limited.stabilization) == (current, "ReadyForNewScale")
    assert limited.clamp == "DesiredWithinRange"


@given(events, st.integers(1, 500), st.lists(policies, min_size=1, max_size=3).map(tuple), seconds)
def test_a_recorded_event_counts_and_those_that_still_count_are_kept(
    past: ScaleEvents, change: int, rules: tuple[ScalingPolicy, ...], period: timedelta
) -> None:
    past = tuple(event._replace(outdated=False) for event in past)
    longest = max(policy.period for policy in rules)
    counted = min(period, longest)
    stored = record_scale_event(past, change, NOW, rules)
    begin = NOW - counted
    grown = change if counted else 0
    assert change_since(stored, begin) == change_since(past, begin) + grown
