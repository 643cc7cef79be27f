"""Assumptions of a replay about the cluster: start-up times of pods, the clocks of the HPA, prices of capacity."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from forecaster.domain.window import MINUTE
from forecaster.hpa.spec import SHIPPED
from forecaster.replay.feedback import NO_FEEDBACK, Feedback

if TYPE_CHECKING:
    from forecaster.domain.workload import Prices, Workload, WorkloadId
    from forecaster.hpa.behavior import Behavior
    from forecaster.replay.setup import Capacity

START_UP = timedelta(minutes=2)


@dataclass(frozen=True, slots=True)
class StartUp:
    """Durations of equal weight; which of them applies follows from the instant and the seed alone (`pods.Draws`).

    So every policy that is compared meets the same slow and fast moments, and a replay repeats to the digit.
    """

    durations: tuple[timedelta, ...] = (START_UP,)
    seed: int = 0

    @property
    def longest(self) -> timedelta:
        """The slowest of them."""
        return max(self.durations)


@dataclass(frozen=True, slots=True)
class Timing:
    """The clocks of a replay.

    Raises:
        ValueError: syncs do not divide a minute, or a delay is negative or too long.
    """

    sync: timedelta = SHIPPED.sync_period
    """Time between two passes of the HPA; divides a minute."""
    metrics_delay: timedelta = timedelta()
    """Time from the end of a minute until its demand is visible: scrape and aggregation; below a minute."""
    decision_delay: timedelta = timedelta(seconds=5)
    """Time from the evaluation until the floor that follows from it is in force; a minute at most.

    Never earlier than the next sync after the evaluation time.
    """

    def __post_init__(self) -> None:
        if self.sync <= timedelta() or MINUTE % self.sync:
            raise ValueError(f"sync {self.sync} does not divide a minute; use 15s, 30s or 1m")
        if not timedelta() <= self.metrics_delay < MINUTE:
            raise ValueError(f"metrics_delay {self.metrics_delay} must be 0s or more and below a minute")
        if not timedelta() <= self.decision_delay <= MINUTE:
            raise ValueError(f"decision_delay {self.decision_delay} must be between 0s and a minute")

    @property
    def syncs(self) -> int:
        """Passes in a minute."""
        return MINUTE // self.sync

    @property
    def first_fresh(self) -> int:
        """The first sync of a minute that sees the minute before."""
        return -(-self.metrics_delay // self.sync)

    @property
    def first_floored(self) -> int:
        """The first sync of a minute at which a floor from its beginning is in force."""
        return max(1, -(-self.decision_delay // self.sync))


USUAL_TIMING = Timing()

SWEEP = (1.6, 1.4, 1.25, 1.15, 1.05, 1.0, 0.95, 0.9, 0.85, 0.8, 0.7, 0.6, 0.5)
"""Targets as shares of the owner's: from lean to safe, as every policy can be tuned."""


@dataclass(frozen=True, slots=True)
class Assumptions:
    """Assumptions of a replay about the cluster, beside policies and HPAs.

    Start-up times are equally likely; a capacity or a behavior that is not stated comes from the workload.
    """

    start_ups: tuple[timedelta, ...] = (START_UP,)
    timing: Timing = USUAL_TIMING
    shares: tuple[float, ...] = SWEEP
    every: int = 1
    """Minutes from one forecast to the next."""
    capacities: Mapping[WorkloadId, Capacity] = field(default_factory=dict)
    behaviors: Mapping[WorkloadId, Behavior] = field(default_factory=dict)
    prices: Prices | None = None
    feedback: Feedback = NO_FEEDBACK
    measured_start_ups: Mapping[WorkloadId, tuple[timedelta, ...]] = field(default_factory=dict)
    """Start-up times of single workloads, in place of `start_ups`."""

    def start_up_of(self, workload: Workload) -> StartUp:
        """The start-up of one workload's pods: its name is the seed, so that not all are slow at once."""
        durations = self.measured_start_ups.get(workload.id) or self.start_ups
        return StartUp(durations, zlib.crc32(str(workload.id).encode()))


USUAL_ASSUMPTIONS = Assumptions()
