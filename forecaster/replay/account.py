"""What a stretch of time cost and what was short in it, for one workload or the sum of several."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from forecaster.replay.pods import Pods

HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Account:
    """Sums over time. A moment is short when demand exceeds what the ready pods carry.

    `demand` and `missing` are amounts times hours, in the unit of the demand, of the time that was measured; time of
    which no demand is known costs pods and is in none of the others.
    """

    pod_hours: float = 0.0
    measured: timedelta = timedelta()
    short: timedelta = timedelta()
    demand: float = 0.0
    missing: float = 0.0
    changes: int = 0
    """How often the number of pods asked for became another one."""

    def __add__(self, other: Account) -> Account:
        return Account(
            self.pod_hours + other.pod_hours,
            self.measured + other.measured,
            self.short + other.short,
            self.demand + other.demand,
            self.missing + other.missing,
            self.changes + other.changes,
        )

    @property
    def short_share(self) -> float | None:
        """Share of the measured time with any shortage; None when nothing was measured."""
        return self.short / self.measured if self.measured else None

    @property
    def missing_share(self) -> float | None:
        """Share of the demand above what the ready pods carried; None when there was no demand."""
        return self.missing / self.demand if self.demand else None


def accounted(pods: Pods, demand: float, pod_capacity: float, duration: timedelta, *, changes: int = 0) -> Account:
    """The account of `pods` under a steady demand; a pod is paid for from the moment it is asked for."""
    hours = duration / HOUR
    if math.isnan(demand):
        return Account(pods.asked * hours, changes=changes)
    missing = max(0.0, demand - pods.ready * pod_capacity)
    short = duration if missing else timedelta()
    return Account(pods.asked * hours, duration, short, demand * hours, missing * hours, changes)


def total(accounts: Iterable[Account]) -> Account:
    """The sum of accounts."""
    return sum(accounts, Account())
