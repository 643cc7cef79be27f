"""Lead time: configured, or measured on the workload's own scale-ups."""

from __future__ import annotations

from datetime import timedelta

from forecaster.decisions.lead_time import DEFAULT, Watch, lead_time, watched
from forecaster.domain.policy import HorizontalPolicy
from tests.support.builders import after, minutes

UNSTATED = HorizontalPolicy()


def test_what_is_configured_holds() -> None:
    assert lead_time(HorizontalPolicy(lead_time="7m"), [minutes(1)] * 20).value == minutes(7)


def test_a_few_scale_ups_say_nothing_yet() -> None:
    one = lead_time(UNSTATED, [minutes(9)] * 4)
    assert one.value == DEFAULT
    assert "4 of 5" in one.origin


def test_nine_of_ten_pods_are_ready_within_it() -> None:
    """Eight starts of 2 min, one of 4, one of 11: P90 is 4, a minute for scrape, cycle and sync."""
    assert lead_time(UNSTATED, [minutes(2)] * 8 + [minutes(4), minutes(11)]).value == minutes(5)


def test_it_is_rounded_up_to_a_step_of_the_ladder() -> None:
    assert lead_time(UNSTATED, [timedelta(minutes=5.5)] * 5).value == minutes(8)


def watch(*seen: tuple[int, int]) -> Watch:
    one = Watch()
    for minute, (replicas, ready) in enumerate(seen):
        one = watched(one, replicas, ready, after(minute))
    return one


def test_a_scale_up_takes_until_all_it_asked_for_are_ready() -> None:
    assert watch((2, 2), (5, 2), (5, 3), (5, 5)).took == (minutes(2),)


def test_one_that_is_taken_back_says_nothing() -> None:
    assert watch((2, 2), (5, 2), (2, 2), (2, 2)).took == ()


def test_one_upon_the_other_are_two() -> None:
    assert watch((2, 2), (4, 2), (6, 2), (6, 4), (6, 6)).took == (minutes(2), minutes(2))
