"""The utilization target that keeps the scale point of an HPA when the request changes (spec/vertical.md §6.12)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class UtilizationBounds:
    """Targets that are still sensible, as ratios."""

    least: float
    most: float


@dataclass(frozen=True, slots=True)
class KeptTarget:
    """The new utilization target; `bounded` when the scale point could not be kept, because it would be senseless."""

    target: float
    bounded: bool = False


def kept_target(
    request: float, target: float, new_request: float, bounds: UtilizationBounds | None = None
) -> KeptTarget:
    """The target at which the HPA still acts at the same load per pod. Requests in one unit, targets as ratios."""
    exact = request * target / new_request
    if bounds is None:
        return KeptTarget(exact)
    held = min(max(exact, bounds.least), bounds.most)
    return KeptTarget(held, bounded=held != exact)


def naive_rounds(request: float, target: float, headroom: float, rounds: int) -> list[float]:
    """Requests of a rule without memory of the scale point: usage at the target, divided by the headroom."""
    requests = []
    for _ in range(rounds):
        request = request * target / headroom
        requests.append(request)
    return requests
