"""What leaves the process in one cycle: offers and numbers as named columns, single workloads made when asked for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from forecaster.publish.decided import decided_columns, decided_signals, workload_ids
from forecaster.publish.offer import Numbers, Offers, offered
from forecaster.publish.record import SOURCE_CODES, workload_offer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from numpy.typing import NDArray

    from forecaster.domain.decision import Recommendation
    from forecaster.domain.policy import Policy
    from forecaster.domain.workload import WorkloadId
    from forecaster.publish.offer import DecidedColumns
    from forecaster.publish.values import OfferedNumber, WorkloadOffer


@dataclass(frozen=True)
class OfferedCycle:
    """One cycle as it leaves the process."""

    at: datetime
    ids: tuple[WorkloadId, ...]
    recommendations: Sequence[Recommendation]
    decided: DecidedColumns
    offers: Offers

    @cached_property
    def rows(self) -> Mapping[WorkloadId, int]:
        """The row of each workload."""
        return {id_: row for row, id_ in enumerate(self.ids)}

    @cached_property
    def columns(self) -> Mapping[str, NDArray[Any]]:
        """Return the columns by their names in the table, [plane, row]."""
        return self.decided.planes(published=True) | self.offers.planes(published=True)

    def offer(self, row: int, readers: bytes = b"") -> WorkloadOffer | None:
        """What is offered of one workload; None where its policy only observes."""
        columns: Mapping[str, Any] = self.columns
        return workload_offer(columns, self.decided.signals, row, readers)


def offered_cycle(
    at: datetime,
    recommendations: Sequence[Recommendation],
    policies: Sequence[Policy],
    before: Offers | None = None,
) -> OfferedCycle:
    """The offers of a cycle. `before` has the same rows; where knowledge ends, its numbers stay."""
    known = () if before is None else before.signals
    signals = tuple(dict.fromkeys((*known, *decided_signals(recommendations))))
    decided = decided_columns(at, recommendations, policies, signals)
    offers = offered(decided, None if before is None else before.covering(signals))
    return OfferedCycle(at, workload_ids(recommendations), recommendations, decided, offers)


def offers_of(rows: Sequence[WorkloadOffer | None]) -> Offers:
    """The columns of what was offered before, e.g. by the process before this one; None is a new row."""
    named = (signal for one in rows if one for signal in (*one.signals, *(number.signal for number in one.demands)))
    empty = Offers.new(len(rows), dict.fromkeys(named))
    for row, one in enumerate(rows):
        if one is not None:
            _fill(empty, row, one)
    return empty


def _fill(offers: Offers, row: int, one: WorkloadOffer) -> None:
    """Put one workload's numbers into the columns."""
    offers.held[row], offers.most[row] = one.replicas_held, one.replicas_most
    for column, number in ((offers.replicas, one.replicas), (offers.floor, one.floor)):
        if number is not None:
            _put(column, row, number)
    for number in one.demands:
        place = (offers.signals.index(number.signal), row)
        _put(offers.demand, place, number)
        offers.demand_quantile[place] = np.nan if number.quantile is None else number.quantile
    for signal in one.signals:
        offers.decides[offers.signals.index(signal), row] = True


def _put(numbers: Numbers, place: int | tuple[int, int], number: OfferedNumber) -> None:
    numbers.value[place], numbers.at[place] = number.value, number.at.timestamp()
    numbers.source[place], numbers.known[place] = SOURCE_CODES.index(number.source), number.known
