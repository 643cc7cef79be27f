"""A week of a cluster as Prometheus would have scraped it: the bundled recording, spread over pods that come and go.

Thirty-three workloads are made of the eleven recorded ones: each once as it is, once shifted by five hours and halved,
once shifted by eleven hours and a third larger. A signal that a workload lacks is borrowed: memory from another one,
requests from its own CPU. `Week` keeps its own values, so that tests can compare with them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from forecaster.domain.signal import CPU, DEMAND, MEMORY, REQUESTS, Signal
from forecaster.domain.workload import Autoscaler, Resources, Target, TargetType
from forecaster.sources.recorded import MINUTE, load_recording
from tests.support.prometheus import Span, fill, head

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime
    from pathlib import Path

    from numpy.typing import NDArray

    from forecaster.domain.workload import Workload
    from tests.support.prometheus import Binaries

WEEK = timedelta(days=7)
AHEAD = timedelta(hours=2)
"""Scrapes after `now` that lie in the blocks already: time that goes on finds them as if they had just been made."""

SCRAPE_OFFSET = 7.0
"""Seconds after the full minute at which every target is scraped."""

_VARIANTS = (("", 0, 1.0), ("-eu", 5 * 60, 0.5), ("-us", 11 * 60, 4 / 3))
"""Suffix of the name, shift in minutes, factor."""

_NOW_IN_RECORDING = timedelta(days=2, hours=10)
"""Since its start, of a week that is played round and round."""

_REQUESTS_PER_CORE = 20.0
_UTILIZATION = 0.7
_MOST_PODS = 4
"""Most pods of a workload. Totals matter here; every further pod costs 50,000 samples and shows nothing new."""

_STATE_EVERY = 2
"""kube-state-metrics is scraped at every second scrape of the kubelets."""

_HOUR = 60
_ROLLOUT = 80
"""The hour at which the first workload gets a new ReplicaSet and with it new pods."""


@dataclass(frozen=True, eq=False)
class Week:
    """Demand and pods of the week.

    `demand[signal][i, j]` is the demand of `workloads[i]` in the minute that ends at `start + j` minutes, `pods[i, h]`
    the number of its pods in the hour that starts at `start + h` hours. `workloads` is the inventory at `now`.
    """

    start: datetime
    now: datetime
    workloads: tuple[Workload, ...]
    demand: Mapping[Signal, NDArray[np.float64]]
    pods: NDArray[np.intp]

    def rate(self, signal: Signal, at: datetime, window: int) -> NDArray[np.float64]:
        """Rate over `window` minutes that is known at `at`: its scrapes are a minute less apart, and a minute old."""
        newest = (at - self.start) // MINUTE - 1
        return self.demand[signal][:, newest - window + 2 : newest + 1].mean(axis=1)

    def level(self, signal: Signal, at: datetime) -> NDArray[np.float64]:
        """Values of the last scrape before `at`."""
        return self.demand[signal][:, (at - self.start) // MINUTE - 1]


def rounded(workload: Workload) -> Workload:
    """Round the mean request to nine digits: servers and their versions add in other orders."""
    return replace(
        workload, resources=replace(workload.resources, cpu_request=round(workload.resources.cpu_request or 0.0, 9))
    )


class Life(NamedTuple):
    """One pod from its first to its last scrape, counted from the start of the week."""

    workload: int
    name: str
    replicaset: str
    first: int
    last: int


def fill_week(data: Path, now: datetime, binaries: Binaries) -> Week:
    """Fill the data folder of a Prometheus with the week before `now`, a whole minute, and say what went in."""
    week = played_week(now)
    fill(data, scraped(week), binaries)
    return week


def played_week(now: datetime) -> Week:
    """The recording from a week before `now` to a little after it, `now` always at the same minute of it.

    Demand does not depend on the hour at which the tests run, then, and neither do decisions from it.
    """
    recording = load_recording()
    start = now - WEEK
    columns = _NOW_IN_RECORDING // MINUTE + np.arange((WEEK + AHEAD) // MINUTE + 1)
    demand = {signal: _variants(recording.values[signal], columns) for signal in DEMAND}
    demand = completed(demand)
    names = [
        replace(workload, id=workload.id._replace(name=workload.id.name + suffix))
        for suffix, _, _ in _VARIANTS
        for workload in recording.workloads
    ]
    workloads = [sized(workload, *used) for workload, *used in zip(names, demand[CPU], demand[MEMORY], strict=True)]
    pods = np.array([pods_of(workload, cpu) for workload, cpu in zip(workloads, demand[CPU], strict=True)])
    current = pods[:, WEEK // timedelta(hours=1) - 1].tolist()
    return Week(
        start=start,
        now=now,
        workloads=tuple(
            replace(workload, replicas=n, ready_replicas=n) for workload, n in zip(workloads, current, strict=True)
        ),
        demand=demand,
        pods=pods,
    )


def _variants(values: NDArray[np.float64], columns: NDArray[np.intp]) -> NDArray[np.float64]:
    return np.vstack([values[:, (columns + shift) % values.shape[1]] * factor for _, shift, factor in _VARIANTS])


def completed(demand: Mapping[Signal, NDArray[np.float64]]) -> dict[Signal, NDArray[np.float64]]:
    """Demand with borrowed values where a workload lacks a signal, and without gaps."""
    cpu, memory, requests = (demand[signal].copy() for signal in DEMAND)
    known = np.flatnonzero(~np.isnan(memory).all(axis=1))
    for row in np.flatnonzero(np.isnan(memory).all(axis=1)):
        memory[row] = memory[known[row % known.size]]
    silent = np.isnan(requests).all(axis=1)
    requests[silent] = _REQUESTS_PER_CORE * cpu[silent]
    return {CPU: _held(cpu), MEMORY: _held(memory), REQUESTS: _held(requests)}


def _held(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Gaps filled with the value before them: a pod that runs uses something."""
    columns = np.where(np.isnan(values), 0, np.arange(values.shape[1]))
    return np.nan_to_num(np.take_along_axis(values, np.maximum.accumulate(columns, axis=1), axis=1))


