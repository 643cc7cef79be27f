from __future__ import annotations

import numpy as np
import pytest

from forecaster.domain.signal import CPU, REQUESTS
from forecaster.horizontal.columns import Band, millis
from forecaster.horizontal.proposals import ReadyPods, proposal
from forecaster.horizontal.targets import AmountTarget, UtilizationTarget, kind_of
from forecaster.hpa.numbers import milli

HALF_CORE = UtilizationTarget(CPU, 50, 1.0)
QUARTER_CORE = AmountTarget(CPU, 0.25)
FIFTY_REQUESTS = AmountTarget(REQUESTS, 50.0)


def replicas(demand: float, target: UtilizationTarget | AmountTarget, ready: int, current: int) -> int:
    shared = isinstance(target, UtilizationTarget)
    goal, request = (target.percent, milli(target.request)) if shared else (milli(target.amount), 1)
    pods = ReadyPods.of(np.array([ready]), np.array([current]))
    goals, requests, usage = np.array([goal]), np.array([request]), millis(np.array([demand]))
    return int(proposal(kind_of(target), usage, goals, requests, pods, Band.of(np.array([0.1])))[0])


@pytest.mark.parametrize(
    ("amount", "expected"),
    [(1.0, 1000), (1.001, 1001), (0.0001, 1), (0.0, 0), (0.5704, 571), (2.0**33, 2**33 * 1000)],
)
def test_milli_units_round_away_from_zero_without_what_the_multiplication_adds(amount: float, expected: int) -> None:
    assert milli(amount) == expected
    assert millis(np.array([amount])).tolist() == [expected]


@pytest.mark.parametrize(
    ("target", "demand", "expected"),
    [
        pytest.param(HALF_CORE, 3.0, 6, id="share of the request"),
        pytest.param(QUARTER_CORE, 3.0, 12, id="amount a pod"),
        pytest.param(FIFTY_REQUESTS, 310.0, 7, id="requests a pod"),
    ],
)
def test_each_kind_of_target_divides_the_total_among_pods(
    target: UtilizationTarget | AmountTarget, demand: float, expected: int
) -> None:
    assert replicas(demand, target, 4, 4) == expected


@pytest.mark.parametrize("target", [HALF_CORE, QUARTER_CORE], ids=["share", "amount"])
def test_utilization_is_cut_to_whole_percent_and_averages_to_milli_units(
    target: UtilizationTarget | AmountTarget,
) -> None:
    """At the edge of the tolerance, 10.9 % above the target of a share count as 10 %."""
    four_pods_worth = {HALF_CORE: 2.219, QUARTER_CORE: 1.1003}[target]
    assert replicas(four_pods_worth, target, 4, 4) == 4


@pytest.mark.parametrize("target", [HALF_CORE, QUARTER_CORE], ids=["share", "amount"])
@pytest.mark.parametrize("ready", [1, 2, 4, 6])
def test_a_high_load_asks_for_the_same_count_however_many_pods_are_ready(
    target: UtilizationTarget | AmountTarget, ready: int
) -> None:
    eight_pods_worth = {HALF_CORE: 4.0, QUARTER_CORE: 2.0}[target]
    assert replicas(eight_pods_worth, target, ready, 4) == 8
