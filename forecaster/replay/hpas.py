"""The HPAs of all runs beside our decisions: a pass a sync, on arrays, digit by digit as `forecaster.hpa` (§3, §9-§11).

Pods are alike: ready ones share the demand, starting ones use nothing yet. All HPAs of one object have targets of the
same kinds and the same `behavior`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import NamedTuple

import numpy as np

from forecaster.horizontal.columns import Band, Counts, Flags, ceil_counts
from forecaster.horizontal.inputs import Kind, TargetColumns
from forecaster.horizontal.proposals import ReadyPods, combined, proposal
from forecaster.horizontal.row import UNKNOWN
from forecaster.hpa.behavior import Behavior, ScalingPolicy
from forecaster.hpa.limits import windows
from forecaster.hpa.numbers import MAX_INT32, MIN_INT32
from forecaster.hpa.spec import SHIPPED, tolerance_of
from forecaster.replay.pods import Pods

FREE = -1


def neutral_for(join: np.ufunc) -> int:
    """Return the neutral count of a maximum or minimum."""
    return 0 if join is np.maximum else MAX_INT32


class SlidingWindow:
    """The join (`np.maximum` or `np.minimum`) of the last `length` entries [row], the latest included.

    In a constant number of passes: the running join of the present block, and the joins of the ends of the block before
    (van Herk 1992; Gil and Werman 1993), fed one entry at a time.
    """

    def __init__(self, join: np.ufunc, length: int, rows: int) -> None:
        self._join = join
        self._nothing = neutral_for(join)
        self._length = length
        self._place = 0
        self._block = np.full((length, rows), self._nothing, np.int64)
        self._ends = np.full((length + 1, rows), self._nothing, np.int64)
        self._running = np.full(rows, self._nothing, np.int64)

    def push(self, entry: Counts) -> Counts:
        """Take an entry in and give the join of the window that ends with it."""
        if self._place == self._length:
            self._turn()
        self._block[self._place] = entry
        self._running = self._join(self._running, entry)
        self._place += 1
        result: Counts = self._join(self._running, self._ends[self._place])
        return result

    def _turn(self) -> None:
        """The block is full: keep the joins of its ends, `ends[i]` that of the entries from the i-th on."""
        for i in range(self._length - 1, -1, -1):
            self._ends[i] = self._join(self._block[i], self._ends[i + 1]) if i < self._length - 1 else self._block[i]
        self._ends[self._length] = self._nothing
        self._running = np.full_like(self._running, self._nothing)
        self._place = 0


class ScaleEvents:
    """Changes of one direction (HPA rules §11.2, §11.4): `change[slot, row]` made at sync `at[slot, row]`.

    Slots that were never used are `FREE`. A slot with an outdated change is flagged, counts on until it is
    overwritten, and is the first to be.
    """

    def __init__(self, rows: int, policies: tuple[ScalingPolicy, ...], sync_period: timedelta) -> None:
        self._seconds = sync_period.total_seconds()
        self._longest = max((policy.period.total_seconds() for policy in policies), default=0.0)
        self._change = np.zeros((4, rows), np.int64)
        self._at = np.full((4, rows), FREE, np.int64)
        self._outdated = np.zeros((4, rows), np.bool_)

    def since(self, rows: Counts, period: timedelta, sync: int) -> Counts:
        """Return the change of these rows strictly within the last `period`."""
        at = self._at[:, rows]
        counts = (at != FREE) & ((sync - at) * self._seconds < period.total_seconds())
        total: Counts = np.where(counts, self._change[:, rows], 0).sum(axis=0)
        return total

    def record(self, rows: Counts, change: Counts, sync: int) -> None:
        """Store the changes of these rows: in the last outdated slot, else in the first free one."""
        used = self._at[:, rows] != FREE
        self._outdated[:, rows] |= used & ((sync - self._at[:, rows]) * self._seconds > self._longest)
        slots = self._slots(rows, used)
        self._change[slots, rows], self._at[slots, rows], self._outdated[slots, rows] = change, sync, False

    def _slots(self, rows: Counts, used: Flags) -> Counts:
        outdated = self._outdated[:, rows]
        last_outdated = len(outdated) - 1 - outdated[::-1].argmax(axis=0)
        slots: Counts = np.where(outdated.any(axis=0), last_outdated, used.sum(axis=0))
        if int(slots.max(initial=0)) >= len(self._at):
            self._grow()
        return slots

    def _grow(self) -> None:
        self._change = np.vstack([self._change, np.zeros_like(self._change)])
        self._at = np.vstack([self._at, np.full_like(self._at, FREE)])
        self._outdated = np.vstack([self._outdated, np.zeros_like(self._outdated)])


class Usage(NamedTuple):
    """The measured total of one signal [row] in milli-units, 0 where it is not known."""

    milli: Counts
    known: Flags | None
    """None where all values are known."""


class Hpas:
    """The HPAs and what their controller remembers."""

    def __init__(
        self,
        kinds: Sequence[Kind],
        targets: TargetColumns,
        min_replicas: Counts,
        max_replicas: Counts,
        behavior: Behavior | None,
        sync_period: timedelta,
    ) -> None:
        self._kinds, self._targets, self._min_replicas, self._max_replicas = kinds, targets, min_replicas, max_replicas
        tolerance, rows = tolerance_of(behavior, SHIPPED), len(min_replicas)
        self._band = Band(np.full(rows, tolerance.lowest), np.full(rows, tolerance.highest))
        self._limits: _Limits = (
            _Shipped(rows, max_replicas, sync_period)
            if behavior is None
            else _Behaved(rows, max_replicas, behavior, sync_period)
        )

    def replicas(self, pods: Pods, usage: Mapping[str, Usage], floor: Counts, sync: int) -> Counts:
        """Replicas [row] after one pass, with `minReplicas` raised to the floor, though never above `maxReplicas`."""
        current = pods.desired
        min_replicas = np.maximum(self._min_replicas, np.minimum(floor, self._max_replicas))
        recommended = combined(self._proposals(pods, usage), current)
        inside = (current >= min_replicas) & (current <= self._max_replicas)
        counts = recommended.valid & inside & (current > 0)
        limited = self._limits.limited(recommended.replicas, counts, current, min_replicas, sync)
        if counts.all():
            return limited
        bounded = np.minimum(np.maximum(current, min_replicas), self._max_replicas)
        return np.where(counts, limited, np.where(inside | (current == 0), current, bounded))

    def moved(self, change: Counts, sync: int) -> None:
        """Remember by how much each count [row] was changed (§11.4)."""
        self._limits.moved(change, sync)

    def _proposals(self, pods: Pods, usage: Mapping[str, Usage]) -> list[Counts]:
        """[target][row]; `UNKNOWN` without a sample, or without a ready pod that could have one."""
        counted, served, proposals = ReadyPods.of(pods.ready, pods.desired), pods.ready > 0, []
        every = bool(served.all())
        for place, kind in enumerate(self._kinds):
            measured, goal, request = usage[kind.signal], self._targets.goal[place], self._targets.request[place]
            count, known = proposal(kind, measured.milli, goal, request, counted, self._band), measured.known
            if not kind.of_all_pods and not every:
                known = served if known is None else served & known
            proposals.append(count if known is None else np.where(known, count, UNKNOWN))
        return proposals


class _Shipped:
    """HPA rules §10: no `behavior`."""

    def __init__(self, rows: int, max_replicas: Counts, sync_period: timedelta) -> None:
        entries = SHIPPED.downscale_stabilization // sync_period + 1
        self._max_replicas, self._highest = max_replicas, SlidingWindow(np.maximum, entries, rows)

    def limited(self, replicas: Counts, counts: Flags, current: Counts, min_replicas: Counts, sync: int) -> Counts:
        highest = self._highest.push(_entry(np.maximum, replicas, counts, current, first=sync == 0))
        growth = np.maximum(SHIPPED.growth.factor * current, SHIPPED.growth.minimum).astype(np.int64)
        return np.where(
            highest < min_replicas, min_replicas, np.minimum(highest, np.minimum(self._max_replicas, growth))
        )

    def moved(self, change: Counts, sync: int) -> None:
        """Do nothing: no change is remembered."""


class _Behaved:
    """HPA rules §11: `spec.behavior`."""

    def __init__(self, rows: int, max_replicas: Counts, behavior: Behavior, sync_period: timedelta) -> None:
        up, down = windows(behavior, SHIPPED.downscale_stabilization)
        self._max_replicas, self._rules, self._waits = max_replicas, behavior, (bool(up), bool(down))
        self._lowest = SlidingWindow(np.minimum, _younger_than(up, sync_period), rows)
        self._highest = SlidingWindow(np.maximum, _younger_than(down, sync_period), rows)
        self._ups = ScaleEvents(rows, behavior.scale_up.policies, sync_period)
        self._downs = ScaleEvents(rows, behavior.scale_down.policies, sync_period)

    def limited(self, replicas: Counts, counts: Flags, current: Counts, min_replicas: Counts, sync: int) -> Counts:
        up, down = (sync == 0 and waits for waits in self._waits)
        lowest = self._lowest.push(_entry(np.minimum, replicas, counts, current, first=up))
        highest = self._highest.push(_entry(np.maximum, replicas, counts, current, first=down))
        return self._rated(np.minimum(np.maximum(current, lowest), highest), counts, current, min_replicas, sync)

    def moved(self, change: Counts, sync: int) -> None:
        for events, by in ((self._ups, change), (self._downs, -change)):
            rows = np.flatnonzero(by > 0)
            if rows.size:
                events.record(rows, by[rows], sync)

    def _rated(self, stabilized: Counts, counts: Flags, current: Counts, min_replicas: Counts, sync: int) -> Counts:
        """§11.2 for the rows that move."""
        result = stabilized.copy()
        rises = np.flatnonzero(counts & (stabilized > current))
        if rises.size:
            limit = np.maximum(self._limit(rises, current[rises], sync, up=True), current[rises])
            result[rises] = np.minimum(stabilized[rises], np.minimum(self._max_replicas[rises], limit))
        falls = np.flatnonzero(counts & (stabilized < current))
        if falls.size:
            limit = np.minimum(self._limit(falls, current[falls], sync, up=False), current[falls])
            result[falls] = np.maximum(stabilized[falls], np.maximum(min_replicas[falls], limit))
        return result

    def _limit(self, rows: Counts, current: Counts, sync: int, *, up: bool) -> Counts:
        """Return the largest count of these rows, or where they fall the smallest."""
        rules, moved = (self._rules.scale_up, _raised) if up else (self._rules.scale_down, _lowered)
        if rules.select_policy == "Disabled":
            return current
        allowed = [moved(self._start(rows, current, policy, sync), policy) for policy in rules.policies]
        return _selected(allowed, current, largest=(rules.select_policy != "Min") == up)

    def _start(self, rows: Counts, current: Counts, policy: ScalingPolicy, sync: int) -> Counts:
        """The size when the policy's period began."""
        return current - self._ups.since(rows, policy.period, sync) + self._downs.since(rows, policy.period, sync)


