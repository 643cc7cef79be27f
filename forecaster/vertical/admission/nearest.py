"""Nearest values that every rule admits, for a recommendation that one of them refuses.

First up, then down: minimums and ratios raise requests, whole CPUs round up; then maximums, quotas and nodes shrink
what is too much, in proportion, never below a minimum. Each resource is moved alone. The proof checks the result, so
what comes out is feasible or nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from forecaster.vertical.admission.context import most_charged_per_pod, with_values
from forecaster.vertical.admission.free_capacity import empty_capacities
from forecaster.vertical.cluster_rules.limit_range import CONTAINER, POD, LimitRangeItem
from forecaster.vertical.cluster_rules.pod import Container, Pod, Requirements, total
from forecaster.vertical.cluster_rules.qos import QosClass, computed_qos, exclusive_cpus
from forecaster.vertical.cluster_rules.quota import matches
from forecaster.vertical.cluster_rules.resource_list import COMPUTE, CPU_RESOURCE, MEMORY_RESOURCE, MILLI

if TYPE_CHECKING:
    from forecaster.vertical.admission.context import AdmissionContext, ProposedRequirements

_UNBOUNDED = 2**63


@dataclass(frozen=True, slots=True)
class Cell:
    """One resource of one container, in milli-units, and what its LimitRanges allow."""

    container: str
    request: int
    limit: int | None
    floor: int = 0
    ceiling: int = _UNBOUNDED
    ratio: int | None = None
    """Largest limit / request, in thousandths."""
    tied: bool = False
    """The limit must equal the request (Guaranteed)."""
    limited: bool = False
    """There must be a limit, whatever it is."""
    unit: int = 1
    """Smallest step of the value: a byte, a thousandth of a core, or a core."""

    def raised(self) -> Cell:
        """Return the cell at or above its floor, a limit no lower than the request, in whole units."""
        limit = self.limit
        if limit is None and (self.tied or self.limited or self.ratio or self.ceiling < _UNBOUNDED):
            limit = self.request
        request = max(self.request, self.floor)
        limit = None if limit is None else max(limit, request)
        if limit is not None and self.ratio and limit * MILLI > request * self.ratio:
            request = -(-limit * MILLI // self.ratio)
        if self.tied and limit is not None:
            request = limit = max(request, limit)
        return replace(self, request=_up(request, self.unit), limit=None if limit is None else _up(limit, self.unit))

    def lowered(self, *, request: int = _UNBOUNDED, limit: int = _UNBOUNDED) -> Cell:
        """Return the cell at or below these amounts and the ceiling, everything else following down."""
        limit_now = None if self.limit is None else _down(min(self.limit, limit, self.ceiling), self.unit)
        stated = _down(min(self.request, request, self.ceiling), self.unit)
        if limit_now is not None:
            stated = min(stated, limit_now)
            if self.tied:
                limit_now = stated
            elif self.ratio:
                limit_now = min(limit_now, _down(stated * self.ratio // MILLI, self.unit))
        return replace(self, request=stated, limit=limit_now)


def _up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


def _down(value: int, unit: int) -> int:
    return value // unit * unit


@dataclass(frozen=True, slots=True)
class Refused:
    """A recommendation that does not pass: the completed pod with it, today's, and what stands around them."""

    pod: Pod
    before: Pod
    proposed: ProposedRequirements
    context: AdmissionContext

    @property
    def stays(self) -> QosClass | None:
        """The class that has to come out; None where any may."""
        may_change = self.context.accepts_qos_change and not self.context.in_place
        return None if may_change else computed_qos(self.before, self.context.server)

    def items(self, kind: str) -> list[LimitRangeItem]:
        """Items of the namespace's LimitRanges."""
        ranges = self.context.limit_ranges or ()
        return [item for limit_range in ranges for item in limit_range.items if item.type == kind]


@dataclass(frozen=True, slots=True)
class Bound:
    """The most that all containers together may request or be limited to, in milli-units."""

    of_limits: bool
    most: int


def nearest(case: Refused) -> dict[str, Requirements]:
    """Requests and limits near the proposed ones, for the containers that are named in them.

    The result is a proposal: whether it passes is for the proof to say.
    """
    filled_in = {name: Requirements({}, {}) for name in case.proposed}
    for name in COMPUTE:
        for cell in _fitted(case, name):
            filled_in[cell.container] = _with_cell(filled_in[cell.container], name, cell)
    return _keeping_burstable(case, filled_in)


def _fitted(case: Refused, name: str) -> list[Cell]:
    """One resource of all containers, up first, then down."""
    cells = [cell.raised() for cell in _cells(case, name)]
    cells = _grown(case, name, cells)
    cells = [cell.lowered() for cell in _kept_from_shrinking(case, name, cells)]
    for bound in _bounds(case, name):
        cells = _shrunk(case, name, cells, bound)
    return cells


def _cells(case: Refused, name: str) -> list[Cell]:
    """A container that states nothing of the resource has no cell, unless its class asks for one."""
    tied = case.stays is QosClass.GUARANTEED
    limited, exclusive = _must_be_limited(case, name), {}
    if name == CPU_RESOURCE and case.context.static_cpu:
        exclusive = exclusive_cpus(case.before, case.context.server)
    return [
        replace(
            _cell(case, name, container),
            tied=tied,
            limited=limited,
            unit=MILLI if name == MEMORY_RESOURCE or exclusive.get(container.name) else 1,
        )
        for container in case.pod.every_container()
        if container.name in case.proposed
        and (tied or name in container.resources.requests or name in container.resources.limits)
    ]


