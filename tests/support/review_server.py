"""A stand-in for the API server: tokens, rights and the front proxy's settings, over TLS."""

from __future__ import annotations

import json
import ssl
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

from forecaster.kube.config import ClientConfig
from forecaster.kube.rights import ACCESS_REVIEWS, TOKEN_REVIEWS
from forecaster.serving.authentication import CONFIG_MAP
from tests.support.control_plane.authority import Authority, kubeconfig
from tests.support.http_server import HttpRequest, Reply, Running, answering

if TYPE_CHECKING:
    from pathlib import Path


class ReviewServer(Running):
    """Answers reviews from plain sets; `requests` counts by path. Everything may be changed while it runs."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.authority = Authority(folder, "cluster-ca")
        self.front_proxy = Authority(folder, "front-proxy-ca")
        self.proxy_ca = self.front_proxy.certificate.read_text()
        self.allowed_names = ["front-proxy-client"]
        self.tokens: dict[str, str] = {"good": "system:serviceaccount:shop:reader"}
        self.allowed = {
            "system:serviceaccount:kube-system:horizontal-pod-autoscaler",
            "system:serviceaccount:shop:reader",
        }
        self.down = False
        self.delay = 0.0
        """Seconds that a review takes."""
        self.requests: Counter[str] = Counter()
        self.reviewed: list[Any] = []
        identity = self.authority.issue("api-server", "localhost", "127.0.0.1")
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(identity.certificate, identity.key)
        super().__init__(answering(self._respond), tls, lazy=True)
        self._client = self.authority.issue("forecaster", common_name="forecaster")
        self.kubeconfig = kubeconfig(folder / "kubeconfig", self.url, self.authority, self._client)

    def config(self) -> ClientConfig:
        """Configuration in the kubeconfig file."""
        ca, client = self.authority.certificate, self._client
        return ClientConfig(
            self.url, ca_file=str(ca), certificate_file=str(client.certificate), key_file=str(client.key)
        )

    def answer(self, path: str, body: Any) -> Any:
        """The object to answer with; None where there is none."""
        self.requests[path] += 1
        if path == CONFIG_MAP:
            return {
                "data": {
                    "requestheader-client-ca-file": self.proxy_ca,
                    "requestheader-allowed-names": json.dumps(self.allowed_names),
                    "requestheader-username-headers": '["X-Remote-User"]',
                    "requestheader-group-headers": '["X-Remote-Group"]',
                    "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
                }
            }
        if path == TOKEN_REVIEWS:
            name = self.tokens.get(body["spec"]["token"])
            user = {"username": name, "groups": ["system:serviceaccounts"]} if name else {}
            return {"status": {"authenticated": bool(name), "user": user}}
        if path == ACCESS_REVIEWS:
            self.reviewed.append(body["spec"])
            return {"status": {"allowed": body["spec"]["user"] in self.allowed}}
        return None

    def _respond(self, request: HttpRequest) -> Reply:
        time.sleep(self.delay)
        if self.down:
            return Reply(500, b"null")
        answer = self.answer(request.path, json.loads(request.body or b"null"))
        return Reply(404 if answer is None else 200, json.dumps(answer).encode())
