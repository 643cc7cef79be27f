"""Deployments of pods that pretend to run, and what became of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.support.control_plane.api import Api, Document

CPU_REQUEST = "100m"


class Replicas(NamedTuple):
    """Pods of a Deployment: desired, and ready."""

    desired: int
    ready: int


def deployment(name: str, count: int, *, annotations: Mapping[str, str] | None = None) -> Document:
    """A Deployment of one container; the annotations say how its pods behave (plane.py)."""
    labels = {"app": name}
    container = {"name": "app", "image": "app", "resources": {"requests": {"cpu": CPU_REQUEST, "memory": "64Mi"}}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": count,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels, "annotations": dict(annotations or {})},
                "spec": {"terminationGracePeriodSeconds": 0, "containers": [container]},
            },
        },
    }


def replicas(api: Api, name: str, namespace: str = "default") -> Replicas:
    """Number of desired and of ready pods now."""
    deployment_ = api.read("Deployment", name, namespace)
    return Replicas(deployment_["spec"]["replicas"], deployment_.get("status", {}).get("readyReplicas", 0))


def external_hpa(
    name: str, *, target: str, most: int = 40, signal: str = "cpu", metric: str = "forecaster_demand"
) -> Document:
    """An HPA of the Deployment of that name on one of our metrics, without tolerance, delays and limits of its own."""
    labels = {"workload": name, "kind": "Deployment"} | ({"signal": signal} if metric == "forecaster_demand" else {})
    at_once = {"stabilizationWindowSeconds": 0, "policies": [{"type": "Percent", "value": 900, "periodSeconds": 1}]}
    metric_spec = {"metric": {"name": metric, "selector": {"matchLabels": labels}}}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name},
        "spec": {
            "minReplicas": 1,
            "maxReplicas": most,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
            "behavior": {"scaleUp": at_once | {"tolerance": "0"}, "scaleDown": at_once | {"tolerance": "0"}},
            "metrics": [
                {
                    "type": "External",
                    "external": metric_spec | {"target": {"type": "AverageValue", "averageValue": target}},
                }
            ],
        },
    }
