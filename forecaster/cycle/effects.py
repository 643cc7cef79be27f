"""Hand the recommendations over and record them. What cannot be recorded is said; what can be handed over is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forecaster.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from forecaster.domain.decision import Recommendation
    from forecaster.domain.report import ForecastScore
    from forecaster.ports import Ledger, Publisher


def publish_and_record(
    publisher: Publisher, ledger: Ledger, recommendations: Sequence[Recommendation], now: datetime
) -> list[str]:
    """Publish first, then record: a full disk must not keep a number from those who wait for it."""
    return [
        *_failure_of(lambda: publisher.publish(now, recommendations)),
        *_failure_of(lambda: ledger.record(now, recommendations)),
    ]


def record_scores(ledger: Ledger, scores: Sequence[ForecastScore]) -> tuple[str, ...]:
    """Record the errors of forecasts that have matured; the sentence of what could not be kept."""
    return _failure_of(lambda: ledger.score(scores))


def _failure_of(attempt: Callable[[], None]) -> tuple[str, ...]:
    try:
        attempt()
    except StoreError as error:
        return (str(error),)
    return ()
