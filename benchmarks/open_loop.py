"""Measure the cost of cleaning usage into demand, and its effect on recorded load in which nothing was held down.

    python -m benchmarks.open_loop [benchmarks/traces] [--write]

Recorded load is free demand, but for outages of its own: what is masked or taken for a warm-up there is mostly false.
Accuracy is compared where something is masked; elsewhere the forecasts are the same. Costs are CPU seconds of one
process, with and without cleaning in the same run, of a fleet without anything to clean.
"""

from __future__ import annotations

import argparse
import json
import time
from datetime import timedelta
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd

from benchmarks.bench.loads import TRACES
from benchmarks.fleet import NOON, Fleet
from benchmarks.record import record
from forecaster.app import traces
from forecaster.app.compose import prepare_process
from forecaster.demand.fresh import DemandContext, FreshHistory, fresh
from forecaster.demand.masks import COLUMNS_A_DAY, CleanedPart, cleaned, traits_of
from forecaster.domain.signal import BUILT_IN, CPU, PODS, REQUESTS, Signal
from forecaster.domain.window import FIVE_MINUTES, MINUTE, Window
from forecaster.forecasting.cleaning import ShardHistory, cleaned_weeks
from forecaster.forecasting.forecaster import Forecaster, PeakSpan
from forecaster.replay.forecasts import ServiceHistory
from forecaster.replay.traces import measurements_of
from models import Panel, create

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from forecaster.forecasting.cleaning import Cleaning

    Floats = NDArray[np.floating]

WEEKS = 14 * COLUMNS_A_DAY
EVERY = timedelta(hours=3)
"""Time between two fits; the service fits every six hours."""
CUTS, AHEAD, LEVELS = 12, 12, (0.1, 0.5, 0.9, 0.95)
COMPARED = 90
WORKLOADS = 10_000
SPAN = PeakSpan(timedelta(minutes=3), timedelta(minutes=5))


class Cut(NamedTuple):
    """A series up to some time, as usage and as demand, its masked values, and the hour that followed."""

    usage: Floats
    demand: Floats
    masked: NDArray[np.bool_]
    came: Floats


