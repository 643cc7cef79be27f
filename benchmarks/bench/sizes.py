"""Requests and limits on recorded containers: ours at its defaults beside the VPA and KRR."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, get_args

import numpy as np
import pandas as pd

from benchmarks.bench.loads import TRACES
from benchmarks.bench.tables import Table
from forecaster.replay.size_replay import STEPS_A_DAY, Load, Resource
from forecaster.replay.sizers import ours, references, size_outcomes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from forecaster.replay.sizers import SizeOutcome

MIN_DAYS = 12
WARM = 8 * STEPS_A_DAY
"""Bins from which a size is learned before it counts."""
QUICK_CONTAINERS = 6
COLUMNS = ("recommender", "slack", "of total", "bins over limit", "time over request", "changes")


def size_tables(*, quick: bool) -> Iterator[Table]:
    """A table for each resource, a line for each recommender."""
    for resource in get_args(Resource):
        loads = recorded(resource)
        if quick:
            loads = [first_containers(load) for load in loads]
        containers = sum(len(load.names) for load in loads)
        table = Table(f"Sizes, {resource} ({containers} containers)", COLUMNS)
        for outcome in size_outcomes(loads, [ours("forecaster", "defaults"), *references()]):
            table.add(f"{outcome.family}, {outcome.setting}", *_cells(outcome))
        yield table


def first_containers(load: Load) -> Load:
    """A few containers of a load, in their order."""
    return replace(load, names=load.names[:QUICK_CONTAINERS], demand=load.demand[:QUICK_CONTAINERS])


def _cells(outcome: SizeOutcome) -> tuple[str, ...]:
    summary = outcome.summary
    shares = f"{summary.slack:.3f}", f"{summary.slack_of_total:.3f}"
    return (*shares, f"{summary.over_limit}", f"{summary.over_request_share:.2%}", f"{summary.changes}")


def recorded(resource: Resource) -> list[Load]:
    """The recorded series of one resource, those of equal length together."""
    by_days: dict[int, dict[str, np.ndarray]] = {}
    for name, values in _series(resource).items():
        by_days.setdefault(len(values) // STEPS_A_DAY, {})[name] = values
    return [_load(resource, series) for days, series in sorted(by_days.items()) if days >= MIN_DAYS]


def _load(resource: Resource, series: dict[str, np.ndarray]) -> Load:
    bins = min(map(len, series.values()))
    return Load(resource, tuple(series), np.array([values[:bins] for values in series.values()]), WARM)


def _series(metric: str) -> dict[str, np.ndarray]:
    """Five-minute means of CPU, maxima of memory; gaps are NaN."""
    records = json.loads((TRACES / "catalogue.json").read_text(encoding="utf-8"))
    chosen = [record for record in records if record["metric"] == metric]
    series: dict[str, np.ndarray] = {}
    for file in sorted({record["file"] for record in chosen}):
        frame = pd.read_parquet(TRACES / file)
        for name in (record["series_id"] for record in chosen if record["file"] == file):
            values = frame[frame.series_id == name].set_index("timestamp").value.sort_index()
            bins = values[~values.index.duplicated()].resample("5min")
            series[name] = (bins.max() if metric == "memory" else bins.mean()).to_numpy(float)
    return series
