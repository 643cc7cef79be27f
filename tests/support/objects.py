"""Kubernetes objects as `kubectl get -o json` prints them, in few words."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

Wire = dict[str, Any]


def meta(name: str, namespace: str = "", **more: Any) -> Wire:
    return {"name": name, **({"namespace": namespace} if namespace else {}), **more}


def container(name: str = "app", requests: Wire | None = None, limits: Wire | None = None) -> Wire:
    return {"name": name, "resources": {"requests": requests or {}, "limits": limits or {}}}


def deployment(namespace: str, name: str, *containers: Wire, replicas: int = 3, **strategy: Any) -> Wire:
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": list(containers)}}
    rolling = {"strategy": {"rollingUpdate": strategy}} if strategy else {}
    return {
        "kind": "Deployment",
        "metadata": meta(name, namespace),
        "spec": {"replicas": replicas, "template": template, **rolling},
    }


def cron_job(namespace: str, name: str, *containers: Wire) -> Wire:
    template = {"spec": {"restartPolicy": "Never", "containers": list(containers)}}
    spec = {"schedule": "0 * * * *", "jobTemplate": {"spec": {"template": template}}}
    return {"kind": "CronJob", "apiVersion": "batch/v1", "metadata": meta(name, namespace), "spec": spec}


def replica_set(namespace: str, deployment_name: str) -> Wire:
    owner = {"kind": "Deployment", "name": deployment_name, "controller": True}
    return {
        "kind": "ReplicaSet",
        "metadata": meta(f"{deployment_name}-7d9f", namespace, ownerReferences=[owner]),
        "spec": {},
    }


def pod(
    namespace: str, name: str, node: str, *containers: Wire, owner: tuple[str, str] = ("", ""), **spec: Any
) -> Wire:
    owners = [{"kind": owner[0], "name": owner[1], "controller": True}] if owner[0] else []
    return {
        "kind": "Pod",
        "metadata": meta(name, namespace, ownerReferences=owners),
        "spec": {"nodeName": node, "containers": list(containers), **spec},
        "status": {"phase": "Running"},
    }


def node(name: str, cpu: str = "4", memory: str = "16Gi", **labels: str) -> Wire:
    return {
        "kind": "Node",
        "metadata": meta(name, labels=labels),
        "spec": {},
        "status": {
            "allocatable": {"cpu": cpu, "memory": memory, "pods": "110"},
            "nodeInfo": {"kubeletVersion": "v1.36.3"},
        },
    }


def limit_range(namespace: str, **item: Any) -> Wire:
    return {
        "kind": "LimitRange",
        "metadata": meta("limits", namespace),
        "spec": {"limits": [{"type": "Container", **item}]},
    }


def vpa(namespace: str, name: str, *containers: Wire, mode: str = "Off", **status: Any) -> Wire:
    """A VPA of the Deployment of its name; `containers` are those of its recommendation."""
    recommendation = {"recommendation": {"containerRecommendations": list(containers)}} if containers else {}
    return {
        "kind": "VerticalPodAutoscaler",
        "metadata": meta(name, namespace),
        "spec": {"targetRef": {"kind": "Deployment", "name": name}, "updatePolicy": {"updateMode": mode}},
        "status": recommendation | status,
    }


def quota(namespace: str, hard: Wire, used: Wire) -> Wire:
    return {
        "kind": "ResourceQuota",
        "metadata": meta("quota", namespace),
        "spec": {"hard": hard},
        "status": {"hard": hard, "used": used},
    }


def written(path: Path, *items: Wire) -> Path:
    path.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": list(items)}))
    return path
