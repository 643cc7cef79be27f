"""From a manifest to the spec the controller sees (docs/hpa.md, sections 12 and 13)."""

from __future__ import annotations

import json
from datetime import date, timedelta
from typing import Any

import pytest

from forecaster.hpa.behavior import ScalingPolicy
from forecaster.hpa.manifest import BEHAVIOR_ANNOTATION, METRICS_ANNOTATION, RefusedManifest, read_manifest
from forecaster.hpa.spec import CrossVersionObjectReference, HpaMetricTarget, HpaSpec, MetricSpec

NO_MAPPING = ': Invalid value: "NoneType": a manifest is a mapping with apiVersion, kind, metadata, spec'
PERCENT_80 = MetricSpec("Resource", "cpu", HpaMetricTarget("Utilization", 80))
DEPLOYMENT = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "shop"}


def manifest(version: str = "autoscaling/v2", annotations: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    given = {"scaleTargetRef": DEPLOYMENT, "maxReplicas": 10} | spec
    metadata = {"name": "shop", "namespace": "web", "annotations": annotations, "labels": {"a": "b"}}
    return {"apiVersion": version, "kind": "HorizontalPodAutoscaler", "metadata": metadata, "spec": given}


def taken(document: Any, **gates: bool) -> HpaSpec:
    read = read_manifest(document, **gates)
    assert isinstance(read, HpaSpec), read
    return read


def refused(document: Any, **gates: bool) -> list[str]:
    read = read_manifest(document, **gates)
    assert isinstance(read, RefusedManifest)
    return str(read).splitlines()


def test_the_least_manifest_has_every_default() -> None:
    spec = taken(manifest())
    assert spec == HpaSpec(
        CrossVersionObjectReference("Deployment", "shop", "apps/v1"), 10, (PERCENT_80,), 1, None, "shop", "web"
    )
    assert (spec.bounds.min_replicas, spec.has_outside_metric) == (1, False)


def test_an_empty_list_of_metrics_is_defaulted_too() -> None:
    assert taken(manifest(metrics=[])).metrics == (PERCENT_80,)


def test_an_empty_behavior_fills_both_directions() -> None:
    behavior = taken(manifest(behavior={})).behavior
    assert behavior is not None
    assert behavior.scale_up.policies == (
        ScalingPolicy("Pods", 4, timedelta(seconds=15)),
        ScalingPolicy("Percent", 100, timedelta(seconds=15)),
    )
    assert behavior.scale_up.stabilization_window == timedelta()
    assert behavior.scale_down.policies == (ScalingPolicy("Percent", 100, timedelta(seconds=15)),)
    assert behavior.scale_down.stabilization_window is None
    assert (behavior.scale_up.select_policy, behavior.scale_down.select_policy) == ("Max", "Max")


def test_one_field_of_one_direction_leaves_the_rest_at_its_defaults() -> None:
    behavior = taken(manifest(behavior={"scaleDown": {"tolerance": "0.57"}, "scaleUp": None})).behavior
    assert behavior is not None
    assert behavior.scale_down.tolerance == 0.5700000000000001
    assert (behavior.scale_up.tolerance, len(behavior.scale_up.policies)) == (None, 2)


def test_given_rules_replace_the_defaults() -> None:
    rules = {
        "stabilizationWindowSeconds": 60,
        "selectPolicy": "Min",
        "policies": [{"type": "Pods", "value": 2, "periodSeconds": 30}],
    }
    behavior = taken(manifest(behavior={"scaleUp": rules})).behavior
    assert behavior is not None
    up = behavior.scale_up
    assert (up.stabilization_window, up.select_policy) == (timedelta(seconds=60), "Min")
    assert up.policies == (ScalingPolicy("Pods", 2, timedelta(seconds=30)),)


def test_an_explicit_empty_list_of_policies_is_refused() -> None:
    assert refused(manifest(behavior={"scaleUp": {"policies": []}})) == [
        "spec.behavior.scaleUp.policies: Required value: must specify at least one Policy"
    ]


def test_every_source_is_read() -> None:
    each = {"type": "AverageValue", "averageValue": "500m"}
    identifier = {"name": "q", "selector": {"matchLabels": {"a": "b"}}}
    metrics = [
        {"type": "Resource", "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}}},
        {"type": "ContainerResource", "containerResource": {"name": "cpu", "container": "app", "target": each}},
        {"type": "Pods", "pods": {"metric": identifier, "target": each}},
        {
            "type": "Object",
            "object": {
                "describedObject": {"kind": "Ingress", "name": "i"},
                "metric": {"name": "r"},
                "target": {"type": "Value", "value": 10000},
            },
        },
        {"type": "External", "external": {"metric": {"name": "e"}, "target": each}},
    ]
    half = HpaMetricTarget("AverageValue", average_value_milli=500)
    assert taken(manifest(metrics=metrics)).metrics == (
        MetricSpec("Resource", "memory", HpaMetricTarget("AverageValue", average_value_milli=2**30 * 1000)),
        MetricSpec("ContainerResource", "cpu", half, "app"),
        MetricSpec("Pods", "q", half, selector="a=b"),
        MetricSpec(
            "Object",
            "r",
            HpaMetricTarget("Value", value_milli=10_000_000),
            described_object=CrossVersionObjectReference("Ingress", "i"),
        ),
        MetricSpec("External", "e", half),
    )


@pytest.mark.parametrize(
    ("document", "faults"),
    [
        (None, [NO_MAPPING]),
        (
            {"kind": "Pod", "apiVersion": "v1"},
            [
                'kind: Unsupported value: "Pod": supported values: "HorizontalPodAutoscaler"',
                'apiVersion: Unsupported value: "v1": supported values: "autoscaling/v1", "autoscaling/v2"',
                "spec: Required value",
            ],
        ),
        (
            manifest("autoscaling/v2beta2"),
            [
                (
                    'apiVersion: Unsupported value: "autoscaling/v2beta2": '
                    'supported values: "autoscaling/v1", "autoscaling/v2"'
                )
            ],
        ),
        (
            manifest(maxReplicas="ten", replicas=3, minReplicas=True),
            [
                "spec.maxReplicas: must be a whole number, got 'ten'",
                'spec.replicas: unknown field "spec.replicas"',
                "spec.minReplicas: must be a whole number, got True",
            ],
        ),
        (
            manifest(maxReplicas=2**31, metrics={}, behavior=[], scaleTargetRef="shop"),
            [
                "spec.scaleTargetRef: must be a mapping, got 'shop'",
                "spec.maxReplicas: 2147483648 does not fit 32 bits",
                "spec.metrics: must be a list, got {}",
                "spec.behavior: must be a mapping, got []",
            ],
        ),
        (
            manifest(metrics=[None, {"type": 5}]),
            [
                "spec.metrics[0]: must not be empty",
                "spec.metrics[1].type: must be a string, got 5",
            ],
        ),
        (
            manifest(behavior={"scaleUp": {"tolerance": []}, "scaleDown": {"tolerance": "x"}}),
            [
                "spec.behavior.scaleUp.tolerance: must be a quantity, got []",
                (
                    "spec.behavior.scaleDown.tolerance: 'x': quantities are a decimal number and a suffix, "
                    "like 100m, 1.5, 2Gi or 1e3"
                ),
            ],
        ),
        (
            manifest(maxReplicas=0, minReplicas=0),
            [
                "spec.minReplicas: Invalid value: 0: must be greater than or equal to 1",
                "spec.maxReplicas: Required value",
                (
                    "spec.metrics: Forbidden: must specify at least one Object or External metric "
                    "to support scaling to zero replicas"
                ),
            ],
        ),
    ],
)
def test_every_fault_is_told_with_its_path(document: Any, faults: list[str]) -> None:
    assert refused(document) == faults


def test_annotations_that_are_no_strings_are_a_fault() -> None:
    document = manifest()
    document["metadata"]["annotations"] = [None]
    assert refused(document) == ["metadata.annotations: must be a mapping of strings"]
    document["metadata"]["annotations"] = {"a": 1}
    assert refused(document) == ["metadata.annotations: must be a mapping of strings"]


def test_the_gate_lets_minimum_zero_pass() -> None:
    queue = {"type": "External", "external": {"metric": {"name": "q"}, "target": {"type": "Value", "value": "1"}}}
    assert taken(manifest(minReplicas=0, metrics=[queue]), scale_to_zero=True).bounds.min_replicas == 0
    assert refused(manifest(minReplicas=0, metrics=[queue]))


class TestVersion1:
    def read(self, annotations: dict[str, Any] | None = None, **spec: Any) -> HpaSpec:
        encoded = {key: json.dumps(value) for key, value in (annotations or {}).items()}
        return taken(manifest("autoscaling/v1", encoded, **spec))

    def test_without_any_metric_80_percent_of_cpu(self) -> None:
        assert self.read().metrics == (PERCENT_80,)

    def test_the_one_number_is_a_cpu_metric(self) -> None:
        (metric,) = self.read(targetCPUUtilizationPercentage=50).metrics
        assert metric == MetricSpec("Resource", "cpu", HpaMetricTarget("Utilization", 50))

    def test_metrics_of_the_annotation_precede_the_cpu_metric(self) -> None:
        others = [
            {
                "type": "Pods",
                "pods": {"metricName": "pps", "targetAverageValue": "1k", "selector": {"matchLabels": {"a": "b"}}},
            },
            {
                "type": "Object",
                "object": {"target": {"kind": "Ingress", "name": "i"}, "metricName": "rps", "targetValue": "10k"},
            },
            {
                "type": "Object",
                "object": {
                    "target": {"kind": "Ingress", "name": "i"},
                    "metricName": "rps",
                    "targetValue": "0",
                    "averageValue": "2",
                },
            },
            {"type": "External", "external": {"metricName": "q", "targetValue": "30", "metricSelector": {}}},
            {"type": "External", "external": {"metricName": "q", "targetAverageValue": "30"}},
            {"type": "Resource", "resource": {"name": "memory", "targetAverageValue": "1Gi"}},
            {"type": "Resource", "resource": {"name": "memory", "targetAverageUtilization": 70}},
            {
                "type": "ContainerResource",
                "containerResource": {"name": "cpu", "container": "app", "targetAverageUtilization": 60},
            },
        ]
        ingress = CrossVersionObjectReference("Ingress", "i")
        assert self.read({METRICS_ANNOTATION: others}, targetCPUUtilizationPercentage=50).metrics == (
            MetricSpec("Pods", "pps", HpaMetricTarget("AverageValue", average_value_milli=10**6), selector="a=b"),
            MetricSpec("Object", "rps", HpaMetricTarget("Value", value_milli=10**7), described_object=ingress),
            MetricSpec(
                "Object", "rps", HpaMetricTarget("AverageValue", average_value_milli=2000), described_object=ingress
            ),
            MetricSpec("External", "q", HpaMetricTarget("Value", value_milli=30_000)),
            MetricSpec("External", "q", HpaMetricTarget("AverageValue", average_value_milli=30_000)),
            MetricSpec("Resource", "memory", HpaMetricTarget("AverageValue", average_value_milli=2**30 * 1000)),
            MetricSpec("Resource", "memory", HpaMetricTarget("Utilization", 70)),
            MetricSpec("ContainerResource", "cpu", HpaMetricTarget("Utilization", 60), "app"),
            MetricSpec("Resource", "cpu", HpaMetricTarget("Utilization", 50)),
        )

    def test_metrics_of_the_annotation_alone_need_no_default(self) -> None:
        pods = [{"type": "Pods", "pods": {"metricName": "pps", "targetAverageValue": "1k"}}]
        assert [metric.source for metric in self.read({METRICS_ANNOTATION: pods}).metrics] == ["Pods"]

    @pytest.mark.parametrize("nothing", [{}, {"ScaleUp": None, "ScaleDown": None}])
    def test_a_behavior_of_no_direction_is_none(self, nothing: dict[str, None]) -> None:
        assert self.read({BEHAVIOR_ANNOTATION: nothing}).behavior is None

    def test_behavior_travels_under_capital_letters(self) -> None:
        up = {"StabilizationWindowSeconds": 30, "Policies": [{"Type": "Pods", "Value": 1, "PeriodSeconds": 9}]}
        behavior = self.read({BEHAVIOR_ANNOTATION: {"ScaleUp": up, "ScaleDown": {"Tolerance": "50m"}}}).behavior
        assert behavior is not None
        assert behavior.scale_up.stabilization_window == timedelta(seconds=30)
        assert behavior.scale_up.policies == (ScalingPolicy("Pods", 1, timedelta(seconds=9)),)
        assert behavior.scale_down.tolerance == 0.05

    @pytest.mark.parametrize(
        ("text", "fault"),
        [("{", "not JSON"), ('{"a": 1}', "must be a JSON list"), ("[5]", "spec.metrics[0]: must be a mapping, got 5")],
    )
    def test_an_annotation_of_another_form_is_a_fault(self, text: str, fault: str) -> None:
        (message,) = refused(manifest("autoscaling/v1", {METRICS_ANNOTATION: text}))
        assert fault in message

    def test_fields_of_version_2_are_unknown(self) -> None:
        assert refused(manifest("autoscaling/v1", metrics=[])) == ['spec.metrics: unknown field "spec.metrics"']

    def test_what_the_annotation_says_is_validated(self) -> None:
        odd = json.dumps([{"type": "Pods", "pods": {"metricName": "pps"}, "cheese": 1}])
        assert refused(manifest("autoscaling/v1", {METRICS_ANNOTATION: odd})) == [
            'spec.metrics[0].cheese: unknown field "spec.metrics[0].cheese"'
        ]


def test_an_annotation_that_is_nested_without_end_is_a_fault() -> None:
    deep = {"autoscaling.alpha.kubernetes.io/metrics": "[" * 100_000}
    result = read_manifest(manifest("autoscaling/v1", deep))
    assert "not JSON" in str(result)


def test_a_behavior_of_v1_that_is_nested_without_end_is_refused() -> None:
    nested = '{"ScaleUp": ' * 900 + "1" + "}" * 900
    refused = read_manifest(manifest("autoscaling/v1", {BEHAVIOR_ANNOTATION: nested}))
    assert "spec.behavior.scaleUp.scaleUp" in str(refused)


def test_a_kind_that_yaml_reads_as_a_date_is_refused_in_words() -> None:
    refused = read_manifest({"kind": date(2026, 1, 1), "apiVersion": "autoscaling/v2", "spec": {}})
    assert 'Unsupported value: "2026-01-01"' in str(refused)
