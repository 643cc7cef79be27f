"""What is known beside the usage of a signal: ready pods, what the cluster says of each workload, and throttling."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from forecaster.domain.signal import Signal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from forecaster.demand.fresh import Fresh
    from forecaster.demand.throttling import Hours
    from forecaster.domain.workload import Workload, WorkloadId


@dataclass(frozen=True, slots=True)
class Around:
    """What usage is to be understood by. `throttled` has the hours of the workloads that had any.

    Limits, throttling and the number of pods hold down CPU; other signals need none of it.
    """

    signal: Signal
    pods: Fresh
    workloads: Mapping[WorkloadId, Workload]
    throttled: Mapping[WorkloadId, Sequence[Hours]] = field(default_factory=dict)

    @property
    def of_pods(self) -> bool:
        """Whether pods hold this signal down."""
        return self.signal is Signal.CPU
