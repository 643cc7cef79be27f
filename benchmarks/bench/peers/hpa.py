"""The HorizontalPodAutoscaler alone: it expects nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from benchmarks.bench.replay import Replay


def expected(replay: Replay, start_up: int) -> NDArray[np.float64]:  # noqa: ARG001  the same for every start-up
    """NaN [tick]."""
    return np.full(len(replay.demand), np.nan)
