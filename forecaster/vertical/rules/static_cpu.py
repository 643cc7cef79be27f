"""Exclusive CPUs under the kubelet's static CPU manager (§6.10)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from forecaster.vertical.rules.qos import QosClass, qos_of
from forecaster.vertical.rules.resource_list import CPU, MILLI
from forecaster.vertical.rules.server import NEWEST

if TYPE_CHECKING:
    from forecaster.vertical.rules.pod import Pod
    from forecaster.vertical.rules.server import Server


@dataclass(frozen=True, slots=True)
class CpuManager:
    """How the kubelet of a node hands out CPUs."""

    policy: str = "none"
    reserves_cpu: bool = True
    """The static policy needs a reservation of more than zero CPU; without one the kubelet does not start."""

    @property
    def is_static(self) -> bool:
        """Whole CPUs are given away for good."""
        return self.policy == "static" and self.reserves_cpu


STATIC = CpuManager("static")
SHARED = CpuManager()


def exclusive_cpus(pod: Pod, manager: CpuManager = STATIC, server: Server = NEWEST) -> dict[str, int]:
    """Rules §6.10: CPUs that are each container's alone; 0 for those that share the rest."""
    exclusive = manager.is_static and qos_of(pod, server) is QosClass.GUARANTEED
    return {
        container.name: _whole_cpus(container.resources.requests.get(CPU, 0)) if exclusive else 0
        for container in pod.every_container()
    }


def _whole_cpus(milli: int) -> int:
    return milli // MILLI if milli % MILLI == 0 else 0
