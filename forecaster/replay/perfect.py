"""A perfect forecast: what a policy could do that knew the coming demand, and what no policy can undercut."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np

from forecaster.domain.window import HOUR, MINUTE
from forecaster.forecasting.forecaster import PeakSpan
from forecaster.replay.account import Account
from forecaster.replay.forecasts import ReplayForecasts

if TYPE_CHECKING:
    from forecaster.replay.measurements import Measurements
    from forecaster.replay.setup import Setup

PERFECT = "perfect-foresight"
LEVELS = (0.5,)


def needed_span(setup: Setup) -> PeakSpan:
    """From now until the pods serve that the next decision asks for: nothing later has to be known now."""
    latest = MINUTE + setup.timing.first_floored * setup.timing.sync + setup.start_up.longest
    return PeakSpan(timedelta(), math.ceil(latest / MINUTE) * MINUTE)


def perfect(measurements: Measurements, span: PeakSpan) -> ReplayForecasts:
    """The true maximum over `span` after every minute; unmeasured minutes are left out."""
    count = span.length // MINUTE
    values = {}
    for signal in measurements.latest:
        coming = measurements.past(signal, 1, measurements.minutes + count - 1)
        largest = np.fmax.reduce([coming[i : i + measurements.minutes] for i in range(count)])
        values[signal] = largest[:, None]
    return ReplayForecasts(PERFECT, span, LEVELS, values)


def bound(setup: Setup, measurements: Measurements, series: int) -> Account:
    """What the demand itself needs, minute by minute, within the HPA's bounds and with pods that start at once.

    No policy leaves nothing short for less. Where nothing was measured the last need goes on.
    """
    demand = measurements.past(setup.capacity.signal, 1, measurements.minutes)[:, series]
    bounds, known = setup.bounds, ~np.isnan(demand)
    wanted = np.where(known, np.ceil(np.nan_to_num(demand) / setup.capacity.amount), 0)
    pods = np.clip(_carried_on(wanted, known), bounds.min_replicas, bounds.max_replicas)
    missing = np.where(known, np.maximum(0.0, np.nan_to_num(demand) - pods * setup.capacity.amount), 0.0)
    hours = MINUTE / HOUR
    return Account(
        pod_hours=float(pods.sum()) * hours,
        measured=int(known.sum()) * MINUTE,
        short=int((missing > 0).sum()) * MINUTE,
        demand=float(np.nansum(demand)) * hours,
        missing=float(missing.sum()) * hours,
        changes=int(np.count_nonzero(np.diff(pods))),
    )


def _carried_on(values: np.ndarray, known: np.ndarray) -> np.ndarray:
    place = np.maximum.accumulate(np.where(known, np.arange(len(values)), 0))
    return np.asarray(values[place])
