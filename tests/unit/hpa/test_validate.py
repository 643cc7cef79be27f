"""Refusals of the API server, in its words (docs/hpa.md, section 12)."""

from __future__ import annotations

from typing import Any

import pytest

from forecaster.hpa.validate import validate

GOOD: dict[str, Any] = {
    "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
    "minReplicas": 1,
    "maxReplicas": 5,
    "metrics": [],
}
PERCENT = {"type": "Utilization", "averageUtilization": 50}
EACH = {"type": "AverageValue", "averageValue": "1"}
RULES = {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}]}

NOT_EXTENDED = "doesn't follow extended resource name standard"


def faults(*metrics: dict[str, Any], **changed: Any) -> list[str]:
    return [str(fault) for fault in validate(GOOD | {"metrics": list(metrics)} | changed)]


def target(**fields: Any) -> dict[str, Any]:
    return {"scaleTargetRef": GOOD["scaleTargetRef"] | fields}


def up(**fields: Any) -> list[str]:
    return [fault.removeprefix("spec.behavior.scaleUp.") for fault in faults(behavior={"scaleUp": RULES | fields})]


def policy(**fields: Any) -> list[str]:
    return [fault.removeprefix("policies[0].") for fault in up(policies=[RULES["policies"][0] | fields])]


def test_a_good_spec_has_no_faults() -> None:
    assert not faults()
    assert not faults(behavior={})
    assert not faults(behavior={"scaleUp": RULES, "scaleDown": None})


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        (target(kind=""), "spec.scaleTargetRef.kind: Required value"),
        (target(name=""), "spec.scaleTargetRef.name: Required value"),
        (target(kind=".."), "spec.scaleTargetRef.kind: Invalid value: \"..\": may not be '..'"),
        (target(name="a/b"), "spec.scaleTargetRef.name: Invalid value: \"a/b\": may not contain '/'"),
        (target(name="a%"), "spec.scaleTargetRef.name: Invalid value: \"a%\": may not contain '%'"),
        (target(apiVersion="v1"), 'spec.scaleTargetRef.apiVersion: Invalid value: "v1": must specify API group'),
        (target(apiVersion="/v1"), 'spec.scaleTargetRef.apiVersion: Invalid value: "/v1": must specify API group'),
        (
            target(apiVersion="a/b/c", kind="ReplicationController"),
            'spec.scaleTargetRef.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c',
        ),
    ],
)
def test_targets(changed: dict[str, Any], fault: str) -> None:
    assert faults(**changed) == [fault]


def test_a_replication_controller_needs_no_group() -> None:
    assert not faults(**target(apiVersion="v1", kind="ReplicationController"))
    assert not faults(**target(apiVersion="", kind="ReplicationController"))


def test_both_faults_of_a_maximum_are_told() -> None:
    assert faults(maxReplicas=-1) == [
        "spec.maxReplicas: Invalid value: -1: must be greater than 0",
        "spec.maxReplicas: Invalid value: -1: must be greater than or equal to `minReplicas`",
    ]


def test_a_maximum_of_zero_is_absent_and_below_the_minimum() -> None:
    assert (
        faults(maxReplicas=0)
        == faults(maxReplicas=None)
        == [
            "spec.maxReplicas: Required value",
            "spec.maxReplicas: Invalid value: 0: must be greater than or equal to `minReplicas`",
        ]
    )
    assert faults(maxReplicas=0, minReplicas=None) == ["spec.maxReplicas: Required value"]


def test_equal_bounds_are_fine() -> None:
    assert not faults(minReplicas=5)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"stabilizationWindowSeconds": 0}, []),
        ({"stabilizationWindowSeconds": 3600}, []),
        (
            {"stabilizationWindowSeconds": -1},
            ["stabilizationWindowSeconds: Invalid value: -1: must be greater than or equal to zero"],
        ),
        (
            {"stabilizationWindowSeconds": 3601},
            ["stabilizationWindowSeconds: Invalid value: 3601: must be less than or equal to 3600"],
        ),
        ({"selectPolicy": "Disabled"}, []),
        (
            {"selectPolicy": "max"},
            ['selectPolicy: Unsupported value: "max": supported values: "Disabled", "Max", "Min"'],
        ),
        ({"policies": []}, ["policies: Required value: must specify at least one Policy"]),
        ({"tolerance": "0"}, []),
        ({"tolerance": "-1n"}, ['tolerance: Invalid value: "-1n": must be greater than or equal to 0']),
    ],
)
def test_rules(fields: dict[str, Any], expected: list[str]) -> None:
    assert up(**fields) == expected


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"periodSeconds": 1800}, []),
        ({"periodSeconds": 1}, []),
        ({"type": "hm"}, ['type: Unsupported value: "hm": supported values: "Percent", "Pods"']),
        ({"value": 0}, ["value: Invalid value: 0: must be greater than zero"]),
        ({"value": None}, ["value: Invalid value: 0: must be greater than zero"]),
        ({"periodSeconds": 0}, ["periodSeconds: Invalid value: 0: must be greater than zero"]),
        ({"periodSeconds": 1801}, ["periodSeconds: Invalid value: 1801: must be less than or equal to 1800"]),
    ],
)
def test_policies(fields: dict[str, Any], expected: list[str]) -> None:
    assert policy(**fields) == expected


def resource(**fields: Any) -> dict[str, Any]:
    return {"type": "Resource", "resource": {"name": "cpu", "target": PERCENT} | fields}


def container(**fields: Any) -> dict[str, Any]:
    block = {"name": "cpu", "container": "app", "target": PERCENT} | fields
    return {"type": "ContainerResource", "containerResource": block}


