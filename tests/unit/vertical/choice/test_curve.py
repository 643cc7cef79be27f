from __future__ import annotations

from datetime import timedelta
from itertools import pairwise

import numpy as np
import pytest

from forecaster.vertical.choice.curve import RISKS, cpu_curve, memory_curve
from forecaster.vertical.choice.seen import Seen

POINTS = 288
UNKNOWN = np.full(2, np.nan)
RNG = np.random.default_rng(4)
SEEN = Seen(
    RNG.lognormal(-1, 0.5, (2, 14 * POINTS)),
    np.stack([RNG.lognormal(20, 0.3, 14 * POINTS), np.full(14 * POINTS, np.nan)]),
    POINTS,
    *(UNKNOWN,) * 4,
    oom_floor=np.zeros(2),
    growth=np.ones(2),
)
DAY = timedelta(days=1)


@pytest.mark.parametrize("curve", [cpu_curve, memory_curve])
def test_safer_is_larger_and_wastes_more(curve: object) -> None:
    assert callable(curve)
    for risky, safe in pairwise(curve(SEEN, 0, DAY)):
        assert safe.size >= risky.size
        assert safe.risk <= risky.risk
        assert safe.idle_hours >= risky.idle_hours


def test_memory_is_at_the_risk_that_is_asked_for() -> None:
    assert [point.risk for point in memory_curve(SEEN, 0, DAY)] == pytest.approx(RISKS, rel=1e-3)


def test_nothing_known_is_no_curve() -> None:
    assert memory_curve(SEEN, 1, DAY) == []
