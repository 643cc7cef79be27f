"""Forecast accuracy on recorded load, beside the usual baselines: `python -m benchmarks.accuracy [--quick] [--write]`.

Runs ../shared/bench with `benchmarks.plugins:forecaster` three times (an hour ahead from five-minute bins, ten minutes
ahead at one-minute freshness, a day ahead), then the first day of each series, and says which promise is kept.
`--write` puts the tables, with commit and machine, into docs/accuracy.md.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from benchmarks.cold_start import cold_start
from benchmarks.window_peaks import window_peaks

BASELINES = "snaive_day,snaive_week,last_value,snaive_ar,quantiles_tod,fft_dsp,ridge_ar,hgb_global"
LEVELS = "0.5,0.8,0.9,0.95,0.99"
PAGE = Path("docs/accuracy.md")


@dataclass(frozen=True)
class Task:
    title: str
    options: tuple[str, ...]


TASKS = (
    Task("An hour ahead, five-minute bins", ()),
    Task("Ten minutes ahead, one-minute bins", ("--step", "60", "--horizon-min", "10")),
    Task("A day ahead, five-minute bins, six origins per series", ("--horizon-min", "1440", "--origins", "6")),
)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--bench", type=Path, default=Path("../shared/bench"))
    arguments.add_argument("--quick", action="store_true", help="24 series instead of all")
    arguments.add_argument("--write", action="store_true", help=f"write {PAGE}")
    arguments.add_argument("--tasks", type=int, nargs="*", default=list(range(len(TASKS))))
    asked = arguments.parse_args()
    if not asked.bench.is_dir():
        sys.exit(f"{asked.bench} is not there; --bench names the folder of the bench")
    parts = [section(TASKS[i], asked.bench, quick=asked.quick) for i in asked.tasks]
    parts.append(cold_start(asked.bench, quick=asked.quick))
    parts += ["## The largest of the minutes 2 to 8 ahead\n", table(window_peaks(asked.bench, quick=asked.quick))]
    page = "\n".join([heading(quick=asked.quick), *parts])
    print(page)
    if asked.write:
        PAGE.write_text(page + "\n")


def section(task: Task, bench: Path, *, quick: bool) -> str:
    """The tables of one run, and the promises it answers."""
    summary, rows = run(task, bench, quick=quick)
    overall = pd.DataFrame(summary["overall"]).set_index("method")
    families = pd.DataFrame(summary["families"]).drop(columns="side").set_index("family")
    covered = coverage(rows[rows.method == "adaptive"])
    columns = ["sQL_rel", "cost_rel", "MASE", "cov50", "cov90", "cov95", "worse_than_snaive", "blow_ups", "ms"]
    return "\n\n".join(
        [
            f"## {task.title}",
            table(overall[columns]),
            "sQL relative to seasonal naive (day), by family:",
            table(families),
            "Share of values at or below our quantiles, mean over series:",
            table(covered),
            verdicts(overall, families, covered),
            "",
        ]
    )


def run(task: Task, bench: Path, *, quick: bool) -> tuple[dict[str, list[dict[str, object]]], pd.DataFrame]:
    """Summary and rows of one run of the bench; BLAS stays on one thread in each of its processes."""
    with tempfile.TemporaryDirectory() as folder:
        summary, rows = Path(folder) / "summary.json", Path(folder) / "rows.csv.gz"
        command = [sys.executable, str(bench), "accuracy", "--plugin", "benchmarks.plugins:forecaster"]
        command += [
            "--models",
            BASELINES,
            "--levels",
            LEVELS,
            "--json",
            str(summary),
            "--rows",
            str(rows),
            *task.options,
        ]
        command += ["--sample", "24"] if quick else []
        threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        subprocess.run(command, check=True, env={**os.environ, **threads}, stdout=subprocess.DEVNULL)
        return json.loads(summary.read_text()), pd.read_csv(rows)


def coverage(rows: pd.DataFrame) -> pd.DataFrame:
    """Per family and over all: mean over series of the share of values at or below each quantile."""
    hits = [column for column in rows if column.startswith("cov")]
    series = rows.groupby(["family", "series_id"])[[*hits, "n"]].sum()
    shares = series[hits].div(series["n"], axis=0)
    families = shares.groupby("family").mean()
    families.loc["all"] = shares.mean()
    return families


def verdicts(overall: pd.DataFrame, families: pd.DataFrame, covered: pd.DataFrame) -> str:
    """One line per promise."""
    ours = overall.loc["adaptive"]
    others = families.drop(columns=["series", "adaptive"]).drop(columns="ens_ridge_hgb", errors="ignore")
    shares = covered.loc["all"]
    worst = (families["adaptive"] / others.min(axis=1)).max()
    met = ", ".join(f"{shares[column]:.3f}" for column in ("cov50", "cov90", "cov95", "cov99"))
    far = ", ".join(f"p{p} by {(covered[f'cov{p}'] - p / 100).abs().max():.3f}" for p in (50, 90, 95))
    lines = (
        f"sQL relative to seasonal naive: {ours.sQL_rel:.3f} (limit 0.54, aim 0.50, an hour ahead)",
        f"worst family against its best single baseline: {worst:.3f} (limit 1.02)",
        f"coverage of p50, p90, p95, p99: {met} (± 0.015, p99 ± 0.01)",
        f"families furthest off: {far} (± 0.03)",
        f"beats every baseline: {'yes' if overall.sQL_rel.idxmin() == 'adaptive' else 'no'}",
        f"series more than ten times worse than seasonal naive: {int(ours.blow_ups)}",
    )
    return "\n".join(f"- {line}" for line in lines)


def heading(*, quick: bool) -> str:
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=True)
    machine = f"{os.cpu_count()} cores of {platform.machine()}, Python {platform.python_version()}"
    sample = "24 series" if quick else "121 recorded series"
    return f"""# Accuracy

Made by `python -m benchmarks.accuracy --write`; do not edit.

{sample}, rolling origins over the last 40 % of each, commit {commit.stdout.strip()}, {machine}. `adaptive` is ours; its
prior has seen the first 60 % of these series, as the trained baseline `hgb_global` has. sQL: scaled quantile loss over
p50, p90 and p95; below 1 is better than the same time yesterday. What series get that the prior never saw is said in
[models](models.md).
"""


def table(frame: pd.DataFrame) -> str:
    """A frame as markdown."""
    flat = frame.reset_index()
    rows = [[f"{v:.3f}" if isinstance(v, float) else str(v) for v in row] for row in flat.itertuples(index=False)]
    lines = [list(map(str, flat.columns)), ["---"] * len(flat.columns), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


if __name__ == "__main__":
    main()
