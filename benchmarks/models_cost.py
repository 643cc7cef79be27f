"""Cost of forecasting: `python -m benchmarks.models_cost [--series 30000] [--days 14]`; one core, one thread.

Everything is done for every series, nothing is extrapolated: all are fitted, all get an hour of new points one by one,
all forecast twelve steps and a peak. Series are kept in parts, as the service keeps them in shards. The first
new point after a fit makes room for those to come; of the further ones the dearest counts. With --fitted N only so many
are fitted and the others have what these learned: then the cost of fits is extrapolated, and memory says nothing.

Limits: forecast of 30,000 series × 12 steps × 5 quantiles ≤ 1.5 s, update with one new point ≤ 0.5 s, fits in rotation
included ≤ 1 ms a series a cycle of five minutes, ≤ 1 GiB with the panel.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.procfs import peak_mib
from models import Panel, StepWindow, create

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from models import Fitted

LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99)
STEP, DAY, HOUR = timedelta(minutes=5), 288, 12
START = datetime(2026, 1, 5, tzinfo=UTC)
CYCLES_BETWEEN_FITS = 72
PART = 500
LIMITS = {"forecast": 1.5, "update": 0.5, "amortised": 1.0, "memory": 1024.0}


class Cost(NamedTuple):
    """Seconds of one core for all series, and MiB of the process."""

    fit: float
    first_update: float
    update: float
    forecast: float
    peak: float
    memory: float


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--series", type=int, default=30_000)
    arguments.add_argument("--days", type=int, default=14)
    arguments.add_argument("--model", default="adaptive")
    arguments.add_argument("--fitted", type=int, help="fit only so many, for a hurry; see above")
    given = arguments.parse_args()
    with threadpool_limits(1):
        cost = measure(given.model, given.series, given.days, given.fitted or given.series)
    show(cost, given.model, given.series, given.days)


def measure(model: str, series: int, days: int, own: int) -> Cost:
    """Time fits, updates and forecasts. Of these series, `own` are fitted."""
    create(model).fit(next(panels(1, days))).forecast(1, LEVELS)
    fitted: list[Fitted] = []
    fit = 0.0
    for part, panel in enumerate(panels(series, days)):
        if part * PART < own:
            fit += timed(lambda panel=panel: fitted.append(create(model).fit(panel))) * series / own
        else:
            fitted.append(replace(fitted[part % -(-own // PART)], history=panel))  # type: ignore[type-var]  # remembered
    first, *further = (timed(partial(updated, fitted, newest_bins(fitted))) for _ in range(1 + HOUR))
    forecast = timed(lambda: [fit_of_part.forecast(12, LEVELS) for fit_of_part in fitted])
    peak = timed(lambda: [fit_of_part.forecast_peak(StepWindow(1, 2), LEVELS) for fit_of_part in fitted])
    return Cost(fit, first, max(further), forecast, peak, peak_mib())


def panels(series: int, days: int) -> Iterator[Panel]:
    """Day waves with noise, part by part."""
    rng = np.random.default_rng(0)
    wave = 2 + np.sin(2 * np.pi * np.arange(days * DAY) / DAY).astype(np.float32)
    for first in range(0, series, PART):
        rows = min(PART, series - first)
        values = rng.standard_normal((rows, days * DAY), dtype=np.float32)
        values *= np.float32(0.3)
        values += wave
        np.maximum(values, 0, out=values)
        yield Panel(values, START, STEP, tuple(map(str, range(first, first + rows))))


def newest_bins(fitted: list[Fitted]) -> list[Panel]:
    """One more bin for each part, with the values of a day ago."""
    known: list[Panel] = [part.history for part in fitted]  # type: ignore[attr-defined]  # every model here remembers
    return [Panel(panel.values[:, -DAY][:, None].copy(), panel.end, STEP, panel.keys) for panel in known]


def updated(fitted: list[Fitted], newest: list[Panel]) -> None:
    """Give each part its new point; the old one goes before the next is made."""
    for i, panel in enumerate(newest):
        fitted[i] = fitted[i].update(panel)


def show(cost: Cost, model: str, series: int, days: int) -> None:
    cycle = 1000 * (cost.fit / CYCLES_BETWEEN_FITS + cost.update + cost.forecast + cost.peak) / series
    print(f"{model}: {series} series x {days * DAY} bins, one core")
    print(f"fit of all                {cost.fit:8.2f} s, {1000 * cost.fit / series:.2f} ms a series")
    print(f"update with one new point {cost.update:8.3f} s (limit {LIMITS['update']} s)")
    print(f"the first after a fit     {cost.first_update:8.3f} s (limit {LIMITS['update']} s)")
    print(f"forecast 12 x {len(LEVELS)}           {cost.forecast:8.3f} s (limit {LIMITS['forecast']} s)")
    print(f"forecast of a peak        {cost.peak:8.3f} s")
    print(f"amortised                 {cycle:8.3f} ms a series a cycle, a fit every {CYCLES_BETWEEN_FITS} (limit 1 ms)")
    print(f"peak memory               {cost.memory:8.0f} MiB (limit {LIMITS['memory']:.0f} MiB)")


def timed(call: Callable[[], object]) -> float:
    """Seconds of this process on the core; other processes on the machine do not count."""
    begin = time.process_time()
    call()
    return time.process_time() - begin


if __name__ == "__main__":
    main()
