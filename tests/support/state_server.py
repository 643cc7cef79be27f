"""An API server over TLS with the Secret of the release, kube-system, and the workloads of `recorded_cluster`."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from forecaster.kube.connections import RawRequest
from tests.support.api_objects import deployment, page
from tests.support.fake_api_server import FakeApiServer
from tests.support.http_server import HttpRequest, Reply
from tests.support.tls_server import KubeconfigServer

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

SECRET = "/api/v1/namespaces/forecaster/secrets/forecaster-state"
KUBE_SYSTEM = "/api/v1/namespaces/kube-system"


class StateServer(KubeconfigServer):
    """Answers from a `FakeApiServer` in memory; a watch ends at once, without events."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, self._respond)
        self.api = FakeApiServer()
        self.api.add(SECRET, {})
        self.api.objects[KUBE_SYSTEM] = {"metadata": {"name": "kube-system", "uid": "uid-of-here"}}
        for name in ("web", "cart"):
            self.api.objects[f"/apis/apps/v1/namespaces/shop/deployments/{name}"] = deployment(name)

    @property
    def given(self) -> dict[str, Any]:
        """Settings of a service whose API server this is."""
        return {"kubernetes": {"kubeconfig": str(self.kubeconfig)}, "acting": {"kubeconfig": str(self.kubeconfig)}}

    def entry(self, name: str) -> bytes:
        """One entry of the Secret."""
        return base64.b64decode(self.api.objects[SECRET].get("data", {}).get(name, ""))

    def put(self, name: str, content: bytes) -> None:
        """Write an entry of the Secret, as another client does."""
        secret = self.api.objects[SECRET]
        secret["data"] = secret.get("data", {}) | {name: base64.b64encode(content).decode()}
        secret["metadata"]["resourceVersion"] = str(int(secret["metadata"]["resourceVersion"]) + 1)

    def _respond(self, received: HttpRequest) -> Reply:
        path, _, query = received.path.partition("?")
        if "watch=1" in query:
            return Reply(200, b"")
        if received.method == "GET" and "/namespaces/" not in path:
            plural = f"/{path.rpartition('/')[2]}/"
            return Reply(200, page(*(document for key, document in self.api.objects.items() if plural in key)).body)
        request = RawRequest(
            received.method, received.path, received.body or None, received.headers.get("Content-Type", "")
        )
        answer = self.api.exchange(request)
        return Reply(answer.status, answer.body)
