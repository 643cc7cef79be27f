"""Demand from a CSV or Parquet file: one row a sample, or one column a workload beside the time, as Grafana exports it.

Columns: `timestamp` (the beginning of the sample: RFC 3339, or seconds or milliseconds since 1970), `value` (total over
all pods: cores, bytes, requests per second), and if there is more than one series `workload` (`namespace/name`, or a
name; `series_id` is the same) and `signal` (cpu, memory, requests, pods; default cpu). A sample that covers several
minutes describes each of them. A wide table has the column of the time, and workloads as heads of the others.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np

from forecaster.domain.signal import BUILT_IN, CPU, Signal, Signals
from forecaster.domain.window import MINUTE
from forecaster.domain.workload import WorkloadId
from forecaster.errors import SourceRefused
from models import PanelError

try:
    import pandas as pd

    from models.frames import instants
except ModuleNotFoundError as missing:
    raise SourceRefused("exported series are read by pandas: pip install 'kube-forecaster[models]'") from missing

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

SERIES_COLUMN = "series"
LONGEST_STEP = timedelta(hours=1)
LONGEST_SPAN = timedelta(days=3 * 366)
"""Each minute of the span takes memory in every workload: a sample of 1970 beside those of today would take all of it.
"""


@dataclass(frozen=True, slots=True, eq=False)
class Exported:
    """Minutes of demand: `values[signal][i, j]` of `ids[i]` in the minute that ends at `start + j` minutes."""

    ids: tuple[WorkloadId, ...]
    start: datetime
    values: Mapping[Signal, NDArray[np.float64]]


def read_export(path: Path, known: Signals = BUILT_IN) -> Exported:
    """The content of a file.

    Raises:
        SourceRefused: it cannot be read, lacks a column, or holds something that is no sample.
    """
    frame = _named(table_of(path), path, known)
    start, end = frame["timestamp"].min(), frame["timestamp"].max()
    names = sorted(frame["workload"].unique())
    series = {
        (known.by_name[str(signal)], str(name)): _steps(group, path)
        for (signal, name), group in frame.groupby(["signal", "workload"])
    }
    widest = max(step for _, step in series.values())
    if end - start > LONGEST_SPAN:
        raise SourceRefused(f"{path}: its samples are of {start:%F} to {end:%F}, more than {LONGEST_SPAN.days} days")
    minutes = int((end - start) / MINUTE) + widest
    values: dict[Signal, NDArray[np.float64]] = {}
    for (signal, name), (group, step) in series.items():
        rows = values.setdefault(signal, np.full((len(names), minutes), np.nan))
        _spread(rows[names.index(name)], group, start, step)
    return Exported(tuple(map(_id, names)), start.to_pydatetime() + MINUTE, values)


def table_of(path: Path) -> pd.DataFrame:
    """The samples of a CSV or Parquet file, one a row.

    Raises:
        SourceRefused: it cannot be read, or has another form.
    """
    read: Callable[[Path], pd.DataFrame] = pd.read_parquet if path.suffix == ".parquet" else pd.read_csv
    try:
        return _long(read(path), path)
    except ImportError as error:
        raise SourceRefused(f"{path}: Parquet needs pyarrow; install it, or export CSV") from error
    except (OSError, ValueError, UnicodeDecodeError) as error:
        raise SourceRefused(f"{path}: not a readable CSV or Parquet file ({error})") from error


TIME_NAMES, VALUE_NAMES = ("timestamp", "time", "ds"), ("value", "y")
SERIES_LABEL = re.compile(r'(\w+)="([^"]*)"')
"""A label of a series as Prometheus and Grafana write it in its name."""
FORMS = (
    "use one row a sample (timestamp, workload, signal, value), or one column a workload beside a column of the time"
)


def _long(frame: pd.DataFrame, path: Path) -> pd.DataFrame:
    """A wide table as rows of samples; one that has such rows keeps them."""
    there = ", ".join(map(str, frame.columns))
    time, value = (
        next((column for name in names for column in frame if str(column).lower() == name), None)
        for names in (TIME_NAMES, VALUE_NAMES)
    )
    if time is None:
        raise SourceRefused(f"{path}: has no column 'timestamp' among {there}; {FORMS}")
    if frame.empty:
        raise SourceRefused(f"{path}: holds no sample")
    if value is not None:
        return frame.rename(columns={time: "timestamp", value: "value"})
    wide = frame.set_index(time).dropna(axis="columns", how="all")
    for column in wide:
        if not pd.api.types.is_numeric_dtype(wide[column]):
            sample = wide[column].dropna().iloc[0]
            raise SourceRefused(f"{path}: column {column!r} holds {sample!r}, which is no number; {FORMS}")
    if wide.empty:
        raise SourceRefused(f"{path}: has no column 'value' among {there}; {FORMS}")
    named = wide.rename(columns=_series_name).rename_axis("timestamp").reset_index()
    return named.melt("timestamp", var_name="workload", value_name="value").dropna(subset=["value"])


def _series_name(column: object) -> str:
    """Return the workload named by a head: itself, or its labels namespace and workload."""
    labels = dict(SERIES_LABEL.findall(str(column)))
    named = labels.get("workload") or labels.get("deployment")
    return "/".join(filter(None, (labels.get("namespace"), named))) if named else str(column)


def _named(frame: pd.DataFrame, path: Path, known: Signals) -> pd.DataFrame:
    frame = frame if "workload" in frame else frame.rename(columns={"series_id": "workload"})
    signals = frame["signal"] if "signal" in frame else pd.Series(str(CPU), frame.index)
    unknown = set(signals.unique()) - set(known.by_name)
    if unknown:
        allowed = ", ".join(known.by_name)
        raise SourceRefused(f"{path}: signal {min(map(str, unknown))!r} is not known; use one of {allowed}")
    workloads = frame["workload"].astype(str) if "workload" in frame else pd.Series(SERIES_COLUMN, frame.index)
    named = pd.DataFrame(
        {"timestamp": _instants(frame, path), "value": _amounts(frame, path), "workload": workloads, "signal": signals}
    )
    for column in ("timestamp", "workload"):
        if named[column].isna().any():
            raise SourceRefused(f"{path}: a sample has no {column}; {FORMS}")
    return named


def _instants(frame: pd.DataFrame, path: Path) -> pd.Series[pd.Timestamp]:
    try:
        times: pd.Series[pd.Timestamp] = instants(frame["timestamp"], utc=True).dt.floor("min")
    except PanelError as error:
        raise SourceRefused(f"{path}: {error}") from error
    return times


def _amounts(frame: pd.DataFrame, path: Path) -> pd.Series[float]:
    amounts = pd.to_numeric(frame["value"], errors="coerce").astype(float)
    bad = frame["value"][~((amounts >= 0) & (amounts < np.inf)) & frame["value"].notna()]
    if len(bad):
        raise SourceRefused(f"{path}: the value {bad.iloc[0]} is no demand; use numbers of 0 or more")
    return amounts


def _steps(group: pd.DataFrame, path: Path) -> tuple[pd.DataFrame, int]:
    """A series in order, and the minutes that one sample covers: the usual distance to the next."""
    ordered = group.sort_values("timestamp")
    if ordered["timestamp"].duplicated().any():
        twice = ordered["timestamp"][ordered["timestamp"].duplicated()].iloc[0]
        raise SourceRefused(f"{path}: {ordered['workload'].iloc[0]} has two samples of the minute {twice:%FT%H:%MZ}")
    if len(ordered) == 1:
        return ordered, 1
    step = timedelta(seconds=float(ordered["timestamp"].diff().dt.total_seconds().median()))
    if step > LONGEST_STEP:
        raise SourceRefused(f"{path}: a sample every {step} says too little; an hour is the most, a minute is best")
    return ordered, max(1, step // MINUTE)


def _spread(row: NDArray[np.float64], group: pd.DataFrame, start: pd.Timestamp, step: int) -> None:
    columns = ((group["timestamp"] - start) / MINUTE).astype(int).to_numpy()
    for minute in range(step - 1, -1, -1):
        inside = columns + minute < len(row)
        row[columns[inside] + minute] = group["value"].to_numpy()[inside]


def _id(name: str) -> WorkloadId:
    namespace, _, rest = name.rpartition("/")
    return WorkloadId(namespace.replace("/", ".") or "default", "Deployment", rest)
