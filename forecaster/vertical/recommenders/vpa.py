"""The VPA 1.8's recommender for many containers at once, in arrays with a row per container, and its histograms.

Weights are relative, so one reference instant serves all rows; sums are taken in another order than container by
container, so where a percentile is reached to the last bit, a row may differ by one bucket.
spec/vertical.md §1.1 to §1.10; the scalar reference is tests/oracles/vpa_recommender.py.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from forecaster.domain.window import DAY

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LARGEST_AMOUNT = 10**14
"""Millicores or bytes; larger ones are held here."""
BUMP_RATIO, MIN_BUMP = 1.2, 100 * 2**20
"""Growth of the next recommendation after an OOM kill: a factor, and at least so many bytes."""
_SECOND = timedelta(seconds=1)
_CPU_WEIGHT = 0.1
_CHUNK = 2**22
"""Samples that are sorted into buckets at a time; some 100 MB of intermediate values."""


MIN_WEIGHT = 0.001 * 0.1
_HALF_LIFE = DAY // _SECOND
"""Seconds in which the weight of new samples doubles."""
_RENEWED_AFTER = 100
"""Half-lives after which all weights are divided down, long before doubles run out."""


@dataclass(frozen=True)
class ExponentialBuckets:
    """Each bucket is `ratio` times as wide as the one before it.

    The logarithm is the quotient of two rounded logarithms, on purpose: a value on a boundary may land one bucket low,
    and does so upstream too.
    """

    largest: float
    first: float
    ratio: float
    least: float

    @cached_property
    def count(self) -> int:
        """One more than the buckets up to the largest value."""
        return math.ceil(self._steps(self.largest)) + 1

    @cached_property
    def ends(self) -> Floats:
        """[bucket] percentile's answer in it: the bucket's end, or the start of the last one."""
        starts = [self.start(bucket) for bucket in range(self.count)]
        return np.array([*starts[1:], starts[-1]])

    def find(self, value: float) -> int:
        """Clamped to the first and the last."""
        return 0 if value < self.first else min(int(self._steps(value)), self.count - 1)

    def find_all(self, values: Floats) -> NDArray[np.intp]:
        """The bucket of each value, none of which is NaN."""
        steps = np.log(values * (self.ratio - 1) / self.first + 1) / self._log_ratio
        return np.where(values < self.first, 0, np.minimum(steps.astype(np.intp), self.count - 1))

    def start(self, bucket: int) -> float:
        """The sum of the widths of the buckets before it."""
        return self.first * (self.ratio**bucket - 1) / (self.ratio - 1)

    @cached_property
    def _log_ratio(self) -> float:
        return math.log(self.ratio)

    def _steps(self, value: float) -> float:
        return math.log(value * (self.ratio - 1) / self.first + 1) / self._log_ratio


CPU_BUCKETS = ExponentialBuckets(1000.0, 0.01, 1.05, MIN_WEIGHT)
"""Cores: 176 buckets, the first a hundredth of a core."""
MEMORY_BUCKETS = ExponentialBuckets(1e12, 1e7, 1.05, MIN_WEIGHT)
"""Bytes: 176 buckets, the first ten megabytes."""


@dataclass(slots=True)
class DecayingWeights:
    """Weights [container, bucket], in which newer samples weigh more: relative to the reference instant in seconds."""

    buckets: ExponentialBuckets
    weights: Floats
    reference: int = 0

    @classmethod
    def empty(cls, containers: int, buckets: ExponentialBuckets) -> DecayingWeights:
        """Return histograms without weights."""
        return cls(buckets, np.zeros((containers, buckets.count)))

    def move_to(self, latest: int, earliest: int) -> None:
        """Keep weights of instants up to `latest` within what doubles can hold."""
        if not self.reference:
            self.reference = _to_nearest_half_life(earliest)
        if latest > self.reference + _RENEWED_AFTER * _HALF_LIFE:
            reference = _to_nearest_half_life(latest)
            self.weights *= 2.0 ** ((self.reference - reference) // _HALF_LIFE)
            self.reference = reference

    def growth(self, at: Ints) -> Floats:
        """Return the growth factor of the weights of samples at these instants."""
        return np.asarray(np.exp2((at - self.reference) / _HALF_LIFE))

    def add(self, rows: Ints, values: Floats, weights: Floats) -> None:
        """Add one value for each of some rows, each named once."""
        self.weights[rows, self.buckets.find_all(values)] += weights

    def add_all(self, part: slice, values: Floats, known: NDArray[np.bool_], weights: Floats) -> None:
        """[row, time] values of consecutive rows; weights by time."""
        rows, columns = np.nonzero(known)
        place = rows * self.buckets.count + self.buckets.find_all(values[known])
        size = len(values) * self.buckets.count
        self.weights[part] += np.bincount(place, weights[columns], size).reshape(len(values), -1)

    def percentile(self, share: float) -> Floats:
        """[container] the end of the bucket where this share is reached; 0 for a row without weight."""
        reached = np.cumsum(self.weights, axis=1)
        bucket = (reached < share * reached[:, -1:]).sum(axis=1)
        return np.where(reached[:, -1] > 0, self.buckets.ends[np.minimum(bucket, self.buckets.count - 1)], 0.0)


def _to_nearest_half_life(instant: int) -> int:
    """The nearest multiple of the half-life; the later one half-way."""
    return (instant + _HALF_LIFE // 2) // _HALF_LIFE * _HALF_LIFE


@dataclass(frozen=True, slots=True)
class VpaSettings:
    """The recommender's flags, with their defaults."""

    target_percentile: float = 0.9
    lower_percentile: float = 0.5
    upper_percentile: float = 0.95
    margin: float = 0.15
    confidence_interval: timedelta = DAY
    pod_min_cpu_millicores: float = 25.0
    pod_min_memory_mb: float = 250.0
    """The minimum of a pod is that of its one container."""


