"""KRR 1.29 beyond what forecaster uses: its strategies, namespaces of a scan, its score, numbers and cells as printed.

spec/vertical.md §2.1, §2.2 and §2.4.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Literal

import numpy as np

from forecaster.vertical.recommenders.baselines import Severity

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Unknown = Literal["?"]
KRR_UNKNOWN: Unknown = "?"
KrrValue = float | Unknown | None
"""Cores or bytes; None for unset, `?` for not known."""

EVERY = "*"
UNSET = "unset"
_SUFFIXES = {
    "m": Decimal("0.001"),
    "Ki": Decimal(2**10),
    "Mi": Decimal(2**20),
    "Gi": Decimal(2**30),
    "Ti": Decimal(2**40),
    "Pi": Decimal(2**50),
    "Ei": Decimal(2**60),
    "k": Decimal(10**3),
    "M": Decimal(10**6),
    "G": Decimal(10**9),
    "T": Decimal(10**12),
    "P": Decimal(10**15),
    "E": Decimal(10**18),
}
_UNITS = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_BINARY = 1024
_LEAST_OF_UNIT = 10
_COST = {Severity.CRITICAL: 1.0, Severity.WARNING: 0.7}
_LETTERS = ((30, "F"), (55, "D"), (70, "C"), (90, "B"))


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
    """Number of samples behind each resource, by resource and pod."""
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
    """Proposal without a value that states why nothing is known about the resource; None when something is."""
    if not series:
        return KrrProposal(KRR_UNKNOWN, KRR_UNKNOWN, "No data")
    if sum(results.points.get(resource, {}).values()) < settings.points_required:
        return KrrProposal(KRR_UNKNOWN, KRR_UNKNOWN, "Not enough data")
    if resource in results.hpa_on and not settings.allow_hpa:
        return KrrProposal(KRR_UNKNOWN, KRR_UNKNOWN, "HPA detected")
    return None


def simple_limit(results: QueryResults, settings: KrrSettings = KRR_DEFAULTS) -> dict[str, KrrProposal]:
    """CPU request and limit at percentiles of all points of all pods together; memory as `simple`."""
    return {
        "cpu": unknown_because("cpu", results.cpu_points, results, settings) or _pooled(results, settings),
        "memory": memory_proposal(results, settings),
    }


def _pooled(results: QueryResults, settings: KrrSettings) -> KrrProposal:
    points = np.concatenate([np.asarray(of_pod, float) for of_pod in results.cpu_points.values()])
    request, limit = np.percentile(points, [settings.cpu_request_percentile, settings.cpu_limit_percentile]).tolist()
    return KrrProposal(request, limit)


def namespaces(selected: Sequence[str], known: Sequence[str]) -> set[str]:
    """Namespaces of a scan: `*` stays `*`, so that namespaces that come later or cannot be listed belong to it.

    Other entries with a star are patterns matched from the start of a name, the rest are taken as they are.
    """
    if EVERY in selected:
        return {EVERY}
    patterns = [re.compile(entry) for entry in selected if EVERY in entry]
    matched = {name for name in known if any(pattern.match(name) for pattern in patterns)}
    return matched | {entry for entry in selected if EVERY not in entry}


def score(severities: Sequence[Severity]) -> int:
    """Percent of rows in order, a warning counting as seven tenths of a critical one; 0 without rows."""
    if not severities:
        return 0
    rows = len(severities)
    cost = sum(_COST.get(severity, 0.0) for severity in severities)
    return int((rows - cost) / rows * 100)


def letter(points: int) -> str:
    """The mark of a score."""
    return next((mark for below, mark in _LETTERS if points < below), "A")


def parsed(text: str) -> float:
    """A number with an optional suffix or exponent; raises decimal.InvalidOperation for anything else."""
    suffix = next((suffix for suffix in _SUFFIXES if text.endswith(suffix)), "")
    return float(Decimal(text.removesuffix(suffix)) * _SUFFIXES.get(suffix, Decimal(1)))


def printed(value: float) -> str:
    """Millis below one, the plain float below 1024, else whole binary units of which there are at least ten."""
    if value < 1:
        return f"{int(value * 1000)}m"
    if value < _BINARY:
        return str(float(value))
    whole, power = int(value), 0
    while power < len(_UNITS) - 1 and whole >= _LEAST_OF_UNIT * _BINARY ** (power + 1):
        power += 1
    return f"{whole / _BINARY**power:.0f}{_UNITS[power]}"


def difference(current: KrrValue, recommended: KrrValue, pods: int = 1) -> str:
    """Sign and size of the change over all pods, empty where none is known; what there is not counts as zero."""
    if recommended == KRR_UNKNOWN:
        return ""
    change = float(recommended or 0.0) - (0.0 if current is None or current == KRR_UNKNOWN else float(current))
    return f"{'+' if change >= 0 else '-'}{printed(abs(change) * pods)}"


def cell(current: KrrValue, recommended: KrrValue, *, with_difference: bool = True) -> str:
    """`(difference) current -> recommended`."""
    if current is None and recommended is None:
        return UNSET
    moved = difference(current, recommended) if with_difference else ""
    return f"{f'({moved}) ' if moved else ''}{_side(current)} -> {_side(recommended)}"


def _side(value: KrrValue) -> str:
    if value is None:
        return UNSET
    return KRR_UNKNOWN if value == KRR_UNKNOWN else printed(float(value))
