"""The HPAs of all lanes: `replay.scaler.next_replicas` on arrays."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from forecaster.hpa.limits import windows
from forecaster.hpa.numbers import MAX_INT32, MIN_INT32
from forecaster.hpa.spec import SHIPPED
from forecaster.replay.fast.asking import combined, proposals
from forecaster.replay.fast.events import Events
from forecaster.replay.fast.numbers import Counts, Flags, ceil_counts
from forecaster.replay.fast.windows import Sliding, nothing_for

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import timedelta

    from forecaster.domain.signal import Signal
    from forecaster.hpa.behavior import Behavior, ScalingPolicy, ScalingRules
    from forecaster.hpa.proposals import Tolerance
    from forecaster.replay.fast.asking import Targets
    from forecaster.replay.fast.pods import Pods


@dataclass(slots=True)
class Hpas:
    """One HPA a lane; all have the same `behavior`."""

    targets: Sequence[Targets]
    least: Counts
    most: Counts
    behavior: Behavior | None
    tolerance: Tolerance
    sync_period: timedelta
    highest: Sliding = field(init=False)
    lowest: Sliding | None = field(init=False)
    ups: Events | None = field(init=False)
    downs: Events | None = field(init=False)

    def __post_init__(self) -> None:
        lanes, behavior = len(self.least), self.behavior
        if behavior is None:
            entries = SHIPPED.downscale_stabilization // self.sync_period + 1
            self.highest, self.lowest, self.ups, self.downs = Sliding(np.maximum, entries, lanes), None, None, None
            return
        up, down = self._windows(behavior)
        self.highest = Sliding(np.maximum, self._younger_than(down), lanes)
        self.lowest = Sliding(np.minimum, self._younger_than(up), lanes)
        self.ups = Events(lanes, behavior.scale_up.policies, self.sync_period)
        self.downs = Events(lanes, behavior.scale_down.policies, self.sync_period)

    def wanted(self, pods: Pods, demand: Mapping[Signal, Counts], floor: Counts, sync: int) -> Counts:
        """The replicas after one sync, with `minReplicas` raised to the floor, though never above `maxReplicas`."""
        current = pods.asked
        least = np.maximum(self.least, np.minimum(floor, self.most))
        asked = [proposals(one, demand[one.kind.signal], pods.ready, current, self.tolerance) for one in self.targets]
        recommended = combined(asked, current)
        inside = (current >= least) & (current <= self.most)
        counts = recommended.valid & inside & (current > 0)
        limited = self._limited(recommended.replicas, counts, current, least, sync)
        held = np.where(inside, current, np.minimum(np.maximum(current, least), self.most))
        return np.where(counts, limited, np.where(current > 0, held, 0))

    def moved(self, change: Counts, sync: int) -> None:
        """Remember what was changed."""
        if self.ups is None or self.downs is None:
            return
        for events, by in ((self.ups, change), (self.downs, -change)):
            lanes = np.flatnonzero(by > 0)
            if lanes.size:
                events.record(lanes, by[lanes], sync)

    def _limited(self, replicas: Counts, counts: Flags, current: Counts, least: Counts, sync: int) -> Counts:
        if self.lowest is None or self.behavior is None:
            highest = self.highest.push(_entry(np.maximum, replicas, counts, current, first=sync == 0))
            growth = np.maximum(SHIPPED.growth.factor * current, SHIPPED.growth.minimum).astype(np.int64)
            return np.where(highest < least, least, np.minimum(highest, np.minimum(self.most, growth)))
        up, down = self._windows(self.behavior)
        rises = _entry(np.minimum, replicas, counts, current, first=sync == 0 and bool(up))
        falls = _entry(np.maximum, replicas, counts, current, first=sync == 0 and bool(down))
        lowest, highest = self.lowest.push(rises), self.highest.push(falls)
        stabilized = np.minimum(np.maximum(current, lowest), highest)
        return self._rated(stabilized, counts, current, least, sync)

    def _rated(self, stabilized: Counts, counts: Flags, current: Counts, least: Counts, sync: int) -> Counts:
        """HPA rules §11.2 for the lanes that move."""
        result = stabilized.copy()
        rises = np.flatnonzero(counts & (stabilized > current))
        if rises.size:
            limit = np.maximum(self._up_limit(rises, current[rises], sync), current[rises])
            result[rises] = np.minimum(stabilized[rises], np.minimum(self.most[rises], limit))
        falls = np.flatnonzero(counts & (stabilized < current))
        if falls.size:
            limit = np.minimum(self._down_limit(falls, current[falls], sync), current[falls])
            result[falls] = np.maximum(stabilized[falls], np.maximum(least[falls], limit))
        return result

    def _up_limit(self, lanes: Counts, current: Counts, sync: int) -> Counts:
        rules = self._rules.scale_up
        if rules.select_policy == "Disabled":
            return current
        allowed = [_raised(self._start(lanes, current, one, sync), one) for one in rules.policies]
        return _selected(allowed, rules, current, most_permissive=np.maximum, empty=(MIN_INT32, MAX_INT32))

    def _down_limit(self, lanes: Counts, current: Counts, sync: int) -> Counts:
        rules = self._rules.scale_down
        if rules.select_policy == "Disabled":
            return current
        allowed = [_lowered(self._start(lanes, current, one, sync), one) for one in rules.policies]
        return _selected(allowed, rules, current, most_permissive=np.minimum, empty=(MAX_INT32, MIN_INT32))

    def _start(self, lanes: Counts, current: Counts, policy: ScalingPolicy, sync: int) -> Counts:
        """The size when the policy's period began."""
        if self.ups is None or self.downs is None:
            raise TypeError("an HPA without behavior has no periods")
        return current - self.ups.since(lanes, policy.period, sync) + self.downs.since(lanes, policy.period, sync)

    @property
    def _rules(self) -> Behavior:
        if self.behavior is None:
            raise TypeError("an HPA without behavior has no policies")
        return self.behavior

    @staticmethod
    def _windows(behavior: Behavior) -> tuple[timedelta, timedelta]:
        return windows(behavior, SHIPPED.downscale_stabilization)

    def _younger_than(self, window: timedelta) -> int:
        """How many entries are strictly younger than a window; the newest counts always."""
        return max(1, math.ceil(window / self.sync_period))


def _entry(join: np.ufunc, replicas: Counts, counts: Flags, current: Counts, *, first: bool) -> Counts:
    """What a pass adds to a window: nothing where it recommends nothing; the first one, the size it found as well."""
    entry = np.where(counts, replicas, nothing_for(join))
    return np.asarray(join(entry, current)) if first else entry


def _selected(
    allowed: Sequence[Counts],
    rules: ScalingRules,
    current: Counts,
    *,
    most_permissive: np.ufunc,
    empty: tuple[int, int],
) -> Counts:
    if not allowed:
        return np.full_like(current, empty[1] if rules.select_policy == "Min" else empty[0])
    least_permissive = np.minimum if most_permissive is np.maximum else np.maximum
    join = least_permissive if rules.select_policy == "Min" else most_permissive
    result: Counts = join.reduce(np.stack(allowed), axis=0)
    return result


def _raised(start: Counts, policy: ScalingPolicy) -> Counts:
    return (
        start + policy.value
        if policy.type == "Pods"
        else ceil_counts(start.astype(np.float64) * (1 + policy.value / 100))
    )


def _lowered(start: Counts, policy: ScalingPolicy) -> Counts:
    if policy.type == "Pods":
        return start - policy.value
    kept: Counts = np.trunc(start * (1 - policy.value / 100)).astype(np.int64)
    return kept
