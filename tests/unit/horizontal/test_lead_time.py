"""Lead time: configured, or measured on the workload's own scale-ups."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from forecaster.domain.policy import HorizontalPolicy
from forecaster.horizontal.lead_time import (
    DEFAULT_LEAD_TIME,
    FAR,
    LEAD_TIME_BUCKETS,
    MAX_LEAD_TIME,
    MAX_SCALE_UPS,
    MIN_SCALE_UPS,
    ScaleUpWatch,
    interrupted,
    lead_time,
    measured,
    observed,
)
from tests.support.builders import NOON, after, minutes

UNSTATED = HorizontalPolicy()


def test_a_configured_lead_time_holds() -> None:
    assert lead_time(HorizontalPolicy(lead_time="7m"), (minutes(1),) * 20).value == minutes(7)


def test_a_few_scale_ups_are_too_few() -> None:
    assumed = lead_time(UNSTATED, (minutes(9),) * 4)
    assert assumed.value == DEFAULT_LEAD_TIME
    assert "4 of 5" in assumed.origin


def test_nine_of_ten_pods_are_ready_within_it() -> None:
    """P90 of eight starts of 2 min, one of 4 and one of 11 is 4 min; scrape, cycle and sync add a minute."""
    assert lead_time(UNSTATED, (minutes(2),) * 8 + (minutes(4), minutes(11))).value == minutes(5)


def test_it_is_rounded_up_to_a_step_of_the_ladder() -> None:
    assert lead_time(UNSTATED, (timedelta(minutes=5.5),) * 5).value == minutes(8)


def watch(*counts: tuple[int, int]) -> ScaleUpWatch:
    watched = ScaleUpWatch()
    for minute, (replicas, ready) in enumerate(counts):
        watched = observed(watched, replicas, ready, after(minute))
    return watched


def test_a_scale_up_takes_until_all_it_asked_for_are_ready() -> None:
    assert watch((2, 2), (5, 2), (5, 3), (5, 5)).took == (minutes(2),)


def test_a_scale_up_that_is_taken_back_is_not_counted() -> None:
    assert watch((2, 2), (5, 2), (2, 2), (2, 2)).took == ()


def test_a_scale_up_that_is_over_at_the_first_look_took_no_time() -> None:
    assert watch((2, 2), (5, 5)).took == (timedelta(0),)


def test_a_scale_up_during_which_the_source_was_down_is_not_counted() -> None:
    assert observed(interrupted(watch((2, 2), (5, 2))), 5, 5, after(60)).took == ()


def after_scale_ups(*took: float) -> ScaleUpWatch:
    """A watch after scale-ups by one pod each, whose pods were ready after these minutes."""
    watched, now = observed(ScaleUpWatch(), 1, 1, NOON), NOON
    for pods, length in enumerate(took, 2):
        watched = observed(watched, pods, pods - 1, now)
        now += minutes(length)
        watched = observed(watched, pods, pods, now)
    return watched


def test_five_scale_ups_put_a_lead_time_in_force() -> None:
    assert after_scale_ups(*[4] * 4).bucket is None
    assert after_scale_ups(*[4] * 5).bucket == minutes(5)


def test_a_single_accident_of_five_does_not_count() -> None:
    assert after_scale_ups(4, 4, 14, 4, 4).bucket == minutes(5)


def test_pods_that_became_much_slower_are_believed_at_once() -> None:
    assert after_scale_ups(*[1] * 5, 9, 9).bucket == minutes(10)


def test_a_lead_time_that_is_a_little_short_stays_until_it_was_short_five_times() -> None:
    """Ten minutes are in force while eleven are needed."""
    assert after_scale_ups(*[9] * 5, *[10] * 5).bucket == minutes(10)
    assert after_scale_ups(*[9] * 5, *[10] * 6).bucket == minutes(12)


class TestPodsThatWaitForANode:
    """Two of five scale-ups waited 170 minutes for a node, which is not how long pods take to start."""

    def test_are_not_counted_and_the_origin_says_so(self) -> None:
        took = after_scale_ups(2, 170, 2, 170, 2, 2, 2).took
        assert lead_time(UNSTATED, took) == (
            minutes(3),
            "P90 of 5 scale-ups, with scrape, cycle and sync; 2 over 15m not counted: pods that wait for a node",
        )

    def test_do_not_count_until_they_are_more_than_half(self) -> None:
        waits = [170] * 5
        assert "5 over 15m not counted" in measured(minutes(3), after_scale_ups(*[2] * 5, *waits).took).origin
        assert "state lead_time" in measured(minutes(3), after_scale_ups(*[2] * 4, *waits).took).origin

    def test_leave_too_few_that_count(self) -> None:
        assumed = lead_time(UNSTATED, after_scale_ups(2, 170, 2, 170, 2).took)
        assert assumed.value == DEFAULT_LEAD_TIME
        assert assumed.origin.startswith("assumed; 3 of 5 scale-ups seen; 2 more took over 15m")

    def test_leave_the_pods_of_their_scale_up_that_did_not_wait(self) -> None:
        """Three of five more pods are ready after two minutes, two after three hours."""
        watched = watch((2, 2), (7, 2), (7, 4), (7, 5), *[(7, 5)] * 180, (7, 7))
        assert watched.took == (minutes(2),)
        assert watched.waiting == ()

    def test_are_believed_where_all_do_up_to_the_bound_which_names_the_setting(self) -> None:
        watched = after_scale_ups(*[170] * 5)
        assert watched.bucket == MAX_LEAD_TIME
        assert "state lead_time in the policy" in measured(MAX_LEAD_TIME, watched.took).origin


def test_quicker_pods_lower_it_late_and_it_does_not_go_back_and_forth() -> None:
    assert after_scale_ups(*[9] * 5, *[1] * 50).bucket == minutes(2)
    buckets = {after_scale_ups(*([9, 10] * 30)[:count]).bucket for count in range(10, 60)}
    assert len(buckets) == 1


@given(st.lists(st.floats(0, 14), min_size=MIN_SCALE_UPS, max_size=60))
def test_what_is_in_force_is_a_step_of_the_ladder_and_no_shorter_than_what_is_usual(took: list[float]) -> None:
    bucket = after_scale_ups(*took).bucket
    assert bucket in LEAD_TIME_BUCKETS
    usual = sorted(took[-MAX_SCALE_UPS:])[len(took[-MAX_SCALE_UPS:]) // 2]
    assert bucket is not None
    assert bucket * FAR >= minutes(usual) or bucket == LEAD_TIME_BUCKETS[-1]


@given(st.lists(st.floats(0, 900), min_size=MIN_SCALE_UPS, max_size=60))
def test_what_was_measured_is_never_beyond_the_bound(took: list[float]) -> None:
    bucket = after_scale_ups(*took).bucket
    assert bucket is None or bucket in LEAD_TIME_BUCKETS
    assert LEAD_TIME_BUCKETS[-1] == MAX_LEAD_TIME


def test_a_scale_up_during_another_one_is_counted_too() -> None:
    assert watch((2, 2), (4, 2), (6, 2), (6, 4), (6, 6)).took == (minutes(2), minutes(2))
