"""A workload and its HPA, minute by minute: the HPA syncs four times a minute and sees the minute before."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from forecaster.domain.window import MINUTE
from forecaster.hpa.controller import SHIPPED
from forecaster.hpa.history import PastRecommendation
from forecaster.replay.account import Account, accounted
from forecaster.replay.pods import Pods, arrived, scaled
from forecaster.replay.scaler import next_replicas, raised

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from forecaster.domain.signal import Signal
    from forecaster.hpa.history import PastRecommendations
    from forecaster.replay.setup import Setup

SYNC = SHIPPED.sync_period
NO_FLOOR = 0


class World(NamedTuple):
    """Pods, the HPA's memory, the floor in force, and the account so far."""

    pods: Pods
    history: PastRecommendations
    floor: int = NO_FLOOR
    account: Account = Account()


class Demand(NamedTuple):
    """Totals of one workload, NaN where nothing was measured."""

    seen: Mapping[Signal, float]
    """The minute that is over, by signal."""
    coming: float
    """The minute that begins, CPU cores."""


def beginning(replicas: int, now: datetime) -> World:
    """Ready pods, and an HPA that sees them for the first time (HPA rules §3, step 3)."""
    return World(Pods(replicas), (PastRecommendation(replicas, now),))


def after_minute(world: World, setup: Setup, demand: Demand, floor: int, now: datetime) -> World:
    """The world a minute after `now`.

    The HPA knows only what was `seen`; the pods have to carry what is `coming`. A `floor` computed at `now` comes too
    late for the sync at `now` and counts from the next one.
    """
    world = _after_sync(world, setup, demand, now)._replace(floor=floor)
    for sync in range(1, MINUTE // SYNC):
        world = _after_sync(world, setup, demand, now + sync * SYNC)
    return world._replace(pods=arrived(world.pods, now + MINUTE))


def _after_sync(world: World, setup: Setup, demand: Demand, now: datetime) -> World:
    pods = arrived(world.pods, now)
    replicas, history = next_replicas(raised(setup.scaler, world.floor), pods, demand.seen, world.history, now)
    pods = scaled(pods, replicas, now + setup.start_up)
    cost = accounted(pods, demand.coming, setup.pod_cores, SYNC)
    return World(pods, history, world.floor, world.account + cost)
