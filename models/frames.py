"""Panels and forecasts from and to pandas frames; pandas is imported with this file only."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Literal

import numpy as np
import pandas as pd

from .display import span_text
from .errors import PanelError
from .forecast import Forecast
from .panel import LARGEST_VALUE, Panel

COLUMN_ALIASES = {"timestamp": ("timestamp", "time", "ds"), "value": ("value", "y")}
SERIES_ALIASES = ("series", "workload", "series_id", "unique_id")
"""Names of the columns of a long frame; `ds`, `y`, `unique_id` are those of other forecasting libraries."""
ONLY_SERIES = "series"
LONGEST_STEP = timedelta(hours=1)
"""A daily pattern is not seen in coarser samples."""
UTC_NAME = r" ?(?:UTC|GMT)$"
FRACTIONS: dict[Literal["s", "ms", "us", "ns"], float] = {"s": 1e11, "ms": 1e14, "us": 1e17, "ns": np.inf}
"""Units of numbers since 1970, each up to the year 5138, which is 1973 in the next one."""


def panel_of(frame: pd.DataFrame) -> Panel:
    """A panel of a wide frame.

    Raises:
        PanelError: the index is not made of aware, distinct, ascending instants on one regular grid.
    """
    index = _checked_index(frame)
    step = pd.Series(index).diff().min()
    grid = pd.date_range(index[0], index[-1], freq=step)
    if len(index.difference(grid)):
        odd = index.difference(grid)[0]
        raise PanelError(f"{odd} is off the grid of {step} that begins at {index[0]}; resample the frame first")
    try:
        values = np.ascontiguousarray(frame.reindex(grid).to_numpy(dtype=np.float64).T)
    except (TypeError, ValueError) as error:
        raise PanelError(f"a value is no number ({error}); use numbers, and NaN for a gap") from error
    return Panel(values, index[0].to_pydatetime(), step.to_pytimedelta(), tuple(map(str, frame.columns)))


def frame_of(panel: Panel) -> pd.DataFrame:
    """Return one column per series, bin starts as index."""
    index = pd.date_range(panel.start, periods=panel.length, freq=pd.Timedelta(panel.step))
    return pd.DataFrame(panel.values.T, index=index, columns=list(panel.keys))


def frame_of_forecast(forecast: Forecast) -> pd.DataFrame:
    """Columns (series, level), beginnings of the steps as index."""
    index = pd.date_range(forecast.origin, periods=forecast.steps, freq=pd.Timedelta(forecast.step))
    columns = pd.MultiIndex.from_product([forecast.keys, forecast.levels], names=["series", "level"])
    return pd.DataFrame(forecast.values.reshape(-1, forecast.steps).T, index=index, columns=columns)


def panel_of_long(frame: pd.DataFrame, step: timedelta | None = None) -> Panel:
    """Make a panel of samples: means over bins of `step`, by default the coarsest usual distance of any series.

    Raises:
        PanelError: a column is missing, nothing can be read of it, or samples lie further apart than an hour.
    """
    samples, notes = _samples(frame)
    steps = {str(key): _usual_step(group) for key, group in samples.groupby("series")["timestamp"]}
    known = {key: usual for key, usual in steps.items() if usual}
    width = step or max(known.values(), default=None)
    if width is None:
        raise PanelError("no series has two samples, so nothing says how long one lasts; give `step`")
    if width > LONGEST_STEP:
        raise PanelError(f"a sample every {span_text(width)} says too little; an hour is the most")
    finer = [key for key, usual in known.items() if usual < width]
    if finer:
        notes.append(f"means over {span_text(width)} of series that are sampled more often: {_named(finer)}")
    return _binned(samples, width, notes)


def _samples(frame: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Return timestamp, value and series of every valid sample, and notes on those left out."""
    named = {name: next((alias for alias in names if alias in frame), None) for name, names in COLUMN_ALIASES.items()}
    for name, column in named.items():
        if column is None:
            raise PanelError(f"the frame has no column {name!r} among {', '.join(map(str, frame.columns))}")
    series = next((alias for alias in SERIES_ALIASES if alias in frame), None)
    when, notes, first = instants(frame[named["timestamp"]]), [], frame[named["timestamp"]].head(1)
    if not pd.api.types.is_numeric_dtype(first) and first.map(lambda time: pd.Timestamp(time).tz is None).any():
        notes.append("timestamps name no time zone and were read as UTC")
    values = pd.to_numeric(frame[named["value"]], errors="coerce").astype(float)
    keys = frame[series].astype(str) if series else pd.Series(ONLY_SERIES, frame.index)
    samples = pd.DataFrame({"timestamp": when, "value": values, "series": keys})
    good = samples[samples["value"].between(0, LARGEST_VALUE)].dropna()
    if len(good) < len(samples):
        notes.append(f"{len(samples) - len(good)} of {len(samples)} rows hold no demand (empty, negative, no number)")
    if good.empty:
        raise PanelError(f"the frame holds no sample of 0 or more, but {frame[named['value']].head(2).tolist()}")
    twice = int(good.duplicated(["series", "timestamp"]).sum())
    if twice:
        notes.append(f"{twice} samples came twice for one instant: their mean")
    return good, notes


