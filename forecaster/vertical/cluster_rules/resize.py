"""In-place resize of a running pod: the API server's answer, the restarted containers (§6.9), and its progress.

Progress follows the VPA's rules (spec/vertical.md §1.15).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from forecaster.vertical.cluster_rules.pod import Container, Pod, Requirements
from forecaster.vertical.cluster_rules.qos import computed_qos, qos_of
from forecaster.vertical.cluster_rules.resource_list import COMPUTE, MEMORY_RESOURCE
from forecaster.vertical.cluster_rules.server import LATEST_SERVER, Server
from forecaster.vertical.cluster_rules.validation import RESIZE_POLICY, Refusal, defaulted, faults

_NOTHING = Requirements()


@dataclass(frozen=True, slots=True)
class ResizeAnswer:
    """The API server's answer, and the containers that their resize policy restarts."""

    refusals: tuple[Refusal, ...]
    restarts: tuple[str, ...] = ()

    @property
    def allowed(self) -> bool:
        """Whether the resize is allowed."""
        return not self.refusals


def resize(old: Pod, new: Pod, server: Server = LATEST_SERVER) -> ResizeAnswer:
    """Rules §6.9: turn a running pod into `new`; both are defaulted first."""
    old, new = defaulted(old, server), defaulted(_with_kept_block(old, new, server), server)
    refusals = tuple(_refusals(old, new, server))
    return ResizeAnswer(refusals, () if refusals else _restarted(old, new))


def _with_kept_block(old: Pod, new: Pod, server: Server) -> Pod:
    """Until 1.35 a resize never reaches the pod-level block; since 1.37 a client without that field keeps it."""
    lost = new.pod_level is None and server.completes_pod_level
    return replace(new, pod_level=old.pod_level) if lost or not server.resizes_pod_level else new


def _refusals(old: Pod, new: Pod, server: Server) -> Iterator[Refusal]:
    """Yield refusals in the order of the API server, which stops after some of them."""
    if not server.resizes_pods:
        yield Refusal("version", "pod", f"{server} cannot resize pods in place")
        return
    if old.static or old.os == "windows":
        kind = "static" if old.static else "os"
        yield Refusal(kind, "pod", f"{'static' if old.static else 'windows'} pods cannot be resized")
        return
    yield from faults(new, server)
    yield from _class_changed(old, new, server)
    if _has_block(old) or _has_block(new):
        if not server.resizes_pod_level:
            yield Refusal("version", "pod", f"{server} cannot resize pods with pod-level resources")
            return
        yield from _pod_level_refusals(old, new)
    if _names(old) != _names(new):
        yield Refusal("containers", "pod", "containers cannot be added, removed, renamed or reordered by a resize")
        return
    if changed := _changed_policies(old, new):
        yield from changed
        return
    for before, after in zip(old.init_containers, new.init_containers, strict=True):
        yield from _init_refusals(before, after, server)
    for before, after in zip(old.containers, new.containers, strict=True):
        yield from _container_refusals(before, after, server)


def _class_changed(old: Pod, new: Pod, server: Server) -> Iterator[Refusal]:
    before, after = qos_of(old, server), computed_qos(new, server)
    if before != after:
        yield Refusal("qos", "pod", f"the QoS class would change from {before} to {after}")


def _pod_level_refusals(old: Pod, new: Pod) -> Iterator[Refusal]:
    before, after = old.pod_level or _NOTHING, new.pod_level or _NOTHING
    yield from _removals("pod", before, after)
    if _immutable(before) != _immutable(after):
        yield Refusal("resource", "pod", "only cpu and memory can be resized")


def _changed_policies(old: Pod, new: Pod) -> list[Refusal]:
    """Resize policies are immutable, and checked before the resources; the default is NotRequired."""
    pairs = zip(old.every_container(), new.every_container(), strict=True)
    return [
        Refusal(RESIZE_POLICY, before.name, f"the resize policy of {name} cannot be changed after creation")
        for before, after in pairs
        for name in COMPUTE
        if before.restarts_on(name) != after.restarts_on(name)
    ]