def _cell(case: Refused, name: str, container: Container) -> Cell:
    items, block = case.items(CONTAINER), container.resources
    limit = block.limits.get(name)
    return Cell(
        container.name,
        block.requests.get(name, limit or 0),
        limit,
        floor=max((item.min.get(name, 0) for item in items), default=0),
        ceiling=min((item.max.get(name, _UNBOUNDED) for item in items), default=_UNBOUNDED),
        ratio=min((item.ratio[name] for item in items if name in item.ratio), default=None),
    )


def _must_be_limited(case: Refused, name: str) -> bool:
    """Whether a maximum of the pod or a quota refuses pods that have no limit."""
    if any(name in item.max or name in item.ratio for item in case.items(POD)):
        return True
    quotas = case.context.quotas or ()
    return any(f"limits.{name}" in quota.tracked and matches(quota, case.pod, case.context.server) for quota in quotas)


def _bounds(case: Refused, name: str) -> list[Bound]:
    bounds = []
    for item in case.items(POD):
        if name in item.max:
            bounds += [Bound(of_limits=True, most=item.max[name]), Bound(of_limits=False, most=item.max[name])]
    if case.context.occupancy is not None and (capacities := empty_capacities(case.pod, case.context.occupancy)):
        unit = 1 if name == CPU_RESOURCE else MILLI
        bounds.append(Bound(of_limits=False, most=unit * max(capacity.get(name, 0) for capacity in capacities)))
    return [*bounds, *_quota_bounds(case, name)]


def _quota_bounds(case: Refused, name: str) -> list[Bound]:
    """Quotas count the overhead, which no container can give back."""
    overhead = case.pod.overhead.get(name, 0)
    return [
        Bound(of_limits=of_limits, most=most - overhead)
        for quota in case.context.quotas or ()
        for tracked, of_limits in ((name, False), (f"requests.{name}", False), (f"limits.{name}", True))
        if (most := most_charged_per_pod(quota, tracked, case.pod, case.before, case.context)) is not None
    ]


def _shrunk(case: Refused, name: str, cells: list[Cell], bound: Bound) -> list[Cell]:
    """Take the excess off in proportion to what each has above its floor."""
    values = [(cell.limit or 0) if bound.of_limits else cell.request for cell in cells]
    excess = _pod_amount(case, name, cells, of_limits=bound.of_limits) - bound.most
    spare = [max(value - cell.floor, 0) for value, cell in zip(values, cells, strict=True)]
    if excess <= 0 or not sum(spare):
        return cells
    shrunk = [max(value - -(-part * excess // sum(spare)), 0) for value, part in zip(values, spare, strict=True)]
    side = "limit" if bound.of_limits else "request"
    return [cell.lowered(**{side: most}) for cell, most in zip(cells, shrunk, strict=True)]


def _grown(case: Refused, name: str, cells: list[Cell]) -> list[Cell]:
    """Raise all in proportion until the pod reaches its own minimum."""
    least = max((item.min.get(name, 0) for item in case.items(POD)), default=0)
    short = least - _pod_amount(case, name, cells, of_limits=False)
    if short <= 0 or not cells:
        return cells
    weight = sum(cell.request for cell in cells) or len(cells)
    shares = [-(-(cell.request or 1) * short // weight) for cell in cells]
    return [replace(cell, request=cell.request + share).raised() for cell, share in zip(cells, shares, strict=True)]


def _pod_amount(case: Refused, name: str, cells: Sequence[Cell], *, of_limits: bool) -> int:
    """Return the request, or limit, of the pod with these cells."""
    own = case.pod.pod_level_limits if of_limits else case.pod.pod_level_requests
    if name in own:
        return own[name]
    changed = {cell.container: cell for cell in cells}

    def filled(container: Container) -> Container:
        cell = changed.get(container.name)
        return container if cell is None else replace(container, resources=_with_cell(container.resources, name, cell))

    sums = total(
        case.pod.with_containers(filled),
        lambda container: container.resources.limits if of_limits else container.resources.requests,
    )
    return sums.get(name, 0)


def _with_cell(block: Requirements, name: str, cell: Cell) -> Requirements:
    limits = {key: milli for key, milli in block.limits.items() if key != name}
    if cell.limit is not None:
        limits[name] = cell.limit
    return Requirements({**block.requests, name: cell.request}, limits)


def _kept_from_shrinking(case: Refused, name: str, cells: list[Cell]) -> list[Cell]:
    """Servers that cannot lower a memory limit in place keep today's."""
    if name != MEMORY_RESOURCE or not case.context.in_place or case.context.server.shrinks_memory_limits:
        return cells
    containers = case.before.every_container()
    stay = {container.name: container for container in containers if not container.restarts_on(MEMORY_RESOURCE)}
    return [_kept_up(cell, stay[cell.container]) if cell.container in stay else cell for cell in cells]


def _kept_up(cell: Cell, today: Container) -> Cell:
    """Return the cell with a limit no lower than today's; one without a limit stays."""
    if cell.limit is None:
        return cell
    least = max(cell.limit, today.resources.limits.get(MEMORY_RESOURCE, 0))
    return replace(cell, limit=least, request=least if cell.tied else cell.request)


def _keeping_burstable(case: Refused, blocks: dict[str, Requirements]) -> dict[str, Requirements]:
    """A Burstable pod that would come out Guaranteed asks for one thousandth of a core less than its limit."""
    if case.stays is not QosClass.BURSTABLE:
        return blocks
    if computed_qos(with_values(case.pod, blocks), case.context.server) is not QosClass.GUARANTEED:
        return blocks
    name, block = max(blocks.items(), key=lambda named: named[1].requests.get(CPU_RESOURCE, 0))
    lower = Requirements(
        {**block.requests, CPU_RESOURCE: max(block.requests.get(CPU_RESOURCE, 1) - 1, 0)}, block.limits
    )
    return {**blocks, name: lower}
