"""The webhook gives a starting pod more CPU, and a resize takes it back after the start."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, cast

import pytest

from forecaster.actuators.headroom import NamespaceAdmission
from forecaster.actuators.resize.plan import resize_plan
from forecaster.actuators.resize.pods import BEFORE, SIZE, resizable_pod
from forecaster.actuators.settings import ResizeSettings
from forecaster.domain.policies import Policies
from forecaster.domain.policy import Policy
from forecaster.domain.workload import ContainerSize, Resources
from forecaster.vertical.cluster_rules.resize import ResizeStatus
from forecaster.vertical.cluster_rules.server import LATEST_SERVER
from tests.support.admitting import FITS, MIB, WEB, Admitting, Document, FakeRules, admitting_in, sized, web
from tests.support.builders import NOON

if TYPE_CHECKING:
    from pathlib import Path

    from forecaster.actuators.resize.sized_pod import ResizablePod, ResizeWrite
    from forecaster.domain.decision import Hold, Resize

CPU = {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"cpu": "200m"}}


@pytest.fixture
def boosting(tmp_path: Path) -> Admitting:
    return stated(admitting_in(tmp_path), startup_boost=3)


def stated(admitting: Admitting, **vertical: object) -> Admitting:
    policy = {"vertical": {"mode": "in-place", "startup_for": "2m", **vertical}}
    admitting.actuator.policies = Policies(Policy.model_validate(policy))
    return admitting


def with_cpu(resources: Document = CPU, **container: object) -> Document:
    pod = web()
    pod["spec"]["containers"] = [{"name": "app", "resources": resources, **container}]
    return pod


def limit(pod: Document) -> str | None:
    resources = pod["spec"]["containers"][0]["resources"]
    return cast("str | None", resources.get("limits", {}).get("cpu"))


def made(boosting: Admitting, pod: Document | None = None, decided: Resize | Hold = FITS) -> Document:
    boosting.cycle(decided)
    return boosting.made(pod or with_cpu())


class TestWhatAPodIsMadeWith:
    def test_its_cpu_limit_is_raised_and_its_request_stays(self, boosting: Admitting) -> None:
        pod = made(boosting)
        assert pod["spec"]["containers"][0]["resources"] == {**CPU, "limits": {"cpu": "600m"}}
        annotations = pod["metadata"]["annotations"]
        assert annotations[SIZE].endswith("Its own size. CPU limits are times 3 until it has started.")
        state = json.loads(annotations[BEFORE])
        assert (state["started"]["app"]["limits"], state["boosted_until"]) == ({"cpu": "200m"}, "2026-03-01T12:02:00Z")

    def test_the_limit_of_a_decided_size_is_raised(self, boosting: Admitting) -> None:
        stated(boosting, mode="initial", startup_boost=2)
        new = Resources(cpu_request=0.3, memory_request=128 * MIB, cpu_limit=0.4)
        decided = replace(sized(), containers=(ContainerSize("app", Resources(), new, None, None, ""),))
        pod = made(boosting, decided=decided)
        assert (limit(pod), pod["spec"]["containers"][0]["resources"]["requests"]["cpu"]) == ("800m", "300m")

    @pytest.mark.parametrize(
        "pod",
        [
            with_cpu({"requests": {"cpu": "100m", "memory": "64Mi"}}),
            with_cpu({name: {"cpu": "200m", "memory": "64Mi"} for name in ("requests", "limits")}),
            with_cpu(resizePolicy=[{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]),
        ],
        ids=["no limit holds it", "its class is Guaranteed", "the way back would restart it"],
    )
    def test_where_that_would_do_nothing_or_could_not_end_it_stays(self, boosting: Admitting, pod: Document) -> None:
        assert limit(made(boosting, pod)) == limit(pod)

    def test_a_limit_range_bounds_it(self, boosting: Admitting) -> None:
        rule = {"metadata": {"name": "r", "namespace": "shop"}}
        limits = {"spec": {"limits": [{"type": "Container", "max": {"cpu": "400m"}}]}}
        cast("FakeRules", boosting.actuator.cluster).limit_ranges = {"shop": [rule | limits]}
        assert limit(made(boosting)) == "400m"

    def test_asked_once_more_the_answer_is_the_same(self, boosting: Admitting) -> None:
        once = made(boosting)
        assert boosting.made(once) == once

    def test_another_policy_ends_it_for_the_next_pod(self, boosting: Admitting) -> None:
        made(boosting)
        stated(boosting, startup_boost=None)
        boosting.actuator.given = None  # as after a restart, when given sizes are read from the file
        assert limit(made(boosting)) == "200m"


class TestTheWayBack:
    @pytest.fixture
    def pod(self, boosting: Admitting) -> ResizablePod:
        document = made(boosting)
        document["metadata"] |= {"name": "web-1", "namespace": "shop", "uid": "u", "resourceVersion": "1"}
        return replace(resizable_pod(document, lambda _: WEB), ready=True)

    def planned(self, pod: ResizablePod, minutes: float) -> list[ResizeWrite]:
        now, admission = NOON + timedelta(minutes=minutes), NamespaceAdmission(LATEST_SERVER, (), ())
        return resize_plan([pod], [], {}, lambda _: True, lambda _: admission, now, ResizeSettings(enabled=True)).writes

    def test_it_has_its_size_once_it_is_ready_and_two_minutes_old(self, pod: ResizablePod) -> None:
        assert self.planned(pod, 1) == []
        assert self.planned(replace(pod, ready=False), 3) == []
        (write,) = self.planned(pod, 2)
        assert (write.change, write.sizes["app"].limits) == ("resize", {"cpu": 200})

    def test_what_is_written_down_lasts_until_the_size_is_there(self, pod: ResizablePod) -> None:
        """The mark is written first; if the resize then fails, the next cycle tries it again."""
        (write,) = self.planned(pod, 2)
        assert write.resized == pod.resized
        back = replace(
            pod,
            pod=pod.pod.with_containers(lambda container: replace(container, resources=write.sizes[container.name])),
        )
        assert [write.change for write in self.planned(back, 3)] == ["forget"]

    def test_with_its_own_size_again_it_is_a_pod_like_any_other(self, pod: ResizablePod) -> None:
        """Without our label a pod is a candidate for the size that is recommended for its workload."""
        (write,) = self.planned(pod, 2)
        own = pod.pod.with_containers(lambda container: replace(container, resources=write.sizes[container.name]))
        on_its_way = replace(pod, pod=own, status=ResizeStatus.IN_PROGRESS)
        assert self.planned(on_its_way, 3) == []
        (write,) = self.planned(replace(pod, pod=own), 3)
        assert (write.change, write.reason) == ("forget", "it has started, and has its own size again")

    def test_one_that_does_not_get_ready_has_its_own_size_again(self, pod: ResizablePod) -> None:
        (write,) = self.planned(replace(pod, ready=False), 11)
        assert (write.change, write.sizes["app"].limits) == ("roll-back", {"cpu": 200})

    def test_a_long_start_is_not_settled_before_its_end(self, boosting: Admitting) -> None:
        stated(boosting, startup_boost=3, startup_for="30m")
        document: dict[str, Any] = made(boosting)
        document["metadata"] |= {"name": "web-1", "namespace": "shop"}
        pod = replace(resizable_pod(document, lambda _: WEB), ready=True)
        assert self.planned(pod, 20) == []
        assert [write.change for write in self.planned(pod, 30)] == ["resize"]
