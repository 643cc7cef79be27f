"""Recommendations of VPA and KRR from the stored history by five minutes, and of the cluster's own VPAs.

These tools read containers of single pods; here the mean over a workload's pods stands for one of them. Neither sees
OOM kills here. VPA starts empty at the beginning of the history, with its defaults; KRR is its strategy `simple`. KRR
1.29's rounding and severities: spec/vertical.md §2; the rest is in tests/oracles/krr.py.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forecaster.domain.amounts import resource_amount
from forecaster.domain.quantity import QuantityError, parse_quantity
from forecaster.domain.workload import Resources, total
from forecaster.vertical.recommenders.vpa import VpaPanel

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

VPA, KRR = "vpa", "krr"
CPU_QUANTILE, MEMORY_BUFFER = 0.95, 0.15
MIN_POINTS = 100
"""Fewest samples of which KRR says anything."""


def vpa(cpu: Floats, memory: Floats, instants: Ints) -> list[Resources | None]:
    """VPA's target per pod of each row; None where nothing was ever measured.

    `cpu` (cores) and `memory` (bytes) are [workload, time], NaN where unknown; `instants` are seconds since 1970.
    """
    panel = VpaPanel(len(cpu))
    if not len(cpu) or not len(instants):
        return [None] * len(cpu)
    panel.add_cpu(cpu, instants)
    for column, at in enumerate(instants.tolist()):
        panel.add_memory(memory[:, column], at)
    bounds = panel.recommend()
    measured = np.asarray(~(np.isnan(cpu).all(axis=1) | np.isnan(memory).all(axis=1)))
    pairs = zip(bounds["cpu"].target.tolist(), bounds["memory"].target.tolist(), measured, strict=True)
    return [Resources(milli / 1000, None, float(size), None) if known else None for milli, size, known in pairs]


def krr(cpu: Floats, memory: Floats, hpa_on: list[frozenset[str]]) -> list[Resources | None]:
    """KRR's recommendation per pod of each row; None where it says nothing about either resource."""
    return [
        _krr(cores[~np.isnan(cores)], used[~np.isnan(used)], targeted)
        for cores, used, targeted in zip(cpu, memory, hpa_on, strict=True)
    ]


def _krr(cores: Floats, used: Floats, targeted: frozenset[str]) -> Resources | None:
    """CPU request at a quantile, memory at the peak and a buffer; nothing of a resource that an HPA targets."""
    request = size = None
    if cores.size >= MIN_POINTS and "cpu" not in targeted:
        request = rounded_cpu(float(np.quantile(cores, CPU_QUANTILE)))
    if used.size >= MIN_POINTS and "memory" not in targeted:
        size = rounded_memory(float(used.max()) * (1 + MEMORY_BUFFER))
    return None if request is None and size is None else Resources(request, None, size, size)


MEBIBYTE = 2**20
CPU_FLOOR_MILLICORES = 10
MEMORY_FLOOR_MIB = 100


def rounded_cpu(cores: float, floor_millicores: float = CPU_FLOOR_MILLICORES) -> float:
    """Cores in whole millicores, rounded up, and at least the floor."""
    return max(math.ceil(cores * 1000) / 1000, floor_millicores / 1000)


def rounded_memory(memory: float, floor_mib: float = MEMORY_FLOOR_MIB) -> float:
    """Bytes in whole mebibytes, rounded up, and at least the floor."""
    return float(max(math.ceil(memory / MEBIBYTE) * MEBIBYTE, floor_mib * MEBIBYTE))


class Severity(StrEnum):
    """Distance of a recommendation from the present value, from nothing known to far off."""

    UNKNOWN = "UNKNOWN"
    GOOD = "GOOD"
    OK = "OK"
    WARNING = "WARNING"
    CRITICAL = "CRITICAL"


