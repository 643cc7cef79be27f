"""Pods of all rows: a requested pod serves after its start-up time, a removed one stops at once."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from forecaster.horizontal.columns import Counts
    from forecaster.replay.assumptions import StartUp


class Pods:
    """Ready and requested pods, [row] each; `starting[i % slots]` were requested at sync i."""

    def __init__(self, ready: Counts, draws: Draws | StartUps) -> None:
        self.ready = ready
        self.desired = ready.copy()
        """Requested pods [row]: they cost money, and are the `spec.replicas` that an HPA reads."""
        self._draws, self._slots = draws, draws.longest + 1
        self._starting = np.zeros((self._slots, len(ready)), np.int64)
        self._due = np.zeros((self._slots, len(ready)), np.int64)

    def arrive(self, sync: int) -> None:
        """Make the pods ready that serve from this sync on."""
        if self._draws.same is not None:
            slot = (sync - self._draws.same) % self._slots
            self.ready = self.ready + self._starting[slot]
            self._starting[slot] = 0
            return
        serving = np.where(self._due <= sync, self._starting, 0)
        self.ready = self.ready + serving.sum(axis=0)
        self._starting -= serving

    def scale(self, replicas: Counts, sync: int, now: datetime | None = None) -> Counts:
        """Request `replicas`, and return the change.

        Removal takes the pods that are not ready first, and of those the youngest, as a ReplicaSet does.
        """
        more = replicas - self.desired
        slot = sync % self._slots
        np.maximum(more, 0, out=self._starting[slot])
        if self._draws.same is None:
            self._due[slot] = sync + self._draws.at(now)
        fewer = np.flatnonzero(more < 0)
        if fewer.size:
            self._remove(fewer, -more[fewer], sync)
        self.desired = replicas
        return more

    def _remove(self, rows: Counts, fewer: Counts, sync: int) -> None:
        for age in range(1, self._slots):
            slot = (sync - age) % self._slots
            taken = np.minimum(self._starting[slot, rows], fewer)
            self._starting[slot, rows] -= taken
            fewer = fewer - taken
        self.ready = self.ready.copy()
        self.ready[rows] -= fewer


class Draws:
    """Start-up times of rows with the same durations and their own seeds, in whole syncs."""

    def __init__(self, rows: Sequence[StartUp], sync: timedelta) -> None:
        self._syncs = np.array([max(1, -(-duration // sync)) for duration in rows[0].durations], np.int64)
        self._seeds = np.array([row.seed for row in rows], np.uint64)

    @property
    def longest(self) -> int:
        """Longest start-up time, in syncs."""
        return int(self._syncs.max())

    @property
    def same(self) -> int | None:
        """Number of syncs after which every pod serves; None where that differs."""
        return int(self._syncs[0]) if len(self._syncs) == 1 else None

    def at(self, now: datetime | None) -> Counts:
        """[row] number of syncs until pods requested at `now` serve; at least one."""
        drawn = _mixed(self._seeds + np.uint64(0 if now is None else int(now.timestamp()))) % np.uint64(
            len(self._syncs)
        )
        return self._syncs[drawn.astype(np.intp)]


def _mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """64 well mixed bits of each number (the finalizer of splitmix64; Steele, Lea, Flood 2014)."""
    numbers = numbers * np.uint64(0x9E3779B97F4A7C15)
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))


class StartUps:
    """One start-up time for each row, in whole syncs; with 0 a pod serves at the sync that asks for it."""

    def __init__(self, syncs: Counts) -> None:
        self._syncs = syncs
        self.longest = int(syncs.max(initial=0))
        self.same = self.longest if (syncs == self.longest).all() else None

    def at(self, now: datetime | None) -> Counts:
        """Return the number of syncs [row] that holds at any instant."""
        del now
        return self._syncs
