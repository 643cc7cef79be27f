"""What may be stated of the chart: values.yaml with its comments, and the schema that holds it."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

import yaml

from deploy.generate.conditional import camel
from deploy.generate.kustomized import DEPLOY, components

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
        ("Where the image is; a digest counts before the tag.",),
        {"repository": "forecaster", "tag": "latest", "digest": ""},
        closed(repository=NAME, tag=TEXT, digest=TEXT | {"pattern": "^(sha256:[0-9a-f]{64})?$"}),
    ),
    "settings": Value(
        (
            "Settings that differ from the manifests' own, as their last file; `forecaster settings` prints all.",
            "At least the address of your Prometheus: {prometheus: {url: http://prometheus.monitoring:9090}}.",
        ),
        {},
        OBJECT,
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
            runtimeClassName=TEXT,
            dnsConfig=OBJECT,
        ),
    ),
    "networkPolicy": Value(
        (
            "What the NetworkPolicy lets in. controlPlane: the addresses that",
            "`kubectl get endpointslices -n default kubernetes` lists; here stands an address for examples (RFC 5737).",
        ),
        {"controlPlane": ["192.0.2.0/24"], "prometheusNamespace": "monitoring", "kedaNamespace": "keda"},
        closed(
            controlPlane=LIST | {"items": TEXT | {"pattern": "/[0-9]+$"}}, prometheusNamespace=NAME, kedaNamespace=NAME
        ),
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
    lines = ["# Made by `python -m deploy.generate`. What may be stated of the chart; values.schema.json holds it."]
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
    return json.dumps({"$schema": "http://json-schema.org/draft-07/schema#", **stated}, indent=2) + "\n"


def flow(value: Any) -> str:
    """A value in one line."""
    written = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=10_000)
    return written.removesuffix("\n").removesuffix("\n...")


def first_sentence(component: str) -> str:
    """What its kustomization says about it."""
    text = (DEPLOY / "components" / component / "kustomization.yaml").read_text(encoding="utf-8")
    comment = " ".join(line.removeprefix("#").strip() for line in text.split("apiVersion:")[0].splitlines())
    return re.split(r"(?<=[.;]) ", comment.strip())[0].rstrip(";")
