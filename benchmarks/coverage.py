"""Whether forecasts cover what they state, and what the correction does: `python -m benchmarks.coverage`.

Recorded load by the minute (eleven series), forecast as the service does it, one forecast of the coming peak in ten
minutes scored. Counts are those of the HPA's formula for the larger of measured demand and forecast, without holds; a
pod's target is an eighth of the usual load. The first quarter is for warming up.
"""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

import numpy as np

from forecaster.app import traces
from forecaster.domain.signal import CPU
from forecaster.domain.window import MINUTE
from forecaster.forecasting.forecaster import PeakSpan
from forecaster.forecasting.peaks import LEVELS
from forecaster.horizontal.quantile import Coverage
from forecaster.replay.forecasts import ForecastRequest, forecast_minutes
from forecaster.replay.traces import measurements_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

EVERY, WARM_UP, PODS = 10, 0.25, 8
WINDOW = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lead", type=int, default=3, help="minutes")
    parser.add_argument("--days", type=int, default=8, help="played, of thirteen")
    asked = parser.parse_args()
    seen = looked(asked.lead, asked.days)
    for quantile in (0.8, 0.9, 0.95):
        rows = {name: figures(*seen, quantile, correct=name == "corrected") for name in ("stated", "corrected")}
        print(json.dumps({"quantile": quantile, **rows}))


def looked(lead: int, days: int) -> tuple[Floats, Floats, Floats]:
    """[question, workload(, level)] forecasts, demand at the time of the question, and the peak that came."""
    recorded = traces.recorded()
    minutes = days * 24 * 60 - lead - WINDOW - 1
    begin = recorded.end - days * 24 * 60 * MINUTE
    measurements = measurements_of(recorded, begin, minutes)
    request = ForecastRequest("adaptive", PeakSpan(lead * MINUTE, WINDOW * MINUTE), every=EVERY)
    said = forecast_minutes(measurements, [CPU], request).values[CPU][::EVERY].swapaxes(1, 2)
    demand = recorded.of(CPU)
    now = recorded.column(begin) + np.arange(0, minutes, EVERY)
    coming = np.stack([demand[:, now + lead + 1 + i] for i in range(WINDOW)])
    return said, demand[:, now].T, np.fmax.reduce(coming).T


def figures(said: Floats, now: Floats, came: Floats, quantile: float, *, correct: bool) -> dict[str, float]:
    """What share of the peaks held, and how many pods that takes, relative to measured demand alone."""
    upper = answers(said, came, quantile, correct=correct)
    counted = ~np.isnan(upper) & ~np.isnan(now)
    counted[: int(WARM_UP * len(upper))] = False
    pod = np.nanmean(came, axis=0) / PODS
    reactive = np.where(counted, np.ceil(now / pod), np.nan)
    pods = np.where(counted, np.maximum(reactive, np.ceil(upper / pod)), np.nan)
    held = np.nanmean(np.where(counted, came <= upper, np.nan), axis=0)
    short, before = (np.nansum(np.maximum(came - count * pod, 0.0), axis=0) for count in (pods, reactive))
    hours = np.nansum(pods, axis=0) / np.nansum(reactive, axis=0)
    return {
        "covered": round(float(held.mean()), 3),
        "miss_per_series": round(float(np.abs(held - quantile).mean()), 3),
        "pod_hours": round(float(hours.mean()), 3),
        "pod_hours_median": round(float(np.median(hours)), 3),
        "short": round(float((short / before).mean()), 3),
    }


def answers(said: Floats, came: Floats, quantile: float, *, correct: bool) -> Floats:
    """[question, workload] what is answered; each forecast has matured before the next one is made."""
    coverage, upper = Coverage(), np.full(came.shape, np.nan)
    for at, row in np.argwhere(~np.isnan(came) & ~np.isnan(said).any(axis=2)):
        levels = said[at, row]
        level = coverage.level(row, CPU, quantile).value if correct else quantile
        upper[at, row] = np.interp(level, LEVELS, levels)
        held = bool(came[at, row] <= np.interp(quantile, LEVELS, levels))
        coverage.matured(row, CPU, quantile, covered=held)
    return upper


if __name__ == "__main__":
    main()
