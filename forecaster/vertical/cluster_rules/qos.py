"""The QoS class of a pod (§6.3), and the exclusive CPUs that the static CPU manager gives to one (§6.10)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from forecaster.vertical.cluster_rules.resource_list import COMPUTE, CPU_RESOURCE, MILLI
from forecaster.vertical.cluster_rules.server import LATEST_SERVER

if TYPE_CHECKING:
    from collections.abc import Iterable

    from forecaster.vertical.cluster_rules.pod import Pod, Requirements
    from forecaster.vertical.cluster_rules.server import Server


class QosClass(StrEnum):
    """Killed last, in between, and first when memory runs out."""

    GUARANTEED = "Guaranteed"
    BURSTABLE = "Burstable"
    BEST_EFFORT = "BestEffort"


def qos_of(pod: Pod, server: Server = LATEST_SERVER) -> QosClass:
    """Rules §6.3: the class that is recorded, else the one that the spec gives."""
    return QosClass(pod.status.qos) if pod.status.qos else computed_qos(pod, server)


def computed_qos(pod: Pod, server: Server = LATEST_SERVER) -> QosClass:
    """Rules §6.3: the class of a pod with its requests defaulted."""
    if pod.pod_level is not None and _pod_level_decides(pod, server):
        return _class_of_block(pod.pod_level)
    return _agreed([_class_of_block(container.resources) for container in pod.every_container()])


def _pod_level_decides(pod: Pod, server: Server) -> bool:
    return server.has_pod_level_resources and (pod.has_pod_level or not server.ignores_empty_pod_level)


def _class_of_block(block: Requirements) -> QosClass:
    if block.is_empty:
        return QosClass.BEST_EFFORT
    return _agreed([_class_of_resource(block, name) for name in COMPUTE])


def _class_of_resource(block: Requirements, name: str) -> QosClass:
    request, limit = block.requests.get(name, 0), block.limits.get(name, 0)
    if request != limit:
        return QosClass.BURSTABLE
    return QosClass.GUARANTEED if request else QosClass.BEST_EFFORT


def _agreed(classes: Iterable[QosClass]) -> QosClass:
    """The class all of them share; Burstable where they differ, BestEffort where there are none."""
    different = set(classes)
    if len(different) > 1:
        return QosClass.BURSTABLE
    return different.pop() if different else QosClass.BEST_EFFORT


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


def exclusive_cpus(pod: Pod, manager: CpuManager = STATIC, server: Server = LATEST_SERVER) -> dict[str, int]:
    """Rules §6.10: CPUs that are each container's alone; 0 for those that share the rest."""
    exclusive = manager.is_static and qos_of(pod, server) is QosClass.GUARANTEED
    return {
        container.name: _whole_cpus(container.resources.requests.get(CPU_RESOURCE, 0)) if exclusive else 0
        for container in pod.every_container()
    }


def _whole_cpus(milli: int) -> int:
    return milli // MILLI if milli % MILLI == 0 else 0
