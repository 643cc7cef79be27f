"""Throttled hours of workloads, as they are told."""

from __future__ import annotations

from datetime import timedelta

from forecaster.demand.censored import THROTTLED_FOR, ThrottledTime, Throttling
from forecaster.domain.workload import ContainerFacts, ContainerId
from tests.support.builders import NOON
from tests.support.recommendations import workload_id

HOUR = timedelta(hours=1)
WEB = workload_id("web")


def told(share: float) -> ContainerFacts:
    return ContainerFacts(held_back={ContainerId(WEB, "app"): share, ContainerId(WEB, "sidecar"): 0.0})


def test_hours_in_which_a_container_was_throttled_are_kept_as_one() -> None:
    throttling = Throttling()
    for hour, share in enumerate((0.5, 0.4, 0.1, 0.5)):
        throttling.follow(told(share), NOON + hour * HOUR)
    assert throttling.hours == {
        WEB: [ThrottledTime(NOON - HOUR, NOON + HOUR), ThrottledTime(NOON + 2 * HOUR, NOON + 3 * HOUR)]
    }


def test_what_was_told_is_taken_in_once() -> None:
    throttling = Throttling()
    throttling.follow(told(0.5), NOON)
    before = dict(throttling.hours)
    throttling.follow(told(0.5), NOON)
    throttling.follow(told(0.5), None)
    assert throttling.hours == before


def test_old_hours_are_forgotten() -> None:
    throttling = Throttling()
    throttling.follow(told(0.5), NOON)
    throttling.follow(told(0.0), NOON + THROTTLED_FOR)
    assert throttling.hours == {}
