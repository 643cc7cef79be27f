"""What one replica remembers of the objects that it looks at: what was asked of each lately, and since when."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime, timedelta


class Seen(NamedTuple):
    """One object."""

    uid: str
    since: datetime
    """Instant of the first look."""
    known_at: datetime
    """Instant when the offer last knew a count, or when this replica first looked."""
    asked: tuple[tuple[datetime, int], ...] = ()
    """Counts that were offered lately."""

    def lowest(self) -> int:
        """No lower count was good enough throughout."""
        return max(count for _, count in self.asked)


Memory: TypeAlias = "Mapping[tuple[str, ...], Seen]"


def looked(before: Seen | None, uid: str, asked: int | None, now: datetime, kept: timedelta) -> Seen:
    """What is remembered after one more look, at which `asked` was offered, None while it is not known."""
    if before is None or before.uid != uid or now < before.since:
        before = Seen(uid, now, now)
    lately = tuple((at, count) for at, count in before.asked if now - at <= kept)
    if asked is None:
        return before._replace(asked=lately)
    return before._replace(asked=(*lately, (now, asked)), known_at=now)
