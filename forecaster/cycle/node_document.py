"""The form of what `forecaster nodes -o json` prints: cores and whole bytes, quantiles of sums over a pool."""

from __future__ import annotations

import math
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from forecaster.cycle.node_forecast import NodeForecast
    from forecaster.vertical.nodes.forecast import PoolForecast, PoolWindow
    from forecaster.vertical.nodes.headroom import Pressure
    from forecaster.vertical.nodes.joint_samples import JointSum


class CoresView(msgspec.Struct, frozen=True):
    """The quantile of the sum, between its two extremes; `samples` 0 means that the dependence is assumed."""

    value: float
    if_independent: float
    if_all_at_once: float
    dependence: float
    samples: int


class BytesView(msgspec.Struct, frozen=True):
    """A peak in whole bytes."""

    value: int
    if_independent: int
    if_all_at_once: int
    dependence: float
    samples: int


class WindowView(msgspec.Struct, frozen=True):
    """One span of the coming day; `replicas` are the pods expected of each workload."""

    begin: datetime
    until: datetime
    requested_cpu_cores: CoresView
    requested_memory_bytes: BytesView
    used_cpu_cores: CoresView
    used_memory_bytes: BytesView
    new_nodes: int
    pods_that_no_node_takes: int
    replicas: dict[str, int]


class CapacityView(msgspec.Struct, frozen=True):
    """An amount of both resources."""

    cpu_cores: float
    memory_bytes: int


class PoolView(msgspec.Struct, frozen=True):
    """One pool; `label` is null where no node label tells pools apart."""

    pool: str
    label: str | None
    nodes: int
    nodes_needed: int
    needed_from: datetime | None
    requested: CapacityView
    allocatable: CapacityView
    windows: list[WindowView]
    workloads_without_a_forecast: list[str]


class HeadroomView(msgspec.Struct, frozen=True):
    """Placeholders of one pool, each of this size; `until` is null where none is needed."""

    pool: str
    replicas: int
    cpu_cores: float
    memory_bytes: int
    until: datetime | None
    reason: str


class PressureView(msgspec.Struct, frozen=True):
    """A node that may run out of memory: the probability, and the pods that would be evicted first."""

    node: str
    risk: float
    free_bytes: int
    used_now_bytes: int
    used_median_bytes: int
    used_p95_bytes: int
    evicted_first: list[str]
    pods_without_usage: int


class NodesView(msgspec.Struct, frozen=True):
    """All pools."""

    at: datetime
    quantile: float
    pools: list[PoolView]
    headroom: list[HeadroomView]
    memory_pressure: list[PressureView]
    workloads_without_a_node: list[str]


def document(forecast: NodeForecast) -> NodesView:
    """Return the node forecast in cores and whole bytes."""
    return NodesView(
        at=forecast.at,
        quantile=forecast.quantile,
        pools=[_pool(pool) for pool in forecast.pools],
        headroom=[
            HeadroomView(spare.pool, spare.replicas, spare.cpu, math.ceil(spare.memory), spare.until, spare.reason)
            for spare in forecast.headroom
        ],
        memory_pressure=[_pressure(pressure) for pressure in forecast.pressures],
        workloads_without_a_node=list(forecast.unplaced),
    )


def flat_window(window: PoolWindow) -> dict[str, Any]:
    """Return one row of a CSV file, with the quantile of each sum."""
    view: dict[str, Any] = msgspec.to_builtins(_window(window))
    del view["replicas"]
    return {name: cell["value"] if isinstance(cell, dict) else cell for name, cell in view.items()}


def _pool(forecast: PoolForecast) -> PoolView:
    peak = forecast.peak
    return PoolView(
        pool=forecast.pool.name,
        label=forecast.pool.label or None,
        nodes=len(forecast.pool.nodes),
        nodes_needed=forecast.nodes_needed,
        needed_from=peak.begin if peak and peak.packing.new_nodes else None,
        requested=CapacityView(forecast.requested_cpu, math.ceil(forecast.requested_memory)),
        allocatable=CapacityView(forecast.allocatable_cpu, math.ceil(forecast.allocatable_memory)),
        windows=[_window(each) for each in forecast.windows],
        workloads_without_a_forecast=list(forecast.unforecast),
    )


def _window(window: PoolWindow) -> WindowView:
    return WindowView(
        begin=window.begin,
        until=window.until,
        requested_cpu_cores=_cores(window.requested_cpu),
        requested_memory_bytes=_bytes(window.requested_memory),
        used_cpu_cores=_cores(window.used_cpu),
        used_memory_bytes=_bytes(window.used_memory),
        new_nodes=window.packing.new_nodes,
        pods_that_no_node_takes=window.packing.unplaced,
        replicas=dict(window.replicas),
    )


def _cores(total: JointSum) -> CoresView:
    return CoresView(total.value, total.independent, total.together, round(total.dependence, 3), total.samples)


def _bytes(total: JointSum) -> BytesView:
    value, independent, together = (math.ceil(each) for each in (total.value, total.independent, total.together))
    return BytesView(value, independent, together, round(total.dependence, 3), total.samples)


def _pressure(pressure: Pressure) -> PressureView:
    used = pressure.used_now, pressure.used_median, pressure.used_high
    free, now, median, high = map(math.ceil, (pressure.free, *used))
    first = list(pressure.first)
    return PressureView(pressure.node, pressure.risk, free, now, median, high, first, pressure.unmeasured)