_WORST_FIRST = (Severity.CRITICAL, Severity.WARNING, Severity.OK, Severity.GOOD, Severity.UNKNOWN)
_CPU_STEPS = ((0.5, Severity.CRITICAL), (0.25, Severity.WARNING), (0.1, Severity.OK))
_MEMORY_STEPS = ((500.0, Severity.CRITICAL), (250.0, Severity.WARNING), (100.0, Severity.OK))


def severity_of(resource: str, current: float | None, recommended: float | None) -> Severity:
    """Return the severity by the absolute difference in cores or mebibytes; too much weighs like too little."""
    if current is None or recommended is None:
        return Severity.GOOD if current is recommended else Severity.WARNING
    difference = abs(current - recommended)
    steps = _CPU_STEPS if resource == "cpu" else _MEMORY_STEPS
    scale = 1 if resource == "cpu" else MEBIBYTE
    return next((severity for least, severity in steps if difference / scale >= least), Severity.GOOD)


def worst(severities: Sequence[Severity]) -> Severity:
    """Return the severity of a row from those of its values; unknown counts least."""
    return min(severities, key=_WORST_FIRST.index)


LIVE_VPA = "live_vpa"
"""Name of this recommender in comparisons."""
VPA_RESOURCES = ("cpu", "memory")


class VpaTarget(NamedTuple):
    """A VPA's recommendation for one container: requests in cores and bytes; None where it has none."""

    container: str
    target: Resources
    lower: Resources
    upper: Resources

    def __str__(self) -> str:
        return f"{self.container} {', '.join(self._of(name) for name in VPA_RESOURCES)}"

    def _of(self, name: str) -> str:
        target, lower, upper = (resource_amount(bound.request(name), name) for bound in self[1:])
        return f"{name} {target} ({lower} to {upper})"


class VpaSizes(NamedTuple):
    """One VPA and its recommendation."""

    name: str
    mode: str
    containers: tuple[VpaTarget, ...] = ()
    why: str = ""
    """Reason why it has no recommendation, from its own status."""

    def pod(self, containers: Collection[str]) -> Resources | None:
        """Requests of a pod with these containers; None where it does not recommend for each.

        A VPA goes on recommending for containers that are gone from the template; these are not counted.
        """
        targets = {container.container: container.target for container in self.containers}
        known = targets and targets.keys() >= set(containers)
        return total(targets[name] for name in containers) if known else None

    def __str__(self) -> str:
        text = "; ".join(map(str, self.containers)) or ": ".join(filter(None, ("nothing yet", self.why)))
        return f"VPA {self.name} (updateMode {self.mode}) recommends {text}"


def vpa_sizes(name: str, mode: str, status: Any) -> VpaSizes:
    """Read the status of a VPA from JSON; parts in another form are not known and do not fail."""
    reported = _mapping(_mapping(status).get("recommendation")).get("containerRecommendations")
    containers = map(_mapping, _list(reported))
    targets = tuple(_target(container) for container in containers if container.get("containerName"))
    return VpaSizes(name, mode, targets, "" if targets else _why_none(_mapping(status)))


def _target(reported: Mapping[str, Any]) -> VpaTarget:
    return VpaTarget(
        str(reported["containerName"]),
        *(_requests(reported.get(field)) for field in ("target", "lowerBound", "upperBound")),
    )


def _requests(amounts: Any) -> Resources:
    cpu, memory = (_amount(_mapping(amounts).get(name)) for name in VPA_RESOURCES)
    return Resources(cpu_request=cpu, memory_request=memory)


def _amount(text: Any) -> float | None:
    """Cores or bytes."""
    try:
        return None if text is None else parse_quantity(str(text)).as_float()
    except QuantityError:
        return None


def _why_none(status: Mapping[str, Any]) -> str:
    """Return the reason from its condition `RecommendationProvided`."""
    conditions = map(_mapping, _list(status.get("conditions")))
    provided = (condition for condition in conditions if condition.get("type") == "RecommendationProvided")
    return next((str(condition.get("message") or condition.get("reason") or "") for condition in provided), "")


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
