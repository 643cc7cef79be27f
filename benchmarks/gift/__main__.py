"""GIFT-Eval, Bitbrains rnd at five minutes, short: `python -m benchmarks.gift FOLDER --prior NEAR SIMILAR`.

FOLDER holds the machines as the Grid Workloads Archive publishes them (GWA-T-12, `rnd/2013-7`: one CSV a machine). The
networks that ship have seen other months of these machines, so others are needed, once more with `--similar`:

    python -m benchmarks.train_prior --without bitbrains bitbrains_cpu bitbrains_memory bitbrains_network --out NEAR

Protocol: 18 windows of 48 steps over the last 864 bins, each forecast from everything before it, levels 0.1 to 0.9; a
missing value is filled with the one before. CRPS = mean over levels of 2 x sum of pinball losses / sum of |value|;
ND = sum of |value - median| / sum of |value|.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from benchmarks.bench.accuracy import quantiles_of
from benchmarks.bench.losses import pinball
from benchmarks.bench.tables import Table
from models import Panel, create

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

STEP = timedelta(minutes=5)
START = datetime(2013, 6, 30, 22, tzinfo=UTC)
BINS = 8640
WINDOWS, STEPS = 18, 48
LEVELS = tuple(level / 10 for level in range(1, 10))
HISTORY_BINS = 14 * 288
COLUMNS = ("CPU usage [MHZ]", "CPU usage [%]")
FAMILY = "bitbrains"
MODELS = ("seasonal-naive-day", "last-value", "adaptive")
PUBLISHED = Path(__file__).parent / "published.json"
TREE = Path(__file__).parents[2]


class Score(NamedTuple):
    """Losses over all series, windows and steps, as ratios to the sum of the values."""

    crps: float
    nd: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "folder", type=Path, help="CSVs of GWA-T-12 rnd/2013-7, or one Parquet file with a column a series"
    )
    parser.add_argument(
        "--prior", type=Path, nargs="+", help="weights that have not seen these machines, each with its .json beside"
    )
    parser.add_argument("--models", nargs="*", default=MODELS)
    given = parser.parse_args()
    if given.prior:
        score_with(given.prior, given.folder.resolve(), given.models)
        return
    values = read(given.folder)
    with threadpool_limits(1):
        scores = {name: score(values, name) for name in given.models}
    print(table(scores))


def score_with(priors: Sequence[Path], folder: Path, models: Sequence[str]) -> None:
    """Run this module in a copy of the tree that has these weights in place of those that ship.

    Raises:
        SystemExit: the weights have seen machines of the family that is scored.
    """
    made = {prior: json.loads(prior.with_suffix(".json").read_text(encoding="utf-8")) for prior in priors}
    for prior, how in made.items():
        if families := sorted({source["family"] for source in how["sources"] if source["family"].startswith(FAMILY)}):
            sys.exit(f"{prior}: has been trained on {', '.join(families)}; train it --without {' '.join(families)}")
    with tempfile.TemporaryDirectory() as place:
        tree = Path(place)
        shutil.copytree(TREE / "models", tree / "models", ignore=shutil.ignore_patterns("*.npz"))
        for prior, how in made.items():
            shutil.copy(prior, tree / "models" / ("similar.npz" if how.get("similar") else "prior.npz"))
        for name in ("benchmarks", "forecaster"):
            (tree / name).symlink_to(TREE / name)
        command = [sys.executable, "-m", "benchmarks.gift", str(folder), "--models", *models]
        subprocess.run(command, check=True, cwd=tree)


def read(path: Path) -> Floats:
    """Values [series, bin]: CPU in MHz and in percent of each machine, means of five minutes, NaN without a sample."""
    if path.is_file():
        return pd.read_parquet(path).to_numpy(float).T
    machines = (read_machine(file) for file in sorted(path.glob("*.csv"), key=lambda file: int(file.stem)))
    return np.concatenate([machine for machine in machines if not np.isnan(machine).all()])


def read_machine(file: Path) -> Floats:
    """[CPU in MHz, CPU in percent] by bins of one machine."""
    rows = pd.read_csv(file, sep=";", skipinitialspace=True)
    rows.columns = rows.columns.str.strip()
    seconds = rows["Timestamp [ms]"].to_numpy(np.int64)
    bins = (seconds - int(START.timestamp())) // int(STEP.total_seconds())
    inside = (bins >= 0) & (bins < BINS)
    counts = np.bincount(bins[inside], minlength=BINS)
    sums = (np.bincount(bins[inside], rows[name].to_numpy(float)[inside], BINS) for name in COLUMNS)
    return np.stack([np.where(counts > 0, total / np.maximum(counts, 1), np.nan) for total in sums])


def score(values: Floats, name: str) -> Score:
    """The losses of one model over the last windows of all series."""
    filled = pd.DataFrame(values.T).ffill().bfill().to_numpy().T
    first = values.shape[1] - WINDOWS * STEPS
    lost, missed, total = np.zeros(len(LEVELS)), 0.0, 0.0
    for origin in range(first, values.shape[1], STEPS):
        actual = filled[:, origin : origin + STEPS]
        answer = forecast(name, values[:, max(0, origin - HISTORY_BINS) : origin], origin)
        for row, quantiles in zip(actual, answer, strict=True):
            lost += 2 * pinball(row, quantiles, LEVELS).sum(axis=1)
        missed += float(np.abs(actual - answer[:, len(LEVELS) // 2]).sum())
        total += float(np.abs(actual).sum())
    return Score(float(lost.mean()) / total, missed / total)


def forecast(name: str, history: Floats, origin: int) -> Floats:
    """Quantiles [series, level, step] from values [series, bin] before bin `origin`."""
    keys = [str(row) for row in range(len(history))]
    panel = Panel.cleaned(history, START + (origin - history.shape[1]) * STEP, STEP, keys)
    return quantiles_of(create(name), panel, STEPS, LEVELS)


def table(scores: dict[str, Score]) -> Table:
    """Ours and the published rows, the smallest CRPS first."""
    published = json.loads(PUBLISHED.read_text(encoding="utf-8"))["bitbrains_rnd/5T/short"]
    rows = Table("GIFT-Eval, bitbrains_rnd/5T/short", ("model", "CRPS", "ND of the median", "source"))
    for name, own in scores.items():
        rows.add(f"{name} (ours)", f"{own.crps:.4f}", f"{own.nd:.4f}", "measured")
    for name, figures in published.items():
        rows.add(name, f"{figures['crps']:.4f}", f"{figures['nd']:.4f}", "published")
    return rows.sorted_by("CRPS")


if __name__ == "__main__":
    main()
