"""The worst hours: when and where the most pods were missing, under the HPA alone or our policy."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from forecaster.replay.contestants import HPA

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from forecaster.domain.workload import WorkloadId
    from forecaster.replay.comparison import Compared, Comparison

HOUR = timedelta(hours=1)
MINUTES = 60
POLICY = "policy"


class Hour(NamedTuple):
    """An hour of one workload, and by contestant how many pods were missing in it, on average."""

    workload: WorkloadId
    at: datetime
    missing: Mapping[str, float]

    @property
    def worst(self) -> float:
        """The larger of what the HPA alone and our policy left short."""
        return max(self.missing.get(name, 0.0) for name in (HPA.name, POLICY))


def worst_hours(whole: Comparison, most: int = 10) -> list[Hour]:
    """The hours in which the most was missing, the worst first; none in which nothing was."""
    hours = [hour for one in whole.workloads for hour in _hours(one, whole.begin)]
    return sorted((hour for hour in hours if hour.worst > 0), key=lambda hour: -hour.worst)[:most]


def _hours(one: Compared, begin: datetime) -> Iterator[Hour]:
    pods = {name: curve.track.missing / one.setup.capacity.amount for name, curve in one.curves.items()}
    for first in range(0, max((len(some) for some in pods.values()), default=0), MINUTES):
        means = {name: float(np.mean(some[first : first + MINUTES])) for name, some in pods.items()}
        yield Hour(one.workload.id, begin + first // MINUTES * HOUR, means)