def instants(column: pd.Series) -> pd.Series:
    """Instants in UTC of dates, ISO 8601 texts, or numbers since 1970: seconds as Prometheus has them, or fractions.

    Raises:
        PanelError: one is no instant, or its day may be its month.
    """
    try:
        if not pd.api.types.is_numeric_dtype(column):
            return pd.to_datetime(column.replace({UTC_NAME: "Z"}, regex=True), format="ISO8601", utc=True)
        largest = column.abs().max()
        unit = next(unit for unit, end in FRACTIONS.items() if not largest > end)
        return pd.to_datetime(column, unit=unit, utc=True)
    except (ValueError, TypeError, OverflowError) as error:
        reason = str(error).split(" You might", maxsplit=1)[0]
        raise PanelError(f"a timestamp is no instant ({reason}); use 2026-03-01T12:00:00Z") from error


def _usual_step(instants: pd.Series) -> timedelta | None:
    """The median distance of samples to the next one, in whole seconds, as clocks jitter; None of a single one."""
    apart = instants.drop_duplicates().sort_values().diff().dropna().dt.round("s").clip(lower=pd.Timedelta(seconds=1))
    return apart.quantile(interpolation="lower").to_pytimedelta() if len(apart) else None


def _binned(samples: pd.DataFrame, step: timedelta, notes: list[str]) -> Panel:
    bins = samples["timestamp"].dt.floor(pd.Timedelta(step))
    off = int((bins != samples["timestamp"]).sum())
    if off == len(samples):
        notes.append(f"every sample lies beside the full {span_text(step)} and counts for the bin it lies in")
    table = samples.assign(bin=bins).pivot_table(index="bin", columns="series", values="value", aggfunc="mean")
    grid = pd.date_range(table.index[0], table.index[-1], freq=pd.Timedelta(step))
    values = np.ascontiguousarray(table.reindex(grid).to_numpy(dtype=np.float64).T)
    keys = tuple(map(str, table.columns))
    notes += [*_ragged(values, keys, step), *_gaps(values)]
    return Panel(values, grid[0].to_pydatetime(), step, keys, notes=tuple(notes))


def _ragged(values: np.ndarray, keys: tuple[str, ...], step: timedelta) -> Iterator[str]:
    """Series that begin after the first, or end before the last."""
    known = np.isfinite(values)
    late, silent = known.argmax(axis=1), known[:, ::-1].argmax(axis=1)
    if late.any():
        begun = [keys[i] for i in np.flatnonzero(late)]
        yield f"gaps before series that begin up to {span_text(int(late.max()) * step)} late: {_named(begun)}"
    if silent.any():
        ended = [keys[i] for i in np.flatnonzero(silent)]
        yield f"gaps after series that end up to {span_text(int(silent.max()) * step)} early: {_named(ended)}"


def _gaps(values: np.ndarray) -> Iterator[str]:
    """Bins without a sample between the first and the last of their series."""
    known = np.isfinite(values)
    begun = np.maximum.accumulate(known, axis=1)
    going = np.maximum.accumulate(known[:, ::-1], axis=1)[:, ::-1]
    inside = begun & going
    missing = int((inside & ~known).sum())
    if missing:
        yield f"{missing} bins ({missing / inside.sum():.1%}) have no sample and stay gaps, which models carry over"


def _named(keys: list[str]) -> str:
    return keys[0] if len(keys) == 1 else f"{len(keys)} series ({keys[0]}, ...)"


def _checked_index(frame: pd.DataFrame) -> pd.DatetimeIndex:
    index = frame.index
    if not isinstance(index, pd.DatetimeIndex) or index.tz is None:
        raise PanelError(f"the index is {index.dtype}; use aware instants, the start of each bin")
    if len(index) <= 1:
        raise PanelError(f"{len(index)} rows have no step; give at least two")
    if index.has_duplicates:
        raise PanelError(f"the instant {index[index.duplicated()][0]} comes twice; keep one row for it")
    if index.hasnans:
        raise PanelError(f"row {index.isna().argmax()} has no instant; drop it")
    if not index.is_monotonic_increasing:
        latest = index[int(np.argmax(np.diff(index.asi8) < 0))]
        raise PanelError(f"the index does not ascend after {latest}; sort the frame")
    return index.tz_convert("UTC")
