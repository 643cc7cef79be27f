"""What a workload's decisions remember from cycle to cycle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from forecaster.hpa.history import PastRecommendation

if TYPE_CHECKING:
    from datetime import datetime

    from forecaster.hpa.history import PastRecommendations


@dataclass(frozen=True, slots=True)
class ScalingState:
    """Recommendations as they were before stabilisation, as the HPA keeps them (docs/hpa.md §10)."""

    history: PastRecommendations = ()

    @classmethod
    def beginning(cls, replicas: int, now: datetime) -> ScalingState:
        """A workload seen for the first time: its present size counts as a recommendation (docs/hpa.md §3 step 3)."""
        return cls((PastRecommendation(replicas, now),))
