"""The examples of the Kubernetes documentation, and what it says about them.

Horizontal Pod Autoscaling (algorithm details, scaling policies) and the HorizontalPodAutoscaler Walkthrough.
"""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from forecaster.hpa.explain import PassExplanation, aims, explain
from forecaster.hpa.manifest import read_manifest
from forecaster.hpa.observation import observe_totals
from forecaster.hpa.reconcile import carry_on, reconcile
from forecaster.hpa.spec import HpaSpec
from forecaster.hpa.state import NEW_HPA
from tests.support.hpa import NOW

PHP_APACHE = """
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: php-apache}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: php-apache}
  minReplicas: 1
  maxReplicas: 10
  metrics:
  - type: Resource
    resource:
      name: cpu
      target: {type: Utilization, averageUtilization: 50}
"""
SEVERAL_METRICS = (
    PHP_APACHE
    + """
  - type: Pods
    pods:
      metric: {name: packets-per-second}
      target: {type: AverageValue, averageValue: 1k}
  - type: Object
    object:
      metric: {name: requests-per-second}
      describedObject: {apiVersion: networking.k8s.io/v1, kind: Ingress, name: main-route}
      target: {type: Value, value: 10k}
"""
)
POLICIES = """
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: policies}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 1
  maxReplicas: 100
  metrics:
  - type: External
    external:
      metric: {name: queue}
      target: {type: AverageValue, averageValue: "1"}
  behavior:
    scaleDown:
      stabilizationWindowSeconds: 0
      policies:
      - {type: Pods, value: 4, periodSeconds: 60}
      - {type: Percent, value: 10, periodSeconds: 60}
"""


def spec_of(text: str) -> HpaSpec:
    spec = read_manifest(yaml.safe_load(text))
    assert isinstance(spec, HpaSpec)
    return spec


def explained(
    text: str, replicas: int, totals: dict[str, int], requests: dict[str, int] | None = None
) -> PassExplanation:
    spec = spec_of(text)
    observation = observe_totals(spec, replicas, totals, requests or {}, NOW)
    return explain(spec, observation, NEW_HPA, reconcile(spec, observation, NEW_HPA, NOW), NOW)


def sizes(text: str, replicas: int, totals: dict[str, int], passes: int, **request: int) -> list[int]:
    spec = spec_of(text)
    observation = observe_totals(spec, replicas, totals, request, NOW)
    return [step.outcome.desired.replicas for step in carry_on(spec, observation, NOW, passes)]


class TestPhpApache:
    """The walkthrough: 200m requested, 50 % wanted; at 305 % the deployment was resized to 7 replicas."""

    def test_it_aims_at_half_of_the_requests(self) -> None:
        assert aims(spec_of(PHP_APACHE)) == ("each pod uses about 50 % of its requested cpu",)

    def test_at_305_percent_it_asks_for_7(self) -> None:
        summary = explained(PHP_APACHE, 1, {"cpu": 610}, {"cpu": 200}).summary
        assert summary == (
            "At the next sync your HPA will see 305 % of requested cpu in use / 50 % × 1 pod = 7 pods; "
            "tolerance 0.1 does not apply; growth limit allows 4; it will go from 1 to 4 and say ScaleUpLimit."
        )

    def test_it_reaches_the_7_of_the_documentation_in_two_passes(self) -> None:
        assert sizes(PHP_APACHE, 1, {"cpu": 610}, 3, cpu=200) == [4, 7, 7]

    def test_without_load_it_goes_back_to_one_after_five_minutes(self) -> None:
        back = sizes(PHP_APACHE, 7, {"cpu": 0}, 23, cpu=200)
        assert back == [7] * 21 + [1, 1]


class TestSeveralMetrics:
    """The walkthrough: "roughly 50% of its requested CPU, serving 1000 packets per second, and all pods behind the
    main-route Ingress serving a total of 10000 requests per second"; the highest replica count is chosen.
    """

    def test_it_aims_at_what_the_documentation_says(self) -> None:
        assert aims(spec_of(SEVERAL_METRICS)) == (
            "each pod uses about 50 % of its requested cpu",
            "packets-per-second is about 1k for each pod",
            "requests-per-second on Ingress main-route is about 10k in total",
        )

    def test_the_largest_proposal_wins(self) -> None:
        totals = {"cpu": 400, "packets-per-second": 5_000_000, "requests-per-second": 15_000_000}
        explanation = explained(SEVERAL_METRICS, 4, totals, {"cpu": 200})
        assert explanation.steps[:4] == (
            "Resource cpu: 50 % of requested cpu in use / 50 % = 4 pods (ratio 1 is within the tolerance: no change)",
            "Pods packets-per-second: 5k / 1k = 5 pods",
            "Object requests-per-second: 15k / 10k = 6 pods",
            "recommendation: the largest proposal, 6 pods",
        )
        assert explanation.summary.endswith("it will go from 4 to 6 and say SucceededRescale.")


class TestScalingPolicies:
    """Pods 4 and Percent 10 per minute: from 80, "during the first step 8 replicas will be reduced"; then "10% of the
    pods is 7.2 but the number is rounded up to 8"; "when the number of replicas falls below 40 the first policy will
    be applied and 4 replicas will be reduced at a time".
    """

    def test_the_first_step_takes_eight(self) -> None:
        explanation = explained(POLICIES, 80, {"queue": 10_000})
        assert explanation.summary == (
            "At the next sync your HPA will see 10 / 1 = 10 pods; tolerance 0.1 does not apply; "
            "scale-down policy allows 72; it will go from 80 to 72 and say ScaleDownLimit."
        )
        assert (
            "policies down: 4 pods per 60 s allows 76, 10 % per 60 s allows 72; selectPolicy Max" in explanation.steps
        )

    def test_each_minute_takes_the_larger_of_both(self) -> None:
        steps = sizes(POLICIES, 80, {"queue": 10_000}, 60)
        assert list(dict.fromkeys(steps)) == [72, 64, 57, 51, 45, 40, 36, 32, 28, 24, 20, 16, 12, 10]

    def test_the_smaller_of_both_where_min_is_selected(self) -> None:
        text = POLICIES.replace(
            "stabilizationWindowSeconds: 0", "stabilizationWindowSeconds: 0\n      selectPolicy: Min"
        )
        assert sizes(text, 80, {"queue": 10_000}, 1) == [76]

    def test_disabled_turns_scaling_down_off(self) -> None:
        text = POLICIES.replace(
            "stabilizationWindowSeconds: 0", "stabilizationWindowSeconds: 0\n      selectPolicy: Disabled"
        )
        assert set(sizes(text, 80, {"queue": 10_000}, 5)) == {80}


@pytest.mark.parametrize(("metric", "desired"), [(200, 2), (50, 1), (110, 1), (91, 1)])
def test_the_formula_of_the_algorithm(metric: int, desired: int) -> None:
    """Twice the wanted value doubles, half of it halves, within a tenth nothing happens."""
    text = PHP_APACHE.replace("averageUtilization: 50", "averageUtilization: 100")
    explanation: Any = explained(text, 1, {"cpu": 2 * metric}, {"cpu": 200})
    assert f"= {desired} pod" in explanation.summary
