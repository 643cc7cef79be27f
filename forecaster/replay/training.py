"""An advisor that tries things, and remembers what came of them: how the replay becomes a school."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from forecaster.decisions.targets import stated_pod
from forecaster.horizontal.learned import CHANGES, STAY, Forest, Lessons, Table, cells, counts, features_of, fit, learn
from forecaster.replay.fast.run import play_all
from forecaster.replay.lane import Lane

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from forecaster.horizontal.learned import Choices
    from forecaster.replay.advice import Situation

    Floats = NDArray[np.float64]
    from collections.abc import Sequence

    from forecaster.replay.sight import Sight


DISCOUNT = 0.93
"""Of what comes a minute later: half of it counts ten minutes ahead, five start-ups of two minutes."""
PERSIST = 3
"""Minutes for which a lane goes on with what it tries: one minute of a count is lost in the stabilization window."""


@dataclass(frozen=True, slots=True)
class Reward:
    """What a minute was worth, in pods and to a scale of its lane: the price of shortage, pods, and churn.

    `share` is the demand that is at the HPA's target in demands that fill a pod.
    """

    share: Floats
    scale: Floats
    missing: float = 9.0
    change: float = 0.3

    def of(self, before: Situation, after: Situation) -> Floats:
        """[lane] of the minute between two situations; NaN where nothing was measured."""
        short = np.maximum(0.0, after.measured * self.share - before.ready)
        moved = np.abs(after.asked - before.asked)
        return -(after.asked + self.missing * short + self.change * moved) / self.scale


@dataclass(slots=True)
class Explorer:
    """Chooses what the table says, and with chance `curiosity` anything; every minute is a lesson.

    All lanes of a replay walk in one batch, so that each call is the minute after the last one.
    """

    table: Table
    reward: Reward
    rng: np.random.Generator
    curiosity: float
    keep: bool = False
    """Whether lessons are kept for fitting."""
    kept: list[Lessons] = field(default_factory=list)
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
        wanted = counts(np.maximum(situation.asked, 1.0), taken)
        return np.where(np.isnan(situation.measured), np.nan, wanted)

    def _learn(self, after: Situation, features: Floats) -> None:
        if self._before is None or self._features is None or self._taken is None:
            return
        reward = self.reward.of(self._before, after)
        known = ~np.isnan(reward)
        lesson = Lessons(self._features[known], self._taken[known], reward[known], features[known])
        learn(self.table, cells(lesson.before), lesson.taken, lesson.reward, cells(lesson.after), DISCOUNT)
        if self.keep:
            self.kept.append(lesson)

    def _choice(self, features: Floats) -> Choices:
        lanes = len(features)
        best = self.table.choose(features)
        if self._left is None or self._taken is None:
            self._left, self._taken = np.zeros(lanes, np.int64), np.full(lanes, STAY)
        curious = (self.rng.random(lanes) < self.curiosity) & (self._left == 0)
        tried = np.where(curious, self.rng.integers(0, len(CHANGES), lanes), best)
        self._left = np.where(curious, self.rng.integers(0, PERSIST, lanes), np.maximum(self._left - 1, 0))
        return tried


def lessons_of(explorer: Explorer, most: int, rng: np.random.Generator) -> Lessons:
    """Some of the lessons kept, drawn evenly."""
    parts = [np.concatenate(column) for column in zip(*explorer.kept, strict=True)]
    chosen = rng.permutation(len(parts[1]))[:most]
    return Lessons(parts[0][chosen], parts[1][chosen], parts[2][chosen], parts[3][chosen])


# School: the replay of days under an exploring policy, as often as it takes; the same for the same seed.


EPOCHS = 8
CURIOUS, SETTLED = 0.6, 0.05
"""How often something else is tried, in the first epoch and in the last."""
MOST = 120_000
"""Lessons that the forest is fitted on."""


class Learned(NamedTuple):
    """What came of it."""

    table: Table
    forest: Forest


def train(lanes: Sequence[Lane], sight: Sight, *, seed: int, price: float = 9.0, epochs: int = EPOCHS) -> Learned:
    """Learn both policies on these lanes, which have one kind of target, a policy and a foresight each.

    `price` is that of a missing pod in prices of an idle one.
    """
    rng, table, reward = np.random.default_rng(seed), Table.empty(), reward_of(lanes, sight, price)
    explorer = Explorer(table, reward, rng, CURIOUS)
    for epoch in range(epochs):
        share = epoch / max(1, epochs - 1)
        curiosity = CURIOUS * (1 - share) + SETTLED * share
        explorer = Explorer(table, reward, rng, curiosity, keep=epoch % 2 == 1, kept=explorer.kept)
        play_all([advised(lane, explorer) for lane in lanes], sight)
    return Learned(table, fit(lessons_of(explorer, MOST, rng), DISCOUNT, seed))


def reward_of(lanes: Sequence[Lane], sight: Sight, price: float) -> Reward:
    """Each lane to the scale of its usual demand."""
    share, scale = [], []
    for lane in lanes:
        pod = stated_pod(lane.setup.scaler.targets[0])
        share.append(pod / lane.setup.capacity.amount)
        demand = sight.seen(lane.setup.scaler.targets[0].signal, 0, sight.minutes)[:, lane.row]
        scale.append(max(1.0, float(np.nanmean(demand)) / pod))
    return Reward(np.array(share), np.array(scale), price)


def advised(lane: Lane, explorer: Explorer) -> Lane:
    """The lane with somebody who explores."""
    return Lane(lane.row, lane.workload, lane.setup, lane.replicas, lane.policy, lane.foresight, advisor=explorer)
