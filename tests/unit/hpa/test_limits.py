"""Worked examples of docs/hpa.md, sections 10 and 11: stabilise, limit, bound."""

from __future__ import annotations

import pytest

from forecaster.hpa import behavior, limits
from forecaster.hpa.limits import Growth, ReplicaBounds, limit, windows
from tests.support.hpa import NOW, both, moved, past, policy, rules, seconds

WIDE = ReplicaBounds(1, 1000)


@pytest.mark.parametrize(("current", "allowed"), [(1, 4), (2, 4), (3, 6), (6, 12)])
def test_without_behavior_a_pass_may_double_or_reach_four(current: int, allowed: int) -> None:
    limited = limit(500, current, WIDE, None, (), NOW)
    assert (limited.replicas, limited.clamp) == (allowed, "ScaleUpLimit")


def test_without_behavior_the_lower_of_maximum_and_growth_binds() -> None:
    assert limit(50, 3, ReplicaBounds(1, 5), None, (), NOW)[:1] + limit(50, 3, ReplicaBounds(1, 5), None, (), NOW)[
        3:4
    ] == (
        5,
        "TooManyReplicas",
    )
    assert limit(50, 3, ReplicaBounds(1, 6), None, (), NOW).clamp == "TooManyReplicas"
    assert limit(50, 3, ReplicaBounds(1, 7), None, (), NOW).clamp == "ScaleUpLimit"


def test_without_behavior_the_minimum_binds() -> None:
    limited = limit(1, 3, ReplicaBounds(2, 5), None, (), NOW)
    assert (limited.replicas, limited.clamp) == (2, "TooFewReplicas")
    assert limit(2, 3, ReplicaBounds(2, 5), None, (), NOW).clamp == "DesiredWithinRange"


def test_growth_follows_the_controllers_settings() -> None:
    assert limit(50, 3, WIDE, None, (), NOW, growth=Growth(8, 4)).replicas == 24
    assert limit(50, 3, WIDE, None, (), NOW, growth=Growth(1.5, 1)).replicas == 4


def test_without_behavior_an_entry_as_old_as_the_window_still_counts() -> None:
    assert limits.stabilize_down((past(9, 300),), 3, seconds(300), NOW)[0] == 9
    assert limits.stabilize_down((past(9, 301),), 3, seconds(300), NOW)[0] == 3


def test_without_behavior_old_recommendations_can_push_up() -> None:
    limited = limit(3, 4, WIDE, None, (past(7, 10),), NOW)
    assert (limited.replicas, limited.stabilized, limited.stabilization) == (7, 7, "ScaleDownStabilized")


def test_the_last_stale_slot_is_used_again() -> None:
    history = (past(1, 900), past(2, 800), past(3, 10))
    stored = limits.stabilize_down(history, 5, seconds(300), NOW)[1]
    assert [entry.replicas for entry in stored] == [1, 5, 3]
    stored = behavior.stabilize(history, 5, 5, seconds(0), seconds(300), NOW)[1]
    assert [entry.replicas for entry in stored] == [1, 5, 3]


def test_without_a_stale_slot_the_list_grows() -> None:
    assert len(limits.stabilize_down((past(1, 5),), 5, seconds(300), NOW)[1]) == 2


def test_a_restarted_controller_keeps_its_size_for_a_window() -> None:
    seeded = (past(8, 0),)
    assert limit(3, 8, WIDE, None, seeded, NOW).replicas == 8
    assert limit(3, 8, WIDE, None, seeded, NOW + seconds(301)).replicas == 3


@pytest.mark.parametrize(("recommendation", "result"), [(7, 7), (4, 6), (12, 9)])
def test_the_band_between_both_windows_holds(recommendation: int, result: int) -> None:
    """Current 6, up window 60 s, down window 300 s; 9 ten seconds ago, 5 a hundred seconds ago."""
    history = (past(9, 10), past(5, 100))
    assert behavior.stabilize(history, recommendation, 6, seconds(60), seconds(300), NOW)[0] == result


