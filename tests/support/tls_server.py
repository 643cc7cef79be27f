"""A real HTTPS server with a kubeconfig that leads to it."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

from tests.support.control_plane.authority import Authority, kubeconfig
from tests.support.http_server import Running, answering

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.http_server import HttpRequest, Reply


class KubeconfigServer(Running):
    """Answers over TLS with a certificate of its own authority; `kubeconfig` names both, and a user."""

    def __init__(self, folder: Path, respond: Callable[[HttpRequest], Reply]) -> None:
        folder.mkdir()
        authority = Authority(folder, "ca")
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        identity = authority.issue("api-server", "localhost", "127.0.0.1")
        tls.load_cert_chain(identity.certificate, identity.key)
        super().__init__(answering(respond), tls, lazy=True)
        self.kubeconfig = kubeconfig(folder / "config", self.url, authority, authority.issue("us", common_name="us"))
