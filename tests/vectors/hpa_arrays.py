"""The controller with the arrays of `forecaster.horizontal` in the place of scalar rules, one row at a time.

Every case of the vectors runs through the whole controller, which goes on with the answers of the arrays.
They have no pods without a sample, no samples of unknown pods, no totals (HPA rules §8.3) and no growth limit below the
minimum, which no decision of ours meets: those answers stay with the scalar rules. The runner counts the others.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from forecaster.horizontal import proposals as arrays
from forecaster.horizontal.clamps import bounded, highest_since
from forecaster.horizontal.columns import Band
from forecaster.horizontal.proposals import ReadyPods
from forecaster.horizontal.row import UNKNOWN
from forecaster.horizontal.state import State
from forecaster.hpa import evaluate, limits, proposals, reconcile
from forecaster.hpa.proposals import CombinedProposal, MetricProposal, NoRecommendation, Share, Unmeasured

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime, timedelta

    import pytest

    from forecaster.hpa.proposals import Tolerance
    from forecaster.hpa.state import Clamp, PastRecommendations

    Counts = np.ndarray[Any, np.dtype[np.int64]]


@dataclass
class Arrays:
    """Rules that the arrays answered, with counts."""

    answered: Counter[str] = field(default_factory=Counter)

    def install(self, patch: pytest.MonkeyPatch) -> None:
        """Put the arrays in the place of the scalar rules."""
        for name in ("from_utilization", "from_average", "per_pod_value"):
            patch.setattr(evaluate, name, getattr(self, name))
        patch.setattr(reconcile, "combine", self.combine)
        for name in ("stabilize_down", "bound"):
            patch.setattr(limits, name, getattr(self, name))

    def from_utilization(
        self,
        usage: int,
        requests: int,
        percent: int,
        ready: int,
        current: int,
        tolerance: Tolerance,
        *,
        samples: int | None = None,
        missing: Share = proposals.NO_SHARE,
        unready: Share = proposals.NO_SHARE,
    ) -> MetricProposal | Unmeasured:
        given = (usage, requests, percent, ready, current, tolerance)
        proposal = FROM_UTILIZATION(*given, samples=samples, missing=missing, unready=unready)
        if isinstance(proposal, Unmeasured) or missing.pods or samples not in {None, ready}:
            return proposal
        pods = ReadyPods(as_row(ready), as_row(unready.pods), as_row(current))
        sums = as_row(usage), as_row(requests), as_row(unready.request_milli)
        return self.answer(
            proposal, arrays.from_utilization(*sums, as_row(percent), pods, band(tolerance)), "utilization"
        )

    def from_average(
        self,
        usage: int,
        samples: int,
        target: int,
        ready: int,
        current: int,
        tolerance: Tolerance,
        *,
        missing: int = 0,
        unready: int = 0,
    ) -> MetricProposal:
        given = (usage, samples, target, ready, current, tolerance)
        proposal = FROM_AVERAGE(*given, missing=missing, unready=unready)
        if missing or samples != ready:
            return proposal
        pods = ReadyPods(as_row(ready), as_row(unready), as_row(current))
        return self.answer(
            proposal, arrays.from_average(as_row(usage), as_row(target), pods, band(tolerance)), "average"
        )

    def per_pod_value(
        self, usage: int, target: int, status_replicas: int, tolerance: Tolerance, *, keep_overflow: bool = False
    ) -> MetricProposal:
        proposal = PER_POD_VALUE(usage, target, status_replicas, tolerance, keep_overflow=keep_overflow)
        count = arrays.per_pod_value(as_row(usage), as_row(target), as_row(status_replicas), band(tolerance))
        return self.answer(proposal, count, "per-pod value")

    def combine(
        self, sides: Sequence[MetricProposal | Unmeasured], current: int
    ) -> CombinedProposal | NoRecommendation:
        self.answered["combination"] += 1
        counts = [as_row(UNKNOWN if isinstance(side, Unmeasured) else side.replicas) for side in sides]
        combined, by_scalars = arrays.combined(counts, as_row(current)), COMBINE(sides, current)
        if combined.valid[0] == isinstance(by_scalars, NoRecommendation):
            raise AssertionError(f"{sides} at {current}: {combined}")
        if isinstance(by_scalars, NoRecommendation):
            return by_scalars
        return by_scalars._replace(replicas=int(combined.replicas[0]), partial=bool(combined.partial[0]))

    def stabilize_down(
        self, history: PastRecommendations, recommendation: int, window: timedelta, now: datetime
    ) -> tuple[int, PastRecommendations]:
        self.answered["stabilization"] += 1
        _, stored = STABILIZE_DOWN(history, recommendation, window, now)
        past = sorted(history, key=lambda entry: entry.at)
        values = np.array([[entry.replicas] for entry in past], np.int32).reshape(len(past), 1)
        state = replace(State.new(1), recommendations=values, times=tuple(entry.at.timestamp() for entry in past))
        highest = highest_since(state.opened(now.timestamp(), np.inf, ()), window.total_seconds(), now.timestamp())
        return max(recommendation, int(highest[0])), stored

    def bound(self, stabilized: int, min_replicas: int, max_replicas: int, growth: int) -> tuple[int, Clamp]:
        replicas, reason = BOUND(stabilized, min_replicas, max_replicas, growth)
        if growth < min_replicas:
            return replicas, reason
        self.answered["bounds"] += 1
        highest = as_row(min(max_replicas, growth))
        return int(bounded(as_row(stabilized), as_row(min_replicas), highest)[0]), reason

    def answer(self, proposal: MetricProposal, count: Counts, rule: str) -> MetricProposal:
        self.answered[rule] += 1
        return proposal._replace(replicas=int(count[0]))


FROM_UTILIZATION, FROM_AVERAGE, PER_POD_VALUE = (
    proposals.from_utilization,
    proposals.from_average,
    proposals.per_pod_value,
)
COMBINE, STABILIZE_DOWN, BOUND = proposals.combine, limits.stabilize_down, limits.bound


def as_row(number: int) -> Counts:
    return np.array([number], np.int64)


def band(tolerance: Tolerance) -> Band:
    return Band(np.array([tolerance.lowest]), np.array([tolerance.highest]))
