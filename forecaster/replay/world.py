"""A workload and its HPA, minute by minute: the HPA syncs several times a minute and sees the minute before."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from forecaster.domain.window import MINUTE
from forecaster.hpa.spec import SHIPPED
from forecaster.replay.account import Account, accounted
from forecaster.replay.pods import Pods, arrived, scaled
from forecaster.replay.scaler import Memory, next_replicas, raised

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from forecaster.domain.signal import Signal
    from forecaster.replay.setup import Setup

SYNC = SHIPPED.sync_period
NO_FLOOR = 0


class World(NamedTuple):
    """Pods, the HPA's memory, the floor in force, and the account so far."""

    pods: Pods
    memory: Memory
    floor: int = NO_FLOOR
    account: Account = Account()


class Demand(NamedTuple):
    """Totals of one workload, NaN where nothing was measured."""

    seen: Mapping[Signal, float]
    """The minute that is over, by signal."""
    coming: float
    """The minute that begins, of the signal that fills a pod."""
    earlier: Mapping[Signal, float] | None = None
    """The minute before `seen`: what is known until that one has been scraped."""


def beginning(replicas: int, now: datetime) -> World:
    """Ready pods, and an HPA that sees them for the first time."""
    return World(Pods(replicas), Memory.beginning(replicas, now))


def after_minute(world: World, setup: Setup, demand: Demand, floor: int, now: datetime) -> World:
    """The world a minute after `now`.

    The HPA knows only what was `seen`; the pods have to carry what is `coming`. A `floor` computed at `now` comes too
    late for the sync at `now` and counts from one of the next.
    """
    timing = setup.timing
    earlier = demand.seen if demand.earlier is None else demand.earlier
    for sync in range(timing.syncs):
        if sync == timing.first_floored:
            world = world._replace(floor=floor)
        seen = demand.seen if sync >= timing.first_fresh else earlier
        world = _after_sync(world, setup, seen, demand.coming, now + sync * timing.sync)
    return world._replace(pods=arrived(world.pods, now + MINUTE), floor=floor)


def _after_sync(world: World, setup: Setup, seen: Mapping[Signal, float], coming: float, now: datetime) -> World:
    pods = arrived(world.pods, now)
    replicas, memory = next_replicas(raised(setup.scaler, world.floor), pods, seen, world.memory, now)
    changed = replicas != pods.asked
    if changed:
        pods = scaled(pods, replicas, now + setup.start_up.at(now))
    cost = accounted(pods, coming, setup.capacity.amount, setup.timing.sync, changes=int(changed))
    return World(pods, memory, world.floor, world.account + cost)
