"""What may be stated of the chart: values.yaml with its comments, and the schema that holds it."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

import yaml

from deploy.generate.conditional import camel
from deploy.generate.kustomized import DEPLOY, components
from forecaster.config.text import schema_of_settings

EXPLAINS = {"title", "description", "default", "examples", "format", "writeOnly"}
"""Keywords that refuse nothing."""
TEXT, FLAG, OBJECT, LIST = ({"type": name} for name in ("string", "boolean", "object", "array"))
NAME = TEXT | {"minLength": 1}


def closed(**properties: dict[str, Any]) -> dict[str, Any]:
    """An object with these fields and no others."""
    return {"type": "object", "additionalProperties": False, "properties": properties}


class Value(NamedTuple):
    """One value of the chart."""

    meaning: tuple[str, ...]
    """Lines."""
    default: Any
    schema: dict[str, Any]


VALUES = {
    "image": Value(
        ("The image; a digest takes precedence over the tag.",),
        {"repository": "forecaster", "tag": "latest", "digest": "", "pullPolicy": ""},
        closed(
            repository=NAME,
            tag=TEXT,
            digest=TEXT | {"pattern": "^(sha256:[0-9a-f]{64})?$"},
            pullPolicy={"enum": ["", "Always", "IfNotPresent", "Never"]},
        ),
    ),
    "settings": Value(
        (
            "Settings that differ from the manifests' own, as their last file; `forecaster settings` prints all.",
            "At least the address of your Prometheus: {prometheus: {url: http://prometheus.monitoring:9090}}.",
        ),
        {},
        {"$ref": "#/$defs/Settings"},
    ),
    "env": Value(
        ("Further environment variables of every container, e.g. a proxy, or what the identity of a cloud asks for.",),
        [],
        LIST | {"items": OBJECT},
    ),
    "envFrom": Value(
        ("Secrets and ConfigMaps whose keys are environment variables, too.",), [], LIST | {"items": OBJECT}
    ),
    "extraVolumes": Value(
        (
            "Volumes that pods have beside their own, e.g. a Secret with the password of Prometheus, or a ConfigMap",
            "with its CA: settings.prometheus.password_file and ca_file name files in them (docs/prometheus.md).",
        ),
        [],
        LIST | {"items": OBJECT},
    ),
    "extraVolumeMounts": Value(("Where they are mounted.",), [], LIST | {"items": OBJECT}),
    "serviceAccount": Value(
        ("Annotations of the service's account, by which a cloud gives it an identity (IRSA, workload identity).",),
        {"annotations": {}},
        closed(annotations=OBJECT),
    ),
    "podLabels": Value(("Further labels of the pods of Deployments.",), {}, OBJECT),
    "podAnnotations": Value(("Annotations of the pods of Deployments.",), {}, OBJECT),
    "podSecurityContext": Value(
        (
            "Instead of the manifests' own, with user and groups of theirs. OpenShift states these itself:",
            "{runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}.",
        ),
        None,
        {"type": ["object", "null"]},
    ),
    "containerSecurityContext": Value(("The same of every container.",), None, {"type": ["object", "null"]}),
    "apiService": Value(
        (
            "Whether external.metrics.k8s.io is answered here: a cluster has one server for it. false where KEDA,",
            "prometheus-adapter or Datadog have it, and in modes that nothing reads.",
        ),
        {"create": True},
        closed(create=FLAG),
    ),
    "replicas": Value(
        ("How many pods compute and serve; default: one, or what a component states.",),
        None,
        {"type": ["integer", "null"], "minimum": 1},
    ),
    "resources": Value(
        ("Requests and limits of the service; default: for a few hundred workloads (templates/deployment.yaml).",),
        {},
        closed(requests=OBJECT, limits=OBJECT),
    ),
    "workers": Value(
        ("How many workers the component dask has, and their requests and limits; default: two (docs/shards.md).",),
        {"replicas": None, "resources": {}},
        closed(replicas={"type": ["integer", "null"], "minimum": 1}, resources=closed(requests=OBJECT, limits=OBJECT)),
    ),
    "pod": Value(
        ("Further fields of every pod, e.g. {nodeSelector: {...}, imagePullSecrets: [...]}; the schema names all.",),
        {},
        closed(
            nodeSelector=OBJECT,
            tolerations=LIST,
            affinity=OBJECT,
            imagePullSecrets=LIST,
            priorityClassName=TEXT,
            topologySpreadConstraints=LIST,
            runtimeClassName=TEXT,
            dnsConfig=OBJECT,
        ),
    ),
    "networkPolicy": Value(
        (
            "Whether a NetworkPolicy lets in the control plane, Prometheus and nothing else. controlPlane: what",
            "`kubectl get endpointslices -n default kubernetes` lists; without it nothing could read the metrics",
            "API, so there is no policy until they are stated.",
        ),
        {"create": False, "controlPlane": [], "prometheusNamespace": "monitoring", "kedaNamespace": "keda"},
        closed(
            create=FLAG,
            controlPlane=LIST | {"items": TEXT | {"pattern": "/[0-9]+$"}},
            prometheusNamespace=NAME,
            kedaNamespace=NAME,
        )
        | {
            "if": {"properties": {"create": {"const": True}}},
            "then": {"properties": {"controlPlane": {"minItems": 1}}},
        },
    ),
    "claim": Value(
        ("The volume of the component persistentState; default: the cluster's StorageClass, 2Gi.",),
        {"storageClassName": "", "size": ""},
        closed(storageClassName=TEXT, size=TEXT),
    ),
    "namespace": Value(
        ("Whether the namespace is an object of the release. `helm install --create-namespace` makes it otherwise.",),
        {"create": False},
        closed(create=FLAG),
    ),
}


def values() -> str:
    """values.yaml: each value with what it means, and the components with the first sentence of their own page."""
    lines = ["# Made by `python -m deploy.generate`. Chart values, validated by values.schema.json."]
    for name, value in VALUES.items():
        lines += ["", *(f"# {line}" for line in value.meaning), f"{name}: {flow(value.default)}"]
    lines += ["", "# Parts that are off until they are wanted; each is explained in deploy/components.", "components:"]
    for name in components():
        lines += [f"  # {first_sentence(name)}", f"  {camel(name)}: false"]
    return "\n".join([*lines, ""])


def schema() -> str:
    """values.schema.json: a value that is misspelt is refused."""
    described = {name: {"description": " ".join(one.meaning), **one.schema} for name, one in VALUES.items()}
    chosen = closed(**{camel(name): FLAG for name in components()})
    # Helm hands values of a parent chart to each of its parts.
    stated = closed(**described, components=chosen, **{"global": OBJECT})
    definitions = settings_definitions()
    return (
        json.dumps({"$schema": "http://json-schema.org/draft-07/schema#", **stated, "$defs": definitions}, indent=1)
        + "\n"
    )


def settings_definitions() -> dict[str, Any]:
    """The schema of the settings by the names of its parts, without what explains them."""
    found = schema_of_settings()
    definitions = found.pop("$defs")
    definitions["Settings"] = {name: found[name] for name in ("type", "additionalProperties", "properties")}
    return {name: bare(definitions[name]) for name in sorted(definitions)}


def bare(part: Any) -> Any:
    """A part of a schema with what it refuses alone."""
    if isinstance(part, list):
        return [bare(one) for one in part]
    if not isinstance(part, dict):
        return part
    kept = {key: bare(value) for key, value in part.items() if key not in EXPLAINS}
    if "properties" in part:
        kept["properties"] = {name: bare(value) for name, value in part["properties"].items()}
    return kept


def flow(value: Any) -> str:
    """A value in one line."""
    written = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=10_000)
    return written.removesuffix("\n").removesuffix("\n...")


def first_sentence(component: str) -> str:
    """What its kustomization says about it."""
    text = (DEPLOY / "components" / component / "kustomization.yaml").read_text(encoding="utf-8")
    comment = " ".join(line.removeprefix("#").strip() for line in text.split("apiVersion:")[0].splitlines())
    return re.split(r"(?<=[.;]) ", comment.strip())[0].rstrip(";")
