"""One more question to the models that there are: nothing is fitted for it, and only few workloads are asked about."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from forecaster.forecasting.forecaster import steps_of
from forecaster.forecasting.peaks import LEVELS

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from numpy.typing import NDArray

    from forecaster.demand.fresh import Fresh
    from forecaster.domain.signal import Signal
    from forecaster.domain.workload import WorkloadId
    from forecaster.forecasting.forecaster import Forecaster, Span


def further_peaks(
    forecaster: Forecaster, signal: Signal, history: Fresh, span: Span, ids: Collection[WorkloadId], now: datetime
) -> dict[WorkloadId, NDArray[np.float64]]:
    """Quantiles at `LEVELS` of the largest demand in a span; workloads whose model is silent are absent.

    `history` has the rows of the last regular forecast of this cycle.
    """
    if signal not in forecaster.signals:
        return {}
    wanted, window = frozenset(ids), steps_of(span, history, now)
    shards = forecaster.signals[signal]
    found: dict[WorkloadId, NDArray[np.float64]] = {}
    for shard, said in zip(shards.shards, shards.peaks(history, {window: wanted}, now), strict=True):
        if (peak := said.get(window)) is None:
            continue
        rows = zip(shard.ids, peak.provenance.rows(shard.keys).tolist(), strict=True)
        found |= {id_: np.asarray(peak.values[row]) for id_, row in rows if row >= 0 and id_ in wanted}
    return found


def column_of(level: float) -> int:
    """Where a level is among `LEVELS`."""
    return LEVELS.index(level)
