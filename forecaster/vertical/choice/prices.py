"""What makes sizes comparable: how many hours of the container's own resource a mishap or a change is worth."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Prices:
    """Relative to the container's own level, so that one price suits a small and a large container.

    `mishap` is paid once for each expected mishap, `change` once for a change, and every hour costs the size itself.
    """

    mishap: float
    """Hours of the container's resource that a mishap costs: an OOM kill, or the coming interval above the request."""
    change: float = 0.0
    """Hours of the container's resource that a change costs."""
