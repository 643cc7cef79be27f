"""From what a cycle decides to the columns that offers are made of: the one place that knows how decisions come.

A cycle hands over a fleet: a sequence of recommendations whose numbers are there as columns already. A plain list of
recommendations (a source that is down, a test) is read row by row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from forecaster.domain.decision import Reason, Scale
from forecaster.horizontal.decisions import REASONS
from forecaster.horizontal.inputs import KNOWN as SAMPLED
from forecaster.publish.offer import BLOCKED, DECIDED, FROZEN, HELD, UNKNOWN, DecidedColumns

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from numpy.typing import NDArray

    from forecaster.domain.decision import Recommendation, SignalView
    from forecaster.domain.policy import Policy
    from forecaster.horizontal.decisions import Decisions
    from forecaster.publish.offer import Counts, Floats

STANDING = {Reason.NO_DATA: BLOCKED, Reason.STALE: BLOCKED, Reason.FROZEN: FROZEN}
"""How a count stands that is held for a reason; for all others it is `HELD`."""
UPPER = 0.95
"""Level of `DecidedColumns.upper`."""
FLOATS = ("pod", "measured", "measured_at", "peak", "upper", "quantile")
"""Columns [signal, row] that are NaN where unknown."""


@runtime_checkable
class DecidedFleet(Protocol):
    """Recommendations as columns: groups of rows with their positions."""

    @property
    def groups(self) -> Sequence[tuple[NDArray[np.intp], Decisions]]:
        """Every row that was decided is in one group; one that is held as it was is in none."""

    @property
    def current(self) -> Counts:
        """[row] the replicas that there are."""


def decided_signals(decided: Sequence[Recommendation]) -> tuple[str, ...]:
    """The signals that any count is decided by, in the order in which they are met."""
    if isinstance(decided, DecidedFleet):
        found: Iterable[str] = (signal for _, group in decided.groups for signal in group.inputs.rules.signals)
    else:
        found = (view.signal for one in decided for view in one.signals if view.target)
    return tuple(dict.fromkeys(map(str, found)))


def decided_columns(
    at: datetime, decided: Sequence[Recommendation], policies: Sequence[Policy], signals: tuple[str, ...] | None = None
) -> DecidedColumns:
    """The columns of what was decided; a policy that observes keeps the forecast from having its say.

    `signals` are those of the axis; by default the ones that any count is decided by.
    """
    signals = decided_signals(decided) if signals is None else signals
    columns = _nothing(at.timestamp(), signals, policies)
    if isinstance(decided, DecidedFleet):
        columns.current[:] = decided.current
        for positions, group in decided.groups:
            _put_group(columns, positions, group)
    else:
        for row, one in enumerate(decided):
            _put_record(columns, row, one)
    columns.acting[:] &= np.array([policy.mode != "observe" for policy in policies], np.bool_)
    return columns


def _nothing(at: float, signals: tuple[str, ...], policies: Sequence[Policy]) -> DecidedColumns:
    """Rows of which nothing is known yet."""
    rows = len(policies)
    return DecidedColumns(
        at=at,
        signals=signals,
        standing=np.full(rows, HELD, np.int8),
        acting=np.zeros(rows, np.bool_),
        lowers=np.array([policy.horizontal.scale_in_by_forecast for policy in policies], np.bool_),
        current=np.zeros(rows, np.int64),
        reactive=np.zeros(rows, np.int64),
        joined=np.zeros(rows, np.int64),
        count=np.zeros(rows, np.int64),
        **{name: np.full((len(signals), rows), np.nan) for name in FLOATS},
        replicas=np.full((len(signals), rows), UNKNOWN, np.int64),
        decides=np.zeros((len(signals), rows), np.bool_),
        last_for=np.array([policy.publish.last_for.total_seconds() for policy in policies], np.float64),
    )


def _put_group(columns: DecidedColumns, positions: NDArray[np.intp], group: Decisions) -> None:
    """Put one group of rows into the columns."""
    inputs = group.inputs
    standing = np.array([DECIDED if code < _HOLDS else STANDING.get(one, HELD) for code, one in enumerate(REASONS)])
    columns.standing[positions] = standing[group.reason]
    columns.current[positions] = inputs.current
    columns.acting[positions] = inputs.acting
    columns.reactive[positions] = group.reactive
    columns.joined[positions] = group.counts[0]
    columns.count[positions] = group.offered
    readable = group.failed == 0
    for target, kind in enumerate(inputs.rules.kinds):
        signal = columns.signals.index(kind.signal)
        goal = inputs.targets.goal[target] / 1000.0
        share = inputs.targets.goal[target] * (inputs.targets.request[target] / 1e5)
        sampled = group.unseen[target] == SAMPLED
        forecast = group.proposals.forecast[target]
        _merge(columns.pod, signal, positions, np.where(readable, share if kind.of_request else goal, np.nan))
        _merge(columns.measured, signal, positions, np.where(sampled & readable, inputs.measured[target], np.nan))
        _merge(columns.measured_at, signal, positions, np.where(sampled, group.now - inputs.age[target], np.nan))
        _merge(columns.peak, signal, positions, np.where(readable, inputs.peak[target], np.nan))
        _merge(columns.upper, signal, positions, _upper(group, target))
        _merge(columns.quantile, signal, positions, inputs.policy.quantile)
        known = np.where(forecast >= 0, forecast, UNKNOWN)
        columns.replicas[signal, positions] = np.maximum(columns.replicas[signal, positions], known)
        columns.decides[signal, positions] |= readable


_HOLDS = REASONS.index(Reason.NO_DATA)
"""Codes from here on hold the count."""


def _upper(group: Decisions, target: int) -> Floats:
    """The upper quantile of the coming peak [row]; NaN where the whole distribution is not known."""
    levels, inputs = group.inputs.rules.levels, group.inputs
    if UPPER not in levels or len(inputs.quantiles) <= target:
        return np.full(inputs.rows, np.nan)
    return np.asarray(inputs.quantiles[target][levels.index(UPPER)], np.float64)


def _merge(column: Floats, signal: int, positions: Counts | NDArray[np.intp], values: Floats) -> None:
    """Put values in; of two targets on one signal the larger counts: more demand, or a pod that carries more."""
    column[signal, positions] = np.fmax(column[signal, positions], values)


def _put_record(columns: DecidedColumns, row: int, one: Recommendation) -> None:
    """Put one recommendation into the columns."""
    columns.current[row] = one.replicas_now
    columns.acting[row] = not one.watched
    if isinstance(one.replicas, Scale):
        columns.standing[row] = DECIDED
        by_measured = [view.reactive_replicas for view in one.signals if view.reactive_replicas is not None]
        first = one.clamps[0] if one.clamps else None
        columns.reactive[row] = first.before if first else max(by_measured, default=UNKNOWN)
        columns.joined[row] = _joined(one, one.replicas.replicas)
        columns.count[row] = one.replicas.replicas if one.offered is None else one.offered
    else:
        columns.standing[row] = STANDING.get(one.replicas.reason, HELD)
    for view in one.signals:
        if view.signal in columns.signals:
            _put_view(columns, (columns.signals.index(view.signal), row), view)


def _joined(one: Recommendation, replicas: int) -> int:
    """The count before the clamps, of a workload that is to have `replicas`."""
    first = one.clamps[0] if one.clamps else None
    if first is None:
        return replicas
    return first.after if first.rule == "forecast" else first.before


def _put_view(columns: DecidedColumns, cell: tuple[int, int], view: SignalView) -> None:
    ahead = view.forecast
    known: dict[str, float | None] = {
        "pod": view.pod,
        "measured": view.measured,
        "measured_at": None if view.measured_at is None else view.measured_at.timestamp(),
        "peak": None if ahead is None else ahead.peak,
        "upper": None if ahead is None else ahead.high,
        "quantile": None if ahead is None else ahead.quantile,
    }
    for name, value in known.items():
        if value is not None:
            column = getattr(columns, name)
            column[cell] = np.fmax(column[cell], value)
    if view.forecast_replicas is not None:
        columns.replicas[cell] = max(view.forecast_replicas, int(columns.replicas[cell]))
    columns.decides[cell] = True
