"""Step 7: hand the recommendations over and keep them. What cannot be kept is said; what can be handed over is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forecaster.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from forecaster.domain.decision import Recommendation
    from forecaster.domain.score import ForecastScore
    from forecaster.ports import Ledger, Publisher


def take_effect(
    publisher: Publisher,
    ledger: Ledger,
    recommendations: Sequence[Recommendation],
    scores: Sequence[ForecastScore],
    now: datetime,
) -> list[str]:
    """Publish first, then record: a full disk must not keep a number from those who wait for it."""
    tried = (
        lambda: publisher.publish(now, recommendations),
        lambda: ledger.record(now, recommendations),
        lambda: ledger.score(scores),
    )
    return [message for attempt in tried if (message := _failure_of(attempt))]


def _failure_of(attempt: Callable[[], None]) -> str:
    try:
        attempt()
    except StoreError as error:
        return str(error)
    return ""
