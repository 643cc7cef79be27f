"""Requests and limits of a pod; today one core with a limit of two, and one GiB with an equal limit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from forecaster.domain.decision import Hold, Reason, Resize
from forecaster.domain.vertical_policy import VerticalPolicy
from forecaster.domain.workload import Resources, Target, TargetType
from forecaster.vertical.sizing.containers import NO_SIZING, ContainerSizing
from forecaster.vertical.sizing.memory import Mechanism
from forecaster.vertical.sizing.pod import size
from tests.support.builders import CPU_HALF, GIB, MEMORY_HALF, RESOURCES, hpa, sized, sizing_of, workload

if TYPE_CHECKING:
    from forecaster.domain.workload import Autoscaler
    from forecaster.vertical.sizing.containers import PodSizing

HALF_GIB = sized(0.5 * GIB, limit=0.5 * GIB, over_request=0.02, over_limit=0.02)
CHOSEN = sizing_of(cpu=sized(0.4, limit=0.8), memory=HALF_GIB)


def resized(
    sizing: PodSizing = CHOSEN, autoscaler: Autoscaler | None = None, policy: VerticalPolicy | None = None
) -> Resize:
    decided = size(workload(autoscaler=autoscaler), sizing, policy or VerticalPolicy())
    assert isinstance(decided, Resize), decided
    assert decided.reason is Reason.SIZED
    return decided


def held(sizing: PodSizing = CHOSEN, autoscaler: Autoscaler | None = None) -> Hold:
    decided = size(workload(autoscaler=autoscaler), sizing, VerticalPolicy())
    assert isinstance(decided, Hold), decided
    return decided


def test_what_was_chosen_is_recommended() -> None:
    assert resized().resources == Resources(0.4, 0.8, 0.5 * GIB, 0.5 * GIB)


def test_the_risk_stands_beside_the_number() -> None:
    assert resized().message == (
        "cpu: 400m, 5 % of the coming 1d above it; memory: 512Mi, a 2 % chance that a peak of the coming 1d passes it: "
        "an OOM kill once in 50 days"
    )


def test_a_limit_above_the_request_has_its_own_risk() -> None:
    burst = sizing_of(memory=sized(0.5 * GIB, limit=GIB, over_request=0.4, over_limit=0.01))
    assert "a 1 % chance that a peak of the coming 1d passes its limit" in resized(burst).message


def test_a_leak_says_so() -> None:
    leaking = sizing_of(memory=sized(2 * GIB, limit=2 * GIB, mechanism=Mechanism.LEAK))
    assert "its lows rise day by day" in resized(leaking).message


def test_waste_is_that_of_the_coming_day() -> None:
    (container,) = resized().containers
    assert container.cpu is not None
    assert container.cpu.slack_hours == pytest.approx(24 * 0.04)


class TestContainers:
    WEB = ContainerSizing("web", Resources(1.0, None, GIB, GIB), sized(0.5), sized(0.5 * GIB, limit=0.5 * GIB), 14.0)
    PROXY = ContainerSizing("proxy", Resources(0.1, None, GIB, GIB), sized(0.2), sized(0.25 * GIB, limit=0.25 * GIB), 9)

    def test_each_has_its_own_size_and_the_pod_their_sum(self) -> None:
        decided = resized((self.WEB, self.PROXY))
        assert [container.recommended.cpu_request for container in decided.containers] == [0.5, 0.2]
        assert decided.resources == Resources(0.7, None, 0.75 * GIB, 0.75 * GIB)
        assert "proxy: cpu: 200m" in decided.message

    def test_one_without_usage_keeps_its_size_and_says_why(self) -> None:
        job = ContainerSizing("migrate", Resources(0.5, None, GIB, GIB), note="an init container")
        decided = resized((self.WEB, job))
        assert decided.containers[1].recommended == job.now
        assert decided.containers[1].message == "an init container"
        assert [container.own for container in decided.containers] == [(), ("cpu", "memory")]

    def test_one_without_requests_leaves_the_sum_of_the_pod_open(self) -> None:
        bare = ContainerSizing("bare", Resources(), note="no usage known")
        assert resized((self.WEB, bare)).resources == Resources()


class TestHpa:
    def test_on_utilization_of_cpu_keeps_the_cpu_request(self) -> None:
        assert resized(autoscaler=hpa(CPU_HALF)).resources == Resources(1.0, 2.0, 0.5 * GIB, 0.5 * GIB)

    @pytest.mark.parametrize(
        ("sizing", "own"), [(CHOSEN, ("cpu",)), (sizing_of(cpu=sized(0.4), memory=None), ("memory",))]
    )
    def test_what_has_no_size_is_left_to_each_pod(self, sizing: PodSizing, own: tuple[str, ...]) -> None:
        decided = resized(sizing, hpa(CPU_HALF) if own == ("cpu",) else None)
        assert [container.own for container in decided.containers] == [own]

    def test_on_utilization_of_both_keeps_everything(self) -> None:
        assert held(autoscaler=hpa(CPU_HALF, MEMORY_HALF)).reason is Reason.SCALED_BY_SIZE

    def test_on_an_amount_of_cpu_leaves_the_request_free(self) -> None:
        quarter = Target("cpu", TargetType.AVERAGE_VALUE, 0.25)
        assert resized(autoscaler=hpa(quarter)).resources.cpu_request == 0.4

    def test_keeps_its_scale_point_where_request_and_target_may_change_together(self) -> None:
        """At 50 % of one core the HPA acts at half a core a pod, before and after the change."""
        changed = resized(sizing_of(cpu=sized(0.7)), hpa(CPU_HALF), VerticalPolicy(beside_hpa="keep-scale-point"))
        assert changed.resources.cpu_request == pytest.approx(0.7)
        (target,) = changed.targets
        assert changed.resources.cpu_request * target.value == pytest.approx(0.5)

    def test_does_not_let_the_request_fall_below_its_scale_point(self) -> None:
        changed = resized(sizing_of(cpu=sized(0.1)), hpa(CPU_HALF), VerticalPolicy(beside_hpa="keep-scale-point"))
        assert changed.resources.cpu_request == pytest.approx(0.5 / 0.9)

    def test_is_not_touched_while_a_container_of_the_pod_is_not_known(self) -> None:
        known = ContainerSizing("web", Resources(0.5), sized(0.9), None, 14.0)
        unknown = ContainerSizing("proxy", Resources(0.5))
        policy = VerticalPolicy(beside_hpa="keep-scale-point")
        assert isinstance(size(workload(autoscaler=hpa(CPU_HALF)), (known, unknown), policy), Hold)

    def test_is_kept_where_the_hpa_looks_at_one_container_of_the_pod(self) -> None:
        """The HPA reads the request of one container, so another sum for the pod would not keep its scale point."""
        app = Target("cpu", TargetType.UTILIZATION, 0.5, "app")
        policy = VerticalPolicy(beside_hpa="keep-scale-point")
        assert isinstance(size(workload(autoscaler=hpa(app)), sizing_of(cpu=sized(0.7)), policy), Hold)

    def test_of_one_resource_leaves_the_other_where_it_is_kept(self) -> None:
        both = sizing_of(cpu=sized(0.7), memory=sized(GIB, limit=GIB, unchanged=True))
        changed = resized(both, hpa(CPU_HALF), VerticalPolicy(beside_hpa="keep-scale-point"))
        assert (changed.resources.memory_request, changed.resources.memory_limit) == (GIB, GIB)

    def test_a_scaled_size_does_not_claim_the_risk_of_the_chosen_one(self) -> None:
        (container,) = resized(
            sizing_of(cpu=sized(0.1)), hpa(CPU_HALF), VerticalPolicy(beside_hpa="keep-scale-point")
        ).containers
        assert container.cpu is None
        assert "556m, nearest to 100m that keeps the HPA's scale point" in container.message


class TestNotKnown:
    def test_at_all_holds(self) -> None:
        assert held(NO_SIZING).reason is Reason.NO_DATA

    def test_for_a_whole_day_holds(self) -> None:
        assert held(sizing_of(cpu=sized(0.4), memory=HALF_GIB, days=0.99)).reason is Reason.SHORT_HISTORY

    def test_of_one_resource_keeps_that_one(self) -> None:
        resources = resized(sizing_of(memory=HALF_GIB)).resources
        assert (resources.cpu_request, resources.memory_request) == (RESOURCES.cpu_request, 0.5 * GIB)


def test_sizes_that_are_right_are_kept() -> None:
    fitting = sizing_of(cpu=sized(1.0, limit=2.0, unchanged=True), memory=sized(GIB, limit=GIB, unchanged=True))
    assert held(fitting).reason is Reason.FITS
