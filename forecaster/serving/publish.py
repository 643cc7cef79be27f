"""FilePublisher: the computing process hands its table over through a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forecaster.serving.table import CycleSummary, Meta, write_table
from forecaster.serving.wire import recommendation_view

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime, timedelta
    from pathlib import Path

    from forecaster.domain.decision import Recommendation
    from forecaster.domain.report import CycleReport

FAILURES_SHOWN = 20
"""Failures of a cycle that go into the table; all of them are in its log."""


class FilePublisher:
    """`Publisher` into the file that the serving process watches.

    `metrics` and `last_report` are asked at every publication. The report of a cycle exists only when the cycle has
    ended, so a table carries the one before.
    """

    def __init__(
        self,
        path: Path,
        *,
        interval: timedelta,
        version: str,
        metrics: Callable[[], str] = str,
        last_report: Callable[[], CycleReport | None] = lambda: None,
    ) -> None:
        self.path = path
        self._interval = interval
        self._version = version
        self._metrics = metrics
        self._last_report = last_report

    def publish(self, at: datetime, recommendations: Sequence[Recommendation]) -> None:
        """Replace the published table as a whole.

        Raises:
            StoreError: the file cannot be written.
        """
        write_table(self.path, self._meta(at), [recommendation_view(each) for each in recommendations])

    def _meta(self, at: datetime) -> Meta:
        return Meta(
            published_at=at,
            interval_seconds=self._interval.total_seconds(),
            version=self._version,
            metrics=self._metrics(),
            cycle=_summary(self._last_report()),
        )


def _summary(report: CycleReport | None) -> CycleSummary | None:
    if report is None:
        return None
    return CycleSummary(at=report.at, seconds=report.seconds, failures=report.failures[:FAILURES_SHOWN])
