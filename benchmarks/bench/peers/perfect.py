"""Perfect foresight of ten minutes: a bound, not a policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from benchmarks.bench.replay import Replay

MINUTES = 10


def expected(replay: Replay, start_up: int) -> NDArray[np.float64]:  # noqa: ARG001  the same for every start-up
    """The largest demand [tick] of the coming ten minutes."""
    coming = np.concatenate([replay.demand, np.repeat(replay.demand[-1:], MINUTES)])
    return np.lib.stride_tricks.sliding_window_view(coming, MINUTES)[: len(replay.demand)].max(axis=1)
