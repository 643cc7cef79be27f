"""The exact HPA and vertical sizing on the same CPU request, week after week, with a load that does not change.

Naive sizing sets the request to what one pod used; the HPA answers with more and smaller pods, and so on. Ours cannot.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np
import pytest

from forecaster.domain.decision import Resize
from forecaster.domain.vertical_policy import VerticalPolicy
from forecaster.domain.workload import Autoscaler, Resources, Target, TargetType, Workload
from forecaster.hpa.proposals import DEFAULT_TOLERANCE, MetricProposal, from_utilization
from forecaster.vertical.sizing.containers import ContainerSizing, ContainerSpec, choose
from forecaster.vertical.sizing.pod import size
from tests.support.recommendations import workload_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TOTAL = 20.0
POINTS = 96
STEP = timedelta(minutes=15)
WEEKS = 12


def workload(request: float, target: float, replicas: int) -> Workload:
    hpa = Autoscaler("web", 2, 1000, (Target("cpu", TargetType.UTILIZATION, target),))
    return Workload(workload_id("web"), replicas, replicas, Resources(request, None, None, None), hpa)


def settled(workload_: Workload) -> Workload:
    """The count at which the HPA comes to rest under the load."""
    assert workload_.autoscaler is not None
    (target,) = workload_.autoscaler.targets
    request, replicas = round((workload_.resources.cpu_request or 0) * 1000), workload_.replicas
    for _ in range(50):
        proposal = from_utilization(
            round(TOTAL * 1000), replicas * request, round(target.value * 100), replicas, replicas, DEFAULT_TOLERANCE
        )
        assert isinstance(proposal, MetricProposal)
        if proposal.replicas == replicas:
            break
        replicas = proposal.replicas
    return workload(request / 1000, target.value, replicas)


def by_policy(policy: VerticalPolicy) -> Callable[[Workload, float], Workload]:
    def resized(workload_: Workload, used: float) -> Workload:
        cpu = np.full((1, 14 * POINTS), used)
        (row,) = choose(cpu, np.full_like(cpu, np.nan), STEP, [ContainerSpec(workload_.resources)], policy)
        decided = size(workload_, (ContainerSizing("", workload_.resources, row.cpu, row.memory, row.days),), policy)
        if not isinstance(decided, Resize):
            return workload_
        assert workload_.autoscaler is not None
        target = (decided.targets or workload_.autoscaler.targets)[0].value
        return workload(decided.resources.cpu_request or 0.0, target, workload_.replicas)

    return resized


def naive(workload_: Workload, used: float) -> Workload:
    assert workload_.autoscaler is not None
    return workload(used, workload_.autoscaler.targets[0].value, workload_.replicas)


def weeks(resized: Callable[[Workload, float], Workload]) -> Iterator[Workload]:
    workload_ = settled(workload(1.0, 0.8, 10))
    for _ in range(WEEKS):
        workload_ = settled(resized(workload_, TOTAL / workload_.replicas))
        yield workload_


def test_naive_sizing_shrinks_the_pods_on_and_on() -> None:
    *_, last = weeks(naive)
    assert last.resources.cpu_request is not None
    assert last.resources.cpu_request < 0.25
    assert last.replicas > 100


@pytest.mark.parametrize("beside", ["keep", "keep-scale-point"])
def test_our_sizes_come_to_rest_at_once(beside: str) -> None:
    policy = VerticalPolicy.model_validate({"beside_hpa": beside, "change_price": 0})
    first, *others = weeks(by_policy(policy))
    assert first.resources.cpu_request is not None
    assert first.resources.cpu_request >= 0.8
    for week in others:
        assert week.resources.cpu_request == pytest.approx(first.resources.cpu_request, abs=0.002)
        assert week.replicas == first.replicas
