"""The chart as a bundle of the Operator Lifecycle Manager, for OpenShift: `bundle.py VERSION FOLDER`.

The manager makes deployments, accounts and rights from its ClusterServiceVersion and takes few other kinds. OpenShift's
service CA signs the certificate, not our Job. The bundle recommends and writes statuses; other modes take the chart.
"""

from __future__ import annotations

import base64
import json
import sys
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]
GROUP = "autoscaling.forecaster.dev"
TAKEN = {"ClusterRole", "ConfigMap", "CustomResourceDefinition", "Service"}
"""Kinds that lie in the bundle as they are."""
DELEGATED = {
    "system:auth-delegator": [
        {"apiGroups": ["authentication.k8s.io"], "resources": ["tokenreviews"], "verbs": ["create"]},
        {"apiGroups": ["authorization.k8s.io"], "resources": ["subjectaccessreviews"], "verbs": ["create"]},
    ],
    "extension-apiserver-authentication-reader": [
        {
            "apiGroups": [""],
            "resources": ["configmaps"],
            "resourceNames": ["extension-apiserver-authentication"],
            "verbs": ["get", "list", "watch"],
        }
    ],
}
"""Rights of roles that a cluster has, and the chart binds."""
EXAMPLES = [
    {"apiVersion": f"{GROUP}/v1alpha1", "kind": kind, "metadata": {"name": "checkout"}, "spec": spec}
    for kind, spec in (
        ("PredictiveAutoscaler", {"scaleTargetRef": {"name": "checkout"}}),
        ("PredictivePolicy", {"match": {"namespace": "shop"}, "horizontal": {"quantile": 0.8}}),
    )
]
ABOUT = """\
Forecasts the demand of each workload from the series in Prometheus, recommends replicas, requests and limits, and
explains every number. This bundle changes no workload.

State the address of Prometheus in the Subscription, under `spec.config.env`: `FORECASTER__PROMETHEUS__URL`. The Lease
that says which pod writes statuses is not made by the manager: `oc create -n NAMESPACE -f -` with a Lease named
`forecaster`.
"""


def rules_of(objects: list[Any], binding: str, account: str) -> list[Any]:
    """Rules that bindings of a kind give an account."""
    role = binding.removesuffix("Binding")
    roles = {one["metadata"]["name"]: one["rules"] for one in objects if one["kind"] == role}
    bound = [one for one in objects if one["kind"] == binding and one["subjects"][0]["name"] == account]
    return [rule for one in bound for rule in roles.get(one["roleRef"]["name"]) or DELEGATED[one["roleRef"]["name"]]]


def service_version(objects: list[Any], version: str) -> dict[str, Any]:
    """The ClusterServiceVersion: what the manager runs, with which rights."""
    (deployment,) = [one for one in objects if one["kind"] == "Deployment"]
    chart = yaml.safe_load((ROOT / "deploy" / "chart" / "Chart.yaml").read_text(encoding="utf-8"))
    name = deployment["spec"]["template"]["spec"]["serviceAccountName"]
    cluster_rules = rules_of(objects, "ClusterRoleBinding", name)
    in_kube_system = DELEGATED["extension-apiserver-authentication-reader"]
    rules = [rule for rule in rules_of(objects, "RoleBinding", name) if rule not in in_kube_system]
    owned = [
        {
            "name": one["metadata"]["name"],
            "kind": one["spec"]["names"]["kind"],
            "version": one["spec"]["versions"][0]["name"],
            "displayName": one["spec"]["names"]["kind"],
            "description": one["spec"]["versions"][0]["schema"]["openAPIV3Schema"].get("description", "A policy."),
        }
        for one in objects
        if one["kind"] == "CustomResourceDefinition"
    ]
    icon = (ROOT / "docs" / "pictures" / "icon.svg").read_bytes()
    return {
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": {
            "name": f"forecaster.v{version}",
            "annotations": {
                "alm-examples": json.dumps(EXAMPLES),
                "capabilities": "Basic Install",
                "categories": "Monitoring",
                "containerImage": deployment["spec"]["template"]["spec"]["containers"][0]["image"],
                "description": chart["description"],
                "support": "The forecaster maintainers",
            },
        },
        "spec": {
            "displayName": "forecaster",
            "description": ABOUT,
            "version": version,
            "maturity": "alpha",
            "minKubeVersion": "1.31.0",
            "provider": {"name": "The forecaster maintainers"},
            "links": [{"name": "Documents", "url": "https://forecaster.dev/docs/"}],
            "keywords": chart["keywords"],
            "icon": [{"base64data": base64.b64encode(icon).decode(), "mediatype": "image/svg+xml"}],
            "installModes": [
                {"type": kind, "supported": kind == "AllNamespaces"}
                for kind in ("OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces")
            ],
            "customresourcedefinitions": {"owned": owned},
            "install": {
                "strategy": "deployment",
                "spec": {
                    "clusterPermissions": [{"serviceAccountName": name, "rules": cluster_rules + in_kube_system}],
                    "permissions": [{"serviceAccountName": name, "rules": rules}],
                    "deployments": [{"name": deployment["metadata"]["name"], "spec": deployment["spec"]}],
                },
            },
        },
    }


def manifests(objects: list[Any], version: str) -> dict[str, Any]:
    """Objects of the bundle by file."""
    found = {"forecaster.clusterserviceversion.yaml": service_version(objects, version)}
    bound = {one["roleRef"]["name"] for one in objects if one["kind"] == "ClusterRoleBinding"}
    for one in objects:
        name = one["metadata"]["name"]
        if one["kind"] not in TAKEN or (one["kind"] == "ClusterRole" and name in bound):
            continue
        one["metadata"].pop("namespace", None)
        if one["kind"] == "Service":
            secret = {"service.beta.openshift.io/serving-cert-secret-name": "forecaster-certificates"}
            one["metadata"]["annotations"] = secret
        found[f"{name}.{one['kind'].lower()}.yaml"] = one
    return found


def main(version: str, folder: Path) -> None:
    """Write the bundle of the objects at standard input."""
    objects = [one for one in yaml.safe_load_all(sys.stdin) if one]
    prefix = "operators.operatorframework.io.bundle"
    annotations = {
        f"{prefix}.mediatype.v1": "registry+v1",
        f"{prefix}.manifests.v1": "manifests/",
        f"{prefix}.metadata.v1": "metadata/",
        f"{prefix}.package.v1": "forecaster",
        f"{prefix}.channels.v1": "alpha",
        f"{prefix}.channel.default.v1": "alpha",
    }
    files = {f"manifests/{name}": one for name, one in manifests(objects, version).items()}
    for name, one in {**files, "metadata/annotations.yaml": {"annotations": annotations}}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(yaml.safe_dump(one, sort_keys=False, allow_unicode=True), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
