"""OfferPublisher: decisions of a cycle become offers once, and every way out of the process gets the same ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from forecaster.domain.workload import WorkloadId
from forecaster.errors import StoreError
from forecaster.horizontal.columns import ROW, rows_before, schema
from forecaster.publish.decided import DecidedRows, decided_columns
from forecaster.publish.offer import DecidedColumns, Offers, offered
from forecaster.publish.reader import last_table
from forecaster.publish.record import workload_offer

if TYPE_CHECKING:
    from forecaster.domain.policies import Policies
    from forecaster.domain.policy import Policy
    from forecaster.publish.values import WorkloadOffer


class OfferReceiver(Protocol):
    """A way out of the process."""

    def receive(self, cycle: OfferedCycle) -> None:
        """Carry it out. Raises StoreError."""


class OfferPublisher:
    """`Publisher` that makes offers and passes them to its receivers; a failing receiver does not stop the others.

    `before` has the previous process's offers: their numbers are the last known ones until others are known.
    """

    def __init__(
        self,
        policies: Policies,
        receivers: Mapping[str, OfferReceiver],
        *,
        before: LastOffers | None = None,
        counting: Callable[[str], AbstractContextManager[None]] = lambda _name: nullcontext(),
    ) -> None:
        self._policies = policies
        self._receivers = receivers
        self._counting = counting
        self._last = before or LastOffers((), Offers.new(0))

    def publish(self, at: datetime, recommendations: DecidedRows) -> None:
        """Offer the decisions. Raises StoreError with the messages of the receivers that failed."""
        ids, faults = recommendations.ids, []
        policies = [self._policies.of(id_) for id_ in ids]
        cycle = offered_cycle(at, recommendations, policies, self._before(ids))
        self._last = LastOffers(ids, cycle.offers)
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

    def _before(self, ids: tuple[WorkloadId, ...]) -> Offers:
        """Return the last offers in the order of these workloads."""
        if ids == self._last.ids:
            return self._last.offers
        self._policies.forget_others(frozenset(ids))
        return self._last.offers.take(rows_before(self._last.ids, ids))


class LastOffers(NamedTuple):
    """The last offers, and the workload of each row."""

    ids: tuple[WorkloadId, ...]
    offers: Offers


def last_offers(path: Path) -> LastOffers:
    """Return the offers of the table at `path`; no row without a good table."""
    table = last_table(path)
    if table is None:
        return LastOffers((), Offers.new(0))
    arrays: dict[str, Any] = {"signals": np.array(table.signals, np.str_)}
    for name, declared in schema(Offers).items():
        shape = (table.rows,) if declared.axis == ROW else (len(table.signals), table.rows)
        arrays[name] = np.concatenate(table.columns[name]).reshape(shape)
    return LastOffers(tuple(WorkloadId(*entry.identity) for entry in table.entries), Offers.of_arrays(arrays))


def published_at(path: Path) -> datetime | None:
    """Return the evaluation time of the table at `path`; None where there is no good table."""
    table = last_table(path)
    return table.meta.published_at if table else None


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
        """Return the offer of one workload; None where its policy only observes."""
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
