"""One resource of one container on its way to a feasible value; it moves up first, then down."""

from __future__ import annotations

from dataclasses import dataclass, replace

from forecaster.vertical.rules.resource_list import MILLI

UNBOUNDED = 2**63


@dataclass(frozen=True, slots=True)
class Cell:
    """One resource of one container, in milli-units, and what its LimitRanges allow."""

    container: str
    request: int
    limit: int | None
    floor: int = 0
    ceiling: int = UNBOUNDED
    ratio: int | None = None
    """Largest limit / request, in thousandths."""
    tied: bool = False
    """The limit must equal the request (Guaranteed)."""
    limited: bool = False
    """There must be a limit, whatever it is."""
    unit: int = 1
    """What it is a whole number of: a byte, a thousandth of a core, or a core."""

    def raised(self) -> Cell:
        """At least the floor, a limit no lower than the request, whole units: everything that only adds."""
        limit = self.limit
        if limit is None and (self.tied or self.limited or self.ratio or self.ceiling < UNBOUNDED):
            limit = self.request
        request = max(self.request, self.floor)
        limit = None if limit is None else max(limit, request)
        if limit is not None and self.ratio and limit * MILLI > request * self.ratio:
            request = -(-limit * MILLI // self.ratio)
        if self.tied and limit is not None:
            request = limit = max(request, limit)
        return replace(self, request=_up(request, self.unit), limit=None if limit is None else _up(limit, self.unit))

    def lowered(self, *, request: int = UNBOUNDED, limit: int = UNBOUNDED) -> Cell:
        """At most these and the ceiling, everything else following down."""
        limit_now = None if self.limit is None else _down(min(self.limit, limit, self.ceiling), self.unit)
        asked = _down(min(self.request, request, self.ceiling), self.unit)
        if limit_now is not None:
            asked = min(asked, limit_now)
            if self.tied:
                limit_now = asked
            elif self.ratio:
                limit_now = min(limit_now, asked * self.ratio // MILLI)
        return replace(self, request=asked, limit=limit_now)


def _up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


def _down(value: int, unit: int) -> int:
    return value // unit * unit
