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
    """Each object by kind, namespace and name, without status and what the API server itself writes."""
    listed = plane.kubectl("api-resources", "--verbs=list", "--output=name").split()
    kinds = sorted(one for one in listed if one not in PASSING and "metrics.k8s.io" not in one)
    found = json.loads(plane.kubectl("get", ",".join(kinds), "--all-namespaces", "--output=json"))["items"]
    return {_key(one): _stated(one) for one in found if not _renewed_by_itself(one)}


def differences(before: dict[str, Document], after: dict[str, Document]) -> dict[str, Any]:
    """What is gone, new or another one, by key."""
    return {
        key: (before.get(key), after.get(key))
        for key in sorted(before.keys() | after.keys())
        if before.get(key) != after.get(key)
    }


def _key(one: Document) -> str:
    metadata = one["metadata"]
    return f"{one['kind']} {metadata.get('namespace', '')}/{metadata['name']}"


def _stated(one: Document) -> Document:
    metadata = {key: value for key, value in one["metadata"].items() if key not in OF_THE_API_SERVER}
    return {key: value for key, value in one.items() if key not in {"status", "metadata"}} | {"metadata": metadata}


def _renewed_by_itself(one: Document) -> bool:
    """Leases of nodes and of the API server."""
    return bool(one["kind"] == "Lease" and one["metadata"]["namespace"].startswith("kube-"))
