"""How old a table is, and whether that is too old. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from forecaster.publish.table import TableMeta

STALE_INTERVALS = 3
"""Intervals without a new table before its values are called stale: one may be late, two may be skipped."""


class Age(msgspec.Struct, frozen=True):
    """How old the decisions are, and whether that is too old."""

    published_at: datetime
    age_seconds: float
    stale: bool


def age_of(meta: TableMeta, now: datetime, stale_after: timedelta | None) -> Age:
    """The age of a table at `now`; never negative, whatever the clocks say."""
    limit = timedelta(seconds=STALE_INTERVALS * meta.interval_seconds) if stale_after is None else stale_after
    age = max(now - meta.published_at, timedelta(0))
    return Age(meta.published_at, age.total_seconds(), age > limit)
