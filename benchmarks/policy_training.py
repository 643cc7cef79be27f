"""Training of learned policies: replays under a policy that tries things, over and over; the same for the same seed.

A table learns by Q-learning with every minute (Watkins 1989), a forest of extremely randomised trees by fitted Q
iteration over the minutes that were kept (Ernst, Geurts, Wehenkel 2005).
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from forecaster.horizontal.targets import stated_pod
from forecaster.replay.engine import replay_runs
from forecaster.replay.learned import (
    CELLS,
    CHANGES,
    DEPTH,
    STAY,
    Forest,
    QTable,
    cells,
    counts,
    features_of,
    with_action,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from forecaster.horizontal.columns import Floats
    from forecaster.replay.account import Run
    from forecaster.replay.learned import Choices, LearnedKind, Situation
    from forecaster.replay.traces import Measurements

EPOCHS = 8
CURIOUS, SETTLED = 0.6, 0.05
"""Chance of a random try, in the first epoch and in the last."""
MAX_SAMPLES = 120_000
"""Lessons that the forest is fitted on."""
DISCOUNT = 0.93
"""Discount a minute: half of the reward counts ten minutes ahead, five start-ups of two minutes."""
PERSIST = 3
"""Minutes for which a row goes on with what it tries: one minute of a count is lost in the stabilization window."""
TREES, LEAF, ITERATIONS = 12, 60, 12


UNTRIED = -20.0
"""Worse than holding twice the usual pods forever, so that nothing looks good because it was hardly tried."""


def empty_table() -> QTable:
    """The table before the first lesson."""
    return QTable(np.full((CELLS, len(CHANGES)), UNTRIED), np.zeros((CELLS, len(CHANGES))))


def save(kind: LearnedKind, chooser: QTable | Forest, folder: Path) -> None:
    """Save the weights as plain arrays, those of a table in single precision."""
    folder.mkdir(parents=True, exist_ok=True)
    arrays = {array_field.name: getattr(chooser, array_field.name) for array_field in fields(chooser)}
    if kind == "tabular":
        arrays = {name: values.astype(np.float32) for name, values in arrays.items()}
    np.savez_compressed(folder / f"{kind}.npz", allow_pickle=False, **arrays)


class Learned(NamedTuple):
    """The two learned policies."""

    table: QTable
    forest: Forest


def train(
    runs: Sequence[Run], measurements: Measurements, *, seed: int, price: float = 9.0, epochs: int = EPOCHS
) -> Learned:
    """Learn both policies on these runs, which have one kind of target, a policy and forecasts each.

    `price` is that of a missing pod in prices of an idle one.
    """
    rng, table, reward = np.random.default_rng(seed), empty_table(), reward_of(runs, measurements, price)
    explorer = Explorer(table, reward, rng, CURIOUS)
    for epoch in range(epochs):
        share = epoch / max(1, epochs - 1)
        curiosity = CURIOUS * (1 - share) + SETTLED * share
        explorer = Explorer(table, reward, rng, curiosity, keep=epoch % 2 == 1, lessons=explorer.lessons)
        replay_runs([replace(run, advisor=explorer) for run in runs], measurements)
    return Learned(table, fit(lessons_of(explorer, MAX_SAMPLES, rng), DISCOUNT, seed))


def reward_of(runs: Sequence[Run], measurements: Measurements, price: float) -> Reward:
    """Each run to the scale of its usual demand."""
    share, scale = [], []
    for run in runs:
        target = run.setup.targets[0]
        pod = stated_pod(target)
        share.append(pod / run.setup.capacity.amount)
        demand = measurements.of(target.signal, 0, run.series)
        scale.append(max(1.0, float(np.nanmean(demand)) / pod))
    return Reward(np.array(share), np.array(scale), price)


class Lessons(NamedTuple):
    """Transitions [n]: features [n, feature] before and after, the action taken, and the reward."""

    before: Floats
    taken: Choices
    reward: Floats
    after: Floats


@dataclass(frozen=True, slots=True)
class Reward:
    """The reward of a minute, in pods and to the scale of its row: minus the price of shortage, pods, and churn.

    `share` is the demand that is at the HPA's target in demands that fill a pod.
    """

    share: Floats
    scale: Floats
    missing: float = 9.0
    change: float = 0.3

    def of(self, before: Situation, after: Situation) -> Floats:
        """[row] of the minute between two situations; NaN where nothing was measured."""
        short = np.maximum(0.0, after.measured * self.share - before.ready)
        moved = np.abs(after.desired - before.desired)
        return -(after.desired + self.missing * short + self.change * moved) / self.scale


@dataclass(slots=True)
class Explorer:
    """Chooses by the table, and with chance `curiosity` at random; every minute is a lesson.

    All runs are rows of one replay, so that each call is the minute after the last one.
    """

    table: QTable
    reward: Reward
    rng: np.random.Generator
    curiosity: float
    keep: bool = False
    """Whether lessons are kept for fitting."""
    lessons: list[Lessons] = field(default_factory=list)
    _before: Situation | None = None
    _features: Floats | None = None
    _taken: Choices | None = None
    _left: NDArray[np.int64] | None = None

    def counts(self, situation: Situation) -> Floats:
        """The next try."""
        features = features_of(situation)
        self._learn(situation, features)
        taken = self._choice(features)
        self._before, self._features, self._taken = situation, features, taken
        chosen_counts = counts(np.maximum(situation.desired, 1.0), taken)
        return np.where(np.isnan(situation.measured), np.nan, chosen_counts)

    def _learn(self, after: Situation, features: Floats) -> None:
        if self._before is None or self._features is None or self._taken is None:
            return
        reward = self.reward.of(self._before, after)
        known = ~np.isnan(reward)
        lesson = Lessons(self._features[known], self._taken[known], reward[known], features[known])
        learn(self.table, cells(lesson.before), lesson.taken, lesson.reward, cells(lesson.after), DISCOUNT)
        if self.keep:
            self.lessons.append(lesson)

    def _choice(self, features: Floats) -> Choices:
        rows = len(features)
        best = self.table.choose(features)
        if self._left is None or self._taken is None:
            self._left, self._taken = np.zeros(rows, np.int64), np.full(rows, STAY)
        curious = (self.rng.random(rows) < self.curiosity) & (self._left == 0)
        tried = np.where(curious, self.rng.integers(0, len(CHANGES), rows), best)
        self._left = np.where(curious, self.rng.integers(0, PERSIST, rows), np.maximum(self._left - 1, 0))
        return tried


def lessons_of(explorer: Explorer, most: int, rng: np.random.Generator) -> Lessons:
    """Some of the lessons kept, drawn evenly."""
    parts = [np.concatenate(column) for column in zip(*explorer.lessons, strict=True)]
    chosen = rng.permutation(len(parts[1]))[:most]
    return Lessons(parts[0][chosen], parts[1][chosen], parts[2][chosen], parts[3][chosen])


def learn(table: QTable, at: Choices, taken: Choices, reward: Floats, then: Choices, discount: float) -> None:
    """One step of all rows, in place: each cell moves towards what followed, less and less.

    Actions that were hardly tried in the next cell do not count there, unless none was.
    """
    known = np.where(table.tried[then] > 0, table.value[then], -np.inf).max(axis=1)
    target = reward + discount * np.where(np.isfinite(known), known, table.value[then].max(axis=1))
    np.add.at(table.tried, (at, taken), 1.0)
    rate = 1.0 / np.maximum(table.tried[at, taken], 1.0) ** 0.7
    np.add.at(table.value, (at, taken), rate * (target - table.value[at, taken]))


def fit(lessons: Lessons, discount: float, seed: int) -> Forest:
    """Fitted Q iteration: the value of an action is its reward and the discounted value of the best one after."""
    forest: Forest | None = None
    inputs = with_action(lessons.before, CHANGES[lessons.taken])
    for iteration in range(ITERATIONS):
        ahead = forest.action_values(lessons.after).max(axis=1) if forest else np.zeros(len(lessons.reward))
        forest = _fitted(inputs, lessons.reward + discount * ahead, seed + iteration)
    if forest is None:
        raise ValueError("no iteration, no forest")
    return forest


def _fitted(inputs: Floats, target: Floats, seed: int) -> Forest:
    from sklearn.ensemble import ExtraTreesRegressor  # noqa: PLC0415  learning only; deciding needs arrays alone

    learner = ExtraTreesRegressor(TREES, max_depth=DEPTH, min_samples_leaf=LEAF, random_state=seed, n_jobs=1)
    learner.fit(inputs, target)
    trees = [estimator.tree_ for estimator in learner.estimators_]
    nodes = max(tree.node_count for tree in trees)

    def padded(name: str, empty: float) -> Floats:
        rows = [np.asarray(getattr(tree, name), float).reshape(tree.node_count, -1)[:, 0] for tree in trees]
        return np.array([np.pad(row, (0, nodes - len(row)), constant_values=empty) for row in rows])

    left, right, feature = (
        padded(name, -1).astype(np.int32) for name in ("children_left", "children_right", "feature")
    )
    return Forest(left, right, feature, padded("threshold", 0.0), padded("value", 0.0))
