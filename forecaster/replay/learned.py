"""Learned policies: the best count by a table or a forest becomes a demand instead of the forecast.

Every clamp and the gate hold for that demand as they do for a forecast. Training is `benchmarks.policy_training`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from forecaster.domain.window import MINUTES_A_DAY
from forecaster.horizontal.columns import Flags, Floats
from forecaster.horizontal.inputs import Inputs

Choices = NDArray[np.intp]

MEDIAN, UPPER = 0.5, 0.9
"""Quantiles of the coming peak that are features."""
LATEST = 5
"""Minutes back to the forecast that the latest demand is compared with."""


class Situation(NamedTuple):
    """Facts about rows at one minute, [row] each; demand in pods at the HPA's own target, NaN if unknown."""

    measured: Floats
    median: Floats
    """Median of the coming peak, in pods."""
    upper: Floats
    """90 % quantile of the coming peak."""
    before: Floats
    """The median that was forecast `LATEST` minutes ago."""
    desired: Floats
    """Replicas."""
    ready: Floats
    """Ready pods."""
    minute_of_day: int


class Advisor(Protocol):
    """Port of a policy that chooses counts."""

    def counts(self, situation: Situation) -> Floats:
        """[row] pods to have; NaN for no opinion."""


def advised(inputs: Inputs, advisor: Advisor, before: Floats, now: float) -> Inputs:
    """The inputs with the advisor's demand in place of the forecast of the first target's signal.

    It is the middle of what rounds up to the count. A row keeps its forecast where there is no forecast, no
    measurement, or no opinion. `before` [row] is what `median_of` gave `LATEST` minutes ago.
    """
    if not inputs.rules.kinds:
        return inputs
    pod = stated_pods(inputs)
    opinion = np.asarray(advisor.counts(_situation(inputs, pod, before, now)))
    heard = ~np.isnan(opinion) & ~np.isnan(inputs.measured[0]) & ~np.isnan(inputs.peak[0])
    return _with_demand(inputs, np.maximum(opinion - 0.5, 0.0) * pod, heard)


def median_of(inputs: Inputs) -> Floats:
    """[row] the median of the coming peak of the first target, in the unit of its signal; NaN without one."""
    return _quantile_of(inputs, MEDIAN)


def stated_pods(inputs: Inputs) -> Floats:
    """Return the demand [row] at which one pod reaches its first target."""
    kind, goal = inputs.rules.kinds[0], inputs.targets.goal[0]
    share = inputs.targets.request[0] / 100.0 if kind.of_request else 1.0
    return np.asarray(np.maximum(goal, 1) * share / 1000.0)