def test_with_behavior_an_entry_as_old_as_the_window_neither_counts_nor_frees_its_slot() -> None:
    stabilized, stored = behavior.stabilize((past(9, 300),), 3, 9, seconds(0), seconds(300), NOW)
    assert (stabilized, len(stored)) == (3, 2)
    stabilized, stored = behavior.stabilize((past(2, 60),), 9, 3, seconds(60), seconds(0), NOW)
    assert (stabilized, len(stored)) == (9, 2)


def test_an_entry_that_one_window_still_needs_is_not_stale() -> None:
    stored = behavior.stabilize((past(9, 100),), 3, 9, seconds(60), seconds(300), NOW)[1]
    assert len(stored) == 2


def test_reasons_of_stabilization_follow_the_recommendation() -> None:
    assert behavior.stabilization_reason(6, 7, 6) == "ScaleUpStabilized"
    assert behavior.stabilization_reason(6, 6, 6) == "ReadyForNewScale"
    assert behavior.stabilization_reason(6, 4, 6) == "ScaleDownStabilized"
    assert behavior.stabilization_reason(7, 6, 6) == "ScaleUpStabilized"


def test_policies_count_what_moved_in_their_period() -> None:
    """Four pods per 60 s from 10, of which 3 came 20 s ago and 2 came 70 s ago: 7 + 4."""
    ups = (moved(3, 20), moved(2, 70))
    limited = limit(20, 10, WIDE, both(rules(policy("Pods", 4))), (), NOW, scale_ups=ups)
    assert (limited.replicas, limited.clamp) == (11, "ScaleUpLimit")


def test_a_recent_fall_makes_room_to_rise_again() -> None:
    limited = limit(20, 10, WIDE, both(rules(policy("Pods", 4))), (), NOW, scale_downs=(moved(5, 20),))
    assert limited.replicas == 19


def test_an_event_as_old_as_the_period_does_not_count() -> None:
    assert behavior.period_start(10, seconds(60), (moved(3, 60),), (), NOW) == 10
    assert behavior.period_start(10, seconds(60), (moved(3, 59),), (), NOW) == 7


@pytest.mark.parametrize(
    ("current", "percent", "up", "down"),
    [(100, 10, 111, 90), (10, 90, 19, 0), (10, 80, 18, 1), (100, 7, 107, 93), (1, 10, 2, 0), (7, 100, 14, 0)],
)
def test_percent_policies_round_doubles_without_epsilon(current: int, percent: int, up: int, down: int) -> None:
    rule = rules(policy("Percent", percent))
    assert behavior.scale_up_limit(current, rule, (), (), NOW) == up
    assert behavior.scale_down_limit(current, rule, (), (), NOW) == down


def test_select_policy_takes_the_largest_or_the_smallest_move() -> None:
    two = (policy("Pods", 4), policy("Percent", 10))
    assert behavior.scale_up_limit(80, rules(*two), (), (), NOW) == 88
    assert behavior.scale_up_limit(80, rules(*two, select="Min"), (), (), NOW) == 84
    assert behavior.scale_down_limit(80, rules(*two), (), (), NOW) == 72
    assert behavior.scale_down_limit(80, rules(*two, select="Min"), (), (), NOW) == 76


def test_a_disabled_direction_does_not_move() -> None:
    off = rules(policy("Pods", 4), select="Disabled")
    up, down = (limit(goal, 5, WIDE, both(off, off), (), NOW) for goal in (9, 2))
    assert (up.replicas, up.clamp, down.replicas, down.clamp) == (5, "ScaleUpLimit", 5, "ScaleDownLimit")


def test_a_limit_below_the_current_size_does_not_lower_it() -> None:
    """Nine came within the period: it began with 1, may reach 5, and 10 stay."""
    limited = limit(20, 10, WIDE, both(rules(policy("Pods", 4))), (), NOW, scale_ups=(moved(9, 5),))
    assert (limited.replicas, limited.clamp) == (10, "ScaleUpLimit")


