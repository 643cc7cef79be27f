"""What forecasting costs: `python -m benchmarks.models_cost [--series 30000] [--days 14]`; one core, one thread.

Limits: forecast of 30,000 series × 12 steps × 5 quantiles ≤ 3 s, update with one new point ≤ 0.5 s, fits in rotation
included ≤ 1 ms a series a cycle of five minutes, ≤ 1 GiB with the panel.
"""

from __future__ import annotations

import argparse
import resource
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np
from threadpoolctl import threadpool_limits

from models import Panel, Window, create

if TYPE_CHECKING:
    from collections.abc import Callable

LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99)
STEP = timedelta(minutes=5)
CYCLES_BETWEEN_FITS = 72


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--series", type=int, default=30_000)
    arguments.add_argument("--days", type=int, default=14)
    arguments.add_argument("--model", default="adaptive")
    arguments.add_argument("--fit-rows", type=int, default=1000, help="fit is timed on so many series")
    asked = arguments.parse_args()
    with threadpool_limits(1):
        measure(panel_of(asked.series, asked.days), asked.model, asked.fit_rows)


def panel_of(series: int, days: int) -> Panel:
    """Day waves with noise, made in pieces so that making them needs no more memory than they do."""
    rng = np.random.default_rng(0)
    length = days * 288
    values = np.empty((series, length), np.float32)
    wave = 2 + np.sin(2 * np.pi * np.arange(length) / 288).astype(np.float32)
    for first in range(0, series, 1000):
        block = values[first : first + 1000]
        block[:] = np.maximum(0, wave + 0.3 * rng.standard_normal(block.shape, dtype=np.float32))
    return Panel(values, datetime(2026, 1, 5, tzinfo=UTC), STEP, tuple(map(str, range(series))))


def measure(panel: Panel, model: str, fit_rows: int) -> None:
    print(f"{model}: {len(panel)} series x {panel.length} bins, panel {panel.values.nbytes / 2**20:.0f} MiB")
    some = panel.take(slice(0, min(fit_rows, len(panel))))
    fit_ms = 1000 * timed(lambda: create(model).fit(some), repeat=1) / len(some)
    fitted = create(model).fit(panel) if fit_rows >= len(panel) else untrained(model, panel)
    whole = timed(lambda: fitted.update(panel))
    path = timed(lambda: fitted.forecast(12, LEVELS))
    peak = timed(lambda: fitted.forecast_peak(Window(2, 8), LEVELS))
    cycle = fit_ms / CYCLES_BETWEEN_FITS + 1000 * (whole + path + peak) / len(panel)
    print(f"fit                      {fit_ms:8.2f} ms a series")
    print(f"update, window taken over {whole:7.3f} s")
    print(f"forecast 12 x {len(LEVELS)}          {path:7.3f} s")
    print(f"forecast of a peak        {peak:7.3f} s")
    print(f"amortised                 {cycle:7.3f} ms a series a cycle, a fit every {CYCLES_BETWEEN_FITS} cycles")
    print(f"peak memory               {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:7.0f} MiB")


def untrained(model: str, panel: Panel):  # noqa: ANN201  any fitted model
    """All series with what was learned of the first ones: forecasting costs the same, fitting is not awaited."""
    part = create(model).fit(panel.take(slice(0, 100)))
    return type(part)(part.rule, panel, tiled(part.learned, len(panel)))


def tiled(learned: object, series: int) -> object:
    """What was learned of a few series, repeated for as many as there are."""
    if isinstance(learned, np.ndarray):
        return np.resize(learned, (series, *learned.shape[1:]))
    return type(learned)(*(tiled(part, series) for part in learned)) if isinstance(learned, tuple) else learned


def timed(call: Callable[[], object], repeat: int = 3) -> float:
    """Best time of the one core in seconds; other processes on the machine do not count."""
    best = np.inf
    for _ in range(repeat):
        begin = time.process_time()
        call()
        best = min(best, time.process_time() - begin)
    return float(best)


if __name__ == "__main__":
    main()
