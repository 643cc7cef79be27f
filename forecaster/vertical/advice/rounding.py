"""Recommended amounts as a manifest should say them: whole millicores, whole mebibytes, always rounded up."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from forecaster.domain.workload import Resources

if TYPE_CHECKING:
    from collections.abc import Callable

MIB = 2**20
_DIGITS = 6
"""What doubles leave beyond these digits is not a reason for one more."""


def rounded(resources: Resources) -> Resources:
    """The same, rounded up; what is not set stays so."""
    return Resources(
        cpu_request=_if_set(resources.cpu_request, cores),
        cpu_limit=_if_set(resources.cpu_limit, cores),
        memory_request=_if_set(resources.memory_request, memory),
        memory_limit=_if_set(resources.memory_limit, memory),
    )


def cores(value: float) -> float:
    """Cores, up to a whole thousandth."""
    return math.ceil(round(value * 1000, _DIGITS)) / 1000


def memory(value: float) -> float:
    """Bytes, up to a whole mebibyte."""
    return float(-(-math.ceil(round(value, _DIGITS)) // MIB) * MIB)


def _if_set(value: float | None, up: Callable[[float], float]) -> float | None:
    return None if value is None else up(value)
