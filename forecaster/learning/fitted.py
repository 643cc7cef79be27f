"""Fitted Q iteration with extremely randomised trees (Ernst, Geurts, Wehenkel 2005), kept as plain arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from forecaster.learning.actions import CHANGES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from forecaster.learning.actions import Choices

    Floats = NDArray[np.float64]

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
