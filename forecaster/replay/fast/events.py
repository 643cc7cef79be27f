"""What an HPA with `spec.behavior` remembers of its changes, lane by lane, slot by slot (HPA rules §11.2, §11.4)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from datetime import timedelta

    from forecaster.hpa.behavior import ScalingPolicy
    from forecaster.replay.fast.numbers import Counts, Flags

FREE = -1


@dataclass(slots=True)
class Events:
    """Changes of one direction: `change[i, lane]` made at sync `at[i, lane]`; slots that were never used are `FREE`.

    A slot whose change is outdated is flagged, counts on until it is overwritten, and is the first to be.
    """

    lanes: int
    policies: tuple[ScalingPolicy, ...]
    sync_period: timedelta
    change: Counts = field(init=False)
    at: Counts = field(init=False)
    outdated: Flags = field(init=False)

    def __post_init__(self) -> None:
        self.change = np.zeros((4, self.lanes), np.int64)
        self.at = np.full((4, self.lanes), FREE, np.int64)
        self.outdated = np.zeros((4, self.lanes), np.bool_)

    def since(self, lanes: Counts, period: timedelta, sync: int) -> Counts:
        """The change of these lanes strictly within the last `period`."""
        counts = (self.at[:, lanes] != FREE) & ((sync - self.at[:, lanes]) * self._seconds < period.total_seconds())
        total: Counts = np.where(counts, self.change[:, lanes], 0).sum(axis=0)
        return total

    def record(self, lanes: Counts, change: Counts, sync: int) -> None:
        """Store the changes of these lanes: in the last outdated slot, else in the first free one."""
        longest = max((policy.period.total_seconds() for policy in self.policies), default=0.0)
        used = self.at[:, lanes] != FREE
        self.outdated[:, lanes] |= used & ((sync - self.at[:, lanes]) * self._seconds > longest)
        slots = self._slots(lanes, used)
        self.change[slots, lanes], self.at[slots, lanes], self.outdated[slots, lanes] = change, sync, False

    def _slots(self, lanes: Counts, used: Flags) -> Counts:
        outdated = self.outdated[:, lanes]
        last_outdated = len(outdated) - 1 - outdated[::-1].argmax(axis=0)
        slots: Counts = np.where(outdated.any(axis=0), last_outdated, used.sum(axis=0))
        if int(slots.max(initial=0)) >= len(self.at):
            self._grow()
        return slots

    def _grow(self) -> None:
        self.change = np.vstack([self.change, np.zeros_like(self.change)])
        self.at = np.vstack([self.at, np.full_like(self.at, FREE)])
        self.outdated = np.vstack([self.outdated, np.zeros_like(self.outdated)])

    @property
    def _seconds(self) -> float:
        return self.sync_period.total_seconds()
