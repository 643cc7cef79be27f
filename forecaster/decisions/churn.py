"""What a change costs: fewer pods only when that much would have been saved already, and not too often."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from forecaster.hpa.behavior import PastRecommendation

HOUR = timedelta(hours=1)


def paid_for(history: Sequence[PastRecommendation], current: int, wanted: int, price: float, now: datetime) -> int:
    """The lowest count not above `current` whose saving has been forgone for the price of a change.

    k pods fewer must have been wanted for `price` / k minutes: who waits until a change would have paid for itself
    never pays more than twice what it had to (Karlin, Manasse, Rudolph, Sleator 1988, for renting and buying skis).
    """
    if wanted >= current or not price:
        return wanted
    for fewer in range(current - wanted, 0, -1):
        since = now - timedelta(minutes=price / fewer)
        enough = any(at <= since for _, at in history)
        if enough and all(replicas <= current - fewer for replicas, at in history if at >= since):
            return current - fewer
    return current


def longest(price: float) -> timedelta:
    """How much of the past recommendations `paid_for` reads: the price of giving back a single pod."""
    return timedelta(minutes=price)


def within_budget(changes: Sequence[datetime], current: int, wanted: int, budget: int | None, now: datetime) -> int:
    """The present count where the hour's changes are used up and the next one would lower it; rises are never held."""
    if budget is None or wanted >= current:
        return wanted
    return current if sum(at > now - HOUR for at in changes) >= budget else wanted


def with_change(changes: tuple[datetime, ...], now: datetime, *, changed: bool) -> tuple[datetime, ...]:
    """The changes of the last hour."""
    recent = tuple(at for at in changes if at > now - HOUR)
    return (*recent, now) if changed else recent
