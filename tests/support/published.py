"""Tables of workloads that publish, with good defaults."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from forecaster.domain.policies import Policies
from forecaster.domain.policy import Policy
from forecaster.publish.publisher import TablePublisher
from forecaster.serving.reader import TableReader
from tests.support.recommendations import NOON, recommendation

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from pathlib import Path

    from forecaster.domain.decision import Recommendation
    from forecaster.serving.reader import PublishedTable


def publisher(path: Path, *, paths: Callable[[], Any] = dict, **policy: Any) -> TablePublisher:
    """A publisher whose workloads are all in mode publish."""
    policies = Policies(Policy.model_validate({"mode": "publish", **policy}))
    return TablePublisher(path, interval=timedelta(minutes=1), version="1.2.3", policies=policies, paths=paths)


def served(path: Path, *rows: Recommendation, at: datetime = NOON, **policy: Any) -> TableReader:
    """A reader of one table with these rows, one workload if none is given."""
    publisher(path, **policy).publish(at, rows or (recommendation(at=at),))
    reader = TableReader(path)
    reader.refresh()
    return reader


def table_of(path: Path, *rows: Recommendation, **policy: Any) -> PublishedTable:
    """That table."""
    table = served(path, *rows, **policy).table
    assert table is not None
    return table
