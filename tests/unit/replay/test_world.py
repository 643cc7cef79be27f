"""Minutes in the life of an HPA: one pod carries one core, the target is 50 %, a pod needs two minutes to start."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from forecaster.decisions.targets import UtilizationTarget
from forecaster.domain.signal import CPU
from forecaster.domain.window import MINUTE
from forecaster.hpa.limits import ReplicaBounds
from forecaster.replay.pods import Pods
from forecaster.replay.scaler import Scaler
from forecaster.replay.setup import Capacity, Setup
from forecaster.replay.world import NO_FLOOR, Demand, World, after_minute, beginning

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SETUP = Setup(Scaler((UtilizationTarget(CPU, 50, 1.0),), ReplicaBounds(2, 20)), Capacity(1.0))


def played(cores: list[float], floors: list[int] | None = None, replicas: int = 4) -> list[World]:
    """The world after each minute; minute i has the demand `cores[i]`, before the first it was `cores[0]`."""
    world, worlds, before = beginning(replicas, NOON), [], cores[0]
    for i, coming in enumerate(cores):
        floor = floors[i] if floors else NO_FLOOR
        world = after_minute(world, SETUP, Demand({CPU: before}, coming), floor, NOON + i * MINUTE)
        worlds.append(world)
        before = coming
    return worlds


def test_a_steady_demand_moves_nothing() -> None:
    assert [world.pods for world in played([2.0] * 10)] == [Pods(4)] * 10


def test_a_jump_is_seen_a_minute_later_and_served_two_minutes_after_that() -> None:
    """12:01 jump, 12:02 seen: doubled to 8 at once, 12 at the next sync; short until the 8 are ready at 12:04."""
    worlds = played([2.0, 6.0, 6.0, 6.0, 6.0])
    assert [world.pods.asked for world in worlds] == [4, 4, 12, 12, 12]
    assert [world.pods.ready for world in worlds] == [4, 4, 4, 8, 12]
    assert worlds[-1].account.short == timedelta(minutes=3)


def test_a_floor_counts_from_the_next_sync_and_costs_pods_from_then_on() -> None:
    world = played([2.0], floors=[6])[0]
    assert world.pods.asked == 6
    assert world.account.pod_hours == pytest.approx((4 * 15 + 6 * 45) / 3600)


def test_a_floor_ahead_of_a_jump_leaves_nothing_short() -> None:
    floors = [12, 12, 12, NO_FLOOR, NO_FLOOR, NO_FLOOR]
    assert played([2.0, 2.0, 2.0, 6.0, 6.0, 6.0], floors)[-1].account.missing == 0.0
    assert played([2.0, 2.0, 2.0, 6.0, 6.0, 6.0])[-1].account.missing > 0.0


def test_when_the_floor_goes_the_hpa_waits_its_five_minutes_before_it_scales_down() -> None:
    worlds = played([2.0] * 12, floors=[10, *[NO_FLOOR] * 11])
    asked = [world.pods.asked for world in worlds]
    assert asked[0] == 10
    assert asked[-1] == 4
    assert asked == sorted(asked, reverse=True)
