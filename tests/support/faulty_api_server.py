"""Server between a replica and a real API server: passes requests on with the replica's credentials, or fails them."""

from __future__ import annotations

import json
import ssl
from typing import TYPE_CHECKING, Self

import httpx

from tests.support.http_server import HttpRequest, Reply, Running, answering
from tests.support.waiting import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import TracebackType

    from tests.support.control_plane.plane import ControlPlane

PASSED_ON = ("Authorization", "Content-Type", "Accept")


class FaultyApiServer:
    """`kubeconfig` leads to it, with the token of an account."""

    def __init__(self, plane: ControlPlane, folder: Path, account: str, namespace: str) -> None:
        trusted = ssl.create_default_context(cafile=str(plane.authority.certificate))
        self._client = httpx.Client(base_url=plane.server, verify=trusted, timeout=PATIENCE)
        identity = plane.authority.issue("faulty", "localhost", "127.0.0.1")
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(identity.certificate, identity.key)
        self._server = Running(answering(self._answer), tls, lazy=True)
        document = json.loads(plane.account(account, namespace).read_text())
        document["clusters"][0]["cluster"]["server"] = self._server.url
        self.kubeconfig = folder / "faulty.kubeconfig"
        self.kubeconfig.write_text(json.dumps(document))
        self.fault: Callable[[HttpRequest], int] = lambda _: 0
        """The status to answer a request with; 0 passes it on."""
        self.before: Callable[[HttpRequest], None] = lambda _: None
        """Called before a request arrives, to change the cluster."""
        self.refused = 0

    def mended(self) -> None:
        """All is well again."""
        self.fault, self.before = lambda _: 0, lambda _: None

    def passed_on(self, request: HttpRequest) -> Reply:
        """Answer of the API server itself."""
        headers = {name: value for name, value in request.headers.items() if name in PASSED_ON}
        answer = self._client.request(request.method, request.path, content=request.body, headers=headers)
        return Reply(answer.status_code, answer.content)

    def _answer(self, request: HttpRequest) -> Reply:
        self.before(request)
        status = self.fault(request)
        if status:
            self.refused += 1
            status_object = {
                "kind": "Status",
                "apiVersion": "v1",
                "status": "Failure",
                "code": status,
                "message": "a test",
            }
            return Reply(status, json.dumps(status_object).encode())
        return self.passed_on(request)

    def __enter__(self) -> Self:
        self._server.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.__exit__(kind, error, trace)
        self._client.close()
