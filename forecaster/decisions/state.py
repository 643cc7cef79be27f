"""What a workload's decisions remember from cycle to cycle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from forecaster.hpa.behavior import PastRecommendation

if TYPE_CHECKING:
    from datetime import datetime

    from forecaster.decisions.outage import Expected, Outage
    from forecaster.hpa.behavior import PastRecommendations


@dataclass(frozen=True, slots=True)
class ScalingState:
    """Recommendations as they were before stabilisation, as the HPA keeps them (docs/hpa.md §10), and what else lasts.

    `changes` are the instants of the last hour at which the recommendation differed from the count, `outage` the floor
    after one, `expected` the least load that the last forecasts expected, `ready` the pods that were ready in the last
    cycle: those that served what is measured now.
    """

    history: PastRecommendations = ()
    changes: tuple[datetime, ...] = ()
    outage: Outage | None = None
    expected: Expected = ()
    ready: int = 0

    @classmethod
    def beginning(cls, replicas: int, now: datetime) -> ScalingState:
        """A workload seen for the first time: its present size counts as a recommendation (docs/hpa.md §3 step 3)."""
        return cls((PastRecommendation(replicas, now),))
