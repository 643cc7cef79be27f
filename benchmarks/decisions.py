"""What decisions are worth: `python -m benchmarks.decisions ../shared/bench`, or `--cycle` for how long they take.

Plays our policy and the learned ones in the bench (`benchmarks.plugins`) on recorded load, with pods that are ready in
two and in eight minutes, as large as the played days or as the days before say. `--rows` keeps and reads the rows of
earlier runs; `--write` puts tables and frontier into dated files of benchmarks/results/.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from benchmarks.bench_all import scored
from benchmarks.decision_speed import speed
from benchmarks.record import record, result_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    Pairs = Callable[[pd.DataFrame], pd.DataFrame]
    Runs = Mapping[str, pd.DataFrame]

START_UPS = (2, 8)
NOTABLE, LEAST = 0.05, 1e-6
FINE_SECONDS = 60
COLUMNS = "volume short, sum | median series | worse on | time short | changes | pod-hours saved"
BY_MINUTE = ("--native-only", "60")
RUNS = {
    "all": (),
    "history": ("--pod-size", "history"),
    "learned": ("--plugin", "benchmarks.plugins:learned", "--models", "none", *BY_MINUTE),
    "baselines": ("--models", "snaive_day,ridge_ar,hgb", *BY_MINUTE),
}
"""What is played: our policy on all series, with pods of either size; everybody else on those by the minute."""
IN_STEP = ("all", "history")
SHOWN = {
    "the HPA alone": ("reactive", "reactive", None),
    "HPA or seasonal naive p90": ("hybrid", "snaive_day", "p90"),
    "HPA or ridge p90": ("hybrid", "ridge_ar", "p90"),
    "HPA or boosting p90": ("hybrid", "hgb_global", "p90"),
    "HPA or ridge and boosting p90": ("hybrid", "ens_ridge_hgb", "p90"),
    "our policy": ("policy", "policy", None),
    "learned, tabular": ("policy", "learned_tabular", None),
    "learned, fitted": ("policy", "learned_fitted", None),
    "perfect forecast of ten minutes": ("predictive", "perfect", None),
}
"""Title of a row: kind, method and quantile in the bench. `HPA or x`: whichever asks for more."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bench", type=Path, nargs="?", default=Path("../shared/bench"))
    parser.add_argument("--cycle", action="store_true", help="measure the time of decisions instead")
    parser.add_argument("--rows", type=Path, default=Path("decision-rows"), help="folder of rows-<minutes>.csv.gz")
    parser.add_argument("--sample", type=int, help="so many series only")
    parser.add_argument("--write", action="store_true", help="write dated files of benchmarks/results/")
    asked = parser.parse_args()
    if asked.cycle:
        print(json.dumps(speed()))
        return
    runs = {
        minutes: {name: played(asked.bench, asked.rows, name, minutes, asked.sample) for name in RUNS}
        for minutes in START_UPS
    }
    sys.path.insert(0, str(asked.bench.resolve().parent))
    from bench.report import pairs as pairs_of  # noqa: PLC0415  lies outside this repository

    text = "\n\n".join(page_of(minutes, one, pairs_of) for minutes, one in runs.items())
    print(text)
    if asked.write:
        picture = result_path("decisions", ".svg")
        draw({minutes: by_minute(one) for minutes, one in runs.items()}, picture)
        figure = f"![cost against shortage]({picture.name})"
        record("decisions", "Decisions", "python -m benchmarks.decisions --write", f"{text}\n\n{figure}")


def played(bench: Path, folder: Path, name: str, minutes: int, sample: int | None) -> pd.DataFrame:
    """One row per series, policy and setting: from an earlier run, or played now (minutes a series)."""
    kept = folder / f"{name}-{minutes}.csv.gz"
    if not kept.exists():
        folder.mkdir(parents=True, exist_ok=True)
        some = ["--sample", str(sample)] if sample else []
        if name in IN_STEP:
            scored(bench, minutes, (*RUNS[name], *some)).to_csv(kept, index=False)
            return pd.read_csv(kept)
        command = [sys.executable, str(bench), "scaling", *RUNS[name], "--startup-min", str(minutes)]
        command += ["--rows", str(kept), "--workers", "1", *some]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return pd.read_csv(kept)


def by_minute(runs: Runs) -> pd.DataFrame:
    """Everybody on the series that were measured by the minute; the HPA alone once."""
    others = pd.concat([runs["learned"][runs["learned"].kind == "policy"], runs["baselines"]])
    return pd.concat([fine(runs["all"]), others[others.kind.isin({"policy", "hybrid"})]], ignore_index=True)


