"""What an OOM kill says: that the limit was too low, and not by how much.

The floor comes from the limit at which the container was killed and from nothing else. It is no sample, no margin is
put on it, and a second kill at the same limit asks for the same again: it cannot feed on itself.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

RAISE = 1.5
"""Above the limit of the kill. Of recorded containers that pass a limit, half pass it by more than a fifth."""
HELD = timedelta(days=7)
"""How long a kill is remembered; by then its day has been seen again."""


class Kill(NamedTuple):
    """An OOM kill and the limit in bytes at which it happened."""

    at: datetime
    limit: float


def oom_floor(kills: Iterable[Kill], now: datetime) -> float:
    """The least limit after these kills in bytes; 0 when none is recent."""
    return max((kill.limit * RAISE for kill in kills if now - kill.at < HELD), default=0.0)
