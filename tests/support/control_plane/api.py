"""A small client of the Kubernetes API for tests: paths in, dictionaries out."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import httpx

from tests.support.waiting import PATIENCE

if TYPE_CHECKING:
    import ssl

MERGE_PATCH = "application/merge-patch+json"
RESOURCES = {
    "APIService": "/apis/apiregistration.k8s.io/v1/apiservices",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "ConfigMap": "/api/v1/namespaces/{}/configmaps",
    "Deployment": "/apis/apps/v1/namespaces/{}/deployments",
    "HorizontalPodAutoscaler": "/apis/autoscaling/v2/namespaces/{}/horizontalpodautoscalers",
    "Lease": "/apis/coordination.k8s.io/v1/namespaces/{}/leases",
    "Namespace": "/api/v1/namespaces",
    "Node": "/api/v1/nodes",
    "Pod": "/api/v1/namespaces/{}/pods",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/rolebindings",
    "ScaledObject": "/apis/keda.sh/v1alpha1/namespaces/{}/scaledobjects",
    "Secret": "/api/v1/namespaces/{}/secrets",
    "Service": "/api/v1/namespaces/{}/services",
    "StatefulSet": "/apis/apps/v1/namespaces/{}/statefulsets",
    "ServiceAccount": "/api/v1/namespaces/{}/serviceaccounts",
}

Document = dict[str, Any]


class RefusedError(AssertionError):
    """The API server answered with a `Status` that is no success."""

    def __init__(self, method: str, path: str, status: int, message: str) -> None:
        super().__init__(f"{method} {path}: {status} {message}")
        self.status = status


class Api:
    """Requests as one user, over connections that are kept."""

    def __init__(self, server: str, tls: ssl.SSLContext, *, token: str | None = None) -> None:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._client = httpx.Client(base_url=server, verify=tls, headers=headers, timeout=PATIENCE)

    def close(self) -> None:
        self._client.close()

    def ask(
        self, method: str, path: str, body: object = None, *, content_type: str = "application/json"
    ) -> httpx.Response:
        """The bare answer, whatever its status."""
        headers = {"Content-Type": content_type, "Accept": "application/json"}
        return self._client.request(method, path, json=body, headers=headers)

    def get(self, path: str) -> Document:
        return self._done("GET", path)

    def read(self, kind: str, name: str, namespace: str = "default") -> Document:
        return self._done("GET", _path(kind, namespace, name))

    def has(self, kind: str, name: str, namespace: str = "default") -> bool:
        return self.ask("GET", _path(kind, namespace, name)).status_code == HTTPStatus.OK

    def create(self, document: Document, namespace: str = "default", *, dry_run: bool = False) -> Document:
        """POST a manifest; its own namespace counts before `namespace`."""
        place = document["metadata"].get("namespace", namespace)
        path = RESOURCES[document["kind"]].format(place) + ("?dryRun=All" if dry_run else "")
        return self._done("POST", path, document)

    def put(self, document: Document, namespace: str = "default") -> Document:
        """Create a manifest, or replace the object of its name, whoever writes its status meanwhile."""
        while True:
            try:
                return self._put(document, document["metadata"].get("namespace", namespace))
            except RefusedError as error:
                if error.status != HTTPStatus.CONFLICT:
                    raise

    def merge(self, kind: str, name: str, change: object, namespace: str = "default") -> Document:
        """Merge-patch an object."""
        return self._done("PATCH", _path(kind, namespace, name), change, content_type=MERGE_PATCH)

    def delete(self, kind: str, name: str, namespace: str = "default") -> None:
        answer = self.ask("DELETE", _path(kind, namespace, name))
        if answer.status_code != HTTPStatus.NOT_FOUND:
            _check(answer)

    def condition(self, kind: str, name: str, condition: str, namespace: str = "default") -> Document:
        """One of its conditions; empty while it has none of that type."""
        conditions = self.read(kind, name, namespace).get("status", {}).get("conditions", [])
        return next((each for each in conditions if each["type"] == condition), {})

    def _put(self, document: Document, place: str) -> Document:
        kind, metadata = document["kind"], document["metadata"]
        if not self.has(kind, metadata["name"], place):
            return self.create(document, place)
        version = self.read(kind, metadata["name"], place)["metadata"]["resourceVersion"]
        body = {**document, "metadata": {**metadata, "resourceVersion": version}}
        return self._done("PUT", _path(kind, place, metadata["name"]), body)

    def _done(self, method: str, path: str, body: object = None, *, content_type: str = "application/json") -> Document:
        answer: Document = _check(self.ask(method, path, body, content_type=content_type)).json()
        return answer


def _path(kind: str, namespace: str, name: str) -> str:
    return f"{RESOURCES[kind].format(namespace)}/{name}"


def _check(answer: httpx.Response) -> httpx.Response:
    if answer.is_success:
        return answer
    request = answer.request
    try:
        message = answer.json()["message"]
    except (ValueError, KeyError):
        message = answer.text[:200]
    raise RefusedError(request.method, str(request.url), answer.status_code, message)
