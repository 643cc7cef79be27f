"""The leader writes the statuses that changed in a cycle, and tries failed ones again."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from forecaster.actuators.statuses import (
    MAX_WRITES,
    REFRESH_SECONDS,
    StatusSender,
    StatusWrite,
    StatusWriter,
    condition_event,
    status_there,
)
from forecaster.domain.layers import ClusterPolicies, Layer
from forecaster.domain.policies import Policies
from forecaster.domain.policy import Policy
from forecaster.domain.workload import WorkloadId
from forecaster.kube.client import ApiError
from forecaster.publish.publisher import OfferedCycle, offered_cycle
from forecaster.resources.objects import AutoscalerResource
from forecaster.resources.status import AutoscalerStatus
from tests.support.decided_records import decided_fleet
from tests.support.recommendations import NOON, ahead, recommendation

if TYPE_CHECKING:
    from datetime import datetime

    from forecaster.domain.signal import PeakForecast

WEB, API = (WorkloadId("shop", "Deployment", name) for name in ("web", "api"))


@dataclass
class Fence:
    may: bool = True
    fault: str = ""
    paused: bool = False

    def valid(self) -> bool:
        return self.may

    def leading(self) -> bool:
        return self.may


@dataclass
class Log:
    lines: list[tuple[str, object]] = field(default_factory=list)

    def warning(self, event: str, **facts: object) -> None:
        self.lines.append((event, facts["count"]))

    info = warning


@dataclass
class Cluster:
    """PredictiveAutoscalers, each with the status that was written last."""

    resources: dict[str, AutoscalerResource] = field(default_factory=dict)
    written: list[StatusWrite] = field(default_factory=list)
    refuses: int = 0

    def write(self, write: StatusWrite) -> None:
        if self.refuses:
            raise ApiError("no", self.refuses)
        self.written.append(write)
        status = msgspec.Raw(msgspec.json.encode(write.status))
        self.resources[write.resource.name] = msgspec.structs.replace(write.resource, status=status)

    def names(self) -> list[str]:
        names = [write.resource.name for write in self.written]
        self.written.clear()
        return names


class Stage:
    """A writer of statuses over a fake cluster."""

    def __init__(self, cluster: Cluster | None = None) -> None:
        self.cluster = cluster or Cluster({id_.name: resource(id_) for id_ in (WEB, API)})
        self.fence, self.log, self.now = Fence(), Log(), 0.0
        self.refusal: tuple[str, str] | None = None
        self.policies = Policies(Policy(mode="publish"))
        resources = self.cluster.resources
        self.writer = StatusWriter(
            self.cluster.write,
            self.fence,
            self.policies,
            lambda: list(resources.values()),
            self.log,
            (),
            lambda _: self.refusal,
            seconds=lambda: self.now,
        )

    def cycle(self, replicas: int = 5, minutes: int = 1) -> list[str]:
        """Names of the objects whose status was written in this cycle."""
        self.now += 60.0 * minutes
        offers = cycle_of(replicas, self.now)
        self.writer.sender.send(self.writer.due(offers))
        return sorted(self.cluster.names())


def resource(id_: WorkloadId) -> AutoscalerResource:
    return AutoscalerResource(id_.namespace, id_.name, f"uid-{id_.name}", 1, id_)


def cycle_of(replicas: int, seconds: float) -> OfferedCycle:
    at = NOON + timedelta(seconds=seconds)
    rows = [recommendation(WEB, at=at, replicas=replicas), recommendation(API, at=at, replicas=4)]
    return offered_cycle(at, decided_fleet(rows, at), [Policy(mode="publish")] * 2)


def test_a_status_is_written_once_and_again_when_it_is_another_one() -> None:
    stage = Stage()
    assert stage.cycle() == ["api", "web"]
    assert stage.cycle() == []
    assert stage.cycle(replicas=6) == ["web"]
    assert stage.cycle(replicas=6) == []


def test_a_new_leader_writes_nothing_that_is_there_already() -> None:
    stage = Stage()
    stage.cycle()
    assert Stage(stage.cluster).cycle() == []


def test_a_policy_that_is_overridden_is_in_the_status() -> None:
    stage = Stage()
    stage.cycle()
    own = {WEB: (Layer("annotations of HPA shop/web", {"mode": "floor"}),)}
    stage.policies.take_over(ClusterPolicies(own=own))
    assert stage.cycle() == ["web"]


def test_a_workload_that_is_left_to_another_tool_says_so_once() -> None:
    stage = Stage()
    stage.cycle()
    stage.refusal = ("second-writer", "HPA shop/web: ScaledObject web scales its target")
    assert stage.cycle() == ["api", "web"]
    ready = status_there(stage.cluster.resources["web"].status, AutoscalerStatus).condition("Ready")
    assert ready is not None
    assert (ready.status, ready.reason, ready.message) == ("False", "SecondWriter", stage.refusal[1])
    assert stage.cycle() == []
    stage.refusal = None
    assert stage.cycle() == ["api", "web"]


def test_texts_that_change_are_written_after_a_while() -> None:
    stage = Stage()
    stage.cycle()
    stage.cluster.resources["web"] = changed_by_hand(stage.cluster.resources["web"])
    assert stage.cycle() == []
    assert stage.cycle(minutes=int(REFRESH_SECONDS // 60)) == ["web"]


def test_a_change_is_written_before_the_amounts_of_a_fleet() -> None:
    fleet = [*(WorkloadId("odd", "Deployment", f"w{number}") for number in range(MAX_WRITES + 100)), WEB]
    stage = Stage(Cluster({id_.name: resource(id_) for id_ in fleet}))

    def cycle(replicas: int) -> list[str]:
        stage.now += REFRESH_SECONDS / 2
        at = NOON + timedelta(seconds=stage.now)
        rows = [recommendation(id_, at=at, replicas=replicas if id_ == WEB else 4) for id_ in fleet]
        rows = [replace(row, signals=(replace(row.signals[0], forecast=peak(at, stage.now)),)) for row in rows]
        stage.writer.sender.send(stage.writer.due(offered_cycle(at, decided_fleet(rows, at), [Policy()] * len(fleet))))
        return stage.cluster.names()

    assert [len(cycle(5)) for _ in range(2)] == [MAX_WRITES, 101]
    assert "web" in cycle(6)


def test_statuses_of_one_namespace_that_always_change_keep_no_other_waiting() -> None:
    fleet = [*(WorkloadId("odd", "Deployment", f"w{number}") for number in range(3 * MAX_WRITES)), WEB]
    stage = Stage(Cluster({id_.name: resource(id_) for id_ in fleet}))

    def cycle(web: int) -> list[str]:
        stage.now += 60.0
        at = NOON + timedelta(seconds=stage.now)
        rows = [recommendation(id_, at=at, replicas=web if id_ == WEB else int(stage.now)) for id_ in fleet]
        stage.writer.sender.send(stage.writer.due(offered_cycle(at, decided_fleet(rows, at), [Policy()] * len(fleet))))
        return stage.cluster.names()

    assert "web" in cycle(5)
    assert [("web" in names, len(names)) for names in map(cycle, (5, 6, 6))] == [
        (False, MAX_WRITES),
        (True, MAX_WRITES),
        (False, MAX_WRITES),
    ]


def peak(at: datetime, amount: float) -> PeakForecast:
    return replace(ahead(at), peak=amount)


def changed_by_hand(resource: AutoscalerResource) -> AutoscalerResource:
    return msgspec.structs.replace(
        resource,
        status=msgspec.Raw(bytes(resource.status).replace(b"the forecast asks for 5", b"the forecast asks for 6")),
    )


def test_a_replica_that_may_not_write_writes_nothing_and_does_once_it_may() -> None:
    stage = Stage()
    stage.fence.may = False
    stage.writer.receive(cycle_of(5, 0.0))
    assert stage.cycle() == []
    stage.fence.may = True
    assert stage.cycle() == ["api", "web"]


def test_what_failed_is_written_in_the_next_cycle_and_is_one_line() -> None:
    stage = Stage()
    stage.cluster.refuses = 503
    assert stage.cycle() == []
    assert stage.log.lines == [("statuses_not_written", 2)]
    stage.cluster.refuses = 0
    assert stage.cycle() == ["api", "web"]
    assert stage.writer.sender.outcomes == {"failed": 2, "written": 2}


def test_an_unexpected_error_about_one_object_keeps_no_other_from_its_status() -> None:
    stage = Stage()
    write = stage.writer.sender.write

    def odd(status: StatusWrite) -> None:
        if status.resource.name == "web":
            raise ValueError("odd")
        write(status)

    stage.writer.sender.write = odd
    assert stage.cycle() == ["api"]
    assert stage.log.lines == [("statuses_not_written", 1)]
    stage.writer.sender.write = write
    assert stage.cycle() == ["web"]


def test_a_sender_that_is_closed_while_it_sends_ends_with_the_write_under_way() -> None:
    began, goes_on, written = threading.Event(), threading.Event(), list[int]()

    def write(number: int) -> None:
        began.set()
        assert goes_on.wait(10)
        written.append(number)

    sender: StatusSender[Any] = StatusSender(write, lambda _: None, Fence(), Log())
    thread = threading.Thread(target=sender.run, daemon=True)
    thread.start()
    sender.begin(lambda: [1, 2])
    assert began.wait(10)
    sender.close()
    goes_on.set()
    thread.join(10)
    assert (thread.is_alive(), written) == (False, [1])


def test_an_object_that_has_gone_is_no_failure() -> None:
    stage = Stage()
    stage.cluster.refuses = 404
    stage.cycle()
    assert (stage.log.lines, stage.writer.sender.outcomes) == ([], {"gone": 2})


def test_events_of_one_change_have_one_name() -> None:
    stage = Stage()
    target = WEB._replace(name="gone")
    stage.cluster.resources["web"] = msgspec.structs.replace(resource(WEB), target=target)
    (write,) = [write for write in stage.writer.due(cycle_of(5, 60.0)) if write.resource.name == "web"]
    (condition,) = write.news
    event = condition_event(write.resource, condition, write.at)
    assert (event.type, event.reason, event.involved_object.kind) == (
        "Warning",
        "TargetNotFound",
        "PredictiveAutoscaler",
    )
    assert event == condition_event(write.resource, condition, write.at)
    assert event.metadata.name != condition_event(write.resource, replace_reason(condition), write.at).metadata.name
    cut = msgspec.structs.replace(write.resource, name="a" * 199 + "-tail")
    assert condition_event(cut, condition, write.at).metadata.name.startswith("a" * 199 + "."), (
        "no part may end with a dash"
    )


def replace_reason(condition: object) -> object:
    return msgspec.structs.replace(condition, reason="Other")  # type: ignore[type-var]
