"""All objects of a cluster, as two points in time may be compared."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.support.control_plane.api import Document
    from tests.support.control_plane.plane import ControlPlane

PASSING = {
    "componentstatuses",
    "endpoints",
    "endpointslices.discovery.k8s.io",
    "events",
    "events.events.k8s.io",
    "pods",
}
"""Kinds whose objects come and go by themselves."""
OF_THE_API_SERVER = {"uid", "resourceVersion", "creationTimestamp", "generation", "managedFields"}


def everything(plane: ControlPlane) -> dict[str, Document]:
    """Each object by kind, namespace and name, without its status and the fields that the API server itself writes."""
    listed = plane.kubectl("api-resources", "--verbs=list", "--output=name").split()
    kinds = sorted(kind for kind in listed if kind not in PASSING and "metrics.k8s.io" not in kind)
    documents = json.loads(plane.kubectl("get", ",".join(kinds), "--all-namespaces", "--output=json"))["items"]
    return {_key(document): _stated(document) for document in documents if not _renewed_by_itself(document)}


def differences(before: dict[str, Document], after: dict[str, Document]) -> dict[str, Any]:
    """Objects that are gone, new or changed, by key."""
    return {
        key: (before.get(key), after.get(key))
        for key in sorted(before.keys() | after.keys())
        if before.get(key) != after.get(key)
    }


def _key(document: Document) -> str:
    metadata = document["metadata"]
    return f"{document['kind']} {metadata.get('namespace', '')}/{metadata['name']}"


def _stated(document: Document) -> Document:
    metadata = {key: value for key, value in document["metadata"].items() if key not in OF_THE_API_SERVER}
    return {key: value for key, value in document.items() if key not in {"status", "metadata"}} | {"metadata": metadata}


def _renewed_by_itself(document: Document) -> bool:
    """Whether an object is a Lease of a node or of the API server."""
    return bool(document["kind"] == "Lease" and document["metadata"]["namespace"].startswith("kube-"))
