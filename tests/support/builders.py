"""Values of the domain with good defaults; a test names only what its story is about.

The workload at hand has four pods that request one core and one GiB each, and aims at 50 % of its CPU request: one
pod carries half a core, and two cores of demand ask for exactly the four pods there are.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from forecaster.domain.policy import HorizontalPolicy, Policy
from forecaster.domain.signal import CPU, MEMORY, REQUESTS, Measured, PeakForecast, Signal, Unknown
from forecaster.domain.vertical_policy import VerticalPolicy
from forecaster.domain.workload import Autoscaler, Resources, Target, TargetType, Workload, WorkloadId
from forecaster.vertical.sizing.containers import ChosenSize, ContainerSizing, PodSizing
from tests.support.outlook import SignalForecast
from tests.support.recommendations import GIB, NOON, workload_id

CPU_HALF = Target("cpu", TargetType.UTILIZATION, 0.5)
MEMORY_HALF = Target("memory", TargetType.UTILIZATION, 0.5)
RESOURCES = Resources(cpu_request=1.0, cpu_limit=2.0, memory_request=GIB, memory_limit=GIB)
LONG_AGO = NOON - timedelta(days=1)
STALE = Unknown("the latest sample is 7 min old, 5 min is the limit", stale=True)
NO_SAMPLE = Unknown("no sample")
NO_FORECAST = Unknown("10m of history; 1h is the least")


def minutes(count: float) -> timedelta:
    return timedelta(minutes=count)


def after(count: float) -> datetime:
    """Instant `count` minutes after noon."""
    return NOON + minutes(count)


def hpa(*targets: Target, lowest: int = 1, highest: int = 100) -> Autoscaler:
    return Autoscaler("web-hpa", lowest, highest, targets or (CPU_HALF,))


def workload(
    name: str = "web",
    *,
    replicas: int = 4,
    ready: int | None = None,
    resources: Resources = RESOURCES,
    autoscaler: Autoscaler | None = hpa(),  # noqa: B008  a frozen value
    id: WorkloadId | None = None,  # noqa: A002  the name of the field
) -> Workload:
    return Workload(id or workload_id(name), replicas, replicas if ready is None else ready, resources, autoscaler)


def policy(*, vertical: VerticalPolicy | None = None, **horizontal: Any) -> Policy:
    """Policy without stabilization unless a story is about it, so that the first count is also the last one."""
    given = {"scale_down_stabilization": timedelta(0), **horizontal}
    return Policy(horizontal=HorizontalPolicy(**given), vertical=vertical or VerticalPolicy())


def sized(request: float, *, limit: float | None = None, **more: Any) -> ChosenSize:
    """One resource of one container: a twentieth above the request, as much above the limit, a tenth of it idle."""
    return ChosenSize(request, limit, **{"over_request": 0.05, "over_limit": 0.05, "slack": 0.1 * request, **more})


def sizing_of(
    *, cpu: ChosenSize | None = None, memory: ChosenSize | None = None, days: float = 14.0, now: Resources = RESOURCES
) -> PodSizing:
    """Sizing of a pod that nobody divides into containers."""
    return (ContainerSizing("", now, cpu, memory, days),)


def measured(value: float, at: datetime = NOON) -> Measured:
    return Measured(value, at)


def ahead(peak: float, *, at: datetime = NOON, note: str = "") -> PeakForecast:
    return PeakForecast("ridge", 0.85, peak, 0.5 * peak, 0.8 * peak, 1.2 * peak, at + minutes(3), at + minutes(6), note)


def outlook(signal: Signal, now: float | Unknown, coming: float | Unknown) -> SignalForecast:
    return SignalForecast(
        signal,
        now if isinstance(now, Unknown) else measured(now),
        coming if isinstance(coming, Unknown) else ahead(coming),
    )


def outlooks(
    cpu: float | Unknown | None = None,
    cpu_ahead: float | Unknown = NO_FORECAST,
    *,
    memory: float | Unknown | None = None,
    memory_ahead: float | Unknown = NO_FORECAST,
    requests: float | Unknown | None = None,
    requests_ahead: float | Unknown = NO_FORECAST,
) -> dict[Signal, SignalForecast]:
    """Signals that are named; CPU in cores, memory in GiB, requests per second."""
    given = {
        CPU: (cpu, cpu_ahead),
        MEMORY: (_bytes(memory), _bytes(memory_ahead)),
        REQUESTS: (requests, requests_ahead),
    }
    return {signal: outlook(signal, now, coming or 0.0) for signal, (now, coming) in given.items() if now is not None}


def _bytes(gib: float | Unknown | None) -> float | Unknown | None:
    return gib * GIB if isinstance(gib, float | int) else gib