@dataclass(frozen=True, slots=True)
class ConfidenceRule:
    """`amount * (1 + multiplier / confidence) ^ exponent`."""

    multiplier: float
    exponent: float


VPA_DEFAULTS = VpaSettings()
UPPER = ConfidenceRule(1.0, 1.0)
LOWER = ConfidenceRule(0.001, -2.0)


@dataclass(frozen=True, slots=True)
class VpaBounds:
    """Target and bounds [container] in millicores or bytes."""

    target: Ints
    lower: Ints
    upper: Ints


class VpaPanel:
    """Histograms of many containers, fed in order of time. Instants are seconds since 1970, after that."""

    def __init__(self, containers: int) -> None:
        self.interval = DAY // _SECOND
        self.cpu = DecayingWeights.empty(containers, CPU_BUCKETS)
        self.memory = DecayingWeights.empty(containers, MEMORY_BUCKETS)
        self.first = np.zeros(containers, np.int64)
        self.last = np.zeros(containers, np.int64)
        self.samples = np.zeros(containers, np.int64)
        self.window_end = np.zeros(containers, np.int64)
        self.counted = np.zeros(containers)
        """The peak of the open window that counts."""
        self.memory_peak = np.zeros(containers)

    def add_cpu(self, cores: Floats, at: Ints) -> None:
        """[container, time] cores and their instants, newer than all before; NaN is no sample."""
        rows = max(_CHUNK // max(len(at), 1), 1)
        self.cpu.move_to(int(at[-1]), int(at[0]))
        for start in range(0, len(cores), rows):
            part = slice(start, start + rows)
            self._add_cpu(part, np.floor(cores[part] * 1000 + 1e-9) / 1000, at)

    def add_memory(self, memory: Floats, at: int) -> None:
        """[container] bytes at one instant; NaN is no sample."""
        entered = self._enter(np.floor(memory), np.flatnonzero(memory >= 0), at)
        self.memory_peak[entered] = np.floor(memory[entered])

    def record_oom(self, rows: Ints, requested: Floats, at: int) -> None:
        """OOM kills of some containers, with the memory they had requested."""
        used = np.maximum(requested, self.memory_peak[rows])
        needed = np.full(len(self.counted), np.nan)
        needed[rows] = np.maximum(used + MIN_BUMP, np.floor(used * BUMP_RATIO))
        self._enter(needed, rows, at)

    def recommend(self, settings: VpaSettings = VPA_DEFAULTS) -> dict[str, VpaBounds]:
        """Return bounds by resource: `cpu` in millicores, `memory` in bytes."""
        confidence = self._confidence(settings.confidence_interval)
        least_cpu, least_memory = int(settings.pod_min_cpu_millicores), int(settings.pod_min_memory_mb * 2**20)
        return {
            "cpu": _bounds(self.cpu, 1000.0, least_cpu, confidence, settings),
            "memory": _bounds(self._memory_with_open(), 1.0, least_memory, confidence, settings),
        }

    def _add_cpu(self, part: slice, cores: Floats, at: Ints) -> None:
        known = ~np.isnan(cores)
        self.cpu.add_all(part, cores, known, _CPU_WEIGHT * self.cpu.growth(at))
        self.samples[part] += known.sum(axis=1)
        instants = np.where(known, at, 0)
        self.last[part] = np.maximum(self.last[part], instants.max(axis=1))
        earliest = np.where(known, at, np.iinfo(np.int64).max).min(axis=1)
        fresh = (self.first[part] == 0) & known.any(axis=1)
        self.first[part] = np.where(fresh, earliest, self.first[part])

    def _enter(self, values: Floats, rows: Ints, at: int) -> Ints:
        """Put values into their windows; the rows in which they are the new peak."""
        fresh = rows[self.window_end[rows] == 0]
        self.window_end[fresh] = at
        rolled = rows[at >= self.window_end[rows]]
        self._close(rolled, at, fresh)
        higher = rows[(at < self.window_end[rows]) & (self.counted[rows] > 0) & (values[rows] > self.counted[rows])]
        entered = np.union1d(rolled, higher)
        self.counted[entered] = values[entered]
        return entered

    def _close(self, rows: Ints, at: int, fresh: Ints) -> None:
        """Count the peaks of windows that are over, and open the windows of `at`."""
        if not len(rows):
            return
        over = np.setdiff1d(rows, fresh)
        self.memory.move_to(at, at)
        self.memory.add(over, self.counted[over], self.memory.growth(self.window_end[over]))
        passed = (at - self.window_end[rows]) // self.interval + 1
        self.window_end[rows] += passed * self.interval
        self.counted[rows] = self.memory_peak[rows] = 0.0

    def _memory_with_open(self) -> DecayingWeights:
        rows = np.flatnonzero(self.window_end > 0)
        panel = DecayingWeights(self.memory.buckets, self.memory.weights.copy(), self.memory.reference)
        panel.add(rows, self.counted[rows], panel.growth(self.window_end[rows]))
        return panel

    def _confidence(self, interval: timedelta) -> Floats:
        days = (self.last - self.first) / (interval / _SECOND)
        return np.minimum(days, self.samples / (interval / timedelta(minutes=1)))


def _bounds(weights: DecayingWeights, scale: float, least: int, confidence: Floats, settings: VpaSettings) -> VpaBounds:
    """Percentile, margin, confidence and floor, in this order."""

    def at(share: float) -> Floats:
        base = _cut(weights.percentile(share) * scale)
        return base + _cut(base * settings.margin)

    lower, upper = at(settings.lower_percentile), at(settings.upper_percentile)
    bounds = (
        at(settings.target_percentile),
        _widened(lower, LOWER, confidence),
        _widened(upper, UPPER, confidence),
    )
    return VpaBounds(*(np.maximum(amounts, least).astype(np.int64) for amounts in bounds))


def _widened(amounts: Floats, rule: ConfidenceRule, confidence: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return _cut(amounts * (1.0 + rule.multiplier / confidence) ** rule.exponent)


def _cut(values: Floats) -> Floats:
    return np.asarray(np.floor(np.clip(np.nan_to_num(values, nan=0.0, posinf=LARGEST_AMOUNT), 0, LARGEST_AMOUNT)))
