"""Reading the document of an HPA, and the body and Event that a write sends."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from forecaster.actuators.floor.autoscalers import (
    BACK_OFF,
    BEFORE,
    EXPIRES,
    LABEL,
    MODE,
    TARGET,
    HorizontalPodAutoscaler,
    applied,
    floor_event,
    listed_autoscaler,
)
from forecaster.actuators.floor.plan import floor_plan
from forecaster.actuators.floor.values import FloorOffer, LiveAutoscaler, Write, WrittenFloor
from forecaster.actuators.marks import LONG_AGO
from forecaster.actuators.settings import FloorSettings
from forecaster.actuators.writes import Change
from forecaster.domain.workload import WorkloadId
from tests.support.autoscalers import live_hpa
from tests.support.recommendations import NOON


def fields(manager: str, *names: str, subresource: str = "") -> dict[str, Any]:
    spec = {f"f:{name}": {} for name in names}
    return {"manager": manager, "operation": "Apply", "subresource": subresource, "fieldsV1": {"f:spec": spec}}


def read(
    *managed: dict[str, Any],
    annotations: dict[str, str] | None = None,
    scale_up: str = "Max",
    version: str = "apps/v1",
    **metadata: Any,
) -> LiveAutoscaler:
    """Read an HPA of web with minReplicas 7, these managedFields, annotations and metadata."""
    behavior = {"scaleUp": {"selectPolicy": scale_up}}
    document = {
        "metadata": {
            "name": "web-hpa",
            "namespace": "shop",
            "uid": "1",
            "resourceVersion": "9",
            "annotations": annotations or {},
            "managedFields": list(managed) or [fields("kubectl", "minReplicas")],
            **metadata,
        },
        "spec": {
            "minReplicas": 7,
            "maxReplicas": 20,
            "scaleTargetRef": {"apiVersion": version, "kind": "Deployment", "name": "web"},
            "behavior": behavior,
        },
        "status": {"currentReplicas": 4},
    }
    return listed_autoscaler(msgspec.json.decode(msgspec.json.encode(document), type=HorizontalPodAutoscaler))


def test_an_hpa_that_must_never_scale_up_gets_no_floor() -> None:
    """The controller obeys `minReplicas` whatever `behavior` says, so that a floor would scale up what must not."""
    plans = [
        floor_plan([hpa], {hpa.target: FloorOffer(12)}, lambda _: True, {}, NOON, FloorSettings(enabled=True))
        for hpa in (read(), read(scale_up="Disabled"))
    ]
    assert [write.min_replicas for plan in plans for write in plan.writes] == [12]
    (refusal,) = (refusal for plan in plans for refusal in plan.refusals)
    assert refusal.message == "HPA shop/web-hpa: its behavior disables scaling up; minReplicas stays"


@pytest.mark.parametrize("version", ["example.com/v1", "extensions/v1beta1", ""])
def test_an_hpa_that_names_another_api_group_is_no_second_hpa_of_the_workload(version: str) -> None:
    web, other = read(), read(version=version, name="other")
    plan = floor_plan([web, other], {web.target: FloorOffer(12)}, lambda _: True, {}, NOON, FloorSettings(enabled=True))
    assert [(write.subject.name, write.min_replicas) for write in plan.writes] == [("web-hpa", 12)]
    assert plan.refusals == []


RAISED = {BEFORE: "2", EXPIRES: "2026-03-01T12:15:00Z", TARGET: "shop/Deployment/web"}


def test_a_floor_is_read_with_all_that_undoes_it() -> None:
    hpa = read(fields("forecaster", "minReplicas"), annotations=RAISED, labels={LABEL: "raised"})
    assert hpa.floor == WrittenFloor(2, NOON + timedelta(minutes=15), hpa.target.path)
    assert (hpa.target, hpa.replicas, hpa.version) == (WorkloadId("shop", "Deployment", "web"), 4, "9")
    assert (hpa.marked, hpa.fault, hpa.other_writers) == (True, "", "")


def test_writers_are_those_of_min_replicas_and_not_of_the_status() -> None:
    hpa = read(
        fields("argocd", "minReplicas", "maxReplicas"),
        fields("helm", "maxReplicas"),
        fields("kube-controller-manager", "minReplicas", subresource="status"),
        fields("forecaster", "minReplicas"),
    )
    assert hpa.other_writers == "argocd"


@pytest.mark.parametrize(("shared", "others"), [(True, ""), (False, "argocd-controller")], ids=["with us", "alone"])
def test_argo_cd_that_shares_our_value_is_no_other_writer(shared: bool, others: str) -> None:  # noqa: FBT001
    own = [fields("forecaster", "minReplicas")] if shared else []
    assert read(fields("argocd-controller", "minReplicas"), *own, annotations=RAISED).other_writers == others


@pytest.mark.parametrize(("operation", "others"), [("Update", ""), ("Apply", "velero")], ids=["once", "ever again"])
def test_a_copy_of_an_object_with_our_marks_states_no_value(operation: str, others: str) -> None:
    entry = fields("velero", "minReplicas") | {"operation": operation}
    entry["fieldsV1"]["f:metadata"] = {"f:annotations": {f"f:{BEFORE}": {}}, "f:labels": {f"f:{LABEL}": {}}}
    assert read(entry, annotations=RAISED).other_writers == others


@pytest.mark.parametrize(
    ("annotations", "fault"),
    [
        ({BEFORE: "two"}, "annotation forecaster.dev/min-replicas-before is 'two', not a count"),
        ({BEFORE: "-1"}, "is '-1', not a count"),
        ({BEFORE: "9" * 5000}, "is '9999999999999999999999999999999999999999', not a count"),
    ],
    ids=["a word", "negative", "longer than a number may be"],
)
def test_an_owners_value_that_cannot_be_read_is_a_fault_with_a_remedy(annotations: dict[str, str], fault: str) -> None:
    assert fault in read(annotations=annotations).fault


def test_a_mode_that_does_not_exist_is_read_as_observe_and_reported() -> None:
    hpa = read(annotations={MODE: "off", **RAISED})
    assert hpa.mode == "observe"
    assert hpa.misread == "annotation forecaster.dev/mode is 'off'; use one of observe, publish, floor"
    assert (hpa.fault, hpa.floor) == ("", WrittenFloor(2, NOON + timedelta(minutes=15), "shop/Deployment/web"))
    assert read(annotations={MODE: "floor"}).mode == "floor"


def test_a_back_off_until_no_instant_is_over() -> None:
    assert read(annotations={BACK_OFF: "tomorrow"}).backed_off_until == LONG_AGO


@pytest.mark.parametrize("text", ["", "later", "99999-01-01T00:00:00Z"])
def test_a_floor_without_a_readable_expiry_has_expired(text: str) -> None:
    assert read(annotations={BEFORE: "2", EXPIRES: text}).floor == WrittenFloor(2, LONG_AGO)


def test_an_instant_without_a_zone_is_utc() -> None:
    assert read(annotations={BACK_OFF: "2026-03-01T12:00:00"}).backed_off_until == NOON


def test_a_value_of_ours_without_the_owners_beside_it_is_a_fault() -> None:
    own_fields = fields("forecaster", "minReplicas")
    assert "annotation forecaster.dev/min-replicas-before is gone" in read(own_fields).fault
    assert read(own_fields, labels={LABEL: "restored"}).fault == ""


def test_a_value_of_ours_is_none_once_the_owner_states_the_same_value() -> None:
    hpa = read(fields("forecaster", "minReplicas"), fields("flux", "minReplicas"), labels={LABEL: "raised"})
    assert (hpa.fault, hpa.floor, hpa.marked) == ("", None, True)


def test_the_object_an_hpa_is_made_from_is_named() -> None:
    owners = [{"kind": "Team", "name": "a"}, {"kind": "ScaledObject", "name": "web", "controller": True}]
    assert read(ownerReferences=owners).controller == "ScaledObject web"


def applied_body(change: Change, count: int, **after: Any) -> dict[str, Any]:
    write = Write(live_hpa(), change, count, "", **after)
    body: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(applied(write)))
    return body


def test_what_is_applied_names_the_object_and_version_that_was_decided_on() -> None:
    body = applied_body(Change.RAISE, 7, floor=WrittenFloor(2, NOON + timedelta(minutes=15), "shop/Deployment/web"))
    assert body == {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {
            "name": "web",
            "namespace": "shop",
            "uid": "uid-web",
            "resourceVersion": "1",
            "labels": {LABEL: "raised"},
            "annotations": RAISED,
        },
        "spec": {"minReplicas": 7},
    }


def test_what_yields_names_no_value_and_what_restores_no_annotation() -> None:
    yielded = applied_body(Change.YIELD, 7, backed_off_until=NOON)
    assert "spec" not in yielded
    assert yielded["metadata"]["annotations"] == {BACK_OFF: "2026-03-01T12:00:00Z"}
    restored = applied_body(Change.RESTORE, 2)
    assert (restored["spec"], restored["metadata"]["annotations"]) == ({"minReplicas": 2}, {})


def test_an_event_that_is_sent_twice_is_one() -> None:
    write = Write(live_hpa(), Change.RAISE, 7, "the forecast asks for 7")
    first, again = floor_event(write, NOON), floor_event(write, NOON + timedelta(seconds=3))
    assert first.metadata.name == again.metadata.name
    assert first.message == "minReplicas 2 → 7: the forecast asks for 7"
