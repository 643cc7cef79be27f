"""From what a cycle decides to the columns that offers are made of: the one place that knows how decisions come.

A cycle hands over a fleet: a sequence of recommendations whose numbers are there as columns already, and whose records
are made one by one when asked for. A plain list of recommendations (a source that is down, a test) is read row by row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from forecaster.domain.decision import Reason, Scale
from forecaster.horizontal.codes import INCOMPLETE, SCALED
from forecaster.horizontal.codes import KNOWN as SAMPLED
from forecaster.horizontal.codes import REASONS as DECIDED_REASONS
from forecaster.hpa.numbers import MAX_INT32
from forecaster.publish.offer import BLOCKED, DECIDED, FROZEN, HELD, NO_COUNT, DecidedColumns
from forecaster.publish.record import ABSTAIN, MODES, REASON_WORDS, recommended_count

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from numpy.typing import NDArray

    from forecaster.domain.decision import Hold, Recommendation, Resize, SignalView
    from forecaster.domain.policy import Policy
    from forecaster.domain.workload import Resources, Target, WorkloadId
    from forecaster.horizontal.decide import Decisions
    from forecaster.horizontal.row import RowWords
    from forecaster.publish.offer import Counts, Floats

STANDING = {Reason.NO_DATA: BLOCKED, Reason.STALE: BLOCKED, Reason.FROZEN: FROZEN}
"""How a count stands that is held for a reason; for all others it is `HELD`."""
LOW, MEDIAN, HIGH = 0.1, 0.5, 0.95
FLOATS = ("pod", "measured", "measured_at", "peak", "low", "median", "high", "quantile")
"""Columns [signal, row] that are NaN where unknown."""


class FleetTexts(Protocol):
    """The texts of one workload."""

    @property
    def words(self) -> RowWords:
        """Of its count."""

    @property
    def current(self) -> Resources:
        """The resources of a pod."""

    @property
    def resources(self) -> Resize | Hold:
        """What was decided about them."""

    @property
    def targets(self) -> Sequence[Target]:
        """What its HPA scales by."""


@runtime_checkable
class DecidedFleet(Protocol):
    """Recommendations as columns."""

    @property
    def ids(self) -> tuple[WorkloadId, ...]:
        """The workloads in the order of the rows."""

    @property
    def current(self) -> Counts:
        """[row] `spec.replicas`."""

    @property
    def replicas(self) -> Counts:
        """[row] the recommended count."""

    @property
    def reason(self) -> NDArray[np.int8]:
        """[row] a position in `horizontal.codes.REASONS`."""

    @property
    def worded(self) -> NDArray[np.uint64]:
        """[row] a number that changes when the texts of a row do, but for what was decided about its resources."""

    @property
    def sized(self) -> NDArray[np.int64]:
        """[row] a number that changes when what was decided about its resources does."""

    def texts(self, index: int) -> FleetTexts:
        """What is said of one workload beside its numbers, and what was decided about its resources."""

    def resources(self, index: int) -> Resize | Hold | None:
        """What was decided about the resources of one workload; None where that cannot be told."""

    def verdict(self, index: int) -> Scale | Hold:
        """What was decided about the count of one workload."""

    @property
    def groups(self) -> Sequence[tuple[NDArray[np.intp], Decisions]]:
        """Rows that were decided together, with their positions; a row of which nothing is known is in none."""


def workload_ids(decided: Sequence[Recommendation]) -> tuple[WorkloadId, ...]:
    """The workloads in the order of the rows."""
    return decided.ids if isinstance(decided, DecidedFleet) else tuple(one.id for one in decided)


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
        _put_fleet(columns, decided)
    else:
        for row, one in enumerate(decided):
            _put_record(columns, row, one)
    columns.acting[:] &= columns.published
    return columns


def _nothing(at: float, signals: tuple[str, ...], policies: Sequence[Policy]) -> DecidedColumns:
    """Rows of which nothing is known yet but their policies."""
    rows = len(policies)
    different = {id(policy): policy for policy in policies}
    place = {key: number for number, key in enumerate(different)}
    which = np.fromiter((place[id(policy)] for policy in policies), np.intp, rows)

    def stated(values: Iterable[Any], dtype: Any) -> NDArray[Any]:
        return np.array([*values], dtype)[which] if rows else np.zeros(0, dtype)

    each = different.values()
    return DecidedColumns(
        at=at,
        signals=signals,
        standing=np.full(rows, HELD, np.int8),
        reason=np.zeros(rows, np.int8),
        current=np.zeros(rows, np.int64),
        recommended=np.full(rows, NO_COUNT, np.int64),
        mode=stated((MODES.index(policy.mode) for policy in each), np.int8),
        published=stated((policy.mode != "observe" for policy in each), np.bool_),
        abstain=stated((ABSTAIN.index(policy.publish.abstain) for policy in each), np.int8),
        acting=np.zeros(rows, np.bool_),
        lowers=stated((policy.horizontal.scale_in_by_forecast for policy in each), np.bool_),
        maximum=stated((policy.horizontal.max_replicas or MAX_INT32 for policy in each), np.int64),
        reactive=np.zeros(rows, np.int64),
        joined=np.zeros(rows, np.int64),
        count=np.zeros(rows, np.int64),
        **{name: np.full((len(signals), rows), np.nan) for name in FLOATS},
        replicas=np.full((len(signals), rows), NO_COUNT, np.int64),
        decides=np.zeros((len(signals), rows), np.bool_),
        incomplete=np.zeros((len(signals), rows), np.bool_),
        lead=np.zeros(rows, np.float64),
        last_for=stated((policy.publish.last_for.total_seconds() for policy in each), np.float64),
    )


def _put_fleet(columns: DecidedColumns, fleet: DecidedFleet) -> None:
    """Put all rows of a fleet into the columns."""
    scales = np.array([reason in SCALED for reason in DECIDED_REASONS])[fleet.reason]
    standing = [DECIDED if reason in SCALED else STANDING.get(reason, HELD) for reason in DECIDED_REASONS]
    columns.standing[:] = np.array(standing)[fleet.reason]
    columns.reason[:] = np.array([REASON_WORDS.index(str(reason)) for reason in DECIDED_REASONS])[fleet.reason]
    columns.current[:] = fleet.current
    columns.recommended[:] = np.where(scales, fleet.replicas, NO_COUNT)
    for positions, group in fleet.groups:
        columns.acting[positions] = group.inputs.acting
        columns.reactive[positions] = group.reactive
        columns.joined[positions] = group.counts[0]
        columns.count[positions] = group.offered
        columns.lead[positions] = group.inputs.policy.lead_time
        for target in range(len(group.inputs.rules.kinds)):
            _put_target(columns, positions, group, target)


def _put_target(columns: DecidedColumns, positions: NDArray[np.intp], group: Decisions, target: int) -> None:
    """Put one target of a group into the columns of its signal.

    Of two targets on one signal the larger counts: more demand, or a pod that carries more.
    """
    inputs, kind, readable = group.inputs, group.inputs.rules.kinds[target], group.failed == 0
    signal, goal = columns.signals.index(kind.signal), group.inputs.targets.goal[target]
    pod = goal * (inputs.targets.request[target] / 1e5) if kind.of_request else goal / 1000.0
    incomplete = group.unseen[target] == INCOMPLETE
    sampled = incomplete | (group.unseen[target] == SAMPLED)
    foreseen = ~np.isnan(inputs.peak[target])
    numbers: dict[str, tuple[Floats, NDArray[np.bool_]]] = {
        "pod": (pod, readable),
        "measured": (inputs.measured[target], sampled),
        "measured_at": (group.now - inputs.age[target], sampled),
        "peak": (inputs.peak[target], foreseen),
        "low": (inputs.low[target], foreseen),
        "median": (_quantile(group, target, MEDIAN), foreseen),
        "high": (_quantile(group, target, HIGH), foreseen),
        "quantile": (inputs.policy.quantile, foreseen),
    }
    for name, (values, known) in numbers.items():
        column = getattr(columns, name)[signal]
        column[positions] = np.fmax(column[positions], np.where(known, values, np.nan))
    forecast = group.proposals.forecast[target]
    known = np.where(forecast >= 0, forecast, NO_COUNT)
    columns.replicas[signal, positions] = np.maximum(columns.replicas[signal, positions], known)
    columns.decides[signal, positions] |= readable
    columns.incomplete[signal, positions] |= incomplete


def _quantile(group: Decisions, target: int, level: float) -> Floats:
    """A quantile of the coming peak [row]; NaN where the whole distribution is not known."""
    levels, inputs = group.inputs.rules.levels, group.inputs
    if level not in levels or len(inputs.quantiles) <= target:
        return np.full(inputs.rows, np.nan)
    return np.asarray(inputs.quantiles[target][levels.index(level)], np.float64)


def _put_record(columns: DecidedColumns, row: int, one: Recommendation) -> None:
    """Put one recommendation into the columns."""
    columns.reason[row] = REASON_WORDS.index(str(one.replicas.reason))
    columns.current[row] = one.replicas_now
    columns.recommended[row] = recommended_count(one)
    columns.acting[row] = not one.watched
    if isinstance(one.replicas, Scale):
        columns.standing[row] = DECIDED
        by_measured = [view.reactive_replicas for view in one.signals if view.reactive_replicas is not None]
        first = one.clamps[0] if one.clamps else None
        columns.reactive[row] = first.before if first else max(by_measured, default=NO_COUNT)
        columns.joined[row] = _joined(one, one.replicas.replicas)
        columns.count[row] = one.replicas.replicas if one.offered is None else one.offered
    else:
        columns.standing[row] = STANDING.get(one.replicas.reason, HELD)
    for view in one.signals:
        if view.target and view.signal in columns.signals:
            _put_view(columns, (columns.signals.index(view.signal), row), view, one.at)


def _joined(one: Recommendation, replicas: int) -> int:
    """The count before the clamps, of a workload that is to have `replicas`."""
    first = one.clamps[0] if one.clamps else None
    if first is None:
        return replicas
    return first.after if first.rule == "forecast" else first.before


def _put_view(columns: DecidedColumns, cell: tuple[int, int], view: SignalView, at: datetime) -> None:
    ahead = view.forecast
    known: dict[str, float | None] = {
        "pod": view.pod,
        "measured": view.measured,
        "measured_at": None if view.measured_at is None else view.measured_at.timestamp(),
    }
    if ahead is not None:
        known |= {name: getattr(ahead, name) for name in ("peak", "low", "median", "high", "quantile")}
        columns.lead[cell[1]] = (ahead.begin - at).total_seconds()
    for name, value in known.items():
        if value is not None:
            column = getattr(columns, name)
            column[cell] = np.fmax(column[cell], value)
    if view.forecast_replicas is not None:
        columns.replicas[cell] = max(view.forecast_replicas, int(columns.replicas[cell]))
    columns.decides[cell] = True
