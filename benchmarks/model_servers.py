"""Servers of large models that start for ten minutes: ours, the HPA and a queue-length rule on recorded arrival rates.

    python -m benchmarks.model_servers [benchmarks/traces] [--start-up MINUTES] [--days DAYS] [--kept FILE] [--write]

A closed loop: requests that find every pod full wait in one queue, and what waits is seen as demand by whatever scales.
A pod runs 16 requests at a time, each for 20 s; each series is scaled so that its 99.5th percentile fills 20 pods. The
last days (--days) are played minute by minute after what came before them, with straight lines between two samples.
The HPA divides running and waiting requests by its target; so does the one that KEDA makes of a trigger on both. KEDA
on waiting requests asks for a pod for so many of them and, once none waits, goes back to its least after the HPA's
stabilization. The queue-length rule adds a pod for so many that wait, and takes one away for each five minutes without.
All run through the HPA's tolerance and stabilization of 300 s but ours, which has its own. Compared at the pod-hours
of our policy. Each other rule shows the best of its points that cost no more, on straight lines between them; where
even its leanest point costs more, that point and its cost.
"""

from __future__ import annotations

import argparse
import json
import math
import os
from collections import deque
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import pandas as pd

from benchmarks.bench.loads import TRACES
from benchmarks.bench_policy import BenchPolicy
from benchmarks.record import record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

MINUTE = 60
RUNS, SECONDS = 16.0, 20.0
"""Requests that a pod runs at a time, and how long each takes."""
FULL_PODS, LEAST, MOST = 20, 1, 60
PLAYED_DAYS = 3
"""Days that are played without --days."""
STABILIZATION = 5
TOLERANCE = 0.1
TARGETS = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5)
WAITING_A_POD = (1.0, 2.0, 5.0, 10.0, 20.0)
LONG_SECONDS = 10.0
"""Seconds of work in a queue that is long."""
FORECASTER_STRATEGIES = "ours"
TARGET = 0.8
"""Target of our policy, behind its gate. Only one point is played: each takes a minute, with a demand of its own."""


class Look(NamedTuple):
    """State that a rule sees at a minute."""

    demand: Floats
    """Running and waiting requests until now [minute]."""
    waiting: float
    ready: int
    starting: int
    now: int


class Rule(Protocol):
    """A rule that decides the number of pods."""

    def desired_pods(self, look: Look) -> int:
        """Number of pods that the rule decides."""


@dataclass(slots=True)
class Reactive:
    """The HPA on running and waiting requests, or on waiting ones alone."""

    each: float
    queue: bool = False
    latest: deque[int] = field(default_factory=lambda: deque(maxlen=STABILIZATION))

    def desired_pods(self, look: Look) -> int:
        """Number of pods by the HPA's formula; to scale down, the largest of the last five minutes."""
        pods = look.ready + look.starting
        ratio = (look.waiting if self.queue else look.demand[-1]) / (self.each * max(pods, 1))
        desired = pods if abs(ratio - 1.0) <= TOLERANCE else math.ceil(ratio * pods)
        desired = min(max(desired, LEAST), MOST)
        self.latest.append(desired)
        return desired if desired >= pods else min(max(self.latest), pods)


@dataclass(slots=True)
class QueueLength:
    """A pod more for so many that wait, one fewer after five minutes in which none did."""

    each: float
    calm: int = 0

    def desired_pods(self, look: Look) -> int:
        """Pods for the waiting requests, less those that do not serve yet."""
        pods = look.ready + look.starting
        self.calm = 0 if look.waiting else self.calm + 1
        if self.calm >= STABILIZATION:
            self.calm = 0
            return max(pods - 1, LEAST)
        return min(max(pods, look.ready + math.ceil(look.waiting / self.each)), MOST)


@dataclass(slots=True)
class ForecasterRule:
    """The decisions of the service, as the bench has them."""

    policy: BenchPolicy

    def desired_pods(self, look: Look) -> int:
        """Number of pods that the policy decides."""
        return self.policy.desired(look.demand, look.ready, look.starting, look.now)


class Played(NamedTuple):
    """Pod-hours of the days, and the wait of their requests."""

    pod_hours: float
    wait: float
    """Mean seconds in the queue."""
    late: float
    """Share of requests that came while the queue was longer than ten seconds of work."""


def played(arrivals: Floats, before: int, rule: Rule, start_up: int, start: int) -> Played:
    """`arrivals` [minute] per second; the first `before` of them are history, seen without a queue."""
    demand = arrivals * SECONDS
    ready, coming = max(LEAST, math.ceil(demand[before - 1] / (RUNS * TARGET))), deque[tuple[int, int]]()
    queue = waited = late = hours = 0.0
    for minute in range(before, len(arrivals)):
        while coming and coming[0][0] <= minute:
            ready += coming.popleft()[1]
        arriving = arrivals[minute] * MINUTE
        served = min(queue + arriving, ready * RUNS / SECONDS * MINUTE)
        queue += arriving - served
        waited += queue * MINUTE
        late += arriving * (queue > served / MINUTE * LONG_SECONDS)
        demand[minute] = served / MINUTE * SECONDS + queue
        starting = sum(count for _, count in coming)
        hours += (ready + starting) / 60
        desired = min(
            rule.desired_pods(Look(demand[: minute + 1], queue, ready, starting, start + (minute + 1) * MINUTE)), MOST
        )
        change = desired - ready - starting
        if change > 0:
            coming.append((minute + 1 + start_up, change))
        while change < 0:  # the youngest go first
            at, count = coming.pop() if coming else (0, ready)
            gone = min(count, -change)
            ready, change = (ready - gone, 0) if at == 0 else (ready, change + gone)
            if at and count > gone:
                coming.append((at, count - gone))
    requests = arrivals[before:].sum() * MINUTE
    return Played(hours, waited / requests, late / requests)