def _init_refusals(before: Container, after: Container, server: Server) -> Iterator[Refusal]:
    if not before.sidecar and not server.resizes_init_containers:
        if before != after:
            why = f"{server} cannot resize init containers that are not sidecars"
            yield Refusal("initContainer", before.name, why)
        return
    if not before.sidecar and before != after and any(after.restarts_on(name) for name in after.resize_policy):
        yield Refusal("initContainer", before.name, "init containers that would be restarted cannot be resized")
    yield from _container_refusals(before, after, server)


def _container_refusals(before: Container, after: Container, server: Server) -> Iterator[Refusal]:
    yield from _removals(before.name, before.resources, after.resources)
    if _immutable(before.resources) != _immutable(after.resources) or before.sidecar != after.sidecar:
        yield Refusal("resource", before.name, "only cpu and memory can be resized")
    lower = after.resources.limits.get(MEMORY_RESOURCE, 0) < before.resources.limits.get(MEMORY_RESOURCE, 0)
    if lower and not server.shrinks_memory_limits and not after.restarts_on(MEMORY_RESOURCE):
        yield Refusal("memoryDecrease", before.name, f"{server} lowers a memory limit only with a restart")


def _removals(where: str, before: Requirements, after: Requirements) -> Iterator[Refusal]:
    for kind, had, has in (("request", before.requests, after.requests), ("limit", before.limits, after.limits)):
        if gone := [name for name in had if name not in has]:
            yield Refusal("removal", where, f"a {kind} that is set cannot be removed: {', '.join(gone)}")


def _immutable(block: Requirements) -> list[dict[str, int]]:
    """All but cpu and memory."""
    sides = block.requests, block.limits
    return [{name: side[name] for name in side if name not in COMPUTE} for side in sides]


def _has_block(pod: Pod) -> bool:
    return pod.pod_level is not None and not pod.pod_level.is_empty


def _names(pod: Pod) -> list[list[str]]:
    return [[container.name for container in pod.containers], [container.name for container in pod.init_containers]]


def _restarted(old: Pod, new: Pod) -> tuple[str, ...]:
    pairs = zip(old.every_container(), new.every_container(), strict=True)
    return tuple(
        before.name for before, after in pairs if any(after.restarts_on(name) for name in _changed(before, after))
    )


def _changed(before: Container, after: Container) -> list[str]:
    return [
        name
        for name in COMPUTE
        if before.resources.requests.get(name) != after.resources.requests.get(name)
        or before.resources.limits.get(name) != after.resources.limits.get(name)
    ]


_PENDING = "PodResizePending"
_IN_PROGRESS = "PodResizeInProgress"


class ResizeStatus(StrEnum):
    """Progress of a resize on its node."""

    NONE = "None"
    DEFERRED = "Deferred"
    INFEASIBLE = "Infeasible"
    IN_PROGRESS = "InProgress"
    ERROR = "Error"
    UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True)
class PodCondition:
    """A condition of a pod."""

    type: str
    status: str = "True"
    reason: str = ""
    message: str = ""


def resize_status(conditions: Sequence[PodCondition]) -> ResizeStatus:
    """Return the status by a pod's conditions: none unless the first resize condition is True."""
    about = [condition for condition in conditions if condition.type in {_PENDING, _IN_PROGRESS}]
    if not about or about[0].status != "True":
        return ResizeStatus.NONE
    pending = next((condition for condition in about if condition.type == _PENDING), None)
    if pending is not None:
        reasons = {"Deferred": ResizeStatus.DEFERRED, "Infeasible": ResizeStatus.INFEASIBLE}
        return reasons.get(pending.reason, ResizeStatus.UNKNOWN)
    if about[0].reason == "Error":
        return ResizeStatus.ERROR
    return ResizeStatus.UNKNOWN if about[0].reason or about[0].message else ResizeStatus.IN_PROGRESS
