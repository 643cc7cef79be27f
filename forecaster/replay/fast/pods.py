"""The pods of all lanes: `replay.pods` on arrays, by the sync at which they were asked for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from forecaster.replay.fast.numbers import Counts


@dataclass(slots=True)
class Pods:
    """Ready pods, pods asked for in all, and those that start: `starting[i % slots]` were asked for at sync i."""

    ready: Counts
    slots: int
    asked: Counts = field(init=False)
    starting: Counts = field(init=False)
    due: Counts = field(init=False)

    def __post_init__(self) -> None:
        self.asked = self.ready.copy()
        self.starting = np.zeros((self.slots, len(self.ready)), np.int64)
        self.due = np.zeros((self.slots, len(self.ready)), np.int64)

    def arrive(self, sync: int, same: int | None) -> None:
        """Pods that serve from this sync on; `same` is the start-up in syncs where all lanes have the same."""
        if same is not None:
            slot = (sync - same) % self.slots
            self.ready += self.starting[slot]
            self.starting[slot] = 0
            return
        now_ready = np.where(self.due <= sync, self.starting, 0)
        self.ready += now_ready.sum(axis=0)
        self.starting -= now_ready

    def scale(self, wanted: Counts, sync: int, start_up: Counts | int) -> Counts:
        """Ask for so many, and give by how much that changed; pods not yet ready go first, the youngest of them."""
        more = wanted - self.asked
        slot = sync % self.slots
        np.maximum(more, 0, out=self.starting[slot])
        self.due[slot] = sync + start_up
        fewer = np.flatnonzero(more < 0)
        if fewer.size:
            self._remove(fewer, -more[fewer], sync)
        self.asked = wanted
        return more

    def _remove(self, lanes: Counts, fewer: Counts, sync: int) -> None:
        for age in range(1, self.slots):
            slot = (sync - age) % self.slots
            taken = np.minimum(self.starting[slot, lanes], fewer)
            self.starting[slot, lanes] -= taken
            fewer = fewer - taken
        self.ready[lanes] -= fewer
