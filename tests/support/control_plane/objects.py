"""Objects of a test cluster: its nodes, and what leads from the API server to a port of this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.support.control_plane.api import Document


def node(name: str) -> Document:
    room = {"cpu": "64", "memory": "256Gi", "ephemeral-storage": "1Ti", "pods": "500"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"},
            "annotations": {"kwok.x-k8s.io/node": "fake"},
        },
        "status": {"allocatable": room, "capacity": room},
    }


def loopback_service(name: str) -> Document:
    """The aggregator resolves a Service of this type by itself: to this machine."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"type": "ExternalName", "externalName": "localhost"},
    }


def api_service(group: str, version: str, service: str, port: int, bundle: str) -> Document:
    return {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": f"{version}.{group}"},
        "spec": {
            "group": group,
            "version": version,
            "groupPriorityMinimum": 100,
            "versionPriority": 100,
            "caBundle": bundle,
            "service": {"name": service, "namespace": "default", "port": port},
        },
    }
