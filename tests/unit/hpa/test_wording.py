"""Words and labels of the controller (docs/hpa.md, sections 3 and 12)."""

from __future__ import annotations

import pytest

from forecaster.hpa import wording
from forecaster.hpa.proposals import MetricProposal, Unmeasured
from forecaster.hpa.spec import CrossVersionObjectReference, HpaMetricTarget, MetricSpec
from tests.oracles.hpa_metrics import metric_action, metric_error, status_quantity

PERCENT, EACH = HpaMetricTarget("Utilization", 50), HpaMetricTarget("AverageValue", average_value_milli=1)
TOTAL, INGRESS = HpaMetricTarget("Value", value_milli=1), CrossVersionObjectReference("Ingress", "i")
BROKEN = Unmeasured("api_failed", "no answer")


@pytest.mark.parametrize(
    ("metric", "name"),
    [
        (MetricSpec("Resource", "cpu", PERCENT), "cpu resource utilization (percentage of request)"),
        (MetricSpec("Resource", "cpu", EACH), "cpu resource"),
        (MetricSpec("ContainerResource", "cpu", PERCENT), "cpu container resource utilization (percentage of request)"),
        (MetricSpec("Pods", "qps", EACH), "pods metric qps"),
        (MetricSpec("ContainerResource", "cpu", EACH), "cpu resource"),
        (MetricSpec("Object", "qps", TOTAL, described_object=INGRESS), "Ingress metric qps"),
        (MetricSpec("Object", "qps", EACH, described_object=INGRESS), "external metric qps(nil)"),
        (MetricSpec("External", "queue", EACH, selector="a=b"), "external metric queue(a=b)"),
    ],
)
def test_metrics_have_the_controllers_names(metric: MetricSpec, name: str) -> None:
    assert wording.metric_name(metric) == name


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("Resource", "FailedGetResourceMetric"),
        ("ContainerResource", "FailedGetContainerResourceMetric"),
        ("Pods", "FailedGetPodsMetric"),
        ("Object", "FailedGetObjectMetric"),
        ("External", "FailedGetExternalMetric"),
    ],
)
def test_failures_have_the_reason_of_their_source(source: str, reason: str) -> None:
    assert wording.failure_reason(MetricSpec(source, "x", EACH), BROKEN) == reason


def test_every_reason_stands_under_its_condition() -> None:
    for reason, condition in {**wording.STABILIZATION, **wording.CLAMP}.items():
        assert condition.reason == reason
        assert condition.message
    assert {c.type for c in wording.STABILIZATION.values()} == {"AbleToScale"}
    assert {c.type for c in wording.CLAMP.values()} == {"ScalingLimited"}
    assert [r for r, c in wording.CLAMP.items() if c.status == "False"] == ["DesiredWithinRange"]


def test_messages_are_the_controllers() -> None:
    assert wording.metric_found(MetricSpec("Pods", "qps", EACH)).message == (
        "the HPA was able to successfully calculate a replica count from pods metric qps"
    )
    assert wording.write_succeeded(4).message == "the HPA controller was able to update the target scale to 4"
    assert wording.write_failed("why").message == "the HPA controller was unable to update the target scale: why"
    assert wording.GET_SCALE_SUCCEEDED.message == "the HPA controller was able to get the target's current scale"
    assert wording.SCALING_DISABLED.message == "scaling is disabled since the replica count of the target is zero"


def test_actions_compare_with_the_previous_status() -> None:
    assert [metric_action(MetricProposal(n, 1.0), 5) for n in (4, 5, 6)] == ["scale_down", "none", "scale_up"]
    assert metric_action(BROKEN, 5) == "none"


def test_only_an_unknown_source_is_the_specs_fault() -> None:
    assert metric_error(MetricProposal(1, 1.0)) == "none"
    assert metric_error(BROKEN) == "internal"
    assert metric_error(Unmeasured("invalid_source", "")) == "spec"


def test_memory_is_shown_in_binary_and_the_rest_in_decimal() -> None:
    assert str(status_quantity("memory", 1536 * 2**20 * 1000)) == "1536Mi"
    assert str(status_quantity("cpu", 2000)) == "2"
    assert str(status_quantity("example.com/gpu", 2048 * 1000)) == "2048"
    assert str(status_quantity("cpu", 1500)) == "1500m"