def test_a_limit_above_the_current_size_does_not_raise_it() -> None:
    limited = limit(1, 10, WIDE, both(None, rules(policy("Pods", 4))), (), NOW, scale_downs=(moved(9, 5),))
    assert (limited.replicas, limited.clamp) == (10, "ScaleDownLimit")


def test_bounds_bind_before_policies_where_they_are_closer() -> None:
    assert limit(50, 10, ReplicaBounds(1, 12), both(), (), NOW)[:4:3] == (12, "TooManyReplicas")
    assert limit(1, 10, ReplicaBounds(4, 12), both(), (), NOW)[:4:3] == (4, "TooFewReplicas")
    assert limit(50, 10, ReplicaBounds(1, 20), both(), (), NOW)[:4:3] == (20, "TooManyReplicas")
    assert limit(0, 10, ReplicaBounds(0, 20), both(), (), NOW)[:4:3] == (0, "DesiredWithinRange")


def test_additions_of_policies_wrap_at_32_bits() -> None:
    assert behavior.scale_up_limit(2**31 - 1, rules(policy("Pods", 1)), (), (), NOW) == -(2**31)


def test_no_policies_at_all_let_max_move_nothing_and_min_move_everything() -> None:
    assert behavior.scale_up_limit(5, rules(), (), (), NOW) == -(2**31)
    assert behavior.scale_up_limit(5, rules(select="Min"), (), (), NOW) == 2**31 - 1
    assert behavior.scale_down_limit(5, rules(), (), (), NOW) == 2**31 - 1
    assert behavior.scale_down_limit(5, rules(select="Min"), (), (), NOW) == -(2**31)


def test_an_unset_window_is_none_up_and_the_controllers_down() -> None:
    unset = both(rules(policy("Pods", 1)), rules(policy("Pods", 1)))
    assert windows(unset, seconds(120)) == (seconds(0), seconds(120))
    given = both(rules(window_s=30), rules(window_s=0))
    assert windows(given, seconds(120)) == (seconds(30), seconds(0))


def test_growth_has_the_controllers_numbers_by_default() -> None:
    assert [limits.growth_limit(current) for current in (1, 3)] == [4, 6]
    assert limit(900, 3, WIDE, None, (), NOW, growth=Growth(8, 100)).replicas == 100


def test_a_count_at_the_limit_is_within_range() -> None:
    assert limit(6, 3, WIDE, None, (), NOW).clamp == "DesiredWithinRange"
    assert limit(14, 10, WIDE, both(rules(policy("Pods", 4))), (), NOW).clamp == "DesiredWithinRange"
    assert limit(6, 10, WIDE, both(None, rules(policy("Pods", 4))), (), NOW).clamp == "DesiredWithinRange"


def test_at_the_current_size_bounds_are_not_consulted() -> None:
    for bounds in ((1, 3), (7, 9)):
        assert behavior.rate_limit(5, 5, *bounds, both(), (), (), NOW) == (5, "DesiredWithinRange")


def test_a_minimum_that_equals_the_policies_limit_is_the_reason() -> None:
    assert limit(1, 10, ReplicaBounds(6, 20), both(None, rules(policy("Pods", 4))), (), NOW)[:4:3] == (
        6,
        "TooFewReplicas",
    )


def test_pods_policies_take_pods_and_not_percent() -> None:
    assert behavior.scale_down_limit(10, rules(policy("Pods", 4)), (), (), NOW) == 6
    assert behavior.scale_up_limit(10, rules(policy("Pods", 4)), (), (), NOW) == 14


def test_a_limited_count_tells_how_it_came_about() -> None:
    limited = limit(7, 6, WIDE, both(rules(policy("Pods", 4), window_s=60)), (past(6, 10),), NOW)
    assert limited == (6, 6, "ScaleUpStabilized", "DesiredWithinRange", (past(6, 10), past(7, 0)))
