"""OfferPublisher: what a cycle decided becomes offers once, and every way out of the process gets the same ones."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from forecaster.domain.workload import WorkloadId
from forecaster.errors import StoreError
from forecaster.horizontal.columns import rows_before
from forecaster.publish.decided import DecidedRows, decided_columns
from forecaster.publish.offer import DecidedColumns, Numbers, Offers, offered
from forecaster.publish.reader import TableReader
from forecaster.publish.record import SOURCE_CODES, workload_offer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime
    from pathlib import Path

    from numpy.typing import NDArray

    from forecaster.domain.policies import Policies
    from forecaster.domain.policy import Policy
    from forecaster.publish.values import OfferedNumber, WorkloadOffer


class OfferReceiver(Protocol):
    """A way out of the process."""

    def receive(self, cycle: OfferedCycle) -> None:
        """Carry it out. Raises StoreError."""


class OfferPublisher:
    """`Publisher` that makes offers and hands them to its receivers; one that fails keeps them from no other.

    `before` is what the process before this one offered: its numbers are the last ones known, if nothing is known now.
    """

    def __init__(
        self,
        policies: Policies,
        receivers: Mapping[str, OfferReceiver],
        *,
        before: Mapping[WorkloadId, WorkloadOffer | None] | None = None,
        counting: Callable[[str], AbstractContextManager[None]] = lambda _name: nullcontext(),
    ) -> None:
        self._policies = policies
        self._receivers = receivers
        self._counting = counting
        known = before or {}
        self._ids: tuple[WorkloadId, ...] = tuple(known)
        self._offers: Offers = offers_of([*known.values()])

    def publish(self, at: datetime, recommendations: DecidedRows) -> None:
        """Offer what was decided.

        Raises:
            StoreError: with what each receiver says that failed.
        """
        cycle = self._offered(at, recommendations)
        faults = []
        for name, receiver in self._receivers.items():
            try:
                with self._counting(name):
                    receiver.receive(cycle)
            except StoreError as error:
                faults.append(str(error))
            except Exception as error:  # noqa: BLE001  the boundary of a receiver: the others get the same offers
                faults.append(f"{name}: {type(error).__name__}: {error}")
        if faults:
            raise StoreError("; ".join(faults))

    def _offered(self, at: datetime, recommendations: DecidedRows) -> OfferedCycle:
        ids = recommendations.ids
        policies = [self._policies.of(id_) for id_ in ids]
        cycle = offered_cycle(at, recommendations, policies, self._before(ids))
        self._ids, self._offers = cycle.ids, cycle.offers
        return cycle

    def _before(self, ids: tuple[WorkloadId, ...]) -> Offers:
        """The last offers in the order of these workloads."""
        if ids == self._ids:
            return self._offers
        self._policies.forget_others(frozenset(ids))
        return self._offers.take(rows_before(self._ids, ids))


def last_offers(path: Path) -> dict[WorkloadId, WorkloadOffer | None]:
    """What the table at `path` offers, by workload; nothing where there is no good table."""
    reader = TableReader(path)
    reader.refresh()
    table = reader.table
    if table is None:
        return {}
    return {WorkloadId(one.namespace, one.kind, one.name): table.published(one) for one in table.entries}


def published_at(path: Path) -> datetime | None:
    """The evaluation time of the table at `path`; None where there is no good table."""
    reader = TableReader(path)
    reader.refresh()
    return reader.table.meta.published_at if reader.table else None


@dataclass(frozen=True)
class OfferedCycle:
    """One cycle as it leaves the process."""

    at: datetime
    ids: tuple[WorkloadId, ...]
    recommendations: DecidedRows
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
    at: datetime, decided: DecidedRows, policies: Sequence[Policy], before: Offers | None = None
) -> OfferedCycle:
    """The offers of a cycle. `before` has the same rows; where knowledge ends, its numbers stay."""
    known = () if before is None else before.signals
    signals = tuple(dict.fromkeys((*known, *decided.signals)))
    columns = decided_columns(at, decided, policies, signals)
    offers = offered(columns, None if before is None else before.covering(signals))
    return OfferedCycle(at, decided.ids, decided, columns, offers)


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
