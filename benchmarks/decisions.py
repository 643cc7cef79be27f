"""What decisions are worth: `python -m benchmarks.decisions ../shared/bench`, or `--cycle` for how long they take.

Plays our policy in the bench (`benchmarks.plugins:policy`) on recorded load by the minute, with pods that are ready in
two and in eight minutes. `--rows` keeps and reads the rows of earlier runs; `--write` puts the tables into
docs/decisions.md and the frontier into docs/decisions.svg.
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

from benchmarks.decision_speed import speed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PAGE, PICTURE = Path("docs/decisions.md"), Path("docs/decisions.svg")
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"
START_UPS = (2, 8)
NOTABLE, LEAST = 0.05, 1e-6
PLUGIN = ("--plugin", "benchmarks.plugins:policy", "--models", "none")
BASELINES = ("--models", "snaive_day,ridge_ar,hgb")
SHOWN = {
    "the HPA alone": ("reactive", "reactive", None),
    "HPA or seasonal naive p90": ("hybrid", "snaive_day", "p90"),
    "HPA or ridge p90": ("hybrid", "ridge_ar", "p90"),
    "HPA or boosting p90": ("hybrid", "hgb_global", "p90"),
    "HPA or ridge and boosting p90": ("hybrid", "ens_ridge_hgb", "p90"),
    "our policy": ("policy", "policy", None),
    "perfect forecast of ten minutes": ("predictive", "perfect", None),
}
"""Title of a row: kind, method and quantile in the bench. `HPA or x`: whichever asks for more."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bench", type=Path, nargs="?", default=Path("../shared/bench"))
    parser.add_argument("--cycle", action="store_true", help="measure the time of decisions instead")
    parser.add_argument("--rows", type=Path, default=Path("decision-rows"), help="folder of rows-<minutes>.csv.gz")
    parser.add_argument("--sample", type=int, help="so many series only")
    parser.add_argument("--write", action="store_true", help="write docs/decisions.md and its picture")
    asked = parser.parse_args()
    if asked.cycle:
        print(json.dumps(speed()))
        return
    rows = {minutes: rows_of(asked.bench, asked.rows, minutes, asked.sample) for minutes in START_UPS}
    sys.path.insert(0, str(asked.bench.resolve().parent))
    from bench.report import pairs as pairs_of  # noqa: PLC0415  lies outside this repository

    text = "\n\n".join(f"Pods ready in {minutes} minutes:\n\n{table(one, pairs_of)}" for minutes, one in rows.items())
    print(text)
    if asked.write:
        write(text)
        draw(rows)


def rows_of(bench: Path, folder: Path, minutes: int, sample: int | None) -> pd.DataFrame:
    """One row per series, policy and setting: from an earlier run, or played now (minutes a series)."""
    folder.mkdir(parents=True, exist_ok=True)
    ours = played(bench, folder / f"rows-{minutes}.csv.gz", PLUGIN, minutes, sample)
    theirs = played(bench, folder / f"baselines-{minutes}.csv.gz", BASELINES, minutes, sample)
    return pd.concat([ours, theirs[theirs.kind == "hybrid"]], ignore_index=True)


def played(bench: Path, kept: Path, what: tuple[str, ...], minutes: int, sample: int | None) -> pd.DataFrame:
    if not kept.exists():
        command = [sys.executable, str(bench), "scaling", *what, "--native-only", "60"]
        command += ["--startup-min", str(minutes), "--rows", str(kept), "--workers", "1"]
        command += ["--sample", str(sample)] if sample else []
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return pd.read_csv(kept)


def table(rows: pd.DataFrame, pairs_of: Callable[[pd.DataFrame], pd.DataFrame]) -> str:
    """Markdown: every policy at the pod-hours of the HPA with a target of 80 %, and its cost at the safety of 70 %."""
    lines = [
        "| policy | volume short, sum | median series | worse on | time short | changes | pod-hours saved |",
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


def write(text: str) -> None:
    page = PAGE.read_text(encoding="utf-8")
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    PAGE.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}", encoding="utf-8")


def draw(rows: dict[int, pd.DataFrame]) -> None:
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
    figure.savefig(PICTURE, metadata={"Date": None})


if __name__ == "__main__":
    main()
