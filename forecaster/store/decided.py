"""What a decision comes down to, and whether it is another one than before. Pure."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from forecaster.domain.decision import Resize, Scale
from forecaster.domain.workload import Resources

if TYPE_CHECKING:
    from forecaster.domain.decision import Recommendation

CHANGE = 0.05
"""Requests and limits follow a quantile that moves a little in every cycle. Below 5 % no one would roll pods for it, so
it is no new decision; the reference is the last one kept, so that slow drift is kept as well."""
UNDECIDED = Resources()


class Decided(NamedTuple):
    """The columns of a decision, named as in the tables. `replicas` and the amounts are None while holding."""

    replicas_now: int
    replicas: int | None
    verdict: str
    reason: str
    cpu_request: float | None
    cpu_limit: float | None
    memory_request: float | None
    memory_limit: float | None
    resources_verdict: str
    resources_reason: str


def decided(recommendation: Recommendation) -> Decided:
    """The decision without its explanation."""
    horizontal, vertical = recommendation.replicas, recommendation.resources
    wanted = vertical.resources if isinstance(vertical, Resize) else UNDECIDED
    return Decided(
        recommendation.replicas_now,
        horizontal.replicas if isinstance(horizontal, Scale) else None,
        "scale" if isinstance(horizontal, Scale) else "hold",
        horizontal.reason.value,
        wanted.cpu_request,
        wanted.cpu_limit,
        wanted.memory_request,
        wanted.memory_limit,
        "resize" if isinstance(vertical, Resize) else "hold",
        vertical.reason.value,
    )


def changed(before: Decided | None, after: Decided) -> bool:
    """Is this another decision? Amounts may drift by less than `CHANGE`."""
    if before == after:
        return False
    if before is None or _exact(before) != _exact(after):
        return True
    return not all(map(_near, _amounts(before), _amounts(after)))


def _exact(one: Decided) -> tuple[object, ...]:
    return one[:4] + one[8:]


def _amounts(one: Decided) -> tuple[float | None, ...]:
    return (one.cpu_request, one.cpu_limit, one.memory_request, one.memory_limit)


def _near(before: float | None, after: float | None) -> bool:
    if before is None or after is None:
        return before is after
    return math.isclose(before, after, rel_tol=CHANGE)
