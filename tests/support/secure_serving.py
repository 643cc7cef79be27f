"""The real serving process with its secure door, and clients with all kinds of credentials."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, Any, Self

import httpx

from forecaster.app.child import ServingProcess
from forecaster.serving.options import Address, SecureOptions, ServingOptions
from tests.support.control_plane.authority import Authority
from tests.support.review_server import ReviewServer
from tests.support.waiting import PATIENCE, wait_until

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from tests.support.control_plane.authority import KeyPair

DEMAND = "/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/forecaster_demand"
VALUE = f"{DEMAND}?labelSelector=workload%3Dweb%2Csignal%3Dcpu"
HPA = {"X-Remote-User": "system:serviceaccount:kube-system:horizontal-pod-autoscaler"}
SERVICE = "forecaster.autoscaling.svc"


class SecureServing:
    """A running process and the authorities around it."""

    def __init__(self, folder: Path, table: Path, new_pods: str = "", *, certified_reviews: bool = False) -> None:
        self.reviews = ReviewServer(folder / "cluster")
        self.issuer = Authority(folder, "serving-ca")
        self.certificate = self.issuer.issue("serving", SERVICE, "localhost", "127.0.0.1")
        self.proxy = self.reviews.front_proxy.issue("proxy", common_name="front-proxy-client")
        secure = SecureOptions(
            str(self.certificate.certificate),
            str(self.certificate.key),
            str(self.reviews.kubeconfig),
            certified_reviews=certified_reviews,
        )
        self.process = ServingProcess(
            table,
            Address("127.0.0.1", 0),
            secure_address=Address("127.0.0.1", 0),
            options=ServingOptions(secure=secure, new_pods=new_pods),
        )

    def __enter__(self) -> Self:
        self.reviews.__enter__()
        self.process.start()
        wait_until(lambda: self.plain("/readyz").status_code == 200, goal="readiness")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.stop()
        self.reviews.__exit__(kind, error, trace)

    @property
    def port(self) -> int:
        """Port of the secure door."""
        address = self.process.secure_address
        assert address is not None
        return address.port

    def plain(self, path: str) -> httpx.Response:
        """Request a path of the plain door."""
        return httpx.get(f"http://{self.process.address}{path}", timeout=PATIENCE)

    def tls(self, identity: KeyPair | None = None) -> ssl.SSLContext:
        """A client's context that trusts our issuer and shows a certificate."""
        context = ssl.create_default_context(cafile=str(self.issuer.certificate))
        if identity is not None:
            context.load_cert_chain(identity.certificate, identity.key)
        return context

    def client(self, identity: KeyPair | None = None, **headers: str) -> httpx.Client:
        """A client with kept connections."""
        base = f"https://localhost:{self.port}"
        return httpx.Client(base_url=base, verify=self.tls(identity), headers=headers, timeout=PATIENCE)

    def ask(self, path: str = VALUE, identity: KeyPair | None = None, **headers: str) -> httpx.Response:
        """One request on a connection of its own."""
        with self.client(identity, **headers) as client:
            return client.get(path)

    def as_proxy(self, path: str = VALUE, **headers: Any) -> httpx.Response:
        """One request as the aggregator sends it."""
        with self.client(self.proxy) as client:
            return client.get(path, headers={**HPA, **headers})

    def metric(self, line: str) -> float:
        """A sample of /metrics; 0 where there is none."""
        samples = [row for row in self.plain("/metrics").text.splitlines() if row.startswith(line)]
        return float(samples[0].rsplit(" ", 1)[1]) if samples else 0.0
