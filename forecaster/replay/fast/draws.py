"""Start-up times of all lanes at one instant: `StartUp.at` on arrays."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from forecaster.replay.start_up import EPOCH, SECOND

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime, timedelta

    from numpy.typing import NDArray

    from forecaster.replay.fast.numbers import Counts
    from forecaster.replay.start_up import StartUp


@dataclass(slots=True)
class Draws:
    """Lanes with the same durations and their own seeds; counted in syncs."""

    lanes: Sequence[StartUp]
    sync: timedelta
    syncs: Counts = field(init=False)
    seeds: NDArray[np.uint64] = field(init=False)

    def __post_init__(self) -> None:
        durations = self.lanes[0].durations
        self.syncs = np.array([max(1, -(-duration // self.sync)) for duration in durations], np.int64)
        self.seeds = np.array([one.seed for one in self.lanes], np.uint64)

    @property
    def longest(self) -> int:
        """The slowest."""
        return int(self.syncs.max())

    @property
    def same(self) -> int | None:
        """After how many syncs every pod serves; None where that differs."""
        return int(self.syncs[0]) if len(self.syncs) == 1 else None

    def at(self, now: datetime) -> Counts | int:
        """After how many syncs those serve that are asked for at `now`; never at the sync that asks."""
        if self.same is not None:
            return self.same
        drawn = _mixed(self.seeds + np.uint64((now - EPOCH) // SECOND)) % np.uint64(len(self.syncs))
        return self.syncs[drawn.astype(np.intp)]


def _mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """`start_up.mixed`; multiplication wraps by itself."""
    numbers = numbers * np.uint64(0x9E3779B97F4A7C15)
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))
