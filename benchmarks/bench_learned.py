"""The learned policies behind the policy protocol of benches that load plug-ins: forecasts, clamps and series as ours.

The sweep is the target of the HPA: a learned policy sees pods of that size, and the HPA's formula at it is its floor.
It is not gated: what it does by itself is to be seen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.bench_policy import BenchPolicy
from forecaster.domain.policy import HorizontalPolicy

if TYPE_CHECKING:
    from forecaster.replay.evidence import Setting
    from forecaster.replay.learned import LearnedKind


class BenchLearned(BenchPolicy):
    """One point of the sweep of one learned policy."""

    gated = False
    targets = (2.0, 1.6, 1.4, 1.2, 1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4)

    def __init__(self, kind: LearnedKind) -> None:
        super().__init__()
        self.learned = kind
        self.name = f"learned_{kind}"

    def _sized(self, setting: Setting) -> HorizontalPolicy:
        """The target is all that differs between two points."""
        del setting
        return HorizontalPolicy(
            min_replicas=self.world["min_replicas"],
            scale_in_by_forecast=True,
            gate=False,
            requests_metric="demand",
            scale_down_stabilization=self.keep,
        )
