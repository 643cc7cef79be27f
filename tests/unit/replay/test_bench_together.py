"""Points of the bench's sweep are decided together, each with the counts that it would get alone."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.bench_policy import BenchPolicy

TARGETS = (1.2, 0.8, 0.5)
BEFORE, TICKS, START = 2 * 1440, 30, 1_750_000_200
DEMAND = 300.0 + 200.0 * np.sin(np.arange(BEFORE + TICKS) / 1440 * 2 * np.pi + np.arange(BEFORE + TICKS) % 7 / 9)


class Ungated(BenchPolicy):
    """The bench's policy without a gate."""

    gated = False


def played(*, together: bool, start_up: int = 2, late: int = 0) -> list[list[int]]:
    """Counts of each point at each tick; the first point gets its pods `late` ticks after the others."""
    shared: dict[str, object] = {}
    points = [(Ungated(), target, shared if together else {}) for target in TARGETS]
    for point, target, cache in points:
        point.start(
            {
                "tick_seconds": 60, "sync_seconds": 60, "startup_seconds": 60 * start_up, "native_seconds": 60,
                "pod_capacity": 20.0, "target": target, "min_replicas": 1, "max_replicas": 200, "cache": cache,
            }
        )  # fmt: skip
    desired = [[int(np.ceil(DEMAND[BEFORE - 1] / (20.0 * target)))] * (start_up + late) for target in TARGETS]
    for tick in range(TICKS):
        history, now = DEMAND[: BEFORE + tick], START + 60 * tick
        for row, (point, _, _) in enumerate(points):
            ready = min(desired[row][-start_up - (0 if row else late) :])
            desired[row].append(point.desired(history, ready, desired[row][-1] - ready, now))
    return [counts[-TICKS:] for counts in desired]


@pytest.mark.parametrize("late", [0, 3])
def test_every_point_asks_for_what_it_would_ask_for_alone(late: int) -> None:
    desired = played(together=True, late=late)
    assert desired == played(together=False, late=late)
    assert len({tuple(counts) for counts in desired}) == len(TARGETS)
