"""Paths: the coming hour of every workload step by step, for people and other programs; no decision looks at it.

Some shards in every cycle, in turn: that costs a tenth of asking all of them, and an hour ahead keeps for ten minutes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from forecaster.domain.outlook import StepForecast

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from numpy.typing import NDArray

    from forecaster.domain.signal import Signal
    from forecaster.domain.workload import WorkloadId
    from forecaster.forecasting.shards import Shard
    from models import Forecast

STEPS = 12
"""Steps of five minutes."""
PATH_LEVELS = (0.1, 0.5, 0.9, 0.95)
PATH_ROUNDS = 10
"""After so many cycles at the latest a workload has a new one."""
PATH_DIGITS = 4
"""Significant ones that are kept: the table has some fifty of these numbers a workload."""


@dataclass(slots=True)
class Paths:
    """The newest path of every workload and signal."""

    kept: dict[WorkloadId, dict[Signal, StepForecast]] = field(default_factory=dict)
    """The inner ones are replaced as a whole when a path is."""
    _turns: dict[Signal, int] = field(default_factory=dict)

    def due(self, signal: Signal, shards: Sequence[Shard]) -> list[Shard]:
        """The shards that are due in this cycle."""
        turn = self._turns[signal] = self._turns.get(signal, -1) + 1
        rounds = max(1, min(PATH_ROUNDS, len(shards)))
        return [shard for i, shard in enumerate(shards) if (i + turn) % rounds == 0]

    def take(self, signal: Signal, said: Iterable[tuple[Shard, Forecast]], *, begin: datetime, now: datetime) -> None:
        """Keep what was said of the steps from `begin` on."""
        for shard, forecast in said:
            for id_, path in _paths(shard, forecast, begin, now):
                self.kept[id_] = {**self.kept.get(id_, {}), signal: path}

    def forget(self, signal: Signal, shards: Sequence[Shard]) -> None:
        """Drop the paths of workloads that are forecast no more."""
        here = {id_ for shard in shards for id_ in shard.ids}
        for id_ in [id_ for id_, paths in self.kept.items() if signal in paths and id_ not in here]:
            rest = {other: path for other, path in self.kept.pop(id_).items() if other is not signal}
            if rest:
                self.kept[id_] = rest


def _paths(
    shard: Shard, forecast: Forecast, begin: datetime, now: datetime
) -> Iterator[tuple[WorkloadId, StepForecast]]:
    said, step = forecast.provenance, forecast.step
    values = _rounded(forecast.values.transpose(0, 2, 1)).tolist()
    for id_, row in zip(shard.ids, said.rows(shard.keys).tolist(), strict=True):
        if row >= 0:
            yield id_, StepForecast(now, begin, step, forecast.levels, tuple(map(tuple, values[row])), said.models[row])


def _rounded(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Round to so many significant digits."""
    whole = np.floor(np.log10(np.maximum(values, 1e-12)))
    scale = 10.0 ** (PATH_DIGITS - 1 - whole)
    rounded: NDArray[np.float64] = np.round(values * scale) / scale
    return rounded
