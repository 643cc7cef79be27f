"""Objects as kubectl prints them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from forecaster.hpa.documents import DocumentError, answers_of, newest_sample, pods_of
from forecaster.hpa.pods import HpaPod, PodContainer, ReadyCondition
from forecaster.hpa.proposals import Unmeasured
from forecaster.hpa.samples import ExternalValues, ObjectMetric, PodSample, SampledPods
from forecaster.hpa.spec import CrossVersionObjectReference, HpaMetricTarget, MetricSpec
from tests.support.hpa import CPU, NOW, QUEUE, hpa, seconds

STAMP = "2026-01-01T00:00:00Z"
POD: dict[str, Any] = {
    "kind": "Pod",
    "metadata": {"name": "a", "labels": {"app": "shop"}, "deletionTimestamp": STAMP},
    "spec": {
        "containers": [{"name": "app", "resources": {"requests": {"cpu": "500m", "memory": "1Ki"}}}, {"name": "bare"}],
        "initContainers": [{"name": "side", "restartPolicy": "Always"}, {"name": "init"}],
        "resources": {"requests": {"cpu": 1}},
        "overhead": {"cpu": "10m"},
    },
    "status": {
        "phase": "Running",
        "startTime": STAMP,
        "conditions": [
            {"type": "Initialized", "status": "False"},
            {"type": "Ready", "status": "True", "lastTransitionTime": STAMP},
        ],
    },
}
METRIC = MetricSpec("Pods", "qps", HpaMetricTarget("AverageValue", average_value_milli=1))
INGRESS = MetricSpec(
    "Object",
    "rps",
    HpaMetricTarget("Value", value_milli=1),
    described_object=CrossVersionObjectReference("Ingress", "main"),
)


def test_a_pod_keeps_what_the_controller_looks_at() -> None:
    assert pods_of([POD]) == [
        HpaPod(
            "a",
            "Running",
            deleting=True,
            start_time=NOW,
            ready=ReadyCondition("True", NOW),
            containers=[PodContainer("app", {"cpu": 500, "memory": 1_024_000}), PodContainer("bare")],
            init_containers=[PodContainer("side", {}, restarts_always=True), PodContainer("init")],
            pod_requests_milli={"cpu": 1000},
            overhead_milli={"cpu": 10},
            labels={"app": "shop"},
        )
    ]


@pytest.mark.parametrize("kind", ["PodList", "List"])
def test_lists_are_opened(kind: str) -> None:
    assert [pod.name for pod in pods_of([{"kind": kind, "items": [POD, POD]}, POD])] == ["a", "a", "a"]
    assert pods_of([{"kind": kind, "items": None}]) == []


def test_the_least_pod_has_nothing() -> None:
    assert pods_of([{"kind": "Pod"}]) == [HpaPod("", "", containers=[], init_containers=[])]


@pytest.mark.parametrize(
    "pod", [{"metadata": ["a"]}, {"spec": "a"}, {"spec": {"containers": [{"resources": [1]}]}}, {"status": 1}]
)
def test_what_should_be_a_mapping_and_is_none_is_named(pod: dict[str, Any]) -> None:
    with pytest.raises(DocumentError, match=r"must be a mapping, got a (list|str|int)"):
        pods_of([{"kind": "Pod", **pod}])


def test_a_ready_condition_without_time_is_older_than_everything() -> None:
    (pod,) = pods_of([{"kind": "Pod", "status": {"conditions": [{"type": "Ready", "status": "False"}]}}])
    assert pod.ready == ReadyCondition("False", datetime.min.replace(tzinfo=UTC))


def test_resource_metrics_are_read_by_pod() -> None:
    items = [
        {
            "metadata": {"name": "a"},
            "timestamp": STAMP,
            "window": "1m0.5s",
            "containers": [{"name": "app", "usage": {"cpu": "250m"}}],
        }
    ]
    (answer,) = answers_of(hpa(CPU), [{"kind": "PodMetricsList", "items": items}])
    assert answer == SampledPods({"a": PodSample(250, NOW, seconds(60.5))})


def value(kind: str, name: str, amount: str, **fields: Any) -> dict[str, Any]:
    return {"describedObject": {"kind": kind, "name": name}, "value": amount, "timestamp": STAMP} | fields


def test_custom_metrics_are_read_by_metric_and_object() -> None:
    items = [
        value("Pod", "a", "5", metricName="qps", windowSeconds=15),
        value("Pod", "b", "6", metric={"name": "qps"}),
        value("Pod", "c", "7", metricName="other"),
        value("Ingress", "main", "10k", metricName="rps"),
        value("Ingress", "side", "11k", metricName="rps"),
        value("Service", "s", "1", metricName="qps"),
    ]
    answers = answers_of(hpa(METRIC, INGRESS), [{"kind": "MetricValueList", "items": items}])
    assert answers == [
        SampledPods({"a": PodSample(5000, NOW, seconds(15)), "b": PodSample(6000, NOW, seconds(60))}),
        ObjectMetric(10_000_000),
    ]


def test_external_metrics_are_read_by_name() -> None:
    items = [{"metricName": "queue", "value": "3", "timestamp": STAMP}, {"metricName": "x", "value": "9"}]
    assert answers_of(hpa(QUEUE), [{"kind": "ExternalMetricValueList", "items": items}]) == [ExternalValues([3000])]


def test_external_metrics_of_one_name_are_told_apart_by_their_labels() -> None:
    """An HPA may read several of our signals; a value without labels may be of either."""
    cpu, queue = (replace(QUEUE, selector=f"signal={signal}") for signal in ("cpu", "queue"))
    items = [
        {"metricName": "queue", "metricLabels": {"signal": "cpu"}, "value": "5"},
        {"metricName": "queue", "metricLabels": {"signal": "queue"}, "value": "7"},
        {"metricName": "queue", "value": "1"},
    ]
    answers = answers_of(hpa(cpu, queue), [{"kind": "ExternalMetricValueList", "items": items}])
    assert answers == [ExternalValues([5000, 1000]), ExternalValues([7000, 1000])]


def test_a_metric_nobody_mentions_has_no_samples() -> None:
    for answer in answers_of(hpa(CPU, METRIC, INGRESS, QUEUE), []):
        assert isinstance(answer, Unmeasured)
        assert answer.cause == "no_samples"


def test_the_newest_sample_is_found() -> None:
    items = [
        {"timestamp": STAMP},
        {"timestamp": "2026-01-01T01:00:00+01:00"},
        {"timestamp": "2026-01-01T00:00:05Z"},
        {},
    ]
    assert newest_sample([{"items": items}]) == datetime(2026, 1, 1, 0, 0, 5, tzinfo=UTC)
    assert newest_sample([{"kind": "PodMetricsList"}]) is None


def test_times_that_a_yaml_reader_made_are_utc() -> None:
    naive = datetime(2026, 1, 1)  # noqa: DTZ001 - what a YAML reader makes of a time without zone
    (pod,) = pods_of([{"kind": "Pod", "status": {"startTime": naive}}])
    assert pod.start_time == NOW


@pytest.mark.parametrize(
    ("document", "why"),
    [
        (5, "a document is a mapping with a kind, got a int"),
        ({"kind": "Deployment"}, "expected Pod or a list of them, got 'Deployment'"),
        ({"kind": "PodList", "items": 5}, "items of PodList must be a list of mappings"),
        ({"kind": "PodList", "items": [5]}, "items of PodList must be a list of mappings"),
        ({"kind": "Pod", "status": {"startTime": "noon"}}, "startTime of Pod : 'noon' is no RFC 3339 time"),
        (
            {
                "kind": "Pod",
                "metadata": {"name": "a"},
                "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "x"}}}]},
            },
            "cpu of container c of Pod a: 'x'",
        ),
        ({"kind": "Pod", "spec": {"overhead": [1]}}, "overhead of Pod : amounts must be a mapping, got list"),
    ],
)
def test_a_document_of_another_form_says_where(document: Any, why: str) -> None:
    with pytest.raises(DocumentError) as error:
        pods_of([document])
    assert why in str(error.value)


def test_metrics_of_another_kind_are_refused() -> None:
    with pytest.raises(DocumentError, match="a metrics document has kind PodMetricsList"):
        answers_of(hpa(CPU), [{"kind": "NodeMetricsList"}])
    with pytest.raises(DocumentError, match="got a list"):
        answers_of(hpa(CPU), [[]])


@pytest.mark.parametrize("seconds", ["x", [], 1e30, True])
def test_a_window_in_seconds_that_is_none_is_refused(seconds: Any) -> None:
    items = [{"describedObject": {"kind": "Pod", "name": "a"}, "metricName": "qps", "windowSeconds": seconds}]
    with pytest.raises(DocumentError, match="window of metric qps of Pod a"):
        answers_of(hpa(METRIC), [{"kind": "MetricValueList", "items": items}])


def test_names_and_labels_of_another_type_are_read_as_text() -> None:
    (pod,) = pods_of([{"kind": "Pod", "metadata": {"name": ["a"], "labels": {"app": 5}}}])
    assert (pod.name, pod.labels) == ("['a']", {"app": "5"})
    with pytest.raises(DocumentError, match="expected Pod"):
        pods_of([{"kind": ["Pod"]}])


@pytest.mark.parametrize("window", ["", "30", "x", None, "1d", "9" * 400 + "h"])
def test_a_window_that_is_no_duration_is_refused(window: Any) -> None:
    items = [{"metadata": {"name": "a"}, "timestamp": STAMP, "window": window}]
    with pytest.raises(DocumentError, match="window of PodMetrics a"):
        answers_of(hpa(CPU), [{"kind": "PodMetricsList", "items": items}])
