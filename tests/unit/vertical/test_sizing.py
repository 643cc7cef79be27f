"""Requests and limits of one pod; today one core with a limit of two, and one GiB with a limit of the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from forecaster.domain.decision import Hold, Reason, Resize
from forecaster.domain.policy import VerticalPolicy
from forecaster.domain.workload import Resources, Target, TargetType
from forecaster.vertical.sizing import NO_USAGE, PodUsage, size
from tests.support.builders import CPU_HALF, GIB, MEMORY_HALF, RESOURCES, hpa, workload

if TYPE_CHECKING:
    from forecaster.domain.workload import Autoscaler

USAGE = PodUsage(cpu=0.4, memory=0.5 * GIB, days=7.0)
EXACT = VerticalPolicy(margin=0.0)


def sized(
    usage: PodUsage = USAGE,
    policy: VerticalPolicy = EXACT,
    resources: Resources = RESOURCES,
    autoscaler: Autoscaler | None = None,
) -> Resources:
    decided = size(workload(autoscaler=autoscaler, resources=resources), usage, policy)
    assert isinstance(decided, Resize), decided
    assert decided.reason is Reason.SIZED
    return decided.resources


def held(usage: PodUsage, autoscaler: Autoscaler | None = None) -> Reason:
    decided = size(workload(autoscaler=autoscaler), usage, EXACT)
    assert isinstance(decided, Hold), decided
    return decided.reason


def test_the_request_covers_what_one_pod_used_and_a_margin() -> None:
    wanted = sized(policy=VerticalPolicy(margin=0.25))
    assert (wanted.cpu_request, wanted.memory_request) == (0.5, 0.625 * GIB)


class TestLimit:
    def test_of_memory_is_the_request(self) -> None:
        wanted = sized(resources=Resources(1.0, 2.0, GIB, 4 * GIB))
        assert wanted.memory_limit == wanted.memory_request == 0.5 * GIB

    def test_of_memory_may_keep_its_ratio(self) -> None:
        wanted = sized(
            policy=VerticalPolicy(margin=0, memory_limit="keep-ratio"), resources=Resources(1, 2, GIB, 3 * GIB)
        )
        assert wanted.memory_limit == 1.5 * GIB

    def test_of_cpu_keeps_its_ratio(self) -> None:
        assert sized().cpu_limit == 0.8

    def test_that_is_absent_stays_absent(self) -> None:
        assert sized(resources=Resources(1.0, None, GIB, None)).cpu_limit is None

    def test_without_a_request_has_no_ratio_to_keep(self) -> None:
        assert sized(resources=Resources(None, 2.0, None, None)).cpu_limit is None

    def test_below_the_request_is_raised_to_it(self) -> None:
        """A cluster never has this; two sources read at different moments may."""
        assert sized(resources=Resources(2.0, 1.0, GIB, GIB)).cpu_limit == 0.4

    @pytest.mark.parametrize("kind", ["cpu", "memory"])
    def test_may_be_absent_by_policy(self, kind: str) -> None:
        policy = VerticalPolicy.model_validate({f"{kind}_limit": "none"})
        assert getattr(sized(policy=policy), f"{kind}_limit") is None


def test_a_pod_that_does_nothing_keeps_the_least() -> None:
    wanted = sized(usage=PodUsage(0.0, 0.0, 7.0), policy=VerticalPolicy(min_cpu=0.02, min_memory=2.0**20))
    assert (wanted.cpu_request, wanted.memory_request) == (0.02, 2.0**20)


class TestHpa:
    def test_on_utilization_of_cpu_keeps_the_cpu_request(self) -> None:
        wanted = sized(autoscaler=hpa(CPU_HALF))
        assert (wanted.cpu_request, wanted.cpu_limit, wanted.memory_request) == (1.0, 2.0, 0.5 * GIB)

    def test_on_utilization_of_both_keeps_everything(self) -> None:
        assert held(USAGE, hpa(CPU_HALF, MEMORY_HALF)) is Reason.SCALED_BY_SIZE

    def test_on_an_amount_of_cpu_leaves_the_request_free(self) -> None:
        quarter = Target("cpu", TargetType.AVERAGE_VALUE, 0.25)
        assert sized(autoscaler=hpa(quarter)).cpu_request == 0.4


class TestNotKnown:
    def test_at_all_holds(self) -> None:
        assert held(NO_USAGE) is Reason.NO_DATA

    def test_for_a_whole_day_holds(self) -> None:
        assert held(PodUsage(0.4, 0.5 * GIB, 0.99)) is Reason.SHORT_HISTORY

    def test_of_one_resource_keeps_that_one(self) -> None:
        wanted = sized(usage=PodUsage(cpu=None, memory=0.5 * GIB, days=7.0))
        assert (wanted.cpu_request, wanted.memory_request) == (1.0, 0.5 * GIB)