def bundled() -> str:
    """The bundled load, with its pods, as the replay shows it to models."""
    recording = traces.recorded()
    begin = recording.start + timedelta(days=7)
    measurements = measurements_of(recording, begin, timedelta(days=5, hours=22) // MINUTE)
    workloads, rows = {workload.id: workload for workload in recording.workloads}, np.arange(len(recording.workloads))
    cpu, pods = ServiceHistory.of(measurements, CPU), ServiceHistory.of(measurements, PODS)
    cleaning: Cleaning | None = None
    moved, masked = [], []
    for step in range(measurements.minutes * MINUTE // EVERY + 1):
        now = begin + step * EVERY
        around = DemandContext(CPU, pods.cut(now), workloads)
        history = cpu.cut(now, around)
        demand, cleaning = cleaned_weeks(ShardHistory(tuple(workloads), rows, history, around), cleaning)
        usage = history.rows(rows)
        moved.append(np.mean(np.nansum(np.abs(demand - usage), axis=1) / np.nansum(usage, axis=1)))
        masked.append(sum(sum(parts.values()) for parts in cleaning.masked.values()) / len(rows))
    return (
        f"bundled load: {np.mean(masked):.2%} of CPU is masked, and {np.mean(moved):.2%} of the demand is moved by it"
        " and by pods that start"
    )


def shared(folder: Path) -> str:
    """The shared traces by five minutes, of which nobody knows the pods."""
    cuts = [cut for series in _series(folder) for cut in _cuts(*series)]
    newest = [cut.masked[-COLUMNS_A_DAY:] for cut in cuts]
    compared = [cut for cut in cuts if cut.masked.any() and len(cut.came) == AHEAD and not np.isnan(cut.came).any()]
    order = np.random.default_rng(0).permutation(len(compared))[:COMPARED].tolist()
    losses = np.array(
        [[_loss(values, compared[i].came) for values in (compared[i].usage, compared[i].demand)] for i in order]
    )
    known = losses[losses[:, 0] > 0]
    return (
        f"shared traces, {len(cuts)} cuts: {np.mean(np.concatenate(newest)):.2%} of the days before them is masked;"
        f" at {1 - np.mean([cut.masked.any() for cut in cuts]):.0%} of them nothing is. Where something is, the loss of"
        f" the coming hour is {known[:, 1].sum() / known[:, 0].sum():.3f} of that without cleaning (median"
        f" {np.median(known[:, 1] / known[:, 0]):.3f}, {len(known)} cuts)"
    )


def _series(folder: Path) -> Iterator[tuple[Signal, Floats]]:
    for entry in json.loads((folder / "catalogue.json").read_text()):
        if entry["resolution_s"] <= FIVE_MINUTES.total_seconds():
            frame = pd.read_parquet(folder / entry["file"], filters=[("series_id", "==", entry["series_id"])])
            series = frame.set_index("timestamp")["value"].resample(FIVE_MINUTES).mean()
            signal = next((kind for kind in BUILT_IN.measured if kind in entry["metric"]), REQUESTS)
            yield signal, series.where(series >= 0).to_numpy(np.float32)


def _cuts(signal: Signal, values: Floats) -> Iterator[Cut]:
    """A dozen in the last 40 % of a series."""
    for end in np.linspace(0.6 * len(values), len(values) - AHEAD - 1, CUTS).astype(int).tolist():
        usage = values[None, max(0, end - WEEKS) : end]
        if np.isnan(usage[0, -1]):
            continue
        nothing = np.full(usage.shape, np.float32(np.nan))
        part = CleanedPart(usage, nothing, np.zeros(usage.shape, np.bool_))
        result = cleaned(part, traits_of(signal, [None], usage, np.zeros(1)), usage)
        yield Cut(usage, result.values, result.why[0] > 0, values[end : end + AHEAD])


def _loss(values: Floats, came: Floats) -> float:
    """Pinball loss in units of the mean."""
    forecast = create("adaptive").fit(Panel(values, NOON, FIVE_MINUTES, ("series",))).forecast(AHEAD, LEVELS).values[0]
    error, level = came[None] - forecast, np.array(LEVELS)[:, None]
    return float(np.maximum(level * error, (level - 1) * error).mean() / max(float(np.nanmean(values)), 1e-9))


def costs(workloads: int) -> str:
    """Costs of cleaning one signal, two weeks by five minutes."""
    prepare_process()
    fleet, few = Fleet(workloads), Fleet(1024)
    raw, clean = (_updated(fleet, cleaning=cleaning) for cleaning in (False, True))
    fitted_raw, fitted_clean = (_fitted(few, cleaning=cleaning) for cleaning in (False, True))
    return (
        f"a fit takes {fitted_clean / fitted_raw:.2f} times the CPU, and a cycle {clean - raw:.2f} s more for"
        f" {workloads:,} series of CPU"
    )


def _updated(fleet: Fleet, *, cleaning: bool) -> float:
    """The middle one of five cycles after the fit."""
    forecaster, values = Forecaster("last-value", timedelta(days=1), fleet.size), _kept(fleet)
    forecaster.peaks(CPU, _shown(fleet, values, cleaning=cleaning), [SPAN], NOON)
    return float(np.median([_seconds(forecaster, fleet, values, cleaning=cleaning) for _ in range(5)]))


def _fitted(fleet: Fleet, *, cleaning: bool) -> float:
    return _seconds(Forecaster("adaptive", timedelta(days=1), fleet.size), fleet, _kept(fleet), cleaning=cleaning)


def _seconds(forecaster: Forecaster, fleet: Fleet, values: dict[Signal, Floats], *, cleaning: bool) -> float:
    begin = time.process_time()
    forecaster.peaks(CPU, _shown(fleet, values, cleaning=cleaning), [SPAN], NOON)
    return time.process_time() - begin


def _kept(fleet: Fleet) -> dict[Signal, Floats]:
    seconds = NOON.timestamp() + FIVE_MINUTES.total_seconds() * np.arange(1 - WEEKS, 1)
    return {signal: fleet.demand(signal, seconds).astype(np.float32) for signal in (CPU, PODS)}


def _shown(fleet: Fleet, values: dict[Signal, Floats], *, cleaning: bool) -> FreshHistory:
    """Two minutes after the clock's cut, so that the newest hours are cut anew."""
    at = NOON + 2 * MINUTE

    def cut(signal: Signal, around: DemandContext | None = None) -> FreshHistory:
        weeks = Window(fleet.ids, NOON - (WEEKS - 1) * FIVE_MINUTES, FIVE_MINUTES, values[signal])
        minutes = np.repeat(values[signal][:, -36:], 5, axis=1)
        return fresh(weeks, Window(fleet.ids, at - 179 * MINUTE, MINUTE, minutes), around)

    workloads = {workload.id: workload for workload in fleet.workloads}
    return cut(CPU, DemandContext(CPU, cut(PODS), workloads) if cleaning else None)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("traces", type=Path, nargs="?", default=TRACES)
    arguments.add_argument("--workloads", type=int, default=WORKLOADS)
    arguments.add_argument("--write", action="store_true", help="write a dated file of benchmarks/results/")
    given = arguments.parse_args()
    lines = [bundled(), shared(given.traces), costs(given.workloads)]
    text = "\n".join(fill(f"- {line[0].upper()}{line[1:]}.", 120, subsequent_indent="  ") for line in lines)
    print(text)
    if given.write:
        record("demand", "Demand instead of usage", "python -m benchmarks.open_loop --write", text)


if __name__ == "__main__":
    main()