def sized(workload: Workload, cpu: NDArray[np.float64], memory: NDArray[np.float64]) -> Workload:
    """Give the workload a request at which the highest demand needs `_MOST_PODS`, and an HPA that leaves room above.

    One pod may hold all the memory: there are as many as the CPU needs, and none uses more than its limit.
    """
    request = round(float(cpu.max()) / (_MOST_PODS * _UTILIZATION), 3)
    limit = max(2.0**31, 2.0 ** np.ceil(np.log2(memory.max())))
    resources = Resources(cpu_request=request, memory_request=2.0**31, memory_limit=limit)
    target = Target("cpu", TargetType.UTILIZATION, _UTILIZATION)
    scaled = Autoscaler(workload.id.name, 1, 3 * _MOST_PODS, (target,)) if workload.autoscaler else None
    return replace(workload, resources=resources, autoscaler=scaled)


def pods_of(workload: Workload, cpu: NDArray[np.float64]) -> NDArray[np.intp]:
    """Pods in each hour, as the HPA of the workload would have them."""
    peaks = np.maximum.reduceat(cpu, np.arange(0, cpu.size, _HOUR))
    needed = np.ceil(peaks / (_UTILIZATION * (workload.resources.cpu_request or 1.0)))
    return np.clip(needed, 1, _MOST_PODS).astype(np.intp)


def lives(week: Week) -> Iterator[Life]:
    """Every pod of the week. A pod that comes back has a new name unless a StatefulSet gives it the old one."""
    for index, (workload, counts) in enumerate(zip(week.workloads, week.pods, strict=True)):
        for ordinal in range(counts.max()):
            alive = np.flatnonzero(counts > ordinal)
            breaks = np.flatnonzero((np.diff(alive) > 1) | ((index == 0) & (alive[1:] == _ROLLOUT)))
            for stretch in np.split(alive, breaks + 1):
                yield _life(workload, index, ordinal, int(stretch[0]), int(stretch[-1]) + 1)


def _life(workload: Workload, index: int, ordinal: int, first: int, last: int) -> Life:
    if workload.id.kind == "StatefulSet":
        return Life(index, f"{workload.id.name}-{ordinal}", "", first * _HOUR, last * _HOUR)
    replicaset = f"{workload.id.name}-{'b' if index == 0 and first >= _ROLLOUT else 'a'}7c9"
    return Life(index, f"{replicaset}-{ordinal}x{first:03d}", replicaset, first * _HOUR, last * _HOUR)


def scraped(week: Week) -> Iterator[Span]:
    """Every series of the week."""
    for life in lives(week):
        yield from _of_pod(week, life)
    for index, workload in enumerate(week.workloads):
        yield from _of_workload(week, index, workload)


