"""Rebuild forecaster/sources/recorded_load/load.npz from a folder of recorded traces.

    python benchmarks/bundle_recorded.py TRACES

TRACES holds one Parquet file per family (`series_id`, `timestamp` = start of the sample in UTC, `value`). Only the
series that the demo is composed of are taken, thirteen days each, in the unit and resolution of their publisher,
rounded to twelve binary digits so that they compress; nothing is smoothed and no gap is filled.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd

from forecaster.sources.recorded import COMPOSED, LOAD, RECORDED_DAYS, START

# file, resolution in minutes, first day taken: a Friday wherever the source has a calendar
FAMILIES = {
    "bitbrains": ("bitbrains_memory.parquet", 5, "2013-08-09"),
    "crane": ("crane.parquet", 1, f"{START:%Y-%m-%d}"),
    "nab/elb": ("nab_cloudwatch.parquet", 5, "2014-04-11"),
    "nab/tweets": ("nab_tweets.parquet", 5, "2015-02-27"),
    "nasa": ("nasa_http.parquet", 1, "1995-07-07"),
}
MANTISSA_BITS = 12


def series_names() -> list[str]:
    return sorted({part.series for workload in COMPOSED for part in workload.parts.values()})


def taken(traces: Path, series: str) -> np.ndarray:
    file, minutes, first = next(entry for prefix, entry in FAMILIES.items() if series.startswith(prefix))
    frame = pd.read_parquet(traces / file)
    values = frame[frame.series_id == series].set_index("timestamp").value
    # Some publishers stamp a few seconds off the grid; the sample belongs to the interval that it lies in.
    values.index = values.index.floor(f"{minutes}min")
    grid = pd.date_range(first, periods=RECORDED_DAYS * 24 * 60 // minutes, freq=f"{minutes}min", tz="UTC")
    return rounded(values[~values.index.duplicated()].reindex(grid).to_numpy())


def rounded(values: np.ndarray) -> np.ndarray:
    mantissa, exponent = np.frexp(values)
    return np.ldexp(np.round(mantissa * 2**MANTISSA_BITS) / 2**MANTISSA_BITS, exponent).astype(np.float32)


def main(traces: Path) -> None:
    arrays = {series: taken(traces, series) for series in series_names()}
    np.savez_compressed(LOAD, **arrays)
    for series, values in arrays.items():
        print(f"{series}: {values.size} samples, {np.isnan(values).sum()} missing, up to {np.nanmax(values):g}")
    print(f"{LOAD.name}: {LOAD.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
