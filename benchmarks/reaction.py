"""How soon a burst is answered: `python -m benchmarks.reaction ../shared/bench`.

Ways in which measured demand reaches an HPA that syncs every 15 s, on load by the minute, at four phases of the minute:
metrics-server, KEDA's prometheus trigger with and without a cache, and our cycle with and without a panic window, alone
and beside a forecast. Each is a sweep of targets, compared for the pod-hours that the HPA on metrics-server spends at
80 %. Nothing shorter than a minute was recorded: within one the load is constant, or differs by so much at random every
five seconds, which costs short windows pods. `--write` records it.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from benchmarks.record import record
from benchmarks.sizings import ALMOST, DAY, DAYS, LEAST, MORE, MOST, NOTABLE, PLAYED, START_UPS, by_minute, cut_anew
from forecaster.forecasting.peaks import LEVELS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

TICKS, SYNC = 12, 3
"""Ticks of five seconds: in a minute, and from one sync of the HPA to the next."""
SYNCS = TICKS // SYNC
PHASES = (0, 3, 6, 9)
"""Ticks between the minutes of the load and those of the clock."""
SCRAPED, KUBELET = 2, 3
"""Ticks: how old samples of scrapes every 15 s are on average when they are asked for, and those of metrics-server."""
IN_FORCE = 3
"""Ticks from the evaluation time of a cycle until the first sync that may read what it decided."""
TARGETS = (1.2, 1.1, 1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4)
STATED = TARGETS.index(0.8)
TOLERANCE, STABILIZATION = 0.1, 20
"""The HPA's, as a ratio and in syncs."""
NOISES = (0.0, 0.2)
"""Standard deviation of the load of five seconds, as a ratio of that of its minute."""
P90 = LEVELS.index(0.9)
HEAD = (
    "| pods ready in | in a minute | what the HPA reads | mean | median | worse on | a step shows after | changes |",
    "| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: |",
)


class Way(NamedTuple):
    """How demand is read: over a window, so old, every so often; in ticks."""

    window: int
    age: int
    every: int = SYNC
    offset: int = 0
    """Of the readings, from the beginning of the minute."""
    late: int = 0
    """From a reading until a sync may see it."""

    def read(self, load: Floats, ticks: NDArray[np.intp]) -> Floats:
        """What is read at each of these ticks; `load` [tick] begins a while before the first of them."""
        sums = np.concatenate([[0.0], np.cumsum(load)])
        asked = (ticks - self.late - self.offset) // self.every * self.every + self.offset - self.age
        return np.asarray((sums[asked] - sums[asked - self.window]) / self.window)


RATE, MINUTE, HALF = 2 * TICKS, TICKS, TICKS // 2
METRICS_SERVER = Way(3, KUBELET)


def ours(window: int) -> Way:
    """Our cycle, once a minute."""
    return Way(window, SCRAPED, TICKS, late=IN_FORCE)


