"""Policies beside ours, one file each: demand that is expected at each tick, from measurements before it.

Each is played as an HPA on the larger of measured and expected demand. A new one is a file with `expected` and a line
in PEERS; the leak test in tests/unit/benchmarks runs on it by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.bench.peers import aws, crane, holt_winters, hpa, keda_cron, perfect

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy as np
    from numpy.typing import NDArray

    from benchmarks.bench.replay import Replay

PEERS: Mapping[str, Callable[[Replay, int], NDArray[np.float64]]] = {
    "HPA alone": hpa.expected,
    "KEDA cron on the week before": keda_cron.expected,
    "predictive HPA, Holt-Winters": holt_winters.expected,
    "crane, percentile": crane.percentile,
    "crane, DSP": crane.periodic,
    "AWS-like hourly forecast": aws.expected,
    "knows the coming ten minutes": perfect.expected,
}
"""Name of a row: expected demand [tick] of a replay with pods that start within so many ticks; NaN expects nothing."""
FORESIGHT = frozenset({"knows the coming ten minutes"})
"""Bounds that look ahead and are no policies."""
