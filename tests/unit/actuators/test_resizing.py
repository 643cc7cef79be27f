"""Sizes beside the health of a workload, composed: what its pods and its errors were is compared with what they are."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from forecaster.actuators.queue import WriteQueue
from forecaster.actuators.resize.actuator import ResizeActuator
from forecaster.actuators.resize.plan import ResizablePod, ResizeWrite
from forecaster.actuators.rollback import Health
from forecaster.actuators.room import Surroundings
from forecaster.actuators.settings import ActingSettings, ResizeSettings
from forecaster.domain.decision import Reason, Resize
from forecaster.domain.policies import Policies
from forecaster.domain.policy import Policy
from forecaster.domain.workload import ContainerSize, Resources, WorkloadId
from forecaster.publish.publisher import OfferPublisher
from forecaster.resources.neighbours import Neighbours
from forecaster.vertical.cluster_rules.pod import Container, Pod, Requirements
from forecaster.vertical.cluster_rules.server import LATEST_SERVER
from tests.support.fences import Fence, Log
from tests.support.recommendations import NOON, recommendation

if TYPE_CHECKING:
    from collections.abc import Iterator

WEB = WorkloadId("shop", "Deployment", "web")
MIB = 2**20
NOW, WANTED = (Resources(cpu_request=cpu, memory_request=memory * MIB) for cpu, memory in ((0.1, 64.0), (0.3, 128.0)))
WELL = Health(wanted=2, ready=2, restarted=0, release="web-1", errors=0.01, limit=0.05)


def block(of: Resources) -> Requirements:
    return Requirements({"cpu": round(1000 * (of.cpu_request or 0)), "memory": 1000 * int(of.memory_request or 0)})


class OnePod:
    """A cluster with one pod, whose container its resizePolicy restarts for memory; a cycle a minute."""

    def __init__(self, *, restarts: bool = False) -> None:
        policy = {} if not restarts else {"memory": "RestartContainer"}
        pod = Pod((Container("app", block(NOW), resize_policy=policy),))
        self.pod = ResizablePod("shop", "web-1", "uid", "1", WEB, pod, node="n1")
        self.health, self.now, self.written = WELL, NOON, list[ResizeWrite]()
        policies = Policies(Policy.model_validate({"vertical": {"mode": "in-place"}}))
        rules, none = ResizeSettings(enabled=True, restarts=restarts), Neighbours()
        cluster: Any = self
        writer = WriteQueue("resize", Fence(), ActingSettings(), Log(self))
        self.actuator = ResizeActuator(
            cluster,
            lambda _: self.running(),
            writer,
            policies,
            rules,
            lambda _: none,
            lambda *_: {WEB: self.health},
        )
        self.publisher = OfferPublisher(policies, {"resize": self.actuator})

    def running(self) -> Iterator[tuple[WorkloadId, str, str, Resources]]:
        own = self.pod.sizes["app"] == block(NOW)
        yield WEB, "shop", "web-1", NOW if own else WANTED

    def marked(self, *, settled: bool = False) -> list[ResizablePod]:
        return [self.pod] if self.pod.marked else []

    def of(self, _namespace: str, _name: str) -> ResizablePod:
        return self.pod

    def around(self, _namespace: str) -> Surroundings:
        return Surroundings(LATEST_SERVER, (), ())

    def write(self, write: ResizeWrite) -> None:
        self.written.append(write)
        containers = tuple(replace(one, resources=write.sizes[one.name]) for one in self.pod.pod.containers)
        self.pod = replace(
            self.pod,
            pod=replace(self.pod.pod, containers=containers),
            resized=write.resized,
            marked=True,
            backed_off_until=write.backed_off_until,
            writers=frozenset({"forecaster"}),
        )

    def record(self, _write: ResizeWrite, _at: object) -> None:
        """Events are looked at elsewhere."""

    def cycle(self) -> tuple[dict[tuple[str, str], int], dict[str, int]]:
        size = ContainerSize("app", NOW, WANTED, None, None, "")
        decided = recommendation(WEB, at=self.now, now=2, replicas=2, reason=Reason.FORECAST)
        self.publisher.publish(self.now, [replace(decided, resources=Resize(WANTED, Reason.SIZED, "sized", (size,)))])
        done = self.actuator.act(self.now)
        self.now += timedelta(minutes=1)
        return dict(done.writes), dict(done.states)


@pytest.mark.parametrize(
    ("errors", "writes"),
    [(0.2, {("roll-back", "written"): 1}), (0.04, {}), (None, {})],
    ids=["worse", "well", "unknown"],
)
def test_errors_after_a_size_take_it_back(errors: float | None, writes: dict[tuple[str, str], int]) -> None:
    one = OnePod()
    assert one.cycle()[0] == {("resize", "written"): 1}
    assert one.pod.resized is not None
    assert one.pod.resized.errors == 0.01
    one.health = Health(2, 2, 0, "web-1", errors, 0.05)
    assert one.cycle()[0] == writes
    assert (one.pod.sizes["app"] == block(NOW)) is bool(writes)


@pytest.mark.parametrize(("ready", "resized"), [(2, True), (1, False), (None, False)])
def test_a_container_is_restarted_while_all_pods_are_ready(ready: int | None, *, resized: bool) -> None:
    one = OnePod(restarts=True)
    one.health = Health(2, ready, 0, "web-1", 0.01, 0.05)
    writes, states = one.cycle()
    assert (bool(writes), "restarts" in states) == (resized, not resized)
