"""Pods that get another size, the order in which they do, and the way back for a pod that is worse off."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecaster.actuators.headroom import NamespaceAdmission
from forecaster.actuators.resize.eviction import EvictionTerms
from forecaster.actuators.resize.plan import NO_EVICTIONS, resize_plan, undone
from forecaster.actuators.resize.sized_pod import ResizablePod, Resized
from forecaster.actuators.settings import ResizeSettings
from forecaster.actuators.writes import Change
from forecaster.domain.workload import WorkloadId
from forecaster.vertical.cluster_rules.limit_range import LimitRange, LimitRangeItem
from forecaster.vertical.cluster_rules.pod import Container, Pod, Requirements
from forecaster.vertical.cluster_rules.qos import qos_of
from forecaster.vertical.cluster_rules.resize import ResizeStatus
from forecaster.vertical.cluster_rules.server import LATEST_SERVER
from tests.support.builders import NOON

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forecaster.actuators.resize.plan import ResizePlan
    from forecaster.actuators.resize.sized_pod import Sizes

WEB = WorkloadId("shop", "Deployment", "web")
MIB = 2**20 * 1000
RULES = ResizeSettings(enabled=True)
RESTARTS = ResizeSettings(enabled=True, restarts=True)
OPEN = NamespaceAdmission(LATEST_SERVER, (), ())
MINUTE = timedelta(minutes=1)


def size(cpu: int, mebibytes: int, *, limits: bool = False) -> Requirements:
    amounts = {"cpu": cpu, "memory": mebibytes * MIB}
    return Requirements(amounts, dict(amounts) if limits else {})


def pod(
    name: str = "web-1", now: Requirements | None = None, restarting: tuple[str, ...] = (), **fields: object
) -> ResizablePod:
    policy = dict.fromkeys(restarting, "RestartContainer")
    containers = (Container("app", now or size(100, 64), resize_policy=policy),)
    sized_pod = ResizablePod("shop", name, f"uid-{name}", "1", WEB, Pod(containers), node="n1")
    return replace(sized_pod, **fields)  # type: ignore[arg-type]


def planned(
    *candidates: ResizablePod,
    recommended: Requirements | None = None,
    watched: Sequence[ResizablePod] = (),
    admission: NamespaceAdmission = OPEN,
    rules: ResizeSettings = RULES,
    mode: bool = True,
    minutes: float = 0,
    evictions: EvictionTerms = NO_EVICTIONS,
) -> ResizePlan:
    sizes: dict[WorkloadId, Sizes] = {WEB: {"app": recommended or size(300, 128)}}
    at = NOON + minutes * MINUTE
    return resize_plan(watched, candidates, sizes, lambda _: mode, lambda _: admission, at, rules, evictions)


def resized(name: str = "web-1", **fields: object) -> ResizablePod:
    """A pod that was resized at noon."""
    before = Resized({"app": size(100, 64)}, NOON, 0)
    return pod(name, size(300, 128), resized=before, marked=True, writers=frozenset({"forecaster"}), **fields)


def codes(plan: ResizePlan) -> list[str]:
    return [str(refusal.code) for refusal in plan.refusals]


def test_a_pod_gets_its_size_and_the_one_before_is_kept() -> None:
    (write,) = planned(pod()).writes
    assert (write.change, write.sizes) == (Change.RESIZE, {"app": size(300, 128)})
    assert write.resized == Resized({"app": size(100, 64)}, NOON, 0)
    assert str(write) == "Pod shop/web-1: size app cpu 300m, memory 128Mi"


def test_memory_is_not_lowered_in_a_running_pod_unless_that_is_allowed() -> None:
    (write,) = planned(pod(now=size(100, 64)), recommended=size(300, 32)).writes
    assert write.sizes == {"app": size(300, 64)}
    (write,) = planned(pod(), recommended=size(300, 32), rules=ResizeSettings(enabled=True, lower_memory=True)).writes
    assert write.sizes == {"app": size(300, 32)}


def whole(*names: str) -> ResizablePod:
    """A pod with these containers that states its resources for the whole pod."""
    containers = tuple(Container(name, Requirements({}, {})) for name in names)
    return pod(pod=Pod(containers, pod_level=size(200, 64)))


def test_memory_of_a_whole_pod_is_not_lowered_either() -> None:
    (write,) = planned(whole("app"), recommended=size(300, 32)).writes
    assert write.sizes == {"the pod": size(300, 64)}
    assert write.resized is not None
    assert write.resized.before["the pod"] == size(200, 64)


def test_a_whole_pod_of_which_a_container_has_no_size_stays_and_says_so() -> None:
    plan = planned(whole("app", "proxy"))
    assert plan.writes == []
    assert "not each of its containers has a size" in plan.refusals[0].message


def test_a_guaranteed_pod_stays_guaranteed() -> None:
    (write,) = planned(pod(now=size(100, 64, limits=True)), recommended=size(300, 128)).writes
    assert write.sizes == {"app": size(300, 128, limits=True)}


@pytest.mark.parametrize(("cpu", "limit"), [(150, 200), (300, 300)], ids=["below the limit", "above it"])
def test_a_limit_stays_where_the_size_has_none_and_rises_with_the_request(cpu: int, limit: int) -> None:
    """A running pod cannot lose a limit; a size without one (`cpu_limit: none`) still reaches it."""
    has = Requirements({"cpu": 100, "memory": 64 * MIB}, {"cpu": 200})
    (write,) = planned(pod(now=has), recommended=size(cpu, 64)).writes
    assert write.sizes == {"app": Requirements({"cpu": cpu, "memory": 64 * MIB}, {"cpu": limit})}


def test_a_container_that_would_be_restarted_is_left_unless_that_is_allowed() -> None:
    plan = planned(pod(restarting=("memory",)))
    assert (plan.writes, codes(plan)) == ([], ["restarts"])
    assert planned(pod(restarting=("memory",), unready=0), rules=RESTARTS).writes
    assert planned(pod(restarting=("memory",)), recommended=size(300, 64)).writes


@pytest.mark.parametrize(
    ("unready", "why"), [(1, "until all pods of its workload are ready, 1 not yet"), (None, "is not known")]
)
def test_a_container_is_restarted_only_while_all_pods_of_its_workload_are_ready(unready: int | None, why: str) -> None:
    """No PodDisruptionBudget is asked about a restart in place."""
    plan = planned(pod(restarting=("memory",), unready=unready), rules=RESTARTS)
    assert (plan.writes, codes(plan)) == ([], ["restarts"])
    assert why in plan.refusals[0].message
    assert planned(pod(restarting=("memory",), unready=unready), recommended=size(300, 64), rules=RESTARTS).writes


def test_a_limit_range_is_kept_to() -> None:
    most = LimitRange((LimitRangeItem("Container", max={"cpu": 200}, default={"cpu": 200}),), "small")
    plan = planned(pod(now=size(100, 64, limits=True)), admission=NamespaceAdmission(LATEST_SERVER, (most,), ()))
    assert all(write.sizes["app"].limits.get("cpu", 0) <= 200 for write in plan.writes)


@pytest.mark.parametrize("back", [{"mode": False}, {"status": ResizeStatus.INFEASIBLE}], ids=["another mode", "worse"])
def test_the_way_back_gives_no_pod_a_limit_by_a_limit_range_that_came_since(back: dict[str, Any]) -> None:
    """None takes a limit away from a running pod again: one that has none would be throttled at once."""
    since = LimitRange((LimitRangeItem("Container", default={"cpu": 200}),), "defaults")
    given = NamespaceAdmission(LATEST_SERVER, (since,), ())
    marked, mode = resized(status=back.get("status", ResizeStatus.NONE)), back.get("mode", True)
    plan = planned(watched=[marked], mode=mode, admission=given)
    assert (plan.writes, codes(plan)) == ([], ["inadmissible"])
    assert "a limit of app cpu, by a LimitRange" in plan.refusals[0].message
    assert [write.sizes for write in planned(watched=[marked], mode=mode).writes] == [{"app": size(100, 64)}]


def test_what_a_vertical_pod_autoscaler_sized_is_left() -> None:
    plan = planned(pod(owner="a VerticalPodAutoscaler sized it"))
    assert (plan.writes, codes(plan)) == ([], ["owned"])


class TestOneAfterTheOther:
    def test_the_next_waits_until_the_last_has_settled(self) -> None:
        assert planned(pod("web-2"), watched=[resized()], minutes=1).writes == []
        (write,) = planned(pod("web-2"), watched=[resized()], minutes=3).writes
        assert (write.subject.name, write.change) == ("web-2", Change.RESIZE)

    @pytest.mark.parametrize("status", [ResizeStatus.DEFERRED, ResizeStatus.IN_PROGRESS])
    def test_while_a_node_has_not_granted_it_the_others_wait(self, status: ResizeStatus) -> None:
        plan = planned(pod("web-2"), watched=[resized(status=status)], minutes=5)
        assert (plan.writes, codes(plan)) == ([], [str(status).lower().replace("inprogress", "in-progress")])

    def test_one_that_kept_well_is_no_longer_watched(self) -> None:
        (write,) = planned(watched=[resized()], minutes=10).writes
        assert (write.change, write.sizes, write.settled) == (Change.SETTLE, {}, True)

    def test_what_is_decided_of_a_pod_is_done_to_the_pod_as_it_is_now(self) -> None:
        """A status from its kubelet changes the version, and none of the fields that the decision read."""
        (write,) = planned(watched=[resized()], minutes=10).writes
        fresh = replace(write.subject, version="9")
        assert write.on(fresh) == replace(write, subject=fresh)
        assert write.on(replace(fresh, resized=write.resized)) is not None
        other = Resized({"app": size(200, 64)}, NOON, 0)
        assert write.on(replace(fresh, resized=other)) is None
        assert write.on(replace(fresh, restarts=1)) is None


class TestRollBack:
    @pytest.mark.parametrize(
        ("fields", "why"),
        [
            ({"restarts": 1}, "1 restarts since its size was changed"),
            ({"ready": False}, "not ready 2m after its size was changed"),
            (
                {"status": ResizeStatus.INFEASIBLE, "node_message": "too large"},
                "its node can never grant the size. too large",
            ),
            ({"worse": "errors are 0.2"}, "errors are 0.2"),
        ],
        ids=["restarts", "readiness", "infeasible", "errors"],
    )
    def test_a_pod_that_is_worse_off_gets_its_own_size_again(self, fields: dict[str, object], why: str) -> None:
        (write,) = planned(pod("web-2"), watched=[resized(**fields)], minutes=3).writes
        assert (write.change, write.sizes, write.reason) == (Change.ROLL_BACK, {"app": size(100, 64)}, why)
        assert write.backed_off_until == NOON + 3 * MINUTE + RULES.back_off

    def test_its_workload_is_left_alone_for_long(self) -> None:
        own_writer = frozenset({"forecaster"})
        backed_off = pod(marked=True, backed_off_until=NOON + RULES.back_off, writers=own_writer)
        plan = planned(pod("web-2"), watched=[backed_off], minutes=60)
        assert (plan.writes, codes(plan)) == ([], ["rolled-back"])

    def test_a_settled_pod_gets_another_size_and_keeps_what_its_owner_gave_it(self) -> None:
        (write,) = planned(resized(settled=True), recommended=size(500, 128), minutes=60).writes
        assert (write.change, write.sizes) == (Change.RESIZE, {"app": size(500, 128)})
        assert write.resized == Resized({"app": size(100, 64)}, NOON + 60 * MINUTE, 0)

    def test_a_pod_that_is_deleted_and_does_not_go_holds_no_other(self) -> None:
        for fields in ({"ready": False}, {"status": ResizeStatus.DEFERRED}):
            leaving = resized(deleted=True, **fields)
            (write,) = planned(pod("web-2"), watched=[leaving], minutes=3).writes
            assert (write.subject.name, write.change) == ("web-2", Change.RESIZE)

    def test_another_mode_gives_it_back_too(self) -> None:
        (write,) = planned(watched=[resized(settled=True)], mode=False).writes
        assert (write.change, write.sizes) == (Change.RESTORE, {"app": size(100, 64)})

    def test_a_size_that_another_client_wrote_stays(self) -> None:
        rewritten = resized(restarts=3)
        rewritten = replace(rewritten, writers=frozenset({"forecaster", "kubectl"}))
        (write,) = planned(watched=[rewritten]).writes
        assert (write.change, write.sizes, write.backed_off_until) == (Change.YIELD, {}, NOON + RULES.back_off)
        settled = replace(rewritten, settled=True)
        assert [each.change for each in planned(settled, recommended=size(500, 128)).writes] == [Change.YIELD]
        released = undone(rewritten, "released")
        assert released is not None
        assert (released.change, released.sizes) == (Change.FORGET, {})


amounts = st.integers(1, 4000)
blocks = st.builds(lambda cpu, memory, limits: size(cpu, memory, limits=limits), amounts, amounts, st.booleans())


@given(blocks, blocks, st.one_of(st.none(), amounts))
def test_whatever_is_written_is_admitted_and_lowers_no_memory(
    now: Requirements, recommended: Requirements, most: int | None
) -> None:
    item = LimitRangeItem("Container", max={"cpu": most}) if most else None
    admission = NamespaceAdmission(LATEST_SERVER, (LimitRange((item,), "small"),) if item else (), ())
    candidate = pod(now=now)
    for write in planned(candidate, recommended=recommended, admission=admission).writes:
        new = write.sizes["app"]
        after = replace(candidate.pod, containers=(Container("app", new),))
        assert qos_of(after, LATEST_SERVER) == qos_of(candidate.pod, LATEST_SERVER)
        assert all(new.requests[name] <= limit for name, limit in new.limits.items())
        assert set(now.limits) <= set(new.limits) <= set(now.limits) | set(recommended.limits)
        assert new.requests["memory"] >= now.requests["memory"]
        assert new.limits.get("cpu", 0) <= (most or new.limits.get("cpu", 0)) or new.limits == now.limits


EVICTS = EvictionTerms(lambda _: True, {WEB: 2})


def stuck(name: str = "web-1", **fields: object) -> ResizablePod:
    return resized(name, **{"status": ResizeStatus.INFEASIBLE, **fields})


@pytest.mark.parametrize(
    ("watched", "evictions", "minutes", "changes"),
    [
        ([stuck()], EVICTS, 30, ["evict"]),
        ([stuck(status=ResizeStatus.DEFERRED)], EVICTS, 30, ["evict"]),
        ([stuck()], EVICTS, 29, []),
        ([stuck()], NO_EVICTIONS, 30, ["roll-back"]),
        ([stuck(restarts=3)], EVICTS, 30, ["roll-back"]),
        ([stuck()], replace(EVICTS, ready={WEB: 1}), 30, []),
        ([stuck()], replace(EVICTS, tried={("shop", "web-1"): NOON + 25 * MINUTE}), 30, []),
        ([stuck()], replace(EVICTS, tried={("shop", "web-1"): NOON + 20 * MINUTE}), 30, ["evict"]),
        ([stuck(), stuck("web-2")], EVICTS, 30, ["evict"]),
        ([stuck(), stuck("web-2", deleted=True)], EVICTS, 30, []),
        ([stuck()], replace(EVICTS, sized={WEB}), 30, ["roll-back"]),
    ],
    ids=["late", "deferred", "early", "off", "worse", "alone", "kept", "again", "one-each", "on-its-way", "of a VPA"],
)
def test_a_pod_whose_node_does_not_grant_its_size_goes_late_and_alone(
    watched: list[ResizablePod], evictions: EvictionTerms, minutes: float, changes: list[str]
) -> None:
    plan = planned(watched=watched, evictions=evictions, minutes=minutes)
    assert [str(write.change) for write in plan.writes] == changes
