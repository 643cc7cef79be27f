"""KRR 1.29: how it rounds, and how far off it calls what there is.

spec/vertical.md §2; its strategies, and what it prints, are in tests/oracles/krr.py.
"""

from __future__ import annotations

import math
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    """How far a recommendation is from what there is, from nothing known to far off."""

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
    """The severity of a row from those of its values; unknown counts least."""
    return min(severities, key=_WORST_FIRST.index)