def pods(**fields: Any) -> dict[str, Any]:
    return {"type": "Pods", "pods": {"metric": {"name": "q"}, "target": EACH} | fields}


def external(**fields: Any) -> dict[str, Any]:
    return {"type": "External", "external": {"metric": {"name": "q"}, "target": EACH} | fields}


def described(**fields: Any) -> dict[str, Any]:
    block = {"describedObject": {"kind": "Ingress", "name": "i"}, "metric": {"name": "q"}, "target": EACH} | fields
    return {"type": "Object", "object": block}


def test_good_metrics_have_no_faults() -> None:
    assert not faults(resource(), container(), pods(), external(), described())


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        (resource(name=""), ["resource.name: Required value: must specify a resource name"]),
        (
            resource(target={"type": "Value"}),
            [
                (
                    "resource.target.averageUtilization: Required value: "
                    "must set either a target raw value or a target utilization"
                )
            ],
        ),
        (
            resource(target=PERCENT | EACH),
            ["resource.target.averageValue: Forbidden: may not set both a target raw value and a target utilization"],
        ),
        (
            resource(target=PERCENT | {"averageUtilization": 0}),
            ["resource.target.averageUtilization: Invalid value: 0: must be greater than 0"],
        ),
        (
            resource(target={"averageUtilization": 1}),
            [
                "resource.target.type: Required value: must specify a metric target type",
                'resource.target.type: Invalid value: "": must be either Utilization, Value, or AverageValue',
            ],
        ),
        (container(container=""), ["containerResource.container: Required value: must specify a container"]),
        (container(name=""), ["containerResource.name: Required value: must specify a resource name"]),
        (
            container(name="widgets"),
            [
                'containerResource.name: Invalid value: "widgets": must be a standard resource type or fully qualified',
                'containerResource.name: Invalid value: "widgets": must be a standard resource for containers',
            ],
        ),
        (
            container(name="pods"),
            ['containerResource.name: Invalid value: "pods": must be a standard resource for containers'],
        ),
        (
            container(name="requests.example.com/gpu"),
            [f'containerResource.name: Invalid value: "requests.example.com/gpu": {NOT_EXTENDED}'],
        ),
        (
            container(name="/gpu"),
            [
                f'containerResource.name: Invalid value: "/gpu": {reason}'
                for reason in ("prefix part must be non-empty", NOT_EXTENDED)
            ],
        ),
        (container(name="kubernetes.io/gpu"), []),
        (container(name="hugepages-2Mi"), []),
        (container(name="example.com/gpu"), []),
        (container(container="a" * 63), []),
        (
            container(container="a" * 64),
            [f'containerResource.container: Invalid value: "{"a" * 64}": must be no more than 63 characters'],
        ),
        (
            pods(target=PERCENT),
            ["pods.target.averageValue: Required value: must specify a positive target averageValue"],
        ),
        (pods(metric={}), ["pods.metric.name: Required value: must specify a metric name"]),
        (pods(metric={"name": "."}), ["pods.metric.name: Invalid value: \".\": may not be '.'"]),
        (
            external(target={"type": "Value"}),
            [
                (
                    "external.target.averageValue: Required value: "
                    "must set either a target value for metric or a per-pod target"
                )
            ],
        ),
        (
            external(target=EACH | {"value": "1"}),
            ["external.target.value: Forbidden: may not set both a target value for metric and a per-pod target"],
        ),
        (
            external(target={"type": "Value", "value": "0"}),
            ['external.target.value: Invalid value: "0": must be positive'],
        ),
        (
            external(target={"type": "AverageValue", "averageValue": "-1"}),
            ['external.target.averageValue: Invalid value: "-1": must be positive'],
        ),
        (
            described(target={"type": "Value"}),
            ["object.target.averageValue: Required value: must set either a target value or averageValue"],
        ),
        (described(target=EACH | {"value": "1"}), []),
        (described(describedObject={"kind": "x"}), ["object.describedObject.name: Required value"]),
        (
            described(describedObject={"kind": "x", "name": "y", "apiVersion": "a/b/c"}),
            ['object.describedObject.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c'],
        ),
        (
            {"type": "Pods"},
            ["pods: Required value: must populate information for the given metric source"],
        ),
        (
            pods() | {"external": external()["external"]},
            ["external: Forbidden: must populate the given metric source only"],
        ),
    ],
)
def test_metrics(metric: dict[str, Any], expected: list[str]) -> None:
    assert [fault.removeprefix("spec.metrics[0].") for fault in faults(metric)] == expected


def test_a_type_that_does_not_exist_is_told_twice_as_the_api_does() -> None:
    messages = faults({"type": "Foo"})
    sources = '"ContainerResource", "External", "Object", "Pods", "Resource"'
    assert messages == [f'spec.metrics[0].type: Unsupported value: "Foo": supported values: {sources}'] * 2


def test_a_type_that_is_absent_is_required_too() -> None:
    assert faults({})[0] == "spec.metrics[0].type: Required value: must specify a metric source type"


@pytest.mark.parametrize("name", ["-a", "a_b", "A", "a.b", "a/b"])
def test_container_names_are_dns_labels(name: str) -> None:
    (message,) = faults(container(container=name))
    assert "a lowercase RFC 1123 label must consist of" in message


@pytest.mark.parametrize("name", ["/gpu", "Bad.Prefix/gpu", "example.com/", "example.com/-gpu", f"{'a' * 254}/gpu"])
def test_resource_names_are_qualified(name: str) -> None:
    assert " part " in faults(container(name=name))[0]