def _of_pod(week: Week, life: Life) -> Iterator[Span]:
    workload = week.workloads[life.workload]
    scrapes = np.arange(life.first, min(life.last + 1, week.demand[CPU].shape[1]))
    pod = {"namespace": workload.id.namespace, "pod": life.name}
    app = pod | {"container": "app", "id": f"/kubepods/{life.name}/app", "node": "node-1"}
    share = 1 / week.pods[life.workload, np.minimum((scrapes - 1) // _HOUR, week.pods.shape[1] - 1)]
    cpu, memory, requests = (week.demand[signal][life.workload, scrapes] * share for signal in DEMAND)
    yield _span(week, scrapes, "container_cpu_usage_seconds_total", app, _counter(cpu))
    yield _span(week, scrapes, "container_memory_working_set_bytes", app, memory)
    if life.workload == 0:  # cAdvisor exports these beside the containers; they are to be left out
        whole = app | {"container": "", "id": f"/kubepods/{life.name}"}
        yield _span(week, scrapes, "container_cpu_usage_seconds_total", whole, _counter(cpu))
        yield _span(week, scrapes, "container_memory_working_set_bytes", whole, memory)
    mesh = pod | {
        "reporter": "destination",
        "destination_workload": workload.id.name,
        "destination_workload_namespace": workload.id.namespace,
    }
    yield _span(week, scrapes, "istio_requests_total", mesh, _counter(requests))
    yield from _state_of_pod(week, life, scrapes[::_STATE_EVERY], pod)


def _state_of_pod(week: Week, life: Life, scrapes: NDArray[np.intp], pod: dict[str, str]) -> Iterator[Span]:
    workload = week.workloads[life.workload]
    kind, owner = ("ReplicaSet", life.replicaset) if life.replicaset else (workload.id.kind, workload.id.name)
    owned = {"owner_kind": kind, "owner_name": owner, "owner_is_controller": "true"}
    yield _constant(week, scrapes, "kube_pod_owner", pod | owned, 1)
    yield _constant(week, scrapes, "kube_pod_status_phase", pod | {"phase": "Running"}, 1)
    container = pod | {"container": "app"}
    yield _constant(week, scrapes, "kube_pod_container_info", container | {"image": "app"}, 1)
    stated = (
        ("requests", "cpu", workload.resources.cpu_request),
        ("requests", "memory", workload.resources.memory_request),
        ("limits", "memory", workload.resources.memory_limit),
    )
    for kind_of_bound, resource, amount in stated:
        name = f"kube_pod_container_resource_{kind_of_bound}"
        yield _constant(week, scrapes, name, container | {"resource": resource}, amount or 0.0)


def _of_workload(week: Week, index: int, workload: Workload) -> Iterator[Span]:
    scrapes = np.arange(0, week.demand[CPU].shape[1], _STATE_EVERY)
    counts = week.pods[index, np.minimum(scrapes // _HOUR, week.pods.shape[1] - 1)].astype(float)
    kind = workload.id.kind.lower()
    names = {
        "deployment": ("kube_deployment_spec_replicas", "kube_deployment_status_replicas_ready"),
        "statefulset": ("kube_statefulset_replicas", "kube_statefulset_status_replicas_ready"),
    }
    who = {"namespace": workload.id.namespace, kind: workload.id.name}
    for name in names[kind]:
        yield _span(week, scrapes, name, who, counts)
    for replicaset in {life.replicaset for life in lives(week) if life.workload == index and life.replicaset}:
        owned = {"owner_kind": workload.id.kind, "owner_name": workload.id.name, "owner_is_controller": "true"}
        labels = {"namespace": workload.id.namespace, "replicaset": replicaset}
        yield _constant(week, scrapes, "kube_replicaset_owner", labels | owned, 1)
    if workload.autoscaler:
        yield from _of_hpa(week, scrapes, workload, workload.autoscaler)


def _of_hpa(week: Week, scrapes: NDArray[np.intp], workload: Workload, hpa: Autoscaler) -> Iterator[Span]:
    prefix, labels = (
        "kube_horizontalpodautoscaler",
        {"namespace": workload.id.namespace, "horizontalpodautoscaler": hpa.name},
    )
    scaled = {"scaletargetref_kind": workload.id.kind, "scaletargetref_name": workload.id.name}
    target = {"metric_name": "cpu", "metric_target_type": "utilization"}
    yield _constant(week, scrapes, f"{prefix}_info", labels | scaled, 1)
    yield _constant(week, scrapes, f"{prefix}_spec_min_replicas", labels, hpa.min_replicas)
    yield _constant(week, scrapes, f"{prefix}_spec_max_replicas", labels, hpa.max_replicas)
    yield _constant(week, scrapes, f"{prefix}_spec_target_metric", labels | target, 100 * _UTILIZATION)


def _counter(per_second: NDArray[np.float64]) -> NDArray[np.float64]:
    """Zero at the first scrape, then what each minute added."""
    return np.concatenate([[0.0], np.cumsum(per_second[1:] * 60)])


def _constant(week: Week, scrapes: NDArray[np.intp], name: str, labels: dict[str, str], value: float) -> Span:
    return _span(week, scrapes, name, labels, np.full(scrapes.size, float(value)))


def _span(
    week: Week, scrapes: NDArray[np.intp], name: str, labels: dict[str, str], values: NDArray[np.float64]
) -> Span:
    times = week.start.timestamp() + 60.0 * scrapes + SCRAPE_OFFSET
    return Span(head(name, labels), times, values)
