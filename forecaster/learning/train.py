"""School: the replay of days under an exploring policy, as often as it takes; the same for the same seed."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from forecaster.decisions.targets import stated_pod
from forecaster.learning.explore import DISCOUNT, Explorer, Reward, lessons_of
from forecaster.learning.fitted import Forest, fit
from forecaster.learning.tabular import Table
from forecaster.replay.fast.run import play_all
from forecaster.replay.lane import Lane

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forecaster.replay.sight import Sight

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