_Limits = _Shipped | _Behaved


def _younger_than(window: timedelta, sync_period: timedelta) -> int:
    """Return how many entries are strictly younger than a window; the latest counts always."""
    return max(1, math.ceil(window / sync_period))


def _entry(join: np.ufunc, replicas: Counts, counts: Flags, current: Counts, *, first: bool) -> Counts:
    """Return a pass's entry in a window: neutral without a recommendation; the first one has the present size, too."""
    entry = replicas if counts.all() else np.where(counts, replicas, neutral_for(join))
    return np.asarray(join(entry, current)) if first else entry


def _selected(allowed: Sequence[Counts], current: Counts, *, largest: bool) -> Counts:
    """[row] the largest or the smallest of what policies allow; without any, what selects nothing."""
    if not allowed:
        return np.full_like(current, MIN_INT32 if largest else MAX_INT32)
    result: Counts = (np.maximum if largest else np.minimum).reduce(np.stack(allowed), axis=0)
    return result


def _raised(start: Counts, policy: ScalingPolicy) -> Counts:
    if policy.type == "Pods":
        return start + policy.value
    return ceil_counts(start.astype(np.float64) * (1 + policy.value / 100))


def _lowered(start: Counts, policy: ScalingPolicy) -> Counts:
    if policy.type == "Pods":
        return start - policy.value
    remaining: Counts = np.trunc(start * (1 - policy.value / 100)).astype(np.int64)
    return remaining
