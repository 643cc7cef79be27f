"""A raise is cut to the room in its quotas before it is written; no room is promised twice."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecaster.actuators.floor.plan import floor_plan
from forecaster.actuators.floor.values import FloorOffer, WrittenFloor
from forecaster.actuators.headroom import NamespaceAdmission, QuotaHeadroom, quota_fit
from forecaster.actuators.limits import MAX_PODS_PER_WORKLOAD, CycleLimits
from forecaster.actuators.resize.pods import Resizes
from forecaster.actuators.scale.plan import CountOffer, scale_plan, updated_memory
from forecaster.actuators.settings import FloorSettings, ScaleSettings
from forecaster.actuators.writes import MANAGER, Change, RefusalReason
from forecaster.kube.client import ApiError, UnreachableError
from forecaster.vertical.cluster_rules.limit_range import LimitRange, LimitRangeItem
from forecaster.vertical.cluster_rules.manifest import pod_of
from forecaster.vertical.cluster_rules.pod import Container, Pod, Requirements
from forecaster.vertical.cluster_rules.quota import Quota
from forecaster.vertical.cluster_rules.server import LATEST_SERVER
from tests.support.autoscalers import live_hpa
from tests.support.builders import NOON
from tests.support.carried import carried
from tests.support.fake_api_server import FakeApiServer
from tests.support.scales import live_scale_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forecaster.actuators.floor.values import LiveAutoscaler
    from forecaster.domain.workload import WorkloadId
    from tests.support.carried import Carried

HALF = Pod((Container("app", Requirements({"cpu": 500})),))
SILENT = Pod((Container("app", Requirements({})),))
CPUS = Quota({"requests.cpu": 4000}, {"requests.cpu": 2000}, name="team")
COUNTED = Quota({"pods": 100_000}, {"pods": 3000}, name="pods")


def headroom(*quotas: Quota, pod: Pod = HALF, ranges: Sequence[LimitRange] = ()) -> QuotaHeadroom:
    return QuotaHeadroom(lambda _: NamespaceAdmission(LATEST_SERVER, tuple(ranges), quotas), lambda _: pod)


def scaled(room: QuotaHeadroom, *counts: int, now: int = 3) -> Carried:
    """Plan these counts in one namespace, for workloads that have `now` pods each."""
    live = [replace(live_scale_of(f"web-{each}", now), pods=now) for each, _ in enumerate(counts)]
    offers = {scale.id: CountOffer(count, current=now) for scale, count in zip(live, counts, strict=True)}
    rules = ScaleSettings(enabled=True)
    plan = scale_plan(live, offers, lambda _: True, updated_memory({}, offers, NOON, rules), NOON, rules)
    return carried(plan, rules, room.reserve)


def floored(room: QuotaHeadroom, replicas: int, *, floor: WrittenFloor | None = None, lowest: int = 2) -> Carried:
    hpa = replace(live_hpa(lowest=lowest, replicas=4), floor=floor, marked=floor is not None)
    hpa = replace(hpa, writers=frozenset({MANAGER})) if floor else hpa
    offers = {hpa.target: FloorOffer(replicas)}
    rules = FloorSettings(enabled=True)
    return carried(floor_plan([hpa], offers, lambda _: True, {}, NOON, rules), rules, room.reserve)


def test_a_count_goes_as_far_as_its_quota_and_says_which_one_stops_it() -> None:
    (write,) = scaled(headroom(COUNTED, CPUS), 6).writes
    assert write.replicas == 6
    (write,) = scaled(headroom(COUNTED, replace(CPUS, used={"requests.cpu": 3000})), 6).writes
    assert write.replicas == 5
    why = "quota team: requests.cpu would exceed the quota: more 500m, used 4, hard 4"
    assert write.reason == f"6 are asked for; 5 fit: {why}"


def test_two_billion_pods_are_counted_as_fast_as_one() -> None:
    """An owner may have a metric that asks for so many; counting them one by one would stall the cycle."""
    roomy = Quota({"pods": 10**14}, {"pods": 0}, name="pods")
    assert quota_fit(HALF, 2_000_000_000, [roomy], LATEST_SERVER).pods == 2_000_000_000
    assert quota_fit(HALF, 2_000_000_000, [roomy, CPUS], LATEST_SERVER).pods == 4


def test_where_nothing_fits_it_is_held_with_the_name_of_the_quota() -> None:
    plan = scaled(headroom(replace(CPUS, used={"requests.cpu": 4000})), 6)
    assert plan.writes == []
    assert [str(refusal.code) for refusal in plan.refusals] == ["quota"]
    assert plan.refusals[0].message.startswith("Deployment shop/web-0: 6 do not fit: quota team: requests.cpu")


def test_two_workloads_of_a_namespace_are_not_promised_the_same_room() -> None:
    plan = scaled(headroom(CPUS), 6, 6)
    assert sum(write.replicas - 3 for write in plan.writes) == 4


def test_the_defaults_of_a_limit_range_are_charged_where_a_template_states_nothing() -> None:
    silent = headroom(CPUS, pod=SILENT)
    assert "must specify requests.cpu" in scaled(silent, 6).refusals[0].message
    ranges = [LimitRange((LimitRangeItem(default_request={"cpu": 1000}),), "defaults")]
    (write,) = scaled(headroom(CPUS, pod=SILENT, ranges=ranges), 6).writes
    assert write.replicas == 5


def test_a_floor_that_asks_for_no_more_pods_than_there_are_needs_no_room() -> None:
    full = headroom(replace(CPUS, used={"requests.cpu": 4000}))
    (write,) = floored(full, 4).writes
    assert (write.change, write.min_replicas) == (Change.RAISE, 4)


def test_a_floor_goes_as_far_as_its_quota() -> None:
    (write,) = floored(headroom(replace(CPUS, used={"requests.cpu": 3000})), 7).writes
    assert (write.min_replicas, "6 fit: quota team" in write.reason) == (6, True)


def test_a_floor_that_waits_for_room_is_renewed_and_does_not_end() -> None:
    floor = WrittenFloor(2, NOON + timedelta(minutes=3))
    plan = floored(headroom(replace(CPUS, used={"requests.cpu": 4000})), 7, floor=floor, lowest=4)
    assert [(write.change, write.min_replicas) for write in plan.writes] == [(Change.RENEW, 4)]
    assert [str(refusal.code) for refusal in plan.refusals] == ["quota"]


@pytest.mark.parametrize("fails", ["admission", "template"])
def test_a_missing_right_to_quotas_bounds_nothing_and_an_api_server_that_is_away_holds_the_raise(fails: str) -> None:
    def failing(error: ApiError, _: object) -> None:
        raise error

    def failing_headroom(error: ApiError) -> QuotaHeadroom:
        full = headroom(replace(CPUS, used={"requests.cpu": 4000}))
        return replace(full, **{fails: partial(failing, error)}, known={})

    assert scaled(failing_headroom(ApiError("forbidden", 403)), 6).writes[0].replicas == 6
    for trouble in (UnreachableError("no answer"), ApiError("no answer", 429), ApiError("no answer", 503)):
        (refused,) = scaled(failing_headroom(trouble), 6).refusals
        assert refused.message == "Deployment shop/web-0: replicas 6 waits, its quotas: no answer"


def test_a_raise_past_quotas_that_may_not_be_read_says_so() -> None:
    def forbidden(_: str) -> NamespaceAdmission:
        raise ApiError("forbidden", 403)

    (write,) = scaled(QuotaHeadroom(forbidden, lambda _: HALF), 6).writes
    assert "without a look at quotas, which may not be read: `forecaster doctor` names the right" in write.reason


def test_nothing_is_asked_while_nothing_is_raised() -> None:
    def read(_: str | WorkloadId) -> None:
        raise AssertionError

    none = QuotaHeadroom(read, read)  # type: ignore[arg-type]
    assert scaled(none, 3).writes == []
    assert floored(none, 2).writes == []


amounts = st.integers(0, 5000)


@given(amounts, amounts, amounts, amounts, st.integers(0, 12), st.integers(1, 900))
def test_what_fits_is_admitted_to_the_last_pod_and_not_one_more(
    cpus: int, of_cpus: int, pods: int, of_pods: int, more: int, request: int
) -> None:
    quotas = (Quota({"requests.cpu": cpus}, {"requests.cpu": of_cpus}), Quota({"pods": pods}, {"pods": of_pods}))
    admitted = quota_fit(Pod((Container("app", Requirements({"cpu": request})),)), more, quotas, LATEST_SERVER)
    fit = min(max(0, cpus - of_cpus) // request, max(0, pods - of_pods) // 1000, more)
    assert (admitted.pods, bool(admitted.why)) == (fit, fit < more)


def test_refused_raises_cost_the_others_nothing() -> None:
    """Twenty HPAs share a namespace with a full quota; every HPA elsewhere gets its floor in the first cycle."""
    full = replace(CPUS, used={"requests.cpu": 4000})
    hpas = [live_hpa(f"full-{number}", replicas=2) for number in range(20)]
    hpas += [replace_namespace(live_hpa(f"free-{number}", replicas=4)) for number in range(5)]
    room = QuotaHeadroom(
        lambda namespace: NamespaceAdmission(LATEST_SERVER, (), (full,) if namespace == "shop" else ()), lambda _: HALF
    )
    offers = {hpa.target: FloorOffer(6) for hpa in hpas}
    rules = FloorSettings(enabled=True)
    plan = carried(floor_plan(hpas, offers, lambda _: True, {}, NOON, rules), rules, room.reserve)
    assert {write.subject.namespace for write in plan.writes} == {"free"}
    assert len(plan.writes) == 5


def test_a_template_that_is_none_keeps_no_other_workload_waiting() -> None:
    """The definition of a custom resource may leave its template open."""
    hpas = [live_hpa("bad"), replace_namespace(live_hpa("web"))]
    room = QuotaHeadroom(
        lambda _: NamespaceAdmission(LATEST_SERVER, (), (CPUS,)),
        lambda id_: pod_of({"metadata": "none"}) if id_.namespace == "shop" else HALF,
    )
    rules = FloorSettings(enabled=True)
    plan = floor_plan(hpas, {hpa.target: FloorOffer(6) for hpa in hpas}, lambda _: True, {}, NOON, rules)
    written = carried(plan, rules, room.reserve)
    assert [write.subject.namespace for write in written.writes] == ["free"]
    assert [refusal.code for refusal in written.refusals] == [RefusalReason.UNREADABLE]


def test_the_rules_of_all_namespaces_are_read_once_in_a_cycle() -> None:
    """Without a watch, each namespace would otherwise list the quotas of the whole cluster again."""
    server = FakeApiServer()
    admission = Resizes(server.client(), lambda id_: id_).admission()
    assert [admission(namespace).quotas for namespace in ("shop", "team", "shop")] == [(), (), ()]
    assert sum("resourcequotas" in request for request in server.requests) == 1


def test_a_count_of_two_billion_does_not_lift_the_limits_of_the_fleet() -> None:
    rules = ScaleSettings(enabled=True)
    assert CycleLimits.of([2_000_000_000, 10], rules).pods == CycleLimits.of([MAX_PODS_PER_WORKLOAD, 10], rules).pods


def replace_namespace(hpa: LiveAutoscaler) -> LiveAutoscaler:
    return replace(hpa, namespace="free", target=hpa.target._replace(namespace="free"))