def _situation(inputs: Inputs, pod: Floats, before: Floats, now: float) -> Situation:
    return Situation(
        measured=inputs.measured[0] / pod,
        median=median_of(inputs) / pod,
        upper=_quantile_of(inputs, UPPER) / pod,
        before=before / pod,
        desired=inputs.current.astype(np.float64),
        ready=inputs.ready.astype(np.float64),
        minute_of_day=int(now // 60) % MINUTES_A_DAY,
    )


def _quantile_of(inputs: Inputs, level: float) -> Floats:
    """Linear between two levels, the peak itself where there is no distribution."""
    levels = inputs.rules.levels
    if not levels or not inputs.quantiles:
        return np.asarray(inputs.peak[0])
    values = inputs.quantiles[0]
    right = min(int(np.searchsorted(levels, level)), len(levels) - 1)
    left = max(right - 1, 0)
    share = min(max((level - levels[left]) / (levels[right] - levels[left]), 0.0), 1.0) if left < right else 0.0
    between = values[left] + share * (values[right] - values[left])
    return np.asarray(np.where(np.isnan(between), inputs.peak[0], between))


def _with_demand(inputs: Inputs, demand: Floats, rows: Flags) -> Inputs:
    """A single value has no distribution: the HPA's formula is used for it, whatever the sizing."""
    if not rows.any():
        return inputs
    signal, peak, quantiles = inputs.rules.kinds[0].signal, inputs.peak.copy(), list(inputs.quantiles)
    for target, kind in enumerate(inputs.rules.kinds):
        if kind.signal == signal:
            peak[target] = np.where(rows, demand, peak[target])
            if quantiles:
                quantiles[target] = np.where(rows, np.nan, quantiles[target])
    return replace(inputs, peak=peak, quantiles=quantiles)


CHANGES = np.array([-0.5, -0.2, 0.0, 0.15, 0.35, 0.75])
STAY = 2


def counts(desired: Floats, choices: Choices) -> Floats:
    """[row] replicas after a change of each count."""
    change = CHANGES[choices]
    moved = np.sign(change) * np.maximum(1.0, np.round(np.abs(change) * desired))
    return np.maximum(desired + np.where(change == 0.0, 0.0, moved), 1.0)


FEATURES = ("median", "upper", "spread", "filled", "starting", "error", "sine", "cosine")
MAX_FEATURE = 3.0
"""Logarithms of ratios beyond this (a factor of twenty) are all the same."""


def features_of(situation: Situation) -> Floats:
    """Return the inputs of a learned policy [row, feature], finite; ratios, for workloads of any size.

    An unknown forecast counts as no change.
    """
    desired = np.maximum(situation.desired, 1.0)
    measured = np.nan_to_num(situation.measured)
    median = np.where(np.isnan(situation.median), measured, situation.median)
    upper = np.maximum(np.where(np.isnan(situation.upper), measured, situation.upper), median)
    before = np.where(np.isnan(situation.before), measured, situation.before)
    angle = 2 * np.pi * situation.minute_of_day / MINUTES_A_DAY
    columns = (
        _log_ratio(median, desired),
        _log_ratio(upper, desired),
        _log_ratio(upper, median),
        _log_ratio(measured, situation.ready),
        1.0 - situation.ready / desired,
        _log_ratio(measured, before),
        np.full(len(desired), np.sin(angle)),
        np.full(len(desired), np.cos(angle)),
    )
    features: Floats = np.clip(np.stack(columns, axis=1), -MAX_FEATURE, MAX_FEATURE)
    return features


def _log_ratio(above: Floats, below: Floats) -> Floats:
    """Return the logarithm of a ratio of amounts in pods; a tenth of a pod counts as none."""
    return np.asarray(np.log(np.maximum(above, 0.1) / np.maximum(below, 0.1)))


EDGES: Mapping[str, tuple[float, ...]] = {
    "median": (-0.4, -0.15, 0.05, 0.25),
    "upper": (-0.3, -0.1, 0.05, 0.2, 0.45),
    "spread": (0.12, 0.35),
    "filled": (-0.4, -0.1, 0.1, 0.3),
    "starting": (0.01, 0.3),
    "error": (-0.1, 0.1),
    "sine": (0.0,),
    "cosine": (0.0,),
}
"""Bounds between the cells of each feature; time of day has four quarters."""
SHAPE = tuple(len(EDGES[name]) + 1 for name in FEATURES)
CELLS = int(np.prod(SHAPE))


def cells(features: Floats) -> Choices:
    """[row] the cell of each situation [row, feature]."""
    places = [np.searchsorted(EDGES[name], features[:, i]) for i, name in enumerate(FEATURES)]
    return np.asarray(np.ravel_multi_index(tuple(places), SHAPE))


@dataclass(frozen=True, slots=True, eq=False)
class QTable:
    """The value of every action in every cell of a coarse state (Q-learning; Watkins 1989): `value[cell, action]`."""

    value: Floats
    tried: Floats
    """Number of trials of each action in each cell."""

    def choose(self, features: Floats) -> Choices:
        """The best action of those that were tried; nothing is changed where none was tried enough."""
        at = cells(features)
        known = np.where(self.tried[at] >= MIN_VISITS, self.value[at], -np.inf)
        return np.where(np.isfinite(known[:, STAY]), known.argmax(axis=1), STAY)


MIN_VISITS = 30

DEPTH = 9
"""Depth of the deepest leaf."""


@dataclass(frozen=True, slots=True, eq=False)
class Forest:
    """Extremely randomised trees (Ernst, Geurts, Wehenkel 2005) side by side, [tree, node] each.

    Children, feature and threshold of a split, and the value of a leaf: a node with -1 as its left child.
    """

    left: NDArray[np.int32]
    right: NDArray[np.int32]
    feature: NDArray[np.int32]
    threshold: Floats
    value: Floats

    def action_values(self, features: Floats) -> Floats:
        """[row, action] mean over the trees."""
        inputs = np.concatenate([with_action(features, change) for change in CHANGES])
        return np.asarray(self._mean(inputs).reshape(len(CHANGES), len(features)).T)

    def choose(self, features: Floats) -> Choices:
        """Return the action with the largest mean value."""
        return np.asarray(self.action_values(features).argmax(axis=1))

    def _mean(self, inputs: Floats) -> Floats:
        """Return the values of inputs: all trees are descended together, a level at a time."""
        inputs = inputs.astype(np.float32)  # as the library splits
        tree, row = np.arange(len(self.left))[:, None], np.arange(len(inputs))
        node = np.zeros((len(self.left), len(inputs)), np.intp)
        for _ in range(DEPTH + 1):
            left = self.left[tree, node]
            split = inputs[row, np.maximum(self.feature[tree, node], 0)] <= self.threshold[tree, node]
            below = np.where(split, left, self.right[tree, node])
            node = np.where(left >= 0, below, node)
        return np.asarray(self.value[tree, node].sum(axis=0) / len(self.left))


def with_action(features: Floats, change: float | Floats) -> Floats:
    """Features [n, feature] with the change of an action beside them."""
    return np.column_stack([features, np.broadcast_to(change, len(features))])


LearnedKind = Literal["tabular", "fitted"]
LEARNED_KINDS: tuple[LearnedKind, ...] = ("tabular", "fitted")
WEIGHTS = Path(__file__).with_name("weights")


@dataclass(frozen=True, slots=True)
class LearnedPolicy:
    """Returns the best count by its table or forest; none without measured demand."""

    kind: LearnedKind
    chooser: QTable | Forest

    def counts(self, situation: Situation) -> Floats:
        """[row] pods to have; NaN for no opinion."""
        replicas = counts(np.maximum(situation.desired, 1.0), self.chooser.choose(features_of(situation)))
        return np.where(np.isnan(situation.measured), np.nan, replicas)


def load(kind: LearnedKind, folder: Path = WEIGHTS) -> LearnedPolicy:
    """Load a policy with the packaged weights, or those of a folder; arrays only, nothing is executed."""
    with np.load(folder / f"{kind}.npz", allow_pickle=False) as arrays:
        weights = {name: arrays[name] for name in arrays.files}
    if kind == "tabular":
        return LearnedPolicy(kind, QTable(weights["value"].astype(float), weights["tried"].astype(float)))
    trees = {name: weights[name].astype(np.int32) for name in ("left", "right", "feature")}
    return LearnedPolicy(kind, Forest(**trees, threshold=weights["threshold"], value=weights["value"]))


def shipped() -> dict[str, LearnedPolicy]:
    """Return every kind with the packaged weights."""
    return {kind: load(kind) for kind in LEARNED_KINDS}
