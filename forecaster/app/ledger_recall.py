"""What the ledger remembers, told to the chronicle of the published table: so that a restart loses nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forecaster.publish.decision_history import (
    CHANGES_KEPT,
    HALF_LIFE,
    DecisionChange,
    DecisionHistory,
    PastScores,
    ScoreSums,
)

if TYPE_CHECKING:
    from datetime import datetime

    from forecaster.domain.workload import WorkloadId
    from forecaster.store.ledger import SqlLedger
    from forecaster.store.past import FadedScores, PastDecision

SIZES_BETWEEN = 2
"""The ledger has changes of sizes, too: so many rows are read for each change of the count. At a start with 10,000
workloads sixteen rows each take a second and a half."""


def recalled(ledger: SqlLedger, now: datetime) -> DecisionHistory:
    """A chronicle that goes on where the process before this one stopped.

    Raises:
        StoreError: the database cannot be read.
    """
    found = ledger.recalled(now, changes=CHANGES_KEPT * SIZES_BETWEEN, half_life=HALF_LIFE)
    chronicle = DecisionHistory()
    chronicle.recall(now, map(_change, found.decisions), map(_past, found.scores))
    return chronicle


def _change(one: PastDecision) -> tuple[WorkloadId, DecisionChange]:
    return one.id, DecisionChange(one.at, one.replicas, one.verdict, one.reason, one.message)


def _past(one: FadedScores) -> PastScores:
    return PastScores(one.id, one.signal, ScoreSums(*one[2:]))
