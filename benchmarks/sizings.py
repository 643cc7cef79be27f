"""Both sizings behind the gate, in arrays, on load by the minute: `python -m benchmarks.sizings ../shared/bench`.

Quantile sizing that only raises and newsvendor sizing with scale-in, each compared with the HPA's formula at a target
of 80 % for the same pod-hours, day by day: without a gate, behind one that reads means of five minutes, and behind one
that reads minutes. The bound is the same sizing that knows the coming peak. All series are decided together
(`forecaster.replay.evidence`), so a start-up and a sizing take half a minute where the bench takes hours. Forecasts are
the prior's, from five minutes that end where each minute begins, as the service cuts them. `--write` records it.
"""

from __future__ import annotations

import argparse
import sys
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from benchmarks.bench_policy import on_one_target
from benchmarks.record import record
from forecaster.domain.policy import HorizontalPolicy
from forecaster.forecasting.backtest import SOME_TIME, PolicyBacktest, backtests
from forecaster.forecasting.peaks import LEVELS
from forecaster.horizontal.gate import judged
from forecaster.horizontal.standing import ACTING, MODEL, Gates
from forecaster.replay.evidence import evidence_of
from models import Panel, StepWindow
from models.backtest import backtested_peaks

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from forecaster.horizontal.standing import Gates as Standings
    from forecaster.replay.evidence import PastEvidence

    Floats = NDArray[np.float64]

DAY, WIDTH, MORE = 1440, 5, 3
DAYS, JUDGED, PLAYED = 13, 3, 3
PODS = 20
"""The 99.5th percentile of the played days fills so many, as in the bench."""
START_UPS = (2, 8)
ALMOST, MOST = 1e-4, 2.0
"""As in the bench: what is added to both shortages, and the worst ratio that counts."""
NOTABLE, LEAST = 0.05, 1e-6
POLICIES = {
    "quantile, only raises": HorizontalPolicy(),
    "newsvendor, scales in": HorizontalPolicy(
        sizing="newsvendor", scale_in_by_forecast=True, scale_down_stabilization=timedelta(minutes=2)
    ),
}
HEAD = (
    "| pods ready in | sizing | gate | mean | median | sum | worse on | pod-hours saved | days acting |",
    "| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench", type=Path, nargs="?", default=Path("../shared/bench"))
    parser.add_argument("--write", action="store_true", help="write a dated file of benchmarks/results/")
    asked = parser.parse_args()
    load = by_minute(asked.bench)
    lines = [*HEAD]
    for minutes in START_UPS:
        for title, policy in POLICIES.items():
            lines += (f"| {minutes} min | {title} | {line}" for line in Played(load, minutes + 1, policy).lines())
            print("\n".join(lines), flush=True)
    if asked.write:
        said = f"{len(load)} series by the minute, their last {PLAYED} days."
        record("sizings", "Both sizings", "python -m benchmarks.sizings --write", "\n".join([said, "", *lines]))


def by_minute(bench: Path) -> Floats:
    """[series, minute] the last days of every series that the bench replays by the minute, in pods; gaps hold."""
    sys.path.insert(0, str(bench.resolve().parent))
    from bench import cli, scaling, traces  # noqa: PLC0415  lies outside this repository

    asked = cli.parser().parse_args(["scaling", "--models", "none"])
    played = {job.label["series_id"] for job in scaling.jobs_of(asked) if job.label["native_s"] == scaling.TICK}
    found = [_in_pods(one.y) for one in traces.load(asked.traces, scaling.TICK) if one.series_id in played]
    return np.array([one for one in found if len(one) == DAYS * DAY])


