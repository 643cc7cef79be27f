"""The bench's replay of our policy on all series in step: `python -m benchmarks.bench_all ../shared/bench [--write]`.

The bench asks a policy for one series, point of its sweep and tick at a time, which takes hours for all of them. Here
all points of all series are one cycle of the service: the load, rules and scores of the bench, and the same policy
(`bench_policy`). Other options go to the bench: `--series`, `--days`, `--pod-size history`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from benchmarks.bench_policy import BenchPolicy, Forecasts, Known, Series, judge
from benchmarks.bench_together import Sweep
from benchmarks.record import record
from forecaster.forecasting.peaks import LEVELS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

TICK = 60
NOTABLE, LEAST = 0.05, 1e-6
ALMOST, MOST = 1e-4, 2.0
"""As in the bench: what is added to both shortages, and the worst ratio that counts."""
COMMAND = "python -m benchmarks.bench_all ../shared/bench --write"
HEAD = "| series | | mean | median | sum | worse on | time short | changes | pod-hours saved |"


class Played:
    """One series of the bench with the points of our sweep; what is visible grows by a tick at a time."""

    def __init__(self, job: Any, start_up: int) -> None:
        self.job, self.cache = job, dict[str, Any]()
        self.demand = np.concatenate([job.past, job.seen])
        self.points = [BenchPolicy() for _ in BenchPolicy.targets]
        for point, target in zip(self.points, BenchPolicy.targets, strict=True):
            point.start(self._world(target, start_up))
        self.series: Series = self.cache["series"]

    def _world(self, target: float, start_up: int) -> dict[str, Any]:
        return {
            "tick_seconds": TICK, "sync_seconds": TICK, "startup_seconds": start_up * TICK,
            "native_seconds": self.job.label["native_s"], "pod_capacity": self.job.pod, "target": target,
            "min_replicas": self.job.lowest, "max_replicas": 200, "cache": self.cache,
        }  # fmt: skip

    def history(self, tick: int) -> Floats:
        return self.demand[: len(self.job.past) + tick]

    def now(self, tick: int) -> int:
        return int(self.job.start + tick * TICK)

    def kind(self) -> tuple[int, int, int]:
        """Series of one kind are known equally long, and their bins end together."""
        width = self.series.width
        return width, len(self.job.past), self.now(0) // TICK % width


class Group:
    """Series of one kind: they are forecast together."""

    def __init__(self, played: Sequence[Played]) -> None:
        self.played, self.forecasts = played, Forecasts()

    def look(self, tick: int) -> None:
        """Has every series know what it would forecast by itself."""
        first = self.played[0].series
        window = first.window(self.played[0].now(tick))
        if window.steps < 1 or window in first.said:
            return
        bins = np.stack([one.series.bins(one.history(tick), one.now(tick)) for one in self.played])
        for one, peaks in zip(self.played, self.forecasts.peaks(bins, window, first.width), strict=True):
            one.series.said[one.series.window(one.now(tick))] = peaks


class Counts(NamedTuple):
    """[row, tick] of the points of all series, series by series."""

    asked: Floats
    ready: Floats


def replayed(played: Sequence[Played], start_up: int) -> Counts:
    """All series from their first tick to their last, which are equally many."""
    groups: dict[tuple[int, int, int], list[Played]] = {}
    for one in played:
        groups.setdefault(one.kind(), []).append(one)
    together = [Group(some) for some in groups.values()]
    sweep = Sweep(played[0].points[0].world)
    for point in (point for one in played for point in one.points):
        sweep.join(point)
    asked = []
    for tick in range(len(played[0].job.load)):
        look_back(played, tick)
        for group in together:
            group.look(tick)
        known = [one.series.known_at(one.history(tick), one.now(tick)) for one in played]
        histories = [one.history(tick) for one in played for _ in one.points]
        sweep.decide(tick * TICK, histories, *in_rows(known))
        asked += [sweep.current] * start_up if not tick else []
        asked.append(sweep.replicas)
    counts = np.array(asked, np.float64).T
    ready = np.lib.stride_tricks.sliding_window_view(counts, start_up + 1, axis=1).min(axis=-1)
    return Counts(counts[:, start_up:], ready)


def look_back(played: Iterable[Played], tick: int) -> None:
    """The gates of all series that are due: those with as many days together."""
    by_days: dict[int, list[tuple[Played, Any]]] = {}
    for one in played:
        now = one.now(tick)
        if one.series.due(now) and (days := one.series.days(one.history(tick), now)) is not None:
            by_days.setdefault(days.demand.shape[1], []).append((one, days))
    for some in by_days.values():
        judge([one.series for one, _ in some], [days for _, days in some], some[0][0].now(tick))


def in_rows(known: Sequence[Known]) -> tuple[Floats, Floats]:
    """Demand [row] and quantiles of its peak [level, row], for every point of each series."""
    points = len(BenchPolicy.targets)
    measured = np.array([one.measured for one in known])
    peaks = np.array([one.peaks for one in known]).reshape(len(known), len(LEVELS)).T
    return np.repeat(measured, points), np.repeat(peaks, points, axis=1)


def rows_of(scaling: Any, played: Sequence[Played], counts: Counts) -> Iterable[dict[str, Any]]:
    """As the bench scores them."""
    points = [(one, target) for one in played for target in BenchPolicy.targets]
    for (one, target), asked, ready in zip(points, *counts, strict=True):
        said = {"kind": "policy", "method": "policy", "q": "", "u": target, "seconds": 0.0, "error": ""}
        yield {**one.job.label, **said, **scaling.measure(one.job, asked, ready)}


def scored(bench: Path, start_up: int, options: Sequence[str] = ()) -> pd.DataFrame:
    """One row per series, policy and setting, as the bench keeps them with `--rows`."""
    sys.path.insert(0, str(bench.resolve().parent))
    from bench import cli, scaling  # noqa: PLC0415  lies outside this repository

    command = ["scaling", "--models", "none", "--startup-min", str(start_up), "--workers", "1", *options]
    asked = cli.parser().parse_args(command)
    played = [Played(job, start_up) for job in scaling.jobs_of(asked)]
    ours = pd.DataFrame(rows_of(scaling, played, replayed(played, start_up)))
    return pd.concat([scaling.run(asked, lambda _: None), ours], ignore_index=True)


def summary(found: pd.DataFrame, bench: Path) -> str:
    """A line a group of series: what is short at the pod-hours of an HPA with a target of 80 %."""
    sys.path.insert(0, str(bench.resolve().parent))
    from bench import report  # noqa: PLC0415  lies outside this repository

    lines = [HEAD, "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"]
    for title, some in {"by the minute": found[found.native_s == TICK], "all": found}.items():
        pairs = report.pairs(some)
        plain = pairs[pairs.kind == "reactive"]
        for kind, name in {"policy": "policy", "predictive": "knows the coming ten minutes"}.items():
            one = pairs[pairs.kind == kind]
            ratio = (one.vol / one.ref_vol)[one.ref_vol > LEAST]
            even = ((one.vol + ALMOST) / (one.ref_vol + ALMOST)).clip(upper=MOST)
            cells = (
                f"{even.mean():.2f}", f"{ratio.median():.2f}",
                f"{one.vol.sum() / one.ref_vol[one.vol.notna()].sum():.2f}",
                f"{(one.vol > (1 + NOTABLE) * one.ref_vol + LEAST).mean():.0%}",
                f"{one.time.mean() / plain.time.mean():.2f}", f"{one.ev.mean() / plain.ev.mean():.2f}",
                f"{one.saving.median():.0%}",
            )  # fmt: skip
            lines.append(f"| {title} ({len(one)}) | {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def each(found: pd.DataFrame, bench: Path) -> str:
    """A line a series."""
    sys.path.insert(0, str(bench.resolve().parent))
    from bench import report  # noqa: PLC0415  lies outside this repository

    pairs = report.pairs(found).set_index("series_id")
    ours = pairs[pairs.kind == "policy"]
    lines = ["| series | HPA short | policy short | ratio | pod-hours saved |", "| --- | ---: | ---: | ---: | ---: |"]
    for name, one in ours.iterrows():
        ratio = f"{one.vol / one.ref_vol:.2f}" if one.ref_vol > LEAST else "none short"
        lines.append(f"| {name} | {one.ref_vol:.3%} | {one.vol:.3%} | {ratio} | {one.saving:.0%} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench", type=Path, nargs="?", default=Path("../shared/bench"))
    parser.add_argument("--startup-min", type=int, nargs="*", default=[2, 8])
    parser.add_argument("--rows", type=Path, help="folder in which all rows are kept")
    parser.add_argument("--write", action="store_true", help="write a dated file of benchmarks/results/")
    asked, options = parser.parse_known_args()
    parts = []
    for minutes in asked.startup_min:
        found = scored(asked.bench, minutes, options)
        if asked.rows:
            asked.rows.mkdir(parents=True, exist_ok=True)
            found.to_csv(asked.rows / f"all-{minutes}.csv.gz", index=False)
        parts += [f"## Pods ready in {minutes} minutes", summary(found, asked.bench), each(found, asked.bench)]
        print("\n\n".join(parts[-3:]), flush=True)
    if asked.write:
        record("decisions-all", "The bench's policy on all series", COMMAND, "\n\n".join(parts))


if __name__ == "__main__":
    main()
