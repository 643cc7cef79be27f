"""The load per pod at which an HPA acts, kept while the request changes.

An HPA's utilization target is a share of the request: whoever changes the request moves the point at which it acts.
A vertical rule that sets the request from usage which the HPA holds at a share of that very request shrinks it again
and again; a rule that keeps `request * target` cannot.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class UtilizationBounds:
    """Targets that are still sensible, as ratios: too high leaves no room to react, too low is paid idle."""

    least: float = 0.5
    most: float = 0.9


DEFAULT_BOUNDS = UtilizationBounds()


def request_beside_hpa(
    request: float, target: float, desired: float, bounds: UtilizationBounds = DEFAULT_BOUNDS
) -> tuple[float, float]:
    """The request nearest to the desired one, and its target, that keep the scale point exactly.

    The scale point `request * target` stays what the owner of the HPA stated, so requests lie between it and twice it
    (by the default bounds) however often this is repeated: there is nothing that could shrink on and on.
    """
    point = request * target
    new_request = min(max(desired, point / bounds.most), point / bounds.least)
    return new_request, point / new_request
