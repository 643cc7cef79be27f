"""Advice as manifests: a strategic-merge patch for each workload, and a kustomize overlay of all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from forecaster.vertical.admission.cluster import POD
from forecaster.vertical.cluster_rules.resource_list import texts

if TYPE_CHECKING:
    from collections.abc import Iterable

    from forecaster.vertical.admission.advice import Advice
    from forecaster.vertical.cluster_rules.pod import Requirements

API_VERSIONS = {
    "DaemonSet": "apps/v1",
    "Deployment": "apps/v1",
    "ReplicaSet": "apps/v1",
    "Rollout": "argoproj.io/v1alpha1",
    "StatefulSet": "apps/v1",
}
BASE = "../base"


def patchable(advice: Advice) -> bool:
    """Whether there is something to write, and containers are known by name."""
    return advice.values is not None and advice.id.kind in API_VERSIONS and POD not in advice.values


def patch(advice: Advice) -> dict[str, Any]:
    """Changes nothing but requests and limits of cpu and memory; a limit that goes away is null, which removes it.

    Sidecars are among the init containers of a template.
    """
    values = advice.values or {}
    lists = {"containers": values.keys() - advice.sidecars, "initContainers": values.keys() & advice.sidecars}
    return {
        "apiVersion": API_VERSIONS[advice.id.kind],
        "kind": advice.id.kind,
        "metadata": {"name": advice.id.name, "namespace": advice.id.namespace},
        "spec": {
            "template": {
                "spec": {
                    kind: [{"name": name, "resources": _block(of)} for name, of in values.items() if name in names]
                    for kind, names in lists.items()
                    if names
                }
            }
        },
    }


def _block(values: Requirements) -> dict[str, Any]:
    limits: dict[str, str | None] = dict.fromkeys(("cpu", "memory"), None)
    return {"requests": texts(values.requests), "limits": limits | texts(values.limits)}


def file_name(advice: Advice) -> str:
    """One patch a file."""
    return f"{advice.id.namespace}-{advice.id.kind.lower()}-{advice.id.name}.yaml"


def kustomization(advices: Iterable[Advice], base: str = BASE) -> dict[str, Any]:
    """The overlay: the base, and a patch for every workload of it that changes."""
    return {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [base],
        "patches": [{"path": file_name(one)} for one in advices],
    }
