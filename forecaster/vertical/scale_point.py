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


@dataclass(frozen=True, slots=True)
class KeptTarget:
    """The new utilization target; `bounded` when the scale point could not be kept, because it would be senseless."""

    target: float
    bounded: bool = False


DEFAULT_BOUNDS = UtilizationBounds()


def kept_target(
    request: float, target: float, new_request: float, bounds: UtilizationBounds | None = None
) -> KeptTarget:
    """The target at which the HPA still acts at the same load per pod. Requests in one unit, targets as ratios."""
    exact = request * target / new_request
    if bounds is None:
        return KeptTarget(exact)
    held = min(max(exact, bounds.least), bounds.most)
    return KeptTarget(held, bounded=held != exact)


def request_beside_hpa(
    request: float, target: float, wanted: float, bounds: UtilizationBounds = DEFAULT_BOUNDS
) -> tuple[float, float]:
    """The request nearest to the wanted one, and its target, that keep the scale point exactly.

    The scale point `request * target` stays what the owner of the HPA stated, so requests lie between it and twice it
    (by the default bounds) however often this is repeated: there is nothing that could shrink on and on.
    """
    point = request * target
    new_request = min(max(wanted, point / bounds.most), point / bounds.least)
    return new_request, point / new_request


def naive_rounds(request: float, target: float, headroom: float, rounds: int) -> list[float]:
    """What a rule without memory of the scale point does to a request: usage at the target, divided by the headroom."""
    requests = []
    for _ in range(rounds):
        request = request * target / headroom
        requests.append(request)
    return requests
