"""The facts of one workload, as the computing process sends them, in the form that a replay reads."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import numpy as np

from forecaster.domain.policy import Policy
from forecaster.domain.signal import Signal, Signals
from forecaster.domain.window import FIVE_MINUTES, MINUTE
from forecaster.horizontal.standing import Gate, GateForecaster, Standing
from forecaster.replay.traces import Traces
from forecaster.replay.what_if import WhatIfFacts

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from numpy.typing import NDArray

    from forecaster.cycle.workload_facts import KeptSeries, WorkloadFacts


def what_if_facts(told: WorkloadFacts) -> WhatIfFacts:
    """Return the facts in the form that a replay reads."""
    signals = Signals(tuple(Signal(name, **_tupled(properties)) for name, properties in told.signals))
    policy = Policy.model_validate(told.policy)
    horizontal = policy.horizontal.reading(signals).with_observed(None, told.filled)
    return WhatIfFacts(
        workload=told.workload,
        policy=policy.model_copy(update={"horizontal": horizontal}),
        traces=_traces(told, signals),
        model=told.model,
        start_ups=tuple(timedelta(seconds=one) for one in told.start_ups),
        gate=Gate(Standing(told.standing), GateForecaster(told.forecaster)),
    )


def _tupled(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {**properties, "metrics": tuple(properties["metrics"])}


def _traces(told: WorkloadFacts, signals: Signals) -> Traces:
    """Return the history by the minute up to the latest instant: five equal minutes where only a mean is stored."""
    known = {signals.by_name[name]: kept for name, kept in told.series.items() if name in signals.by_name}
    end = max(kept.minutes.end for kept in known.values())
    oldest = min(kept.weeks.end - kept.weeks.points().size * FIVE_MINUTES + MINUTE for kept in known.values())
    columns = (end - oldest) // MINUTE + 1
    values = {signal: _by_minute(kept, oldest, columns)[None] for signal, kept in known.items()}
    return Traces((told.workload,), oldest, values)


def _by_minute(kept: KeptSeries, start: datetime, columns: int) -> NDArray[np.float64]:
    found = np.full(columns, np.nan)
    five = np.repeat(kept.weeks.points(), FIVE_MINUTES // MINUTE)
    _put(found, five, (kept.weeks.end - start) // MINUTE)
    _put(found, kept.minutes.points(), (kept.minutes.end - start) // MINUTE)
    return found


def _put(into: NDArray[np.float64], points: NDArray[np.float64], last: int) -> None:
    """Put the known ones of these points so that their last one lies in column `last`."""
    first = last - points.size + 1
    points = points[max(-first, 0) :]
    there = into[max(first, 0) : last + 1]
    np.copyto(there, points, where=~np.isnan(points))