Rows = dict[str, Played]
"""By contestant."""


class Series(NamedTuple):
    """One recorded service."""

    name: str
    arrivals: Floats
    """By minute, per second."""
    before: int
    """Minutes that are history."""
    start: int
    """Epoch second of the first minute."""


def load(traces: Path, days: int) -> Iterable[Series]:
    """The services of the family, scaled to fill the pods."""
    for entry in json.loads((traces / "catalogue.json").read_text(encoding="utf-8")):
        if entry["family"] == "llm_serving":
            table = pd.read_parquet(traces / entry["file"], filters=[("series_id", "==", entry["series_id"])])
            rates = table.set_index("timestamp")["value"].resample("1min").interpolate().dropna()
            before = len(rates) - days * 1440
            scale = FULL_PODS * RUNS / SECONDS / rates.iloc[before:].quantile(0.995)
            yield Series(entry["series_id"], rates.to_numpy() * scale, before, int(rates.index[0].timestamp()))


def forecaster_rule(target: float, start_up: int, cache: dict[str, Any]) -> ForecasterRule:
    policy = BenchPolicy()
    policy.start(
        {
            "tick_seconds": MINUTE, "sync_seconds": MINUTE, "startup_seconds": start_up * MINUTE,
            "native_seconds": 600, "pod_capacity": RUNS, "target": target,
            "min_replicas": LEAST, "max_replicas": MOST, "cache": cache,
        }
    )  # fmt: skip
    return ForecasterRule(policy)


def contestants(start_up: int) -> dict[str, list[Callable[[], Rule]]]:
    """Each from lean to safe."""
    return {
        "the HPA on requests in flight": [partial(Reactive, RUNS * share) for share in TARGETS],
        "KEDA on waiting requests": [partial(Reactive, each, queue=True) for each in WAITING_A_POD],
        "a queue-length rule": [partial(QueueLength, each) for each in WAITING_A_POD],
        FORECASTER_STRATEGIES: [partial(forecaster_rule, TARGET, start_up, {})],
    }


def frontier(points: Iterable[Played]) -> list[Played]:
    """The points that no other one beats in both pod-hours and wait, by pod-hours."""
    best: list[Played] = []
    for point in sorted(points):
        if not best or point.wait < best[-1].wait:
            best.append(point)
    return best


def within(points: Iterable[Played], hours: float) -> Played:
    """The best of a curve for at most so many pod-hours; its leanest point where even that costs more."""
    best = frontier(points)
    spent = [point.pod_hours for point in best]
    reached = min(max(hours, spent[0]), spent[-1])
    wait, late = (float(np.interp(reached, spent, [point[each] for point in best])) for each in (1, 2))
    return Played(reached, wait, late)


def compared(series: Series, start_up: int) -> Rows:
    """Pod-hours and wait of each rule, at no more pod-hours than our policy spends where the rule can."""
    points = {
        name: [played(series.arrivals, series.before, make(), start_up, series.start) for make in makes]
        for name, makes in contestants(start_up).items()
    }
    (reference,) = points[FORECASTER_STRATEGIES]
    return {name: within(curve, reference.pod_hours) for name, curve in points.items()}


def resumed_or_compared(series: Sequence[Series], start_up: int, earlier: Path | None) -> dict[str, Rows]:
    """Compare each series; `earlier` has those of earlier runs, one a line, and takes each that is done."""
    lines = earlier.read_text(encoding="utf-8").splitlines() if earlier and earlier.exists() else []
    done = {name: {which: Played(*row) for which, row in rows.items()} for name, rows in map(json.loads, lines)}
    left = [missing_series for missing_series in series if missing_series.name not in done]
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for played_series, rows in zip(left, pool.map(compared, left, repeat(start_up)), strict=True):
            done[played_series.name] = rows
            if earlier:
                with earlier.open("a", encoding="utf-8") as out:
                    out.write(json.dumps([played_series.name, rows]) + "\n")
    return done


def table(by_series: dict[str, Rows], names: Iterable[str]) -> str:
    """One line a series, and their mean."""
    lines = ["| series | " + " | ".join(names) + " |", "| --- |" + " --- |" * len(next(iter(by_series.values())))]
    for name, rows in by_series.items():
        cells = (f"{hours:.0f} h, {wait:.1f} s, {late:.1%}" for hours, wait, late in rows.values())
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    means = np.mean([list(rows.values()) for rows in by_series.values()], axis=0)
    lines.append("| mean | " + " | ".join(f"{h:.0f} h, {w:.1f} s, {share:.1%}" for h, w, share in means) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("traces", nargs="?", type=Path, default=TRACES)
    parser.add_argument("--start-up", type=int, default=10, help="minutes until a pod serves")
    parser.add_argument("--days", type=int, default=PLAYED_DAYS, help="how many of the last are played")
    parser.add_argument("--kept", type=Path, help="series that are done, so that another run goes on behind them")
    parser.add_argument("--write", action="store_true", help="into benchmarks/results")
    given = parser.parse_args()
    by_series = resumed_or_compared(list(load(given.traces, given.days)), given.start_up, given.kept)
    text = table(by_series, contestants(given.start_up))
    print(text)
    if given.write:
        title = f"Model servers that start for {given.start_up} minutes"
        explained = " ".join((__doc__ or "").split("\n\n")[2].split())
        legend = "Cells: pod-hours, mean seconds in the queue, share of requests that met more than 10 s of work."
        command = f"python -m benchmarks.model_servers --days {given.days} --start-up {given.start_up} --write"
        record("model-servers", title, command, f"{explained}\n\n{legend}\n\n{text}")


if __name__ == "__main__":
    main()
