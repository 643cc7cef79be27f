"""Forecast accuracy on recorded load, beside the usual baselines: `python -m benchmarks.accuracy [--quick] [--write]`.

Runs ../shared/bench with `benchmarks.plugins:forecaster` three times (an hour ahead from five-minute bins, ten minutes
ahead at one-minute freshness, a day ahead), ours alone once more on many cuts for the coverage, then the first days of
each series and the peaks of windows, and says which promise is kept. `--write` puts the tables, with commit and
machine, into a dated file of benchmarks/results/.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from benchmarks.cold_start import cold_start, relatives
from benchmarks.record import record
from benchmarks.window_peaks import window_peaks

if TYPE_CHECKING:
    from collections.abc import Sequence

BASELINES = "snaive_day,snaive_week,last_value,snaive_ar,quantiles_tod,fft_dsp,ridge_ar,hgb_global"
LEVELS = "0.5,0.8,0.9,0.95,0.99"
SCORED = ("pin50", "pin90", "pin95")
BLOW_UP = 3.0
"""Times the loss of seasonal naive on a series."""
MANY_CUTS = 100
SHARED_MOMENTS = """The same on {many} cuts a series. Series of one family are as long as each other and are cut at the
same moments, so twenty cuts of a family are twenty moments, however many its series; what all of them do at these
moments moves its coverage by some hundredths either way."""


@dataclass(frozen=True)
class Task:
    title: str
    options: tuple[str, ...]
    many: int = 0
    """Cuts per series for a second table of coverage."""


TASKS = (
    Task("An hour ahead, five-minute bins", (), MANY_CUTS),
    Task("Ten minutes ahead, one-minute bins", ("--step", "60", "--horizon-min", "10")),
    Task("A day ahead, five-minute bins, six origins per series", ("--horizon-min", "1440", "--origins", "6")),
)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--bench", type=Path, default=Path("../shared/bench"))
    arguments.add_argument("--quick", action="store_true", help="24 series instead of all")
    arguments.add_argument("--write", action="store_true", help="write a dated file of benchmarks/results/")
    arguments.add_argument("--tasks", type=int, nargs="*", default=list(range(len(TASKS))))
    asked = arguments.parse_args()
    if not asked.bench.is_dir():
        sys.exit(f"{asked.bench} is not there; --bench names the folder of the bench")
    parts = [section(TASKS[i], asked.bench, quick=asked.quick) for i in asked.tasks]
    parts += [cold_start(asked.bench, quick=asked.quick), relatives(asked.bench, quick=asked.quick)]
    parts += ["## The largest of the minutes 2 to 8 ahead\n", table(window_peaks(asked.bench, quick=asked.quick))]
    page = "\n".join([heading(quick=asked.quick), *parts])
    print(page)
    if asked.write:
        record("accuracy", "Accuracy", "python -m benchmarks.accuracy --write", page)


def section(task: Task, bench: Path, *, quick: bool) -> str:
    """The tables of one run, and the promises it answers."""
    summary, rows = run(task, bench, BASELINES, quick=quick)
    overall = pd.DataFrame(summary["overall"]).set_index("method")
    overall["blow_ups"] = blow_ups(rows)
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
            *(many_cuts(task, bench, quick=quick) if task.many else ()),
            "",
        ]
    )


def many_cuts(task: Task, bench: Path, *, quick: bool) -> tuple[str, ...]:
    """Coverage again, on so many cuts that they nearly cover the record."""
    options = (*task.options, "--origins", str(task.many))
    _, rows = run(Task(task.title, options), bench, "none", quick=quick)
    covered = coverage(rows)
    return (SHARED_MOMENTS.format(many=task.many), table(covered), f"- {distances(covered)}")


def blow_ups(rows: pd.DataFrame) -> pd.Series:
    """Per method the series on which it lost more than BLOW_UP times what seasonal naive lost."""
    sums = rows.groupby(["series_id", "method"])[[*SCORED, "scale_n", "abs_y"]].sum()
    sums = sums[(sums.scale_n > 0) & (sums.abs_y > 0)]
    lost = sums[list(SCORED)].sum(axis=1).rename("lost").reset_index().pivot_table("lost", "series_id", "method")
    return lost.gt(BLOW_UP * lost["snaive_day"], axis=0).sum()


def run(
    task: Task, bench: Path, baselines: str, *, quick: bool, plugins: Sequence[str] = (), tree: Path = Path()
) -> tuple[dict[str, list[dict[str, object]]], pd.DataFrame]:
    """Summary and rows of one run of the bench, ours as `tree` has it; BLAS stays on one thread in each process."""
    with tempfile.TemporaryDirectory() as folder:
        summary, rows = Path(folder) / "summary.json", Path(folder) / "rows.csv.gz"
        command = [sys.executable, str(bench.resolve()), "accuracy", "--models", baselines, "--levels", LEVELS]
        for plugin in ("benchmarks.plugins:forecaster", *plugins):
            command += ["--plugin", plugin]
        command += ["--json", str(summary), "--rows", str(rows), *task.options]
        command += ["--sample", "24"] if quick else []
        threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        subprocess.run(command, check=True, cwd=tree, env={**os.environ, **threads}, stdout=subprocess.DEVNULL)
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
    lines = (
        f"sQL relative to seasonal naive: {ours.sQL_rel:.3f} (limit 0.54, aim 0.50, an hour ahead)",
        f"worst family against its best single baseline: {worst:.3f} (limit 1.02)",
        f"coverage of p50, p90, p95, p99: {met} (± 0.015, p99 ± 0.01)",
        distances(covered),
        f"beats every baseline: {'yes' if overall.sQL_rel.idxmin() == 'adaptive' else 'no'}",
        f"series on which it lost more than {BLOW_UP:g} times what seasonal naive did: {int(ours.blow_ups)} (limit 0)",
    )
    return "\n".join(f"- {line}" for line in lines)


def distances(covered: pd.DataFrame) -> str:
    """How far off the family is that is furthest off."""
    apart = {p: (covered[f"cov{p}"].drop("all") - p / 100).abs() for p in (50, 90, 95)}
    return (
        "families furthest off: "
        + ", ".join(f"p{p} by {far.max():.3f} ({far.idxmax()})" for p, far in apart.items())
        + " (± 0.03)"
    )


def heading(*, quick: bool) -> str:
    sample = "24 series" if quick else "121 recorded series"
    return f"""{sample}, rolling origins over the last 40 % of each.
`adaptive` is ours; its prior has seen the first 60 % of these series, as the trained baseline `hgb_global` has. sQL:
scaled quantile loss over p50, p90 and p95; below 1 is better than the same time yesterday. blow_ups: series on which a
method lost more than {BLOW_UP:g} times what seasonal naive did.
"""


def table(frame: pd.DataFrame) -> str:
    """A frame as markdown."""
    flat = frame.reset_index()
    rows = [[f"{v:.3f}" if isinstance(v, float) else str(v) for v in row] for row in flat.itertuples(index=False)]
    lines = [list(map(str, flat.columns)), ["---"] * len(flat.columns), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


if __name__ == "__main__":
    main()
