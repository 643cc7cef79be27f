"""Decisions as the ledger kept them."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from forecaster.app.serve import database_address
from forecaster.replay.realised import DecidedCount
from forecaster.store.ledger import SqlLedger

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from forecaster.config.settings import StateSettings
    from forecaster.domain.workload import WorkloadId

BEFORE = timedelta(days=30)
"""A count that has not changed for long was decided long ago."""


def decisions_of(
    settings: StateSettings, workloads: Iterable[WorkloadId], begin: datetime
) -> dict[WorkloadId, list[DecidedCount]]:
    """Every change of a decision since `begin`, and the one that was in force then.

    Raises:
        StoreError: the database cannot be read.
    """
    ledger = SqlLedger(database_address(settings), keep=settings.keep)
    try:
        kept = {id_: ledger.decisions_of(id_, begin - BEFORE) for id_ in workloads}
    finally:
        ledger.close()
    return {id_: [DecidedCount(one.at, one.decided.replicas) for one in some] for id_, some in kept.items()}