def fine(rows: pd.DataFrame) -> pd.DataFrame:
    return rows[rows.native_s == FINE_SECONDS]


def page_of(minutes: int, runs: Runs, pairs_of: Pairs) -> str:
    """Both tables of one start-up."""
    return "\n\n".join(
        (
            f"Pods ready in {minutes} minutes:",
            table(by_minute(runs), pairs_of),
            f"Our policy elsewhere, pods ready in {minutes} minutes:",
            elsewhere(runs, pairs_of),
        )
    )


def elsewhere(runs: Runs, pairs_of: Pairs) -> str:
    """Markdown: our policy on all series, and with pods of the size that the days before ask for."""
    wheres = {
        "by the minute, pods sized by the days before": fine(runs["history"]),
        "all series": runs["all"],
        "all series, pods sized by the days before": runs["history"],
    }
    lines = [f"| series | {COLUMNS} | worst family |", "| --- | --- | --- | --- | --- | --- | --- | --- |"]
    for title, rows in wheres.items():
        pairs = pairs_of(rows).set_index("series_id")
        ours = pairs[(pairs.kind == "policy") & (pairs.method == "policy")]
        families = rows.drop_duplicates("series_id").set_index("series_id").family
        plain = pairs[pairs.kind == "reactive"]
        lines.append(f"{_line(f'{title} ({len(ours)})', ours, plain)} {_worst_family(ours, families)} |")
    return "\n".join(lines)


def _worst_family(one: pd.DataFrame, families: pd.Series[str]) -> str:
    sums = one[one.vol.notna()].groupby(families)[["vol", "ref_vol"]].sum()
    ratio = (sums.vol / sums.ref_vol)[sums.ref_vol > LEAST]
    return f"{ratio.max():.2f} {ratio.idxmax()}"


def table(rows: pd.DataFrame, pairs_of: Pairs) -> str:
    """Markdown: every policy at the pod-hours of the HPA with a target of 80 %, and its cost at the safety of 70 %."""
    lines = [
        f"| policy | {COLUMNS} |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    pairs = pairs_of(rows).set_index("series_id")
    plain = pairs[pairs.kind == "reactive"]
    lines += [_line(title, one, plain) for title, one in shown(pairs)]
    return "\n".join(lines)


def shown(rows: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    for title, (kind, method, quantile) in SHOWN.items():
        one = rows[(rows.kind == kind) & (rows.method == method)]
        if quantile is not None:
            one = one[one.q == quantile]
        if len(one):
            yield title, one


def _line(title: str, one: pd.DataFrame, plain: pd.DataFrame) -> str:
    """`one` and `plain` are indexed by series; `vol`, `time` and `ev` are at the pod-hours of the HPA."""
    short = one.ref_vol > LEAST
    cells = (
        f"{one.vol.sum() / one.ref_vol[one.vol.notna()].sum():.2f}",
        f"{(one.vol / one.ref_vol)[short].median():.2f}",
        f"{(one.vol > (1 + NOTABLE) * one.ref_vol + LEAST).mean():.0%}",
        f"{one.time.mean() / plain.time.mean():.2f}",
        f"{one.ev.mean() / plain.ev.mean():.2f}",
        f"{one.saving.median():.0%}",
    )
    missing = int(one.vol.isna().sum())
    return f"| {title}{f' ({missing} series without a value)' if missing else ''} | {' | '.join(cells)} |"


def draw(rows: dict[int, pd.DataFrame], path: Path) -> None:
    """Cost against shortage: the whole frontier, mean over the series at each setting."""
    import matplotlib as mpl  # noqa: PLC0415  only for the picture

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "decisions"
    from matplotlib import pyplot as plt  # noqa: PLC0415  after the backend

    figure, axes = plt.subplots(1, len(rows), figsize=(9, 3.4), sharey=True, layout="constrained")
    for axis, (minutes, one) in zip(np.atleast_1d(axes), rows.items(), strict=True):
        for name, some in shown(one):
            curve = some.groupby("u")[["cost", "under_vol"]].mean().sort_values("cost")
            axis.plot(curve.cost, 100 * curve.under_vol, marker=".", label=name)
        axis.set(title=f"pods ready in {minutes} min", xlabel="pods, of those needed", xlim=(0.9, 2.2), ylim=(0.01, 30))
        axis.set_yscale("log")
        axis.grid(visible=True, alpha=0.3)
    np.atleast_1d(axes)[0].set_ylabel("demand short, %")
    np.atleast_1d(axes)[0].legend(frameon=False, fontsize=8)
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    main()
