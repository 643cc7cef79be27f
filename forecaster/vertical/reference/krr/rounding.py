"""Values rounded up to what a manifest would say, and never below a floor."""

from __future__ import annotations

import math

from forecaster.vertical.reference.krr.strategies import UNKNOWN, Value

MEBIBYTE = 2**20
CPU_FLOOR_MILLICORES = 10
MEMORY_FLOOR_MIB = 100


def rounded_cpu(cores: Value, floor_millicores: float = CPU_FLOOR_MILLICORES) -> Value:
    """Whole millicores; what is unset or unknown stays so."""
    if cores is None or cores == UNKNOWN:
        return cores
    return max(math.ceil(cores * 1000) / 1000, floor_millicores / 1000)


def rounded_memory(memory: Value, floor_mib: float = MEMORY_FLOOR_MIB) -> Value:
    """Whole mebibytes; what is unset or unknown stays so."""
    if memory is None or memory == UNKNOWN:
        return memory
    return float(max(math.ceil(memory / MEBIBYTE) * MEBIBYTE, floor_mib * MEBIBYTE))
