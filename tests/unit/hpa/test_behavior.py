"""Memory of an HPA (docs/hpa.md, section 11.4)."""

from __future__ import annotations

from forecaster.hpa.behavior import ScaleEvent, change_since, record_recommendation, record_scale_event
from tests.support.hpa import NOW, ago, moved, past, policy

MINUTE = (policy("Pods", 1, 15), policy("Percent", 1, 60))


def test_an_event_is_appended_while_all_still_count() -> None:
    assert record_scale_event((moved(3, 60),), 2, NOW, MINUTE) == (moved(3, 60), ScaleEvent(2, NOW))


def test_the_last_outdated_slot_is_used_again_and_the_others_are_flagged() -> None:
    stored = record_scale_event((moved(3, 90), moved(4, 61), moved(5, 10)), 2, NOW, MINUTE)
    assert stored == (moved(3, 90, outdated=True), ScaleEvent(2, NOW), moved(5, 10))


def test_a_flag_once_set_frees_its_slot_even_where_periods_have_grown() -> None:
    assert record_scale_event((moved(3, 10, outdated=True),), 2, NOW, MINUTE) == (ScaleEvent(2, NOW),)


def test_counting_does_not_look_at_flags() -> None:
    assert change_since((moved(3, 10, outdated=True), moved(4, 60)), ago(60)) == 3


def test_counts_wrap_at_32_bits() -> None:
    assert change_since((moved(2**31 - 1, 1), moved(1, 1)), ago(5)) == -(2**31)


def test_without_policies_every_past_event_is_outdated() -> None:
    assert record_scale_event((moved(3, 1),), 2, NOW, ()) == (ScaleEvent(2, NOW),)


def test_a_recommendation_takes_the_slot_it_is_given() -> None:
    history = (past(1, 3), past(2, 2), past(3, 1))
    assert [r.replicas for r in record_recommendation(history, 9, NOW, 0)] == [9, 2, 3]
    assert [r.replicas for r in record_recommendation(history, 9, NOW, None)] == [1, 2, 3, 9]
