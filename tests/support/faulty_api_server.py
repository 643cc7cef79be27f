"""Between a replica and a real API server: passes on what is asked with the replica's own credentials, unless told."""

from __future__ import annotations

import json
import ssl
from typing import TYPE_CHECKING, Self

import httpx

from tests.support.http_server import Asked, Reply, Running, answering
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
        self.fault: Callable[[Asked], int] = lambda _: 0
        """The status to answer a request with; 0 passes it on."""
        self.before: Callable[[Asked], None] = lambda _: None
        """What happens to the cluster before a request arrives."""
        self.refused = 0

    def mended(self) -> None:
        """All is well again."""
        self.fault, self.before = lambda _: 0, lambda _: None

    def passed_on(self, asked: Asked) -> Reply:
        """What the API server itself answers."""
        headers = {name: value for name, value in asked.headers.items() if name in PASSED_ON}
        found = self._client.request(asked.method, asked.path, content=asked.body, headers=headers)
        return Reply(found.status_code, found.content)

    def _answer(self, asked: Asked) -> Reply:
        self.before(asked)
        status = self.fault(asked)
        if status:
            self.refused += 1
            said = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": status, "message": "a test"}
            return Reply(status, json.dumps(said).encode())
        return self.passed_on(asked)

    def __enter__(self) -> Self:
        self._server.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.__exit__(kind, error, trace)
        self._client.close()
