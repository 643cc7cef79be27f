"""Published tables on disk."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from forecaster.serving.publish import FilePublisher
from tests.support.recommendations import NOON, recommendation

if TYPE_CHECKING:
    from pathlib import Path

    from forecaster.domain.decision import Recommendation


def publish(path: Path, *rows: Recommendation, at: datetime = NOON, metrics: str = "") -> Path:
    """One table with these rows, one workload if none is given."""
    publisher = FilePublisher(path, interval=timedelta(minutes=1), version="1.2.3", metrics=lambda: metrics)
    publisher.publish(at, rows or (recommendation(at=at),))
    return path
