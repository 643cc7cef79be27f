"""The recommender over many containers at once: the same arithmetic as `recommend.py`, in arrays.

Arrays have a row per container. Weights are relative, so one reference instant serves all rows; sums are taken in
another order than one by one, so where a percentile is reached to the last bit, a row may differ by one bucket.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from forecaster.vertical.reference.vpa.amounts import LARGEST
from forecaster.vertical.reference.vpa.bucket_panel import CPU_PANEL, MEMORY_PANEL, BucketPanel
from forecaster.vertical.reference.vpa.container import MemoryRules
from forecaster.vertical.reference.vpa.decaying import HALF_LIFE as HALF_LIFE_NS
from forecaster.vertical.reference.vpa.instants import MINUTE, SECOND, to_nearest
from forecaster.vertical.reference.vpa.recommend import (
    CPU,
    DEFAULTS,
    LOWER,
    MEMORY,
    UPPER,
    RecommenderSettings,
    pod_minimum,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from forecaster.vertical.reference.vpa.estimators import ConfidenceRule

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

HALF_LIFE = HALF_LIFE_NS // SECOND
DEFAULT_RULES = MemoryRules()
_CPU_WEIGHT = 0.1
_RENEWED_AFTER = 100
_CHUNK = 2**22
"""Samples that are sorted into buckets at a time; some 100 MB of intermediate values."""


@dataclass(frozen=True, slots=True)
class PanelAmounts:
    """[container] millicores or bytes."""

    target: Ints
    lower: Ints
    upper: Ints


class VpaPanel:
    """Histograms of many containers, fed in order of time. Instants are seconds since 1970, after that."""

    def __init__(self, containers: int, rules: MemoryRules = DEFAULT_RULES) -> None:
        """Start empty."""
        self.rules = rules
        self.interval = rules.interval // SECOND
        self.cpu = WeightPanel.empty(containers, CPU_PANEL)
        self.memory = WeightPanel.empty(containers, MEMORY_PANEL)
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
        needed[rows] = np.maximum(used + self.rules.least_bump, np.floor(used * self.rules.bump_ratio))
        self._enter(needed, rows, at)

    def recommend(
        self, settings: RecommenderSettings = DEFAULTS, *, containers_per_pod: int = 1
    ) -> dict[str, PanelAmounts]:
        """By resource, as `recommend` says it for each container."""
        confidence = self._confidence(settings.confidence_interval)
        least = pod_minimum(containers_per_pod, settings)
        return {
            CPU: _chain(self.cpu, 1000.0, least[CPU], confidence, settings),
            MEMORY: _chain(self._memory_with_open(), 1.0, least[MEMORY], confidence, settings),
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

    def _memory_with_open(self) -> WeightPanel:
        rows = np.flatnonzero(self.window_end > 0)
        panel = WeightPanel(self.memory.buckets, self.memory.weights.copy(), self.memory.reference)
        panel.add(rows, self.counted[rows], panel.growth(self.window_end[rows]))
        return panel

    def _confidence(self, interval: int) -> Floats:
        days = (self.last - self.first) / (interval / SECOND)
        return np.minimum(days, self.samples / (interval / MINUTE))


@dataclass(slots=True)
class WeightPanel:
    """[container, bucket] weights relative to the reference instant."""

    buckets: BucketPanel
    weights: Floats
    reference: int = field(default=0)

    @classmethod
    def empty(cls, containers: int, buckets: BucketPanel) -> WeightPanel:
        """No weights yet."""
        return cls(buckets, np.zeros((containers, buckets.count)))

    def move_to(self, latest: int, earliest: int) -> None:
        """Keep weights of instants up to `latest` within what doubles can hold."""
        if not self.reference:
            self.reference = to_nearest(earliest, HALF_LIFE)
        if latest > self.reference + _RENEWED_AFTER * HALF_LIFE:
            reference = to_nearest(latest, HALF_LIFE)
            self.weights *= 2.0 ** ((self.reference - reference) // HALF_LIFE)
            self.reference = reference

    def growth(self, at: Ints) -> Floats:
        """How much more samples of these instants weigh."""
        return np.asarray(np.exp2((at - self.reference) / HALF_LIFE))

    def add(self, rows: Ints, values: Floats, weights: Floats) -> None:
        """One value for each of some rows, each named once."""
        self.weights[rows, self.buckets.find(values)] += weights

    def add_all(self, part: slice, values: Floats, known: NDArray[np.bool_], weights: Floats) -> None:
        """[row, time] values of consecutive rows; weights by time."""
        rows, columns = np.nonzero(known)
        place = rows * self.buckets.count + self.buckets.find(values[known])
        size = len(values) * self.buckets.count
        self.weights[part] += np.bincount(place, weights[columns], size).reshape(len(values), -1)

    def percentile(self, share: float) -> Floats:
        """[container] the end of the bucket where this share is reached; 0 for a row without weight."""
        reached = np.cumsum(self.weights, axis=1)
        bucket = (reached < share * reached[:, -1:]).sum(axis=1)
        return np.where(reached[:, -1] > 0, self.buckets.ends[np.minimum(bucket, self.buckets.count - 1)], 0.0)


def _chain(
    panel: WeightPanel, scale: float, least: int, confidence: Floats, settings: RecommenderSettings
) -> PanelAmounts:
    def at(share: float) -> Floats:
        base = _cut(panel.percentile(share) * scale)
        return base + _cut(base * settings.margin)

    lower, upper = at(settings.lower_percentile), at(settings.upper_percentile)
    bounds = (
        at(settings.target_percentile),
        _widened(lower, LOWER, confidence),
        _widened(upper, UPPER, confidence),
    )
    return PanelAmounts(*(np.maximum(amounts, least).astype(np.int64) for amounts in bounds))


def _widened(amounts: Floats, rule: ConfidenceRule, confidence: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return _cut(amounts * (1.0 + rule.multiplier / confidence) ** rule.exponent)


def _cut(values: Floats) -> Floats:
    return np.asarray(np.floor(np.clip(np.nan_to_num(values, nan=0.0, posinf=LARGEST), 0, LARGEST)))
