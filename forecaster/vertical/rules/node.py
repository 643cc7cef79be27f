"""A node as the scheduler's filters see it, and what runs on it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from forecaster.vertical.rules.placement import ANYWHERE, Taint
from forecaster.vertical.rules.pod_resources import pod_requests
from forecaster.vertical.rules.resource_list import CPU, whole
from forecaster.vertical.rules.server import NEWEST

if TYPE_CHECKING:
    from collections.abc import Mapping

    from forecaster.vertical.rules.placement import Placement
    from forecaster.vertical.rules.pod import Pod
    from forecaster.vertical.rules.resource_list import Amounts
    from forecaster.vertical.rules.server import Server


HOSTNAME = "kubernetes.io/hostname"
"""The label that tells nodes of one kind apart."""


@dataclass(frozen=True, slots=True)
class Node:
    """One node; allocatable in milli-units."""

    name: str
    allocatable: Amounts = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    memory_capacity: int | None = None
    """Bytes of memory it has in all; None where only allocatable is known."""

    room: Amounts = field(init=False, repr=False, compare=False)
    """Allocatable as the scheduler counts: cpu in thousandths, everything else in whole units."""

    def __post_init__(self) -> None:
        """Count once: the room of a node is asked for each pod."""
        object.__setattr__(self, "room", scheduled(self.allocatable))


@dataclass(frozen=True, slots=True)
class Resident:
    """A pod that runs on a node: what it takes there, and what others see of it."""

    node: str
    requests: Amounts = field(default_factory=dict)
    """As the scheduler counts: cpu in thousandths, everything else in whole units."""
    placement: Placement = ANYWHERE
    priority: int = 0
    workload: str = ""
    """Who owns it, as `namespace/name`."""
    daemon: bool = False
    """Whether every node of its kind runs one."""
    memory_bytes: int | None = None
    """What it uses; None where nobody measured."""
    name: str = ""

    @classmethod
    def of(cls, pod: Pod, node: str, server: Server = NEWEST) -> Resident:
        """A pod on this node."""
        return cls(node, scheduled(pod_requests(pod, server, status=True)), pod.placement, pod.priority)


def scheduled(amounts: Amounts) -> dict[str, int]:
    """Amounts in milli-units as the scheduler counts them: each rounded up to its own unit."""
    return {name: milli if name == CPU else whole(milli) for name, milli in amounts.items()}
