"""Published tables on disk."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from forecaster.domain.policies import Policies
from forecaster.domain.policy import Policy
from forecaster.publish.table_file import TableFile
from tests.support.decided_records import record_publisher
from tests.support.recommendations import NOON, recommendation

if TYPE_CHECKING:
    from pathlib import Path

    from forecaster.domain.decision import Recommendation
    from forecaster.publish.table_file import Gauges


def publish(
    path: Path,
    *rows: Recommendation,
    at: datetime = NOON,
    metrics: str = "",
    mode: str = "observe",
    gauges: Gauges = "none",
) -> Path:
    """One table with these rows, one workload if none is given; `mode` is that of all of them."""
    table = TableFile(path, interval=timedelta(minutes=1), version="1.2.3", gauges=gauges, metrics=lambda: metrics)
    policies = Policies(Policy.model_validate({"mode": mode}))
    record_publisher(table, policies).publish(at, rows or (recommendation(at=at),))
    return path
