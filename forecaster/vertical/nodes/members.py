"""Workloads as a pool sees them: what one pod asks for, and how many there will be for a demand."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from forecaster.vertical.cluster_rules.node import scheduled
from forecaster.vertical.cluster_rules.pod_resources import pod_requests
from forecaster.vertical.cluster_rules.resource_list import CPU, MEMORY, MILLI

if TYPE_CHECKING:
    from forecaster.vertical.cluster_rules.pod import Pod
    from forecaster.vertical.nodes.joint import Floats


@dataclass(frozen=True, slots=True)
class Member:
    """One workload of a pool."""

    workload: str
    """`namespace/name`."""
    pod: Pod
    replicas: int
    per_pod: float | None = None
    """Cores of demand that one pod carries when its autoscaler is content; None: the count does not follow demand."""
    min_replicas: int = 1
    max_replicas: int | None = None

    @property
    def cpu(self) -> float:
        """Cores that one pod requests."""
        return self._request(CPU) / MILLI

    @property
    def memory(self) -> float:
        """Bytes that one pod requests."""
        return float(self._request(MEMORY))

    def replicas_for(self, demand: Floats) -> Floats:
        """Pods for each total demand of CPU in cores: what its autoscaler will ask for, within its bounds."""
        if self.per_pod is None or self.per_pod <= 0:
            return np.full(demand.shape, float(self.replicas))
        highest = math.inf if self.max_replicas is None else self.max_replicas
        # A sliver above a whole pod is the rounding of a quotient, not a reason for one more.
        return np.clip(np.ceil(demand / self.per_pod - 1e-9), self.min_replicas, highest)

    def _request(self, name: str) -> int:
        return scheduled(pod_requests(self.pod)).get(name, 0)
