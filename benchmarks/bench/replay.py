"""A replay of autoscalers on recorded load: demand that is known a minute later, pods that take minutes to start.

The world: a tick is a minute, and so is the sync of the HPA. A pod requested in tick t serves from tick t + start-up; a
pod that is no longer requested is gone at once. The HPA is its formula: ceil(value / (pod x target)), no change within
a tolerance of 10 %, scale-down to the largest count of the last five minutes, at least one pod and at most MOST_PODS.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from benchmarks.bench.loads import DAY_SECONDS, load

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from benchmarks.bench.loads import Series

    Floats = NDArray[np.float64]

TICK = 60
"""Seconds."""
BIN = 300
DAYS = 3
"""The last days of a series are replayed; what lies before them is history."""
HISTORY_DAYS = 14
PODS_AT_PEAK = 20
MOST_PODS = 200
TOLERANCE = 0.1
STABILIZATION = 5
"""Ticks over which a scale-down keeps the largest count."""
TARGETS = (1.6, 1.4, 1.2, 1.1, 1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4)
"""Target utilizations of the sweep, from lean to safe."""
LEAST_VARIATION = 0.25
SKIPPED_FAMILIES = frozenset({"bitbrains_memory", "bitbrains_network", "nab_tweets"})
SKIPPED_SERIES = frozenset({"crane/input03"})
"""Flat noise: nothing to scale."""
VARYING_FAMILIES = frozenset({"azure_vm_cpu", "bitbrains_cpu"})
MOST_OF_A_FAMILY = {"azure_vm_cpu": 6, "bitbrains_cpu": 6, "content_platform": 4, "llm_serving": 6, "nab_cloudwatch": 5}


@dataclass(frozen=True)
class Replay:
    """The replayed days of one series, by the minute."""

    name: str
    family: str
    recorded_step: int
    start: int
    """Epoch second of the first tick."""
    past: Floats
    """Measured demand [tick] before the replay, NaN where nothing was measured."""
    measured: Floats
    """Measured demand [tick] of the replay; that of a tick is known when the tick is over."""
    demand: Floats
    """True demand [tick] of the replay."""
    pod: float
    """Demand that one pod serves."""
    least: int = 1
    """minReplicas."""

    @property
    def needed(self) -> Floats:
        """Pods [tick] that the demand needs."""
        return np.maximum(self.least, np.ceil(self.demand / self.pod))

    @property
    def known(self) -> Floats:
        """Measured demand [tick] of past and replay."""
        return np.concatenate([self.past, self.measured])


class Counts(NamedTuple):
    """Pods [setting, tick] that were requested, and the ready ones among them."""

    requested: Floats
    ready: Floats


class Account(NamedTuple):
    """Sums over the counts of each setting [setting]."""

    unserved: Floats
    """Demand above the capacity of ready pods, as a share of the demand."""
    minutes_short: Floats
    """Share of the ticks with any."""
    pod_hours: Floats
    changes: Floats
    """Changes of the count a day."""


def replays(series: Sequence[str] | None = None) -> list[Replay]:
    """The series that are load behind an autoscaler and long enough, by name where `series` names some."""
    fine = {item.name: item for item in load(TICK)}
    chosen = [item for item in scalable(load(BIN)) if series is None or item.name in series]
    made = (replay_of(fine[item.name]) for item in chosen)
    return [replay for replay in made if replay is not None]


def scalable(series: Sequence[Series]) -> Iterator[Series]:
    """Series that vary and are not memory, so many of a family at most."""
    taken: dict[str, int] = {}
    for item in series:
        if item.metric == "memory" or item.family in SKIPPED_FAMILIES or item.name in SKIPPED_SERIES or _is_flat(item):
            continue
        taken[item.family] = taken.get(item.family, 0) + 1
        if taken[item.family] <= MOST_OF_A_FAMILY.get(item.family, len(series)):
            yield item


def _is_flat(series: Series) -> bool:
    week = series.filled[-7 * series.day :]
    return series.family in VARYING_FAMILIES and bool(week.std() < LEAST_VARIATION * week.mean())


def replay_of(series: Series, days: int = DAYS) -> Replay | None:
    """The last `days` of a series, less its last bin, which may be incomplete; None without two days before them."""
    wide = max(BIN, series.step) // TICK
    measured, demand = (np.repeat(values, series.step // TICK) for values in (series.values, series.filled))
    ticks = days * DAY_SECONDS // TICK
    ends = (series.start // TICK + len(measured)) // wide * wide - wide - series.start // TICK
    first = ends - ticks
    if first < 2 * DAY_SECONDS // TICK:
        return None
    pod = float(np.quantile(demand[first:ends], 0.995)) / PODS_AT_PEAK
    if not pod > 0:
        return None
    past = measured[max(0, first - HISTORY_DAYS * DAY_SECONDS // TICK) : first]
    start = series.start + first * TICK
    played = measured[first:ends], demand[first:ends]
    return Replay(series.name, series.family, series.recorded_step, start, past, *played, pod)


def hpa_counts(replay: Replay, expected: Floats, targets: Sequence[float], start_up: int) -> Counts:
    """Counts [target, tick] of the HPA on the larger of measured and `expected` [tick] demand; NaN expects nothing."""
    target = np.array(targets)
    latest = np.concatenate([replay.past[-1:], replay.measured[:-1]])
    value = np.fmax(latest, expected)
    before = replay.past[~np.isnan(replay.past)][-1]
    current = _desired(replay, np.nan_to_num(value[0], nan=before), target)
    recent, history = [current] * STABILIZATION, []
    for tick in range(len(value)):
        desired = current if np.isnan(value[tick]) else _tolerated(replay, float(value[tick]), target, current)
        recent = [*recent[1:], desired]
        current = np.where(desired > current, desired, np.minimum(current, np.max(recent, axis=0)))
        history.append(current)
    return counts_of(np.array(history).T, start_up)


def _desired(replay: Replay, value: float, target: Floats) -> Floats:
    return np.clip(np.ceil(value / (replay.pod * target)), replay.least, MOST_PODS)


def _tolerated(replay: Replay, value: float, target: Floats, current: Floats) -> Floats:
    """Desired pods [target]; the current ones where usage is within the tolerance of the target."""
    ratio = value / (current * replay.pod * target)
    return np.where(np.abs(ratio - 1) <= TOLERANCE, current, _desired(replay, value, target))


def counts_of(requested: Floats, start_up: int) -> Counts:
    """Pods that are ready [setting, tick]: the fewest requested since `start_up` ticks ago; all are ready at first."""
    before = np.repeat(requested[:, :1], start_up, axis=1)
    windows = np.lib.stride_tricks.sliding_window_view(
        np.concatenate([before, requested], axis=1), start_up + 1, axis=1
    )
    return Counts(requested, windows.min(axis=-1))


def account(replay: Replay, counts: Counts) -> Account:
    """Sum up the unserved demand and the cost of each setting."""
    short = np.maximum(0.0, replay.demand - counts.ready * replay.pod)
    days = len(replay.demand) * TICK / DAY_SECONDS
    return Account(
        unserved=short.sum(axis=1) / max(float(replay.demand.sum()), 1e-12),
        minutes_short=(short > 1e-9 * replay.pod).mean(axis=1),
        pod_hours=counts.requested.sum(axis=1) * TICK / 3600,
        changes=(np.diff(counts.requested) != 0).sum(axis=1) / days,
    )
