"""Discovery and OpenAPI documents: constants, made once.

Polled by every client and by the aggregator to see whether we live.

They list the few metrics there are and never a workload: nothing is looked up, and their ETag never changes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any, NamedTuple

import msgspec

from forecaster.domain.published import DEMAND_METRIC, FLOOR, METRICS, REPLICAS
from forecaster.serving.reply import HttpReply

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
OBJECTS = ("deployments.apps", "statefulsets.apps")


class ApiResource(NamedTuple):
    """One line of a discovery document."""

    name: str
    kind: str


class ApiGroup(NamedTuple):
    """One API group in its one version."""

    name: str
    version: str
    resources: tuple[ApiResource, ...]

    @property
    def group_version(self) -> str:
        """`group/version`."""
        return f"{self.name}/{self.version}"


EXTERNAL = ApiGroup(
    "external.metrics.k8s.io",
    "v1beta1",
    # They all are of one kind, and `kubectl get` asks for the last resource of a kind: the demand shall be it.
    tuple(ApiResource(name, "ExternalMetricValueList") for name in (FLOOR, REPLICAS, DEMAND_METRIC)),
)
CUSTOM = ApiGroup(
    "custom.metrics.k8s.io",
    "v1beta2",
    tuple(ApiResource(f"{resource}/{name}", "MetricValueList") for resource in OBJECTS for name in METRICS),
)
OWN = EXTERNAL._replace(name="metrics.forecaster.dev")
"""The external metrics in a group of our own, which no other adapter registers (docs/integrate.md)."""
GROUPS = (EXTERNAL, CUSTOM, OWN)


class Discovery:
    """The documents of some groups: legacy by path, and all of them in one."""

    def __init__(self, groups: Sequence[ApiGroup] = GROUPS) -> None:
        self._documents = {
            path: HttpReply(HTTPStatus.OK, msgspec.json.encode(document))
            for path, document in _documents(groups).items()
        }
        body = msgspec.json.encode(_aggregated(groups))
        self._etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'.encode()
        tagged = ((b"etag", self._etag), (b"vary", b"Accept"))
        self._aggregated = HttpReply(HTTPStatus.OK, body, AGGREGATED.encode(), tagged)
        self._unchanged = HttpReply(HTTPStatus.NOT_MODIFIED, b"", AGGREGATED.encode(), tagged)

    def answer(self, path: str, accept: str = "", if_none_match: bytes = b"") -> HttpReply | None:
        """Return the document at this path; None where there is none."""
        if path == "/apis" and _wants_aggregated(accept):
            return self._unchanged if if_none_match == self._etag else self._aggregated
        return self._documents.get(path)


def _wants_aggregated(accept: str) -> bool:
    """Whether the client accepts version 2 of the aggregated form."""
    parts = ({word.strip() for word in part.split(";")} for part in accept.split(","))
    required = {"application/json", "g=apidiscovery.k8s.io", "v=v2", "as=APIGroupDiscoveryList"}
    return any(required <= part for part in parts)


def _documents(groups: Sequence[ApiGroup]) -> dict[str, dict[str, Any]]:
    documents: dict[str, dict[str, Any]] = {
        "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group(group) for group in groups]}
    }
    documents |= _openapi(groups)
    for group in groups:
        documents[f"/apis/{group.name}"] = {"kind": "APIGroup", "apiVersion": "v1", **_group(group)}
        documents[f"/apis/{group.group_version}"] = _resources(group)
    return documents


def _openapi(groups: Sequence[ApiGroup]) -> dict[str, dict[str, Any]]:
    """Valid and empty: the values have no schema that a client could use, and 404 is an error in the cluster's log."""
    about = {"title": "forecaster", "version": "v1"}
    paths = [f"apis/{group.group_version}" for group in groups]
    index = {path: {"serverRelativeURL": f"/openapi/v3/{path}"} for path in paths}
    empty = {"openapi": "3.0.0", "info": about, "paths": {}}
    return {
        "/openapi/v2": {"swagger": "2.0", "info": about, "paths": {}},
        "/openapi/v3": {"paths": index},
        **{f"/openapi/v3/{path}": empty for path in paths},
    }


def _group(group: ApiGroup) -> dict[str, Any]:
    version = {"groupVersion": group.group_version, "version": group.version}
    return {"name": group.name, "versions": [version], "preferredVersion": version}


def _resources(group: ApiGroup) -> dict[str, Any]:
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": group.group_version,
        "resources": [
            {"name": resource.name, "singularName": "", "namespaced": True, "kind": resource.kind, "verbs": ["get"]}
            for resource in group.resources
        ],
    }


def _aggregated(groups: Sequence[ApiGroup]) -> dict[str, Any]:
    items = [
        {"metadata": {"name": group.name, "creationTimestamp": None}, "versions": [_version(group)]} for group in groups
    ]
    return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}


def _version(group: ApiGroup) -> dict[str, Any]:
    """Subresources have no line of their own in this form; the objects of custom metrics are not resources of ours."""
    resources = [
        {
            "resource": resource.name,
            "scope": "Namespaced",
            "singularResource": "",
            "verbs": ["get"],
            "responseKind": {"group": "", "version": "", "kind": resource.kind},
        }
        for resource in group.resources
        if "/" not in resource.name
    ]
    return {"version": group.version, "freshness": "Current", "resources": resources}
