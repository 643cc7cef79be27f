"""The service says once which overrides mean no workload."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from forecaster.app.service import EXIT_STUCK, Service
from forecaster.app.telemetry import Metrics
from forecaster.config.settings import CycleSettings
from forecaster.cycle.run import Outcome
from forecaster.domain.layers import ClusterPolicies, Layer
from forecaster.domain.policies import Policies
from forecaster.domain.policy import Policy, PolicySelector
from forecaster.domain.report import CycleReport
from forecaster.domain.window import Inventory
from forecaster.domain.workload import WorkloadId
from tests.support.builders import NOON, workload


@dataclass
class Scripted:
    """A cycle that sees these workloads."""

    workloads: tuple[object, ...] = ()
    policies: Policies = field(
        default_factory=lambda: Policies(
            Policy(), ((PolicySelector(name="web"), {}), (PolicySelector(namespace="shpo", name="*"), {}))
        )
    )

    def run(self, now: object) -> Outcome:
        return Outcome(Inventory(NOON, self.workloads), [], CycleReport(at=now))  # type: ignore[arg-type]


@dataclass
class Log:
    """Keeps warnings."""

    warnings: list[tuple[str, object]] = field(default_factory=list)

    def warning(self, event: str, **facts: object) -> None:
        self.warnings.append((event, facts.get("overrides")))

    critical = warning

    def debug(self, *_: object, **__: object) -> None:
        """Ignore the line."""

    info = debug


def test_an_override_that_matches_nothing_is_one_warning_once_there_are_workloads() -> None:
    cycle, log, clock = Scripted(), Log(), [NOON]
    service = Service(cycle, CycleSettings(), Metrics("0"), (), log, clock=lambda: clock[0])  # type: ignore[arg-type]
    for minute, fleet in enumerate([(), (workload("web"),), (workload("web"),)], start=1):
        clock[0], cycle.workloads = NOON + timedelta(minutes=minute, seconds=6), fleet
        service.tick()
    idle = [facts for event, facts in log.warnings if event == "overrides_match_nothing"]
    assert idle == [["overrides[1] matches no workload: namespace 'shpo'"]]


def test_an_object_of_the_cluster_that_matches_nothing_is_told_when_it_comes() -> None:
    cycle, log, clock = Scripted((workload("web"),)), Log(), [NOON]
    service = Service(cycle, CycleSettings(), Metrics("0"), (), log, clock=lambda: clock[0])  # type: ignore[arg-type]
    stray = {WorkloadId("shop", "Deployment", "wbe"): (Layer("PredictiveAutoscaler shop/wbe", {}),)}
    for minute, own in enumerate([{}, stray, stray], start=1):
        clock[0] = NOON + timedelta(minutes=minute, seconds=6)
        cycle.policies.take_over(ClusterPolicies(own=own))
        service.tick()
    idle = [facts for event, facts in log.warnings if event == "overrides_match_nothing"]
    assert idle[1:] == [["PredictiveAutoscaler shop/wbe: its workload is not there"]]


def test_a_cycle_that_hangs_ends_the_process_with_a_code_of_its_own() -> None:
    codes, log = list[int](), Log()
    cycle, clock = Scripted((workload("web"),)), NOON + timedelta(seconds=6)
    service = Service(cycle, CycleSettings(), Metrics("0"), (), log, clock=lambda: clock, end=codes.append)  # type: ignore[arg-type]
    service.tick()
    service.give_up(timedelta(minutes=16))
    assert codes == [EXIT_STUCK]
    assert ("cycle_stuck", None) in log.warnings


def test_the_first_cycle_may_read_the_history_for_as_long_as_it_takes() -> None:
    """Ended in it, each next process would begin the same reading anew."""
    codes, log = list[int](), Log()
    service = Service(Scripted(), CycleSettings(), Metrics("0"), (), log, end=codes.append)  # type: ignore[arg-type]
    service.give_up(timedelta(minutes=16))
    assert codes == []
    assert log.warnings == [("first_cycle_slow", None)]
