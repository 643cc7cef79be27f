"""Recorded series on a regular grid."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

TRACES = Path(__file__).parents[1] / "traces"
DAY_SECONDS = 86400
SEED = 0


@dataclass(frozen=True)
class Series:
    """One recorded series: `values` [bin] every `step` seconds, NaN where nothing was measured."""

    name: str
    family: str
    metric: str
    recorded_step: int
    step: int
    start: int
    """Epoch second at which the first bin begins."""
    values: Floats

    @property
    def day(self) -> int:
        """Bins of a day."""
        return DAY_SECONDS // self.step

    @cached_property
    def filled(self) -> Floats:
        """Values with gaps interpolated from both sides: the demand that a replay serves."""
        return pd.Series(self.values).interpolate(limit_direction="both").to_numpy()


def load(step: int, folder: Path = TRACES) -> list[Series]:
    """Every series of the catalogue in bins of `step` seconds, or of its own step where that is longer."""
    catalogue = json.loads((folder / "catalogue.json").read_text(encoding="utf-8"))
    frames = {file: pd.read_parquet(folder / file) for file in {record["file"] for record in catalogue}}
    samples = {file: dict(tuple(frame.groupby("series_id", sort=False))) for file, frame in frames.items()}
    return [_series(record, samples[record["file"]][record["series_id"]], step) for record in catalogue]


def _series(record: dict[str, object], frame: pd.DataFrame, step: int) -> Series:
    recorded = int(str(record["resolution_s"]))
    step = max(step, recorded)
    seconds = frame["timestamp"].dt.as_unit("s").astype("int64").to_numpy()
    start, values = binned(seconds, frame["value"].to_numpy(float), step)
    return Series(str(record["series_id"]), str(record["family"]), str(record["metric"]), recorded, step, start, values)


def binned(seconds: NDArray[np.int64], values: Floats, step: int) -> tuple[int, Floats]:
    """Start of the first bin, and the mean of each bin of `step` seconds; NaN for a bin without a sample."""
    bins = seconds // step
    first = int(bins.min())
    sums = np.bincount(bins - first, weights=values)
    counts = np.bincount(bins - first)
    return first * step, np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def sample(series: Sequence[Series], count: int | None, seed: int = SEED) -> list[Series]:
    """`count` series drawn so that every family comes up before one comes up twice; all where `count` is None."""
    if count is None or count >= len(series):
        return list(series)
    order = np.random.default_rng(seed).permutation(len(series))
    drawn: dict[str, int] = {}
    ranked = []
    for place, index in enumerate(order.tolist()):
        family = series[index].family
        drawn[family] = drawn.get(family, 0) + 1
        ranked.append((drawn[family], place, index))
    return [series[index] for index in sorted(index for *_, index in sorted(ranked)[:count])]


def by_step(series: Iterable[Series]) -> dict[int, list[Series]]:
    """The series of each step, together."""
    groups: dict[int, list[Series]] = {}
    for item in series:
        groups.setdefault(item.step, []).append(item)
    return groups
