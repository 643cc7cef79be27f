"""Hand the recommendations over and record them. What cannot be recorded is said; what can be handed over is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from forecaster.cycle.fleet_decisions import FleetDecisions
from forecaster.errors import StoreError
from forecaster.ports import Changes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from forecaster.domain.decision import Recommendation
    from forecaster.domain.report import ForecastScore
    from forecaster.ports import Ledger, Publisher


@dataclass(slots=True)
class Effects:
    """Where decisions go, and what was recorded last: records are made for what changed since then."""

    publisher: Publisher
    ledger: Ledger
    recorded: FleetDecisions | None = None

    def publish_and_record(self, recommendations: Sequence[Recommendation], now: datetime) -> list[str]:
        """Publish first, then record: a full disk must not keep a number from its readers."""
        return [
            *_failure_of(lambda: self.publisher.publish(now, recommendations)),
            *_failure_of(lambda: self._record(recommendations, now)),
        ]

    def _record(self, recommendations: Sequence[Recommendation], now: datetime) -> None:
        """What could not be recorded is compared again by the next cycle."""
        if not isinstance(recommendations, FleetDecisions):
            self.recorded = None
            self.ledger.record(now, recommendations)
            return
        rows = recommendations.changed_since(self.recorded)
        changes = Changes(recommendations.ids, [recommendations.summary(row) for row in rows])
        self.ledger.record(now, recommendations, changes)
        self.recorded = recommendations


def record_scores(ledger: Ledger, scores: Sequence[ForecastScore]) -> tuple[str, ...]:
    """Record the errors of forecasts that have matured; the sentence of what could not be kept."""
    return _failure_of(lambda: ledger.score(scores))


def _failure_of(attempt: Callable[[], None]) -> tuple[str, ...]:
    try:
        attempt()
    except StoreError as error:
        return (str(error),)
    return ()
