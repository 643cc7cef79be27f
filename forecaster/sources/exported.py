"""Demand from a CSV or Parquet file: one row a sample, or one column a workload beside the time, as Grafana exports it.

Columns: `timestamp` (the beginning of the sample: RFC 3339, or seconds or fractions of them since 1970), `value` (total
over all pods: cores, bytes, requests per second), and if there is more than one series `workload` (`namespace/name`, or
a name, beside a `namespace` or not; `series_id` is the same) and `signal` (cpu, memory, requests, pods; default cpu). A
sample that covers several minutes describes each of them; of several within a minute the mean counts. A wide table has
the column of the time, and workloads as heads of the others.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forecaster.domain.signal import BUILT_IN, CPU, Signal, Signals
from forecaster.domain.window import MINUTE
from forecaster.domain.workload import WorkloadId
from forecaster.errors import SourceRefused
from models import PanelError

try:
    import pandas as pd

    from models.frames import LONGEST_STEP, instants
except ModuleNotFoundError as missing:
    raise SourceRefused("exported series are read by pandas: pip install 'kube-forecaster[models]'") from missing


SERIES_COLUMN = "series"
SAMPLE = ["workload", "signal", "timestamp"]
LONGEST_SPAN = timedelta(days=3 * 366)
"""Each minute of the span takes memory in every workload: one sample of 1970 among those of today would take all."""


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
    try:
        samples = _by_minute(_named(table_of(path), path, known), path)
    except PanelError as error:
        raise SourceRefused(f"{path}: {error}") from error
    start, end = samples["timestamp"].min(), samples["timestamp"].max()
    if end - start > LONGEST_SPAN:
        raise SourceRefused(f"{path}: its samples are of {start:%F} to {end:%F}, more than {LONGEST_SPAN.days} days")
    steps = {series: _step(group["timestamp"], path) for series, group in samples.groupby(["signal", "workload"])}
    minutes = pd.date_range(start, end + (max(steps.values()) - 1) * MINUTE, freq="min")
    table = samples.set_index(SAMPLE)["value"].unstack(["signal", "workload"]).reindex(minutes)  # noqa: PD010  unique
    row = {name: i for i, name in enumerate(sorted(samples["workload"].unique()))}
    values = {known.by_name[signal]: np.full((len(row), len(minutes)), np.nan) for signal in samples["signal"].unique()}
    for (signal, name), step in steps.items():
        measured = table[signal, name]
        values[known.by_name[str(signal)]][row[name]] = measured if step == 1 else measured.ffill(limit=step - 1)
    return Exported(tuple(map(workload_named, row)), start.to_pydatetime() + MINUTE, values)


def table_of(path: Path) -> pd.DataFrame:
    """The samples of a CSV or Parquet file, one a row.

    Raises:
        SourceRefused: it cannot be read, or has another form.
    """
    try:
        return _long(pd.read_parquet(path) if path.suffix.lower() in PARQUET else _text(path), path)
    except ImportError as error:
        raise SourceRefused(f"{path}: Parquet needs pyarrow; install it, or export CSV") from error
    except (OSError, ValueError, UnicodeDecodeError) as error:
        raise SourceRefused(f"{path}: not a readable CSV or Parquet file ({str(error).strip()})") from error


def _text(path: Path) -> pd.DataFrame:
    """Columns parted by the first separator of the first line, which spreadsheets write there by itself: `sep=;`."""
    head = str(pd.read_csv(path, sep="\0", nrows=0, quoting=csv.QUOTE_NONE).columns[0])
    separator = (re.search("[,;\t]", head) or [","])[0]
    layout: dict[str, Any] = {"sep": separator, "skiprows": int(head.startswith("sep=")), "skipinitialspace": True}
    heads = pd.read_csv(path, header=None, nrows=1, dtype=str, **layout).iloc[0].dropna()
    for name in heads[heads.duplicated()]:  # pandas would call the second one `name.1`, another workload
        raise SourceRefused(f"{path}: two columns are called {name!r}; add up those of a workload's pods first")
    table: pd.DataFrame = pd.read_csv(path, **layout)
    return table


PARQUET = (".parquet", ".pq")
TIME_NAMES, VALUE_NAMES = ("timestamp", "time", "ds"), ("value", "y")
HEADS = {*TIME_NAMES, *VALUE_NAMES, "namespace", "workload", "series_id", "signal"}
SERIES_LABEL = re.compile(r'(\w+)="([^"]*)"')
"""A label of a series as Prometheus and Grafana write it in its name."""
FORMS = "use one row a sample (timestamp, workload, signal, value), or one column a workload beside the time"


def _long(frame: pd.DataFrame, path: Path) -> pd.DataFrame:
    """A wide table as rows of samples; one that has such rows keeps them."""
    if isinstance(frame.index, pd.DatetimeIndex):
        frame = frame.rename_axis("timestamp").reset_index()
    there = ", ".join(map(str, frame.columns))
    frame = frame.rename(columns=lambda head: plain if (plain := str(head).strip().lower()) in HEADS else head)
    time, value = (next((name for name in names if name in frame), None) for names in (TIME_NAMES, VALUE_NAMES))
    if time is None:
        raise SourceRefused(f"{path}: has no column 'timestamp' among {there}; {FORMS}")
    if frame.empty:
        raise SourceRefused(f"{path}: holds no sample")
    if value is not None:
        series = {} if "workload" in frame else {"series_id": "workload"}
        return _qualified(frame.rename(columns={time: "timestamp", value: "value"} | series))
    wide = frame.set_index(time).dropna(axis="columns", how="all")
    for column in wide.select_dtypes(exclude="number"):
        sample = wide[column].dropna().iloc[0]
        raise SourceRefused(f"{path}: column {column!r} holds {sample!r}, which is no number; {FORMS}")
    if wide.empty:
        raise SourceRefused(f"{path}: has no column 'value' among {there}; {FORMS}")
    named = wide.rename(columns=_series_name).rename_axis("timestamp").reset_index()
    return named.melt("timestamp", var_name="workload", value_name="value").dropna(subset=["value"])


def _qualified(frame: pd.DataFrame) -> pd.DataFrame:
    """The samples with the column `namespace` before each workload that has none in its name."""
    if not {"namespace", "workload"} <= set(frame.columns):
        return frame
    names = frame["workload"].astype(str)
    return frame.assign(workload=names.where(names.str.contains("/"), frame["namespace"].astype(str) + "/" + names))


def _series_name(column: object) -> str:
    """Return the workload named by a head: itself, or its labels namespace and workload."""
    labels = dict(SERIES_LABEL.findall(str(column)))
    named = labels.get("workload") or labels.get("deployment")
    return "/".join(filter(None, (labels.get("namespace"), named))) if named else str(column)


def _named(frame: pd.DataFrame, path: Path, known: Signals) -> pd.DataFrame:
    signals = frame["signal"].astype(str) if "signal" in frame else pd.Series(str(CPU), frame.index)
    unknown = set(signals.unique()) - set(known.by_name)
    if unknown:
        raise SourceRefused(f"{path}: signal {min(unknown)!r} is not known; use one of {', '.join(known.by_name)}")
    workloads = frame["workload"].astype(str) if "workload" in frame else pd.Series(SERIES_COLUMN, frame.index)
    times, amounts = instants(frame["timestamp"]), _amounts(frame, path)
    named = pd.DataFrame({"timestamp": times, "value": amounts, "workload": workloads, "signal": signals})
    for column in ("timestamp", "workload"):
        if named[column].isna().any():
            raise SourceRefused(f"{path}: a sample has no {column}; {FORMS}")
    return named


def _amounts(frame: pd.DataFrame, path: Path) -> pd.Series[float]:
    amounts = pd.to_numeric(frame["value"], errors="coerce").astype(float)
    bad = frame["value"][~((amounts >= 0) & (amounts < np.inf)) & frame["value"].notna()]
    if len(bad):
        raise SourceRefused(f"{path}: the value {bad.iloc[0]} is no demand; use numbers of 0 or more")
    return amounts


def _by_minute(frame: pd.DataFrame, path: Path) -> pd.DataFrame:
    """The mean of the samples within each minute; a row that was exported twice counts once."""
    samples = frame.drop_duplicates()
    twice = samples[samples.duplicated(SAMPLE)]
    if len(twice):
        workload, at = twice["workload"].iloc[0], twice["timestamp"].iloc[0]
        raise SourceRefused(f"{path}: {workload} has two values at {at:%FT%TZ}; add up those of its pods first")
    return samples.assign(timestamp=samples["timestamp"].dt.floor("min")).groupby(SAMPLE, as_index=False).mean()


def _step(times: pd.Series[pd.Timestamp], path: Path) -> int:
    """The minutes that one sample of a series covers: the usual distance to the next."""
    step = MINUTE if len(times) == 1 else times.diff().median().to_pytimedelta()
    if step > LONGEST_STEP:
        raise SourceRefused(f"{path}: a sample every {step} says too little; an hour is the most, a minute is best")
    return max(1, step // MINUTE)


def workload_named(name: str) -> WorkloadId:
    """The workload called `name`, `namespace/name` or `namespace/Kind/name`."""
    *namespace, rest = name.split("/")
    kind = namespace.pop() if len(namespace) > 1 and namespace[-1][:1].isupper() else "Deployment"
    return WorkloadId(".".join(namespace) or "default", kind, rest)
