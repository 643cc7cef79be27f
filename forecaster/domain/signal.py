"""Measured signals of a workload. A signal is data: CPU, memory and requests are the first three of a table.

Beside it stands what is known of a signal of one workload: measured now, forecast for the coming window, step by step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Self


class Signal(str):
    """A measured kind of demand: its name and properties.

    A signal equals its name, and so another signal of that name. Values are totals over all pods of a workload, in
    `unit`.
    """

    __slots__ = (
        "limited",
        "metrics",
        "of_all_pods",
        "of_container",
        "plateau",
        "resource",
        "survives_zero",
        "unit",
        "warm_up",
    )

    unit: str
    """The unit of every value inside the program."""
    resource: str
    """Resource of a pod's requests and limits that divides it; empty where there is none."""
    metrics: tuple[str, ...]
    """Names of the metrics of an HPA that mean it, beside the resource."""
    of_container: bool
    """Whether the signal belongs to one container of each pod, named by the HPA (ContainerResource)."""
    of_all_pods: bool
    """Whether an HPA divides it by all pods (an External metric, AverageValue), not by the ready ones."""
    survives_zero: bool
    """Whether it is measured without pods, for example at an ingress or in a broker."""
    warm_up: bool
    """Whether new pods use some of it to start, which is not demand."""
    limited: bool
    """Whether limits, throttling and the number of pods can cut it off, so that demand exceeds the measurement."""
    plateau: bool
    """Whether a stretch on the highest value of weeks is taken for a limit and not for demand."""

    def __new__(
        cls,
        name: str,
        *,
        unit: str,
        resource: str = "",
        metrics: tuple[str, ...] = (),
        of_container: bool = False,
        of_all_pods: bool = False,
        survives_zero: bool = False,
        warm_up: bool = False,
        limited: bool = False,
        plateau: bool = True,
    ) -> Self:
        """Return a signal of this name; the defaults suit work that pods carry without a bound of its own."""
        signal = super().__new__(cls, name)
        signal.unit, signal.resource, signal.metrics = unit, resource, metrics
        signal.of_container, signal.of_all_pods, signal.survives_zero = of_container, of_all_pods, survives_zero
        signal.warm_up, signal.limited, signal.plateau = warm_up, limited, plateau
        return signal

    def named_by(self, metrics: tuple[str, ...]) -> Signal:
        """Return this signal with the names that an HPA uses for it."""
        return _signal_of(str(self), self.properties() | {"metrics": metrics})

    def properties(self) -> dict[str, Any]:
        """Return everything about the signal but its name."""
        return {name: getattr(self, name) for name in self.__slots__}

    def __reduce__(self) -> tuple[Callable[..., Signal], tuple[str, Mapping[str, Any]]]:
        return _signal_of, (str(self), self.properties())


def _signal_of(name: str, properties: Mapping[str, Any]) -> Signal:
    return Signal(name, **properties)


CPU = Signal("cpu", unit="cores", resource="cpu", warm_up=True, limited=True)
MEMORY = Signal("memory", unit="bytes", resource="memory", plateau=False)
REQUESTS = Signal("requests", unit="requests/s", of_all_pods=True, survives_zero=True)
CPU_CONTAINER = Signal("cpu_container", unit="cores", resource="cpu", of_container=True, warm_up=True, limited=True)
MEMORY_CONTAINER = Signal("memory_container", unit="bytes", resource="memory", of_container=True, plateau=False)
PODS = Signal("pods", unit="pods", plateau=False)
"""Ready pods: not demand, but what turns totals into shares of one pod."""


@dataclass(frozen=True, slots=True)
class Signals:
    """The table of signals: every kind of demand that is measured, by name and by the metrics that mean it."""

    demand: tuple[Signal, ...]
    by_name: Mapping[str, Signal] = field(init=False, repr=False, compare=False)
    by_metric: Mapping[str, Signal] = field(init=False, repr=False, compare=False)
    """Signals by the name that an HPA uses: of a resource of whole pods, or of a metric."""

    def __post_init__(self) -> None:
        named = ((signal, ("" if signal.of_container else signal.resource, *signal.metrics)) for signal in self.demand)
        meanings = {name: signal for signal, names in named for name in names if name}
        object.__setattr__(self, "by_name", {str(signal): signal for signal in self.measured})
        object.__setattr__(self, "by_metric", meanings)

    @property
    def measured(self) -> tuple[Signal, ...]:
        """Return every signal that is read from a source: demand, and the ready pods that divide it."""
        return (*self.demand, PODS)


DEMAND = (CPU, MEMORY, REQUESTS)
"""Signals measured for every workload."""
OF_CONTAINER: Mapping[str, Signal] = {signal.resource: signal for signal in (CPU_CONTAINER, MEMORY_CONTAINER)}
"""Signal of workloads whose HPA reads one container, by resource."""
BUILT_IN = Signals((*DEMAND, *OF_CONTAINER.values()))


# A signal of one workload: measured now, forecast for the coming window, and step by step.


@dataclass(frozen=True, slots=True)
class Measured:
    """The latest total demand, in the signal's unit, and the instant it describes."""

    value: float
    at: datetime
    lower_bound: str = ""
    """Reason why the value is part of a sum only, which may raise a count and never lowers one; empty where it is
    complete."""


@dataclass(frozen=True, slots=True)
class PeakForecast:
    """The forecast for the window from lead time on, in the signal's unit.

    `peak` is the policy's quantile of the largest value within the window; `low`, `median`, `high` are its 10 %, 50 %
    and 95 % quantiles.
    """

    model: str
    quantile: float
    peak: float
    low: float
    median: float
    high: float
    begin: datetime
    until: datetime
    note: str = ""
    """Reason why another model than the requested one made the forecast; empty if it did not."""
    levels: tuple[float, ...] = ()
    """Levels of `peaks`; empty where only one quantile is known."""
    peaks: tuple[float, ...] = ()
    """The whole distribution of the largest value, in the signal's unit: one quantile a level, not crossing."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """Reason for a missing value; `stale` when there is one that is too old to act on."""

    note: str
    stale: bool = False


@dataclass(frozen=True, slots=True)
class StepForecast:
    """Quantiles of one signal of one workload for each of the coming steps, in the signal's unit.

    `values[k]` has one quantile a level for the mean demand from `begin + k * step` to `begin + (k + 1) * step`.
    """

    made_at: datetime
    begin: datetime
    step: timedelta
    levels: tuple[float, ...]
    values: tuple[tuple[float, ...], ...]
    model: str
