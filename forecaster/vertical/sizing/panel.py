"""What is known of many containers when they are sized, and the sizes that come out: a row a container."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from forecaster.domain.window import DAY

if TYPE_CHECKING:
    from datetime import timedelta

    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.floating]
    Doubles = NDArray[np.float64]
    Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class ContainerPanel:
    """Usage of the hottest pod of each container, so that a hot shard is not averaged away, and what it has today.

    `cpu` in cores and `memory` in bytes [row, time], the latest column last and `points` to a day, NaN for gaps. The
    others are [row]: NaN where nothing is stated; `oom_floor` 0 without an OOM kill; `growth` of the load of one pod
    beyond what the past days had, 1 where it is not forecast; `throttled` the share of time in which CPU was throttled
    or stalled. `likeness` [row, day] says how much each day's load is like the forecast one, the latest day first.
    """

    cpu: Floats
    memory: Floats
    points: int
    cpu_request: Doubles
    cpu_limit: Doubles
    memory_request: Doubles
    memory_limit: Doubles
    oom_floor: Doubles
    growth: Doubles
    throttled: Doubles | None = None
    likeness: Doubles | None = None

    def ahead(self, horizon: timedelta) -> int:
        """Points until the next change, at most a day."""
        return min(max(round(self.points * (horizon / DAY)), 1), self.points)


@dataclass(frozen=True, slots=True, eq=False)
class SizeColumns:
    """[row] of one resource; NaN throughout where nothing is known.

    `over_request` is the share of the coming time above the request, or for memory the chance of a peak above it;
    `over_limit` the same of the limit; `slack` the mean of what is requested and not used; `kept` where today's size
    stays because a change costs more than it gains.
    """

    request: Doubles
    limit: Doubles
    over_request: Doubles
    over_limit: Doubles
    slack: Doubles
    days: Doubles
    kept: Flags
    mechanism: NDArray[np.intp]
