"""A recorded working day that begins when a test does: `shop/checkout` needs 2.7 cores, half an hour later 9."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np

from forecaster.domain.signal import CPU, DEMAND, MEMORY
from forecaster.sources.recorded import MINUTE, load_recording
from tests.support.cluster_week import WEEK, Week, completed, pods_of, scraped, sized
from tests.support.prometheus import fill

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from tests.support.prometheus import Binaries

CHECKOUT = ("shop", "Deployment", "checkout")
RAMP_AT = timedelta(days=10, minutes=1403)
"""Time of the ramp after the start of the recording; every working day has its like, on other minutes."""
RAMP_IN = timedelta(minutes=10)
"""Time from `now` until the demand begins to rise."""
FALL_IN = timedelta(minutes=450)
"""Time from `now` until the demand begins to fall again."""
PLAYED_AHEAD = timedelta(hours=9)


def fill_ramp(data: Path, now: datetime, binaries: Binaries) -> Week:
    """Fill the data folder of a Prometheus with the week before `now` and the nine hours after it."""
    week = ramp_week(now)
    fill(data, scraped(week), binaries)
    return week


def ramp_week(now: datetime) -> Week:
    """One workload, its load moved to the clock of the test."""
    recording = load_recording()
    row = [workload.id for workload in recording.workloads].index(CHECKOUT)  # type: ignore[arg-type]
    first = (RAMP_AT - RAMP_IN - WEEK) // MINUTE
    columns = slice(first, first + (WEEK + PLAYED_AHEAD) // MINUTE + 1)
    demand = completed({signal: recording.values[signal][:, columns] for signal in DEMAND})
    demand = {signal: values[row : row + 1] for signal, values in demand.items()}
    workload = sized(recording.workloads[row], demand[CPU][0], demand[MEMORY][0])
    pods = np.array([pods_of(workload, demand[CPU][0])])
    count = int(pods[0, WEEK // timedelta(hours=1) - 1])
    return Week(
        start=now - WEEK,
        now=now,
        workloads=(replace(workload, replicas=count, ready_replicas=count),),
        demand=demand,
        pods=pods,
    )