HPA = "the HPA alone: metrics-server"
READINGS = {
    HPA: (METRICS_SERVER,),
    "KEDA, rates over 2m, asked at each sync": (Way(RATE, SCRAPED),),
    "the same, `useCachedMetrics`, `pollingInterval: 30`": (Way(RATE, SCRAPED, 6, 1),),
    "the same, `pollingInterval: 15`": (Way(RATE, SCRAPED, 3, 1),),
    "KEDA, rates over 1m, asked at each sync": (Way(MINUTE, SCRAPED),),
    "ours, measured": (ours(RATE),),
    "ours, `panic_window: 1m`": (ours(RATE), ours(MINUTE)),
    "ours, `panic_window: 30s`": (ours(RATE), ours(HALF)),
    "ours, `panic_window: 30s`, were there a cycle each 15 s": (ours(RATE), Way(HALF, SCRAPED, late=IN_FORCE)),
    "metrics-server and ours, `panic_window: 30s`": (METRICS_SERVER, ours(RATE), ours(HALF)),
}
"""Of several readings the largest counts."""
FORESEEN = {
    "ours, forecast": "ours, measured",
    "ours, forecast and `panic_window: 1m`": "ours, `panic_window: 1m`",
    "ours, forecast and `panic_window: 30s`": "ours, `panic_window: 30s`",
    "metrics-server and ours, forecast": HPA,
    "metrics-server and ours, forecast and `panic_window: 30s`": "metrics-server and ours, `panic_window: 30s`",
}
"""The same readings beside the p90 of the coming peak."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench", type=Path, nargs="?", default=Path("../shared/bench"))
    parser.add_argument("--write", action="store_true", help="write a dated file of benchmarks/results/")
    asked = parser.parse_args()
    load, lines = by_minute(asked.bench), [*HEAD]
    for start_up in START_UPS:
        pairs = list(zip(load, foreseen(load, start_up), strict=True))
        for noise in NOISES:
            outcomes = [outcome(*pair, noise, start_up) for pair in pairs]
            lines += (f"| {start_up} min | ± {noise:.0%} {line}" for line in table(outcomes))
            print("\n".join(lines), flush=True)
    if asked.write:
        said = f"{len(load)} series by the minute, their last {PLAYED} days, at {len(PHASES)} phases of the minute."
        record("reaction", "Quicker reaction", "python -m benchmarks.reaction --write", "\n".join([said, "", *lines]))


def foreseen(load: Floats, start_up: int) -> Floats:
    """[series, minute] p90 of the largest load within the lead time and three minutes, by the prior."""
    ticks = np.arange((DAYS - PLAYED) * DAY, DAYS * DAY)
    return cut_anew(load, ticks, start_up + 1 + MORE)[..., P90]


class Outcome(NamedTuple):
    """[way, target] of one series: pods asked for, share of the demand short, changes a day."""

    spent: Floats
    short: Floats
    changes: Floats


def outcome(load: Floats, peaks: Floats, noise: float, start_up: int) -> Outcome:
    """One series [minute] in pods, at all phases of the minute."""
    phases = [replayed(*demand(load, peaks, noise, phase), start_up) for phase in PHASES]
    return Outcome(*(np.mean(one, axis=0) for one in zip(*phases, strict=True)))


def demand(load: Floats, peaks: Floats, noise: float, phase: int) -> tuple[Floats, Floats]:
    """The played load [sync, tick], and what is read at each sync [way, sync]."""
    fine = np.repeat(load[-(PLAYED * DAY + 10) :], TICKS)[phase:]
    fine = fine * np.maximum(1.0 + noise * np.random.default_rng(phase).standard_normal(len(fine)), 0.0)
    first, count = 10 * TICKS - TICKS, (PLAYED * DAY - 1) * TICKS
    ticks = np.arange(first, first + count, SYNC)
    found = {name: np.max([way.read(fine, ticks) for way in ways], axis=0) for name, ways in READINGS.items()}
    minutes = np.maximum((np.arange(len(ticks)) * SYNC - IN_FORCE) // TICKS - 1, 0)
    found |= {name: np.maximum(found[beside], peaks[minutes]) for name, beside in FORESEEN.items()}
    return fine[first : first + count].reshape(-1, SYNC), np.array(list(found.values()))


def replayed(load: Floats, read: Floats, start_up: int) -> Outcome:
    """The HPA's formula at each sync, on rows that are ways and targets."""
    targets = np.tile(TARGETS, len(read))
    values = np.repeat(read, len(TARGETS), axis=0).T
    asked = np.maximum(np.ceil(values[0] / targets), 1.0)
    waiting = np.repeat(asked[None], start_up * SYNCS, axis=0)
    recommended = np.repeat(asked[None], STABILIZATION, axis=0)
    spent, short, changes = (np.zeros(len(targets)) for _ in range(3))
    for sync, value in enumerate(values):
        ratio = value / (asked * targets)
        want = np.where(np.abs(ratio - 1.0) <= TOLERANCE, asked, np.maximum(np.ceil(value / targets), 1.0))
        recommended[sync % STABILIZATION] = want
        after = np.where(want > asked, want, np.minimum(asked, recommended.max(axis=0)))
        changes += after != asked
        asked = after
        ready = np.minimum(asked, waiting.min(axis=0))
        waiting[sync % len(waiting)] = asked
        spent += asked
        short += np.maximum(load[sync][:, None] - ready, 0.0).sum(axis=0)
    shape = (len(read), len(TARGETS))
    shares = (spent / len(load), short / max(load.sum(), LEAST), changes / PLAYED)
    return Outcome(*(one.reshape(shape) for one in shares))


def table(outcomes: list[Outcome]) -> Iterator[str]:
    """A line for each way: ratios to the HPA's shortage for the HPA's pods."""
    budget = [one.spent[0, STATED] for one in outcomes]
    plain = np.array([one.short[0, STATED] for one in outcomes])
    often = np.array([one.changes[0, STATED] for one in outcomes])
    pairs = list(zip(budget, outcomes, strict=True))
    for way, name in enumerate((*READINGS, *FORESEEN)):
        short, changes = (
            np.array([at(have, one.spent[way], getattr(one, part)[way]) for have, one in pairs])
            for part in ("short", "changes")
        )
        ratio = np.minimum((short + ALMOST) / (plain + ALMOST), MOST)
        worse = np.mean(short > (1 + NOTABLE) * plain + LEAST)
        cells = (f"{ratio.mean():.2f}", f"{np.median(ratio):.2f}", f"{worse:.0%}", shown(name))
        yield f"| {name} | {' | '.join(cells)} | {changes.sum() / often.sum():.2f} |"


def at(budget: float, spent: Floats, found: Floats) -> float:
    """Where the sweep spends so much; the ends of the sweep hold."""
    order = np.argsort(spent)
    return float(np.interp(budget, spent[order], found[order]))


def shown(name: str) -> str:
    """Mean seconds from a step of the load until a sync reads three quarters of it."""
    load, ticks = np.repeat([0.0, 1.0], 20 * TICKS), np.arange(10 * TICKS, 40 * TICKS)
    waits = []
    for phase in range(TICKS):
        read = np.max([way.read(np.roll(load, phase), ticks) for way in READINGS[FORESEEN.get(name, name)]], axis=0)
        at_sync = ticks % SYNC == 0
        waits.append(ticks[at_sync & (read >= 0.75)][0] - (20 * TICKS + phase))
    return f"{5 * np.mean(waits):.0f} s"


if __name__ == "__main__":
    main()
