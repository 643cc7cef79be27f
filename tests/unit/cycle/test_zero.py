"""The last pod is removed only where a measured signal can bring it back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from forecaster.domain.decision import Reason
from forecaster.domain.policies import Policies
from forecaster.domain.signal import CPU, REQUESTS
from forecaster.domain.workload import Target, TargetType
from forecaster.horizontal.sentences import explanation
from tests.support.builders import CPU_HALF, hpa, policy, workload
from tests.support.fakes import CycleOnFakes, Load, named, steady

if TYPE_CHECKING:
    from datetime import datetime

    from forecaster.domain.decision import Recommendation
    from forecaster.domain.workload import Workload

TO_ZERO = Policies(policy(sizing="newsvendor", scale_in_by_forecast=True, min_replicas=0, gate=False))
BY_REQUESTS = hpa(Target("s0-forecaster-requests", TargetType.AVERAGE_VALUE, 100.0))
BY_BOTH = hpa(CPU_HALF, Target("s0-forecaster-requests", TargetType.AVERAGE_VALUE, 100.0))


def recommended(workload: Workload, requests: float | None = None, cpu: float = 0.0) -> Recommendation:
    """Recommendation after hours of this load, in the second cycle, since the first one remembers the count."""

    def cores(_: datetime) -> float:
        return cpu if workload.replicas else np.nan

    demand = {CPU: cores} if requests is None else {CPU: cores, REQUESTS: steady(requests)}
    return named(CycleOnFakes(Load(workload, demand), policies=TO_ZERO).run_minutes(0, 1)[-1], "web")


def test_by_cpu_alone_the_last_pod_stays_with_the_reason() -> None:
    record = recommended(workload(replicas=4))
    assert (record.recommended_replicas, record.offered) == (1, 1)
    assert "no signal that decides is measured without pods" in "\n".join(explanation(record))


def test_by_cpu_alone_a_workload_at_zero_is_not_woken_and_says_why() -> None:
    record = recommended(workload(replicas=0))
    assert record.replicas.reason is Reason.NO_REPLICAS
    assert "without pods cpu is not measured, so no load can wake it" in "\n".join(explanation(record))


def test_by_requests_the_last_pod_is_taken_and_comes_back() -> None:
    assert recommended(workload(replicas=4, autoscaler=BY_REQUESTS), requests=0.0).recommended_replicas == 0
    assert recommended(workload(replicas=0, autoscaler=BY_REQUESTS), requests=350.0).recommended_replicas == 4


def test_beside_cpu_requests_bring_it_back() -> None:
    assert recommended(workload(replicas=0, autoscaler=BY_BOTH), requests=350.0).recommended_replicas == 4
