"""KRR 1.29: its strategy `simple`, how it rounds, and how far off it calls what there is.

spec/vertical.md §2; what it prints and its strategy `simple_limit` are in tests/oracles/krr.py.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Unknown = Literal["?"]
KRR_UNKNOWN: Unknown = "?"
KrrValue = float | Unknown | None
"""Cores or bytes; None for unset, `?` for not known."""

MEBIBYTE = 2**20
CPU_FLOOR_MILLICORES = 10
MEMORY_FLOOR_MIB = 100


@dataclass(frozen=True, slots=True)
class KrrSettings:
    """The strategies' flags, with their defaults. Percentiles are percent, as upstream has them."""

    cpu_percentile: float = 95.0
    cpu_request_percentile: float = 66.0
    cpu_limit_percentile: float = 96.0
    memory_buffer: float = 15.0
    oom_memory_buffer: float = 25.0
    points_required: int = 100
    allow_hpa: bool = False
    use_oom: bool = False


KRR_DEFAULTS = KrrSettings()


@dataclass(frozen=True, slots=True)
class QueryResults:
    """Answers of the queries by pod: which of them are used depends on the strategy."""

    cpu_percentile: Mapping[str, float] = field(default_factory=dict)
    """Percentile of each pod's CPU for `simple`, computed by the query."""
    cpu_points: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """Every point for `simple_limit`."""
    memory_peak: Mapping[str, float] = field(default_factory=dict)
    points: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """How many samples stand behind each resource, by resource and pod."""
    oom_limit: Mapping[str, float] = field(default_factory=dict)
    hpa_on: frozenset[str] = frozenset()
    """Resources that an HPA targets."""


@dataclass(frozen=True, slots=True)
class KrrProposal:
    """Request and limit of one resource, and why they are not known."""

    request: KrrValue
    limit: KrrValue
    info: str | None = None


def simple(results: QueryResults, settings: KrrSettings = KRR_DEFAULTS) -> dict[str, KrrProposal]:
    """Return proposals by resource: CPU request at the highest pod's percentile, memory at peak plus buffer."""
    cpu = KrrProposal(max(results.cpu_percentile.values(), default=KRR_UNKNOWN), None)
    return {
        "cpu": unknown_because("cpu", results.cpu_percentile, results, settings) or cpu,
        "memory": memory_proposal(results, settings),
    }


def memory_proposal(results: QueryResults, settings: KrrSettings) -> KrrProposal:
    """Request and limit at the peak and a buffer, or at the limit of an OOM kill and another."""
    unknown = unknown_because("memory", results.memory_peak, results, settings)
    if unknown:
        return unknown
    used = max(results.memory_peak.values()) * (1 + settings.memory_buffer / 100)
    killed_at = max(results.oom_limit.values(), default=0.0) if settings.use_oom else 0.0
    proposed = max(used, killed_at * (1 + settings.oom_memory_buffer / 100))
    return KrrProposal(proposed, proposed, "OOMKill detected" if killed_at else None)


def unknown_because(
    resource: str, series: Mapping[str, object], results: QueryResults, settings: KrrSettings
) -> KrrProposal | None:
    """Why nothing can be said about the resource; None when something can."""
    if not series:
        return KrrProposal(KRR_UNKNOWN, KRR_UNKNOWN, "No data")
    if sum(results.points.get(resource, {}).values()) < settings.points_required:
        return KrrProposal(KRR_UNKNOWN, KRR_UNKNOWN, "Not enough data")
    if resource in results.hpa_on and not settings.allow_hpa:
        return KrrProposal(KRR_UNKNOWN, KRR_UNKNOWN, "HPA detected")
    return None


def quantile_of_query(percent: float) -> float:
    """The quantile that the query really asks for: two decimals, so that 99.9 % becomes the maximum."""
    return round(percent / 100, 2)


def rounded_cpu(cores: KrrValue, floor_millicores: float = CPU_FLOOR_MILLICORES) -> KrrValue:
    """Cores in whole millicores, rounded up, and at least the floor; what is unset or unknown stays so."""
    if cores is None or cores == KRR_UNKNOWN:
        return cores
    return max(math.ceil(cores * 1000) / 1000, floor_millicores / 1000)


def rounded_memory(memory: KrrValue, floor_mib: float = MEMORY_FLOOR_MIB) -> KrrValue:
    """Bytes in whole mebibytes, rounded up, and at least the floor; what is unset or unknown stays so."""
    if memory is None or memory == KRR_UNKNOWN:
        return memory
    return float(max(math.ceil(memory / MEBIBYTE) * MEBIBYTE, floor_mib * MEBIBYTE))


class Severity(StrEnum):
    """How far a recommendation is from what there is, from nothing known to far off."""

    UNKNOWN = "UNKNOWN"
    GOOD = "GOOD"
    OK = "OK"
    WARNING = "WARNING"
    CRITICAL = "CRITICAL"


_WORST_FIRST = (Severity.CRITICAL, Severity.WARNING, Severity.OK, Severity.GOOD, Severity.UNKNOWN)
_CPU_STEPS = ((0.5, Severity.CRITICAL), (0.25, Severity.WARNING), (0.1, Severity.OK))
_MEMORY_STEPS = ((500.0, Severity.CRITICAL), (250.0, Severity.WARNING), (100.0, Severity.OK))


def severity_of(resource: str, current: KrrValue, recommended: KrrValue) -> Severity:
    """Return the severity by the absolute difference in cores or mebibytes; too much weighs like too little."""
    if KRR_UNKNOWN in {current, recommended}:
        return Severity.UNKNOWN
    if current is None or recommended is None:
        return Severity.GOOD if current is recommended else Severity.WARNING
    difference = abs(float(current) - float(recommended))
    steps = _CPU_STEPS if resource == "cpu" else _MEMORY_STEPS
    scale = 1 if resource == "cpu" else MEBIBYTE
    return next((severity for least, severity in steps if difference / scale >= least), Severity.GOOD)


def worst(severities: Sequence[Severity]) -> Severity:
    """The severity of a row from those of its values; unknown counts least."""
    return min(severities, key=_WORST_FIRST.index)
