"""Requests and limits of one workload from what its pods used over the window."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Unknown = Literal["?"]
UNKNOWN: Unknown = "?"
Value = float | Unknown | None
"""Cores or bytes; None for unset, `?` for not known."""


@dataclass(frozen=True, slots=True)
class StrategySettings:
    """The strategies' flags, with their defaults. Percentiles are percent, as upstream has them."""

    cpu_percentile: float = 95.0
    cpu_request_percentile: float = 66.0
    cpu_limit_percentile: float = 96.0
    memory_buffer: float = 15.0
    oom_memory_buffer: float = 25.0
    points_required: int = 100
    allow_hpa: bool = False
    use_oom: bool = False


@dataclass(frozen=True, slots=True)
class Observed:
    """Answers of the queries by pod: which of them are used depends on the strategy."""

    cpu_percentile: Mapping[str, float] = field(default_factory=dict)
    """Of `simple`: the percentile of each pod's CPU, computed by the query."""
    cpu_points: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """Of `simple_limit`: every point."""
    memory_peak: Mapping[str, float] = field(default_factory=dict)
    points: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """How many samples stand behind each resource, by resource and pod."""
    oom_limit: Mapping[str, float] = field(default_factory=dict)
    hpa_on: frozenset[str] = frozenset()
    """Resources that an HPA targets."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """One resource."""

    request: Value
    limit: Value
    info: str | None = None


DEFAULTS = StrategySettings()


def simple(seen: Observed, settings: StrategySettings = DEFAULTS) -> dict[str, Proposal]:
    """CPU request at the highest pod's percentile, no CPU limit; memory at the peak and a buffer."""
    cpu = Proposal(max(seen.cpu_percentile.values(), default=UNKNOWN), None)
    return {"cpu": _gated("cpu", seen.cpu_percentile, seen, settings) or cpu, "memory": _memory(seen, settings)}


def simple_limit(seen: Observed, settings: StrategySettings = DEFAULTS) -> dict[str, Proposal]:
    """CPU request and limit at percentiles of all points of all pods together; memory as `simple`."""
    return {
        "cpu": _gated("cpu", seen.cpu_points, seen, settings) or _pooled(seen, settings),
        "memory": _memory(seen, settings),
    }


def quantile_of_query(percent: float) -> float:
    """The quantile that the query really asks for: two decimals, so that 99.9 % becomes the maximum."""
    return round(percent / 100, 2)


def _pooled(seen: Observed, settings: StrategySettings) -> Proposal:
    points = np.concatenate([np.asarray(of_pod, float) for of_pod in seen.cpu_points.values()])
    request, limit = np.percentile(points, [settings.cpu_request_percentile, settings.cpu_limit_percentile]).tolist()
    return Proposal(request, limit)


def _memory(seen: Observed, settings: StrategySettings) -> Proposal:
    gated = _gated("memory", seen.memory_peak, seen, settings)
    if gated:
        return gated
    used = max(seen.memory_peak.values()) * (1 + settings.memory_buffer / 100)
    killed_at = max(seen.oom_limit.values(), default=0.0) if settings.use_oom else 0.0
    wanted = max(used, killed_at * (1 + settings.oom_memory_buffer / 100))
    return Proposal(wanted, wanted, "OOMKill detected" if killed_at else None)


def _gated(resource: str, series: Mapping[str, object], seen: Observed, settings: StrategySettings) -> Proposal | None:
    """Why nothing can be said about the resource; None when something can."""
    if not series:
        return Proposal(UNKNOWN, UNKNOWN, "No data")
    if sum(seen.points.get(resource, {}).values()) < settings.points_required:
        return Proposal(UNKNOWN, UNKNOWN, "Not enough data")
    if resource in seen.hpa_on and not settings.allow_hpa:
        return Proposal(UNKNOWN, UNKNOWN, "HPA detected")
    return None
