"""From usage and today's requests to what each container should have: values in, values out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from forecaster.domain.window import DAY
from forecaster.vertical.sizing.cpu import cpu_sizes
from forecaster.vertical.sizing.load_forecast import UNFORECAST, PodLoad
from forecaster.vertical.sizing.mechanism import Mechanism
from forecaster.vertical.sizing.memory import memory_sizes
from forecaster.vertical.sizing.panel import ContainerPanel
from forecaster.vertical.sizing.recommender_sizes import recommender_sizes

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from numpy.typing import NDArray

    from forecaster.domain.policy import VerticalPolicy
    from forecaster.domain.workload import Resources
    from forecaster.vertical.sizing.panel import SizeColumns

    Floats = NDArray[np.floating]


@dataclass(frozen=True, slots=True)
class ContainerSpec:
    """What one container has today; `oom_floor` in bytes after a recent OOM kill, `load` of its pod ahead."""

    resources: Resources
    oom_floor: float = 0.0
    held_back: float = 0.0
    """Share of time in which its CPU is throttled or stalled: what it uses is then not what it wants."""
    load: PodLoad = UNFORECAST


@dataclass(frozen=True, slots=True)
class ChosenSize:
    """What was chosen for one resource of one container. Amounts in cores or bytes; `slack` their mean."""

    request: float
    limit: float | None
    over_request: float | None
    over_limit: float | None
    slack: float
    mechanism: Mechanism = Mechanism.STEADY
    kept: bool = False


@dataclass(frozen=True, slots=True)
class ChosenSizes:
    """One container: both resources, None where nothing is known, and how many days are."""

    now: Resources
    cpu: ChosenSize | None
    memory: ChosenSize | None
    days: float
    load: PodLoad = UNFORECAST


def choose(
    cpu: Floats, memory: Floats, step: timedelta, specified: Sequence[ContainerSpec], policy: VerticalPolicy
) -> list[ChosenSizes]:
    """One row for each container; `cpu` and `memory` [row, time], the newest column last, NaN for gaps."""
    seen = _seen(cpu, memory, DAY // step, specified)
    if policy.recommender == "forecaster":
        sizes = cpu_sizes(seen, policy), memory_sizes(seen, policy)
    else:
        sizes = recommender_sizes(seen, policy)
    days = np.maximum(_days(cpu, DAY // step), _days(memory, DAY // step)).tolist()
    return [
        ChosenSizes(one.resources, of_cpu, of_memory, known, one.load)
        for one, of_cpu, of_memory, known in zip(specified, *map(_rows, sizes), days, strict=True)
    ]


def _seen(cpu: Floats, memory: Floats, points: int, specified: Sequence[ContainerSpec]) -> ContainerPanel:
    now = np.array([_amounts(one.resources) for one in specified], np.float64).reshape(-1, 4)
    return ContainerPanel(
        cpu=_at_least_a_day(cpu, points),
        memory=_at_least_a_day(memory, points),
        points=points,
        cpu_request=now[:, 0],
        cpu_limit=now[:, 1],
        memory_request=now[:, 2],
        memory_limit=now[:, 3],
        oom_floor=np.array([one.oom_floor for one in specified], np.float64),
        growth=np.array([one.load.growth for one in specified], np.float64),
        held_back=np.array([one.held_back for one in specified], np.float64),
        likeness=_likeness([one.load for one in specified]),
    )


def _likeness(loads: Sequence[PodLoad]) -> NDArray[np.float64] | None:
    """[row, day], 1 where nothing is known; None where nothing is known of anybody."""
    days = max((len(one.likeness) for one in loads), default=0)
    if not days:
        return None
    return np.array([(*one.likeness, *(1.0,) * (days - len(one.likeness))) for one in loads])


def _amounts(resources: Resources) -> list[float]:
    values = (resources.cpu_request, resources.cpu_limit, resources.memory_request, resources.memory_limit)
    return [math.nan if value is None else value for value in values]


def _at_least_a_day(usage: Floats, points: int) -> Floats:
    missing = points - usage.shape[1]
    return np.pad(usage, ((0, 0), (max(missing, 0), 0)), constant_values=np.nan)


def _days(usage: Floats, points: int) -> Floats:
    return np.asarray(np.count_nonzero(~np.isnan(usage), axis=1) / points)


def _rows(sizes: SizeColumns) -> list[ChosenSize | None]:
    return [None if math.isnan(request) else _sized(sizes, row) for row, request in enumerate(sizes.request.tolist())]


def _sized(sizes: SizeColumns, row: int) -> ChosenSize:
    return ChosenSize(
        request=float(sizes.request[row]),
        limit=_if_known(sizes.limit[row]),
        over_request=_if_known(sizes.over_request[row]),
        over_limit=_if_known(sizes.over_limit[row]),
        slack=float(sizes.slack[row]),
        mechanism=Mechanism(int(sizes.mechanism[row])),
        kept=bool(sizes.kept[row]),
    )


def _if_known(value: float) -> float | None:
    return None if math.isnan(value) else float(value)
