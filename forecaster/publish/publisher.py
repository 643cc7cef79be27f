"""OfferPublisher: what a cycle decided becomes offers once, and every way out of the process gets the same ones."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Protocol

from forecaster.domain.workload import WorkloadId
from forecaster.errors import StoreError
from forecaster.horizontal.columns import rows_before
from forecaster.publish.decided import workload_ids
from forecaster.publish.reader import TableReader
from forecaster.publish.rows import offered_cycle, offers_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager
    from datetime import datetime
    from pathlib import Path

    from forecaster.domain.decision import Recommendation
    from forecaster.domain.policies import Policies
    from forecaster.publish.offer import Offers
    from forecaster.publish.rows import OfferedCycle
    from forecaster.publish.table_file import TableFile
    from forecaster.publish.values import WorkloadOffer


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

    def publish(self, at: datetime, recommendations: Sequence[Recommendation]) -> None:
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

    def _offered(self, at: datetime, recommendations: Sequence[Recommendation]) -> OfferedCycle:
        ids = workload_ids(recommendations)
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


def table_publisher(table: TableFile, policies: Policies) -> OfferPublisher:
    """Offers into one table, going on from those that lie in it."""
    return OfferPublisher(policies, {"table": table}, before=last_offers(table.path))


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
