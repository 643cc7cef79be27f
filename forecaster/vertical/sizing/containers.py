"""Recommended size of each container, from its usage and its present size: one row of arrays, one value."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

import numpy as np
from numpy.typing import NDArray

from forecaster.domain.vertical_policy import VerticalPolicy
from forecaster.domain.window import DAY
from forecaster.domain.workload import Resources
from forecaster.vertical.sizing.cpu import cpu_sizes
from forecaster.vertical.sizing.load_forecast import UNFORECAST, PodLoad
from forecaster.vertical.sizing.memory import Mechanism, memory_sizes
from forecaster.vertical.sizing.panel import ContainerPanel, SizeColumns

Floats = NDArray[np.floating]

OWN_DAYS = 1.0
"""Days of its own that a container has to have before its sizes are taken."""


@dataclass(frozen=True, slots=True)
class ContainerSpec:
    """Present size of one container; `oom_floor` in bytes after a recent OOM kill, `load` of its pod to come."""

    resources: Resources
    oom_floor: float = 0.0
    throttled: float = 0.0
    """Share of time in which its CPU is throttled or stalled: its usage is then less than its demand."""
    load: PodLoad = UNFORECAST
    name: str = ""


@dataclass(frozen=True, slots=True)
class ChosenSize:
    """Chosen size of one resource of one container, in cores or bytes; `slack` is the mean unused amount."""

    request: float
    limit: float | None
    over_request: float | None
    over_limit: float | None
    slack: float
    mechanism: Mechanism = Mechanism.STEADY
    unchanged: bool = False
    """Today's size stays, because a change costs more than it gains."""


@dataclass(frozen=True, slots=True)
class ContainerSizing:
    """One container: present size, chosen size, and the days behind it; `note` says why there is none."""

    name: str
    now: Resources
    cpu: ChosenSize | None = None
    memory: ChosenSize | None = None
    days: float = 0.0
    note: str = ""
    load_ratio: float = 1.0
    """Forecast load of one pod over that of the days its sizes were learned from; 1 where that is not known."""
    explained: Mapping[str, str] = field(default_factory=dict)
    """Basis of a size, by resource, where it is not the container's own days: donors, or runs."""
    runs: bool = True
    """Whether it counts in the pod's requests: no init container that ends, and still in the specification."""

    def of(self, metric: str) -> ChosenSize | None:
        """Return the chosen size of `cpu` or `memory`."""
        return self.cpu if metric == "cpu" else self.memory

    def knows(self, metric: str) -> bool:
        """Whether its size of this resource may be taken."""
        return self.days >= OWN_DAYS or metric in self.explained


PodSizing = tuple[ContainerSizing, ...]
NO_SIZING: PodSizing = ()


def choose(
    cpu: Floats, memory: Floats, step: timedelta, specs: Sequence[ContainerSpec], policy: VerticalPolicy
) -> PodSizing:
    """Sizes of each container from `cpu` in cores and `memory` in bytes [row, time], the latest last, NaN for gaps."""
    panel = panel_of(cpu, memory, DAY // step, specs)
    sizes = cpu_sizes(panel, policy), memory_sizes(panel, policy)
    days = np.maximum(_days(cpu, DAY // step), _days(memory, DAY // step)).tolist()
    return tuple(
        ContainerSizing(spec.name, spec.resources, of_cpu, of_memory, known, load_ratio=spec.load.ratio)
        for spec, of_cpu, of_memory, known in zip(specs, *map(chosen_rows, sizes), days, strict=True)
    )


def panel_of(cpu: Floats, memory: Floats, points: int, specs: Sequence[ContainerSpec]) -> ContainerPanel:
    """Return usage [row, time], `points` to a day, with the present size of each container."""
    now = np.array([spec.resources.amounts for spec in specs], np.float64).reshape(-1, 4)
    return ContainerPanel(
        cpu=_at_least_a_day(cpu, points),
        memory=_at_least_a_day(memory, points),
        points=points,
        cpu_request=now[:, 0],
        cpu_limit=now[:, 1],
        memory_request=now[:, 2],
        memory_limit=now[:, 3],
        oom_floor=np.array([spec.oom_floor for spec in specs], np.float64),
        growth=np.array([spec.load.growth for spec in specs], np.float64),
        throttled=np.array([spec.throttled for spec in specs], np.float64),
        likeness=_likeness([spec.load for spec in specs]),
    )


def _likeness(loads: Sequence[PodLoad]) -> NDArray[np.float64] | None:
    """Return [row, day] weights, 1 where no load is known; None where no row has a known load."""
    days = max((len(load.likeness) for load in loads), default=0)
    if not days:
        return None
    return np.array([(*load.likeness, *(1.0,) * (days - len(load.likeness))) for load in loads])


def _at_least_a_day(usage: Floats, points: int) -> Floats:
    missing = points - usage.shape[1]
    return np.pad(usage, ((0, 0), (max(missing, 0), 0)), constant_values=np.nan)


def _days(usage: Floats, points: int) -> Floats:
    return np.asarray(np.count_nonzero(~np.isnan(usage), axis=1) / points)


def chosen_rows(sizes: SizeColumns) -> list[ChosenSize | None]:
    """Return the size of each row; None where there is none."""
    return [None if math.isnan(request) else _sized(sizes, row) for row, request in enumerate(sizes.request.tolist())]


def _sized(sizes: SizeColumns, row: int) -> ChosenSize:
    return ChosenSize(
        request=float(sizes.request[row]),
        limit=_if_known(sizes.limit[row]),
        over_request=_if_known(sizes.over_request[row]),
        over_limit=_if_known(sizes.over_limit[row]),
        slack=float(sizes.slack[row]),
        mechanism=Mechanism(int(sizes.mechanism[row])),
        unchanged=bool(sizes.unchanged[row]),
    )


def _if_known(value: float) -> float | None:
    return None if math.isnan(value) else float(value)