def _in_pods(values: Floats) -> Floats:
    latest = values[: len(values) // DAY * DAY][-DAYS * DAY :]
    place = np.maximum.accumulate(np.where(np.isnan(latest), 0, np.arange(len(latest))))
    return np.asarray(np.nan_to_num(latest[place]) / (np.nanquantile(latest[-PLAYED * DAY :], 0.995) / PODS))


class Outcome(NamedTuple):
    """[series] shares of the demand that were short, and whether the forecast acted."""

    reactive: Floats
    short: Floats
    acted: Floats


class Played:
    """One sizing at one lead time, on all series."""

    def __init__(self, load: Floats, lead: int, policy: HorizontalPolicy) -> None:
        self.load, self.lead, self.policy = load, lead, policy
        means = load.reshape(len(load), -1, WIDTH).mean(axis=2)
        reach = lead + MORE
        by_means = backtests(means, WIDTH, to_come=0, reach=reach, days=JUDGED + PLAYED)
        assert by_means is not None
        ticks = np.arange((DAYS - JUDGED - PLAYED) * DAY, DAYS * DAY)
        yesterday = _peaks(load, ticks - DAY, reach)
        demand, seen = load[:, ticks], load[:, ticks - 1]
        perfect = np.repeat(_peaks(load, ticks, reach)[..., None], len(LEVELS), axis=-1)
        self.days = {
            "means": by_means,
            "minutes": by_means._replace(demand=demand, seen=seen),
            "as they are": PolicyBacktest(demand, seen, cut_anew(load, ticks, reach), yesterday),
            "perfect": PolicyBacktest(demand, seen, perfect, yesterday),
        }
        self.evidence = cache(self._evidence)

    def lines(self) -> list[str]:
        """Of all gates, and the bound."""
        gates: dict[str, Callable[[int], Standings] | None] = {
            "none": None,
            "means of five minutes": self._gates("means").__getitem__,
            "minutes": self._gates("minutes").__getitem__,
        }
        saved = self._saved("as they are")
        found = [_line(name, self._outcome("as they are", gate), saved) for name, gate in gates.items()]
        return [*found, _line("none, knows the coming peak", self._outcome("perfect", None), self._saved("perfect"))]

    def _evidence(self, kind: str, first: int, last: int) -> Sequence[PastEvidence]:
        days = PolicyBacktest(*(one[:, first * DAY : last * DAY] for one in self.days[kind]))
        count = len(self.load)
        return evidence_of(days, LEVELS, [self.policy] * count, np.full(count, max(self.lead - 1, 0)))

    def _gates(self, kind: str) -> Mapping[int, Standings]:
        """Where forecasts stand when each day begins."""
        gates, found = Gates.new(len(self.load), ("demand",)), {}
        for day in range(JUDGED, JUDGED + PLAYED):
            for past in self.evidence(kind, day - JUDGED, day):
                gates = judged(gates, on_one_target(past), float(day * 86400))
            found[day] = gates
        return found

    def _outcome(self, kind: str, gate: Callable[[int], Standings] | None) -> Outcome:
        parts = []
        for day in range(JUDGED, JUDGED + PLAYED):
            past = self.evidence(kind, day, day + 1)[0]
            acts, model = np.ones(len(self.load), bool), np.ones(len(self.load), bool)
            if gate:
                acts, model = gate(day).standing == ACTING, gate(day).forecaster == MODEL
            short = np.where(model, past.model.short, past.seasonal.short)
            weight = self.days[kind].demand[:, day * DAY : (day + 1) * DAY].sum(axis=1)
            kept = acts & ~np.isnan(short)
            parts.append((weight, weight * past.reactive, weight * np.where(kept, short, past.reactive), acts))
        weight, reactive, left, acted = (np.sum(one, axis=0) for one in zip(*parts, strict=True))
        return Outcome(reactive / weight, left / weight, acted / PLAYED)

    def _saved(self, kind: str) -> float:
        """The median series' share of the pod-hours that a day does without at the HPA's shortage."""
        days = [self.evidence(kind, day, day + 1)[0].model.saving for day in range(JUDGED, JUDGED + PLAYED)]
        return float(np.nanmedian(np.nanmean(days, axis=0)))


def _line(gate: str, one: Outcome, saved: float) -> str:
    ratio = np.minimum((one.short + ALMOST) / (one.reactive + ALMOST), MOST)
    worse = np.mean(one.short > (1 + NOTABLE) * one.reactive + LEAST)
    cells = (np.mean(ratio), np.median(ratio), one.short.sum() / one.reactive.sum())
    shares = (worse, saved, np.mean(one.acted))
    return f"{gate} | {' | '.join(f'{x:.2f}' for x in cells)} | {' | '.join(f'{x:.0%}' for x in shares)} |"


def _peaks(load: Floats, ticks: NDArray[np.intp], reach: int) -> Floats:
    """[series, tick] the largest value of the coming minutes; the last one holds beyond the end."""
    longer = np.concatenate([load, np.repeat(load[:, -1:], reach, axis=1)], axis=1)
    return np.asarray(np.lib.stride_tricks.sliding_window_view(longer, reach, axis=1).max(axis=-1)[:, ticks])


def cut_anew(load: Floats, ticks: NDArray[np.intp], reach: int) -> Floats:
    """[series, tick, level] by the prior, from bins that end where each tick begins."""
    window, step = StepWindow(1, -(-reach // WIDTH)), timedelta(minutes=WIDTH)
    found = np.empty((len(load), len(ticks), len(LEVELS)))
    for late in range(WIDTH):
        usable = (load.shape[1] - late) // WIDTH * WIDTH
        bins = load[:, late : late + usable].reshape(len(load), -1, WIDTH).mean(axis=2)
        names = tuple(map(str, range(len(load))))
        panel = Panel.cleaned(bins, SOME_TIME - bins.shape[1] * step, step, names)
        here = ticks % WIDTH == late
        origins = (ticks[here] - late) // WIDTH - 1
        found[:, here] = backtested_peaks(panel, [window], LEVELS, origins)[:, :, 0]
    return found


if __name__ == "__main__":
    main()
