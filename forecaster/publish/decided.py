"""From what a cycle decides to the columns that offers are made of: the one place that knows how decisions come.

A cycle hands over a fleet: a sequence of recommendations with their numbers as columns already, and with records that
are made one by one when asked for. A plain list of recommendations (a source that is down, a test) is read row by row.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from forecaster.domain.decision import Scale
from forecaster.hpa.numbers import MAX_INT32
from forecaster.publish.numbers import STANDING, nothing_decided
from forecaster.publish.offer import DECIDED, HELD, NO_COUNT
from forecaster.publish.record import ABSTAIN, MODE_CODES, REASON_WORDS, recommended_count

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from numpy.typing import NDArray

    from forecaster.domain.decision import Hold, Recommendation, Resize, SignalView
    from forecaster.domain.policy import Policy
    from forecaster.domain.workload import Resources, Target, WorkloadId
    from forecaster.horizontal.row import RowWords
    from forecaster.publish.offer import Counts, DecidedColumns


class FleetTexts(Protocol):
    """The texts of one workload."""

    @property
    def words(self) -> RowWords:
        """Words of the count."""

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
    def numbers(self) -> DecidedColumns:
        """What offers, the table and records are made of."""


def workload_ids(decided: Sequence[Recommendation]) -> tuple[WorkloadId, ...]:
    """The workloads in the order of the rows."""
    return decided.ids if isinstance(decided, DecidedFleet) else tuple(one.id for one in decided)


def decided_signals(decided: Sequence[Recommendation]) -> tuple[str, ...]:
    """The signals that any count is decided by, in the order in which they are met."""
    if isinstance(decided, DecidedFleet):
        return decided.numbers.signals
    return tuple(dict.fromkeys(str(view.signal) for one in decided for view in one.signals if view.target))


def decided_columns(
    at: datetime, decided: Sequence[Recommendation], policies: Sequence[Policy], signals: tuple[str, ...] | None = None
) -> DecidedColumns:
    """The columns of what was decided; a policy that observes keeps the forecast from having its say.

    `signals` are those of the axis; by default the ones that any count is decided by.
    """
    signals = decided_signals(decided) if signals is None else signals
    numbers = decided.numbers if isinstance(decided, DecidedFleet) else _numbers_of_records(decided, signals)
    numbers, stated = numbers.with_signals(signals), _stated(policies)
    return replace(numbers, at=at.timestamp(), **stated | {"acting": numbers.acting & stated["published"]})


def _stated(policies: Sequence[Policy]) -> dict[str, NDArray[Any]]:
    """What the policies of the rows say."""
    rows = len(policies)
    different = {id(policy): policy for policy in policies}
    place = {key: number for number, key in enumerate(different)}
    which = np.fromiter((place[id(policy)] for policy in policies), np.intp, rows)

    def stated(values: Iterable[Any], dtype: Any) -> NDArray[Any]:
        return np.array([*values], dtype)[which] if rows else np.zeros(0, dtype)

    each = different.values()
    return {
        "mode": stated((MODE_CODES.index(policy.mode) for policy in each), np.int8),
        "published": stated((policy.mode != "observe" for policy in each), np.bool_),
        "abstain": stated((ABSTAIN.index(policy.publish.abstain) for policy in each), np.int8),
        "lowers": stated((policy.horizontal.scale_in_by_forecast for policy in each), np.bool_),
        "maximum": stated((policy.horizontal.max_replicas or MAX_INT32 for policy in each), np.int64),
        "last_for": stated((policy.publish.last_for.total_seconds() for policy in each), np.float64),
    }


def _numbers_of_records(decided: Sequence[Recommendation], signals: tuple[str, ...]) -> DecidedColumns:
    """The numbers of single recommendations, without those that only their records are made of."""
    numbers = nothing_decided(len(decided), signals)
    for row, one in enumerate(decided):
        _put_record(numbers, row, one)
    return numbers


def _put_record(numbers: DecidedColumns, row: int, one: Recommendation) -> None:
    """Put one recommendation into the columns."""
    numbers.reason[row] = REASON_WORDS.index(str(one.replicas.reason))
    numbers.current[row] = one.replicas_now
    numbers.recommended[row] = recommended_count(one)
    numbers.acting[row] = not one.watched
    if isinstance(one.replicas, Scale):
        numbers.standing[row] = DECIDED
        by_measured = [view.reactive_replicas for view in one.signals if view.reactive_replicas is not None]
        first = one.clamps[0] if one.clamps else None
        numbers.reactive[row] = first.before if first else max(by_measured, default=NO_COUNT)
        numbers.joined[row] = _joined(one, one.replicas.replicas)
        numbers.count[row] = one.replicas.replicas if one.offered is None else one.offered
    else:
        numbers.standing[row] = STANDING.get(one.replicas.reason, HELD)
    for view in one.signals:
        if view.target and view.signal in numbers.signals:
            _put_view(numbers, (numbers.signals.index(view.signal), row), view, one.at)


def _joined(one: Recommendation, replicas: int) -> int:
    """The count before the clamps, of a workload that is to have `replicas`."""
    first = one.clamps[0] if one.clamps else None
    if first is None:
        return replicas
    return first.after if first.rule == "forecast" else first.before


def _put_view(numbers: DecidedColumns, cell: tuple[int, int], view: SignalView, at: datetime) -> None:
    """Put one signal of a recommendation into its cell [signal, row]."""
    ahead = view.forecast
    known: dict[str, float | None] = {
        "pod": view.pod,
        "measured": view.measured,
        "measured_at": None if view.measured_at is None else view.measured_at.timestamp(),
    }
    if ahead is not None:
        known |= {name: getattr(ahead, name) for name in ("peak", "low", "median", "high")}
        known["forecast_quantile"] = ahead.quantile
        numbers.lead[cell[1]] = (ahead.begin - at).total_seconds()
    for name, value in known.items():
        if value is not None:
            column = getattr(numbers, name)
            column[cell] = np.fmax(column[cell], value)
    if view.forecast_replicas is not None:
        numbers.replicas[cell] = max(view.forecast_replicas, int(numbers.replicas[cell]))
    numbers.decides[cell] = True
