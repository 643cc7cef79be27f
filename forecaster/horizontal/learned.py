"""What a learned policy may do in a minute: a change of the count as a share of it, one pod at least."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

import numpy as np

from forecaster.replay.advice import DAY

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Choices = NDArray[np.intp]
    from collections.abc import Mapping

    from forecaster.replay.advice import Situation


CHANGES = np.array([-0.5, -0.2, 0.0, 0.15, 0.35, 0.75])
STAY = 2


def counts(asked: Floats, choices: Choices) -> Floats:
    """[lane] pods wanted."""
    change = CHANGES[choices]
    moved = np.sign(change) * np.maximum(1.0, np.round(np.abs(change) * asked))
    return np.maximum(asked + np.where(change == 0.0, 0.0, moved), 1.0)


# What a learned policy looks at: everything in ratios, so that one policy serves workloads of any size.


FEATURES = ("median", "upper", "spread", "filled", "starting", "error", "sine", "cosine")
LARGEST = 3.0
"""Logarithms of ratios beyond this (a factor of twenty) are all the same."""


def features_of(one: Situation) -> Floats:
    """[lane, feature], finite. A forecast that is not known is as if nothing changed."""
    asked = np.maximum(one.asked, 1.0)
    measured = np.nan_to_num(one.measured)
    median = np.where(np.isnan(one.median), measured, one.median)
    upper = np.maximum(np.where(np.isnan(one.upper), measured, one.upper), median)
    before = np.where(np.isnan(one.before), measured, one.before)
    angle = 2 * np.pi * one.minute_of_day / DAY
    columns = (
        _log_ratio(median, asked),
        _log_ratio(upper, asked),
        _log_ratio(upper, median),
        _log_ratio(measured, one.ready),
        1.0 - one.ready / asked,
        _log_ratio(measured, before),
        np.full(len(asked), np.sin(angle)),
        np.full(len(asked), np.cos(angle)),
    )
    features: Floats = np.clip(np.stack(columns, axis=1), -LARGEST, LARGEST)
    return features


def _log_ratio(above: Floats, below: Floats) -> Floats:
    """Of amounts in pods; a tenth of a pod is as good as none."""
    return np.asarray(np.log(np.maximum(above, 0.1) / np.maximum(below, 0.1)))


# Tabular Q-learning (Watkins 1989): the worth of every action in every cell of a coarse state.


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
"""Where a feature passes from one cell to the next; time of day has four quarters."""
SHAPE = tuple(len(EDGES[name]) + 1 for name in FEATURES)
CELLS = int(np.prod(SHAPE))


def cells(features: Floats) -> Choices:
    """[lane] the cell of each situation [lane, feature]."""
    places = [np.searchsorted(EDGES[name], features[:, i]) for i, name in enumerate(FEATURES)]
    return np.asarray(np.ravel_multi_index(tuple(places), SHAPE))


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """`worth[cell, action]`, and how often each was tried."""

    worth: Floats
    tried: Floats

    @classmethod
    def empty(cls) -> Table:
        """Before the first lesson."""
        return cls(np.full((CELLS, len(CHANGES)), UNTRIED), np.zeros((CELLS, len(CHANGES))))

    def choose(self, features: Floats) -> Choices:
        """The best action of those that were tried; nothing is changed where none was tried enough."""
        at = cells(features)
        known = np.where(self.tried[at] >= ENOUGH, self.worth[at], -np.inf)
        best = known.argmax(axis=1)
        return np.where(np.isfinite(known[:, STAY]), best, STAY)

    def arrays(self) -> dict[str, Floats]:
        """To be kept."""
        return {"worth": self.worth, "tried": self.tried}


ENOUGH = 30
UNTRIED = -20.0
"""Worse than holding twice the usual pods forever, so that nothing looks good because it was hardly tried."""


def learn(table: Table, at: Choices, taken: Choices, reward: Floats, then: Choices, discount: float) -> None:
    """One step of all lanes, in place: each cell moves towards what followed, less and less.

    Actions that were hardly tried in the next cell do not count there, unless none was.
    """
    known = np.where(table.tried[then] > 0, table.worth[then], -np.inf).max(axis=1)
    target = reward + discount * np.where(np.isfinite(known), known, table.worth[then].max(axis=1))
    np.add.at(table.tried, (at, taken), 1.0)
    rate = 1.0 / np.maximum(table.tried[at, taken], 1.0) ** 0.7
    np.add.at(table.worth, (at, taken), rate * (target - table.worth[at, taken]))


# Fitted Q iteration with extremely randomised trees (Ernst, Geurts, Wehenkel 2005), kept as plain arrays.


TREES, DEPTH, LEAF = 12, 9, 60
ITERATIONS = 12


class Lessons(NamedTuple):
    """Transitions: features [n, feature] before and after, the action taken, and the reward."""

    before: Floats
    taken: Choices
    reward: Floats
    after: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Forest:
    """Trees side by side: [tree, node] children, feature and threshold of a split, and the value of a leaf.

    A node whose left child is -1 is a leaf.
    """

    left: NDArray[np.int32]
    right: NDArray[np.int32]
    feature: NDArray[np.int32]
    threshold: Floats
    value: Floats

    def worth(self, features: Floats) -> Floats:
        """[lane, action] mean over the trees."""
        inputs = np.concatenate([_with_action(features, change) for change in CHANGES])
        return np.asarray(self._mean(inputs).reshape(len(CHANGES), len(features)).T)

    def choose(self, features: Floats) -> Choices:
        """The best action."""
        return np.asarray(self.worth(features).argmax(axis=1))

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """To be kept."""
        return {name: getattr(self, name) for name in ("left", "right", "feature", "threshold", "value")}

    def _mean(self, inputs: Floats) -> Floats:
        """[input] all trees go down together, a level at a time."""
        inputs = inputs.astype(np.float32)  # as the library splits
        tree, row = np.arange(len(self.left))[:, None], np.arange(len(inputs))
        node = np.zeros((len(self.left), len(inputs)), np.intp)
        for _ in range(DEPTH + 1):
            left = self.left[tree, node]
            split = inputs[row, np.maximum(self.feature[tree, node], 0)] <= self.threshold[tree, node]
            below = np.where(split, left, self.right[tree, node])
            node = np.where(left >= 0, below, node)
        return np.asarray(self.value[tree, node].sum(axis=0) / len(self.left))


def fit(lessons: Lessons, discount: float, seed: int) -> Forest:
    """Iterate: the worth of an action is its reward and the discounted worth of the best one after."""
    forest: Forest | None = None
    inputs = _with_action(lessons.before, CHANGES[lessons.taken])
    for iteration in range(ITERATIONS):
        ahead = forest.worth(lessons.after).max(axis=1) if forest else np.zeros(len(lessons.reward))
        forest = _fitted(inputs, lessons.reward + discount * ahead, seed + iteration)
    if forest is None:
        raise ValueError("no iteration, no forest")
    return forest


def _fitted(inputs: Floats, target: Floats, seed: int) -> Forest:
    from sklearn.ensemble import ExtraTreesRegressor  # noqa: PLC0415  learning only; deciding needs arrays alone

    learner = ExtraTreesRegressor(TREES, max_depth=DEPTH, min_samples_leaf=LEAF, random_state=seed, n_jobs=1)
    learner.fit(inputs, target)
    trees = [one.tree_ for one in learner.estimators_]
    nodes = max(tree.node_count for tree in trees)

    def padded(name: str, empty: float) -> Floats:
        rows = [np.asarray(getattr(tree, name), float).reshape(tree.node_count, -1)[:, 0] for tree in trees]
        return np.array([np.pad(row, (0, nodes - len(row)), constant_values=empty) for row in rows])

    left, right, feature = (
        padded(name, -1).astype(np.int32) for name in ("children_left", "children_right", "feature")
    )
    return Forest(left, right, feature, padded("threshold", 0.0), padded("value", 0.0))


def _with_action(features: Floats, change: float | Floats) -> Floats:
    return np.column_stack([features, np.broadcast_to(change, len(features))])


# Learned policies as advisors of the replay and of the service, and their weights.


Kind = Literal["tabular", "fitted"]
KINDS: tuple[Kind, ...] = ("tabular", "fitted")
WEIGHTS = Path(__file__).with_name("weights")


class Chooser(Protocol):
    """A table or a forest."""

    def choose(self, features: Floats) -> Choices:
        """[lane] the best action."""


@dataclass(frozen=True, slots=True)
class LearnedPolicy:
    """Says what its table or forest holds for best; nothing where demand is not measured."""

    kind: Kind
    chooser: Chooser

    def counts(self, situation: Situation) -> Floats:
        """[lane] pods to have; NaN for no opinion."""
        wanted = counts(np.maximum(situation.asked, 1.0), self.chooser.choose(features_of(situation)))
        return np.where(np.isnan(situation.measured), np.nan, wanted)


def load(kind: Kind, folder: Path = WEIGHTS) -> LearnedPolicy:
    """A policy with the weights that ship, or those of a folder; arrays only, nothing is executed."""
    with np.load(folder / f"{kind}.npz", allow_pickle=False) as arrays:
        found = {name: arrays[name] for name in arrays.files}
    if kind == "tabular":
        return LearnedPolicy(kind, Table(found["worth"].astype(float), found["tried"].astype(float)))
    trees = {name: found[name].astype(np.int32) for name in ("left", "right", "feature")}
    return LearnedPolicy(kind, Forest(**trees, threshold=found["threshold"], value=found["value"]))


def shipped() -> dict[str, LearnedPolicy]:
    """Every kind with the weights that ship."""
    return {kind: load(kind) for kind in KINDS}


def save(kind: Kind, chooser: Table | Forest, folder: Path = WEIGHTS) -> None:
    """Keep the weights, small: what was never tried is zero."""
    folder.mkdir(parents=True, exist_ok=True)
    arrays = {name: one.astype(np.float32) if kind == "tabular" else one for name, one in chooser.arrays().items()}
    np.savez_compressed(folder / f"{kind}.npz", allow_pickle=False, **arrays)
