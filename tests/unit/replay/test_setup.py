"""Workloads that can be replayed, and the reasons why others cannot."""

from __future__ import annotations

from dataclasses import replace

from forecaster.domain.policy import HorizontalPolicy
from forecaster.domain.signal import CPU as CPU_SIGNAL
from forecaster.domain.signal import REQUESTS
from forecaster.domain.workload import Autoscaler, Resources, Target, TargetType, Workload, WorkloadId
from forecaster.horizontal.targets import AmountTarget, UtilizationTarget
from forecaster.hpa.limits import ReplicaBounds
from forecaster.replay.account import with_targets_at
from forecaster.replay.setup import Setup, setup_of

CPU = Target("cpu", TargetType.UTILIZATION, 0.7)
RATE = Target("http_requests_per_second", TargetType.AVERAGE_VALUE, 60.0)


def workload(*targets: Target, cores: float | None = 0.5, least: int = 2) -> Workload:
    hpa = Autoscaler("web", least, 10, targets) if targets else None
    return Workload(WorkloadId("shop", "Deployment", "web"), 4, 4, Resources(cpu_request=cores), hpa)


def setup(workload: Workload, **policy: str) -> Setup | str:
    return setup_of(workload, HorizontalPolicy.model_validate(policy))


def test_the_hpa_is_replayed_with_its_own_targets_and_a_pod_is_full_at_its_request() -> None:
    replayed = setup(workload(CPU, RATE), requests_metric="http_requests_per_second")
    assert isinstance(replayed, Setup)
    assert replayed.targets == (UtilizationTarget(CPU_SIGNAL, 70, 0.5), AmountTarget(REQUESTS, 60.0))
    assert replayed.bounds == ReplicaBounds(2, 10)
    assert replayed.capacity.amount == 0.5


def test_no_hpa_no_comparison() -> None:
    assert "no HPA" in str(setup(workload()))


def test_no_cpu_request_no_measure_of_a_full_pod() -> None:
    assert "requests no CPU" in str(setup(workload(Target("cpu", TargetType.AVERAGE_VALUE, 0.5), cores=None)))


def test_a_metric_that_is_not_read_is_named() -> None:
    assert "http_requests_per_second" in str(setup(workload(CPU, RATE)))


def test_a_lower_target_is_a_whole_percent() -> None:
    replayed = setup(with_targets_at(workload(CPU), 0.855))
    assert isinstance(replayed, Setup)
    assert replayed.targets == (UtilizationTarget(CPU_SIGNAL, 60, 0.5),)


def test_an_hpa_that_no_api_server_would_take_is_left_out_with_the_reason() -> None:
    assert "not above 0" in str(setup(workload(replace(CPU, value=0.0))))
    assert "requests no CPU" in str(setup(workload(CPU, cores=-1.0)))
