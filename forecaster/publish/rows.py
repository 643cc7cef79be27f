"""Offers of single workloads: rows of the columns as values that readers understand, and back."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from forecaster.domain.published import own_metric
from forecaster.publish.offer import SOURCES, UNKNOWN, Numbers, Offers
from forecaster.publish.values import HOLD, MetricTarget, OfferedNumber, WorkloadOffer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forecaster.domain.decision import Recommendation
    from forecaster.domain.policy import Policy


def workload_offers(
    offers: Offers, recommendations: Sequence[Recommendation], policies: Sequence[Policy]
) -> list[WorkloadOffer | None]:
    """What is offered of each workload; None where its policy only observes."""
    demands = _cells(offers.demand, offers.signals, offers.quantile)
    replicas, floor = _cells(offers.replicas), _cells(offers.floor)
    columns = zip(
        recommendations,
        policies,
        offers.current.tolist(),
        offers.held.tolist(),
        offers.frozen.tolist(),
        offers.most.tolist(),
        offers.decides.T.tolist(),
        strict=True,
    )
    return [
        None
        if policy.mode == "observe"
        else WorkloadOffer(
            replicas_now=current,
            replicas_held=held,
            demands=tuple(number for number in (of_signal[row] for of_signal in demands) if number is not None),
            replicas=replicas[0][row],
            floor=floor[0][row],
            consumers=consumers(one),
            abstain=HOLD if frozen else policy.publish.abstain,
            last_for_seconds=policy.publish.last_for.total_seconds(),
            why="" if offers.replicas.known[row] else str(one.replicas.reason),
            signals=tuple(signal for signal, does in zip(offers.signals, decides, strict=True) if does),
            replicas_most=most,
        )
        for row, (one, policy, current, held, frozen, most, decides) in enumerate(columns)
    ]


def consumers(one: Recommendation) -> tuple[MetricTarget, ...]:
    """The targets of the HPA that read one of our metrics."""
    named = ((own_metric(target.metric), target) for target in one.targets)
    return tuple(
        MetricTarget(ours.metric, target.type.value, target.value, ours.signal) for ours, target in named if ours
    )


def _cells(
    numbers: Numbers, signals: Sequence[str] = ("",), quantile: np.ndarray[Any, Any] | None = None
) -> list[list[OfferedNumber | None]]:
    """[signal][row] of `numbers`, None where nothing was ever known."""
    quantiles = np.full_like(np.atleast_2d(numbers.value), np.nan) if quantile is None else quantile
    planes = (*(np.atleast_2d(column) for column in numbers), quantiles)
    found = []
    for signal, columns in zip(signals, zip(*planes, strict=True), strict=True):
        cells = zip(*(column.tolist() for column in columns), strict=True)
        found.append([_number(signal, *cell) for cell in cells])
    return found


def _number(signal: str, *cell: Any) -> OfferedNumber | None:
    value, at, source, known, quantile = cell
    if value != value:  # noqa: PLR0124  NaN
        return None
    q = None if quantile != quantile else quantile  # noqa: PLR0124  NaN
    return OfferedNumber(value, datetime.fromtimestamp(at, UTC), SOURCES[source], known, signal, q)


def offers_of(rows: Sequence[WorkloadOffer | None]) -> Offers:
    """The columns of what was offered before, e.g. by the process before this one; None is a new row."""
    named = (signal for one in rows if one for signal in (*one.signals, *(number.signal for number in one.demands)))
    empty = _nothing(tuple(dict.fromkeys(named)), len(rows))
    for row, one in enumerate(rows):
        if one is not None:
            _fill(empty, row, one)
    return empty


def _nothing(signals: tuple[str, ...], rows: int) -> Offers:
    shape = (len(signals), rows)
    return Offers(
        signals=signals,
        current=np.zeros(rows, np.int64),
        held=np.full(rows, UNKNOWN, np.int64),
        frozen=np.zeros(rows, np.bool_),
        demand=_unknown(shape),
        quantile=np.full(shape, np.nan),
        decides=np.zeros(shape, np.bool_),
        replicas=_unknown((rows,)),
        floor=_unknown((rows,)),
        most=np.zeros(rows, np.int64),
    )


def _unknown(shape: tuple[int, ...]) -> Numbers:
    return Numbers(np.full(shape, np.nan), np.zeros(shape), np.zeros(shape, np.int8), np.zeros(shape, np.bool_))


def _fill(offers: Offers, row: int, one: WorkloadOffer) -> None:
    """Put one workload's numbers into the columns."""
    offers.current[row], offers.held[row], offers.most[row] = one.replicas_now, one.replicas_held, one.replicas_most
    for column, number in ((offers.replicas, one.replicas), (offers.floor, one.floor)):
        if number is not None:
            _put(column, row, number)
    for number in one.demands:
        place = (offers.signals.index(number.signal), row)
        _put(offers.demand, place, number)
        offers.quantile[place] = np.nan if number.quantile is None else number.quantile
    for signal in one.signals:
        offers.decides[offers.signals.index(signal), row] = True


def _put(numbers: Numbers, place: int | tuple[int, int], number: OfferedNumber) -> None:
    numbers.value[place], numbers.at[place] = number.value, number.at.timestamp()
    numbers.source[place], numbers.known[place] = SOURCES.index(number.source), number.known
