"""The recommender webhook of Datadog's WatermarkPodAutoscaler: a count with an interval and a reason. Pure.

It scales up at once while there are fewer pods than the lower bound and down while there are more than the upper one.
So the lower bound is the count itself, because a forecast only raises; the upper one is what the 95 % quantile of the
deciding forecast would need, because between the two nobody knows that a pod is idle.
"""

from __future__ import annotations

import math
from datetime import datetime  # noqa: TC003  msgspec resolves the annotations
from typing import TYPE_CHECKING

import msgspec

from forecaster.serving.seams.deciding import deciding

if TYPE_CHECKING:
    from forecaster.publish.views import RecommendationView
    from forecaster.serving.values import Value


class TargetRef(msgspec.Struct, frozen=True):
    """Whom it is about."""

    kind: str
    name: str
    namespace: str


class Request(msgspec.Struct, frozen=True, rename="camel"):
    """What the controller posts; what it says of state and targets we know better from the source."""

    target_ref: TargetRef


class Reply(msgspec.Struct, frozen=True, rename="camel"):
    """Exactly the fields that it knows: it refuses others."""

    target_replicas: int
    lower_bound_replicas: int
    upper_bound_replicas: int
    timestamp: datetime
    reason: str


class Error(msgspec.Struct, frozen=True):
    """Why there is no count; the controller then leaves the workload alone."""

    code: int
    message: str


class ErrorReply(msgspec.Struct, frozen=True):
    """The same as an answer."""

    error: Error


def reply(value: Value, view: RecommendationView) -> Reply:
    """The answer for a count."""
    count = math.ceil(value.value)
    return Reply(count, count, max(count, _widest(view)), value.at, view.replicas.message)


def _widest(view: RecommendationView) -> int:
    """Replicas for the upper quantile of the deciding forecast; 0 where there is none."""
    found = deciding(view)
    if found is None or found.forecast.peak <= 0:
        return 0
    return math.ceil(found.replicas * found.forecast.high / found.forecast.peak)
