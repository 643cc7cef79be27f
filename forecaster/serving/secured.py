"""Parts of the secure listener: TLS, certificates, trust and access control, kept up to date while it is open."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from enum import StrEnum
from http import HTTPStatus
from pathlib import Path
from typing import Any

from forecaster.kube.client import ApiClient, ApiError, AsyncApiClient
from forecaster.kube.config import ClientConfig, client_config_source
from forecaster.kube.objects import ApiService, api_service_path
from forecaster.publish.reader import now
from forecaster.serving.access_control import DIRECT_WORKERS, PROXIED_WORKERS, AccessControl
from forecaster.serving.audit import Audit
from forecaster.serving.authentication import FrontProxy, FrontProxyWatch
from forecaster.serving.discovery import GROUPS, Discovery
from forecaster.serving.options import SecureOptions, UpstreamOptions
from forecaster.serving.pause import Writing
from forecaster.serving.upstream import THREADS, UPSTREAM_TIMEOUT_SECONDS, UpstreamAdapter

POLL_SECONDS = 1.0
"""Between two looks at the files of the certificate."""
WATCHES = 2
"""Connections to the API server for repeated reads; reviews have their own."""
TRUST_SECONDS = 10.0
"""Time for which new connections wait for the first reading of the front proxy's settings."""


class SecureListening:
    """Built once.

    Raises:
        OSError: there is no good serving certificate.
        ClientConfigError: there is no way to the API server.
    """

    def __init__(self, options: SecureOptions, audit: Audit) -> None:
        self.certificates = ServingCertificates(Path(options.certificate), Path(options.key))
        self.certificates.refresh()
        self.certificates.current()
        connections = WATCHES + PROXIED_WORKERS + DIRECT_WORKERS
        client = ApiClient(client_config_source(options.kubeconfig), connections=connections).configured()
        self.api_server = AsyncApiClient(client, WATCHES)
        self._reviewers = AsyncApiClient(client, PROXIED_WORKERS), AsyncApiClient(client, DIRECT_WORKERS)
        self.access_control = AccessControl(*self._reviewers, audit.denied)
        self.drop_peers: Callable[[], None] = lambda: None
        """Ends the connections whose certificates were verified with another CA; the server has them."""
        self.discovered: Callable[[Discovery], None] = lambda _discovery: None
        """Takes over a discovery document with the metrics of the upstream adapter."""
        self.owners = self._owner_watch(options.service, audit) if options.service else None
        self._connections = _connections(options.upstream) if options.upstream else None
        self.upstream = self._upstream_adapter(self._connections, audit) if self._connections else None
        self.writing = Writing(self.api_server, options.lease, audit, now) if options.lease else None
        self.certified_reviews = options.certified_reviews
        self._audit = audit
        self._trust = FrontProxyWatch(self.api_server, self._trust_front_proxy)

    def fault(self) -> str:
        """Reason why the listener is not ready; empty when it is."""
        return "" if self._trust.known else self._trust.fault

    async def ready(self) -> None:
        """Return when the front proxy can be identified, or cannot for the time being."""
        await self._trust.until_known(TRUST_SECONDS)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Keeps up with the cluster and with the files while the block lasts."""
        async with AsyncExitStack() as stack:
            for client in (*self._reviewers, self.api_server):
                stack.callback(client.close)
            if self._connections:
                stack.callback(self._connections.close)
            for work in self._work():
                await stack.enter_async_context(running_beside(work))
            yield

    def _work(self) -> Iterator[Coroutine[Any, Any, None]]:
        yield self._trust.keep_current()
        yield self._keep_certificates()
        if self.owners:
            yield self.owners.keep_current()
        if self.upstream:
            yield self.upstream.keep_current()

    def _owner_watch(self, service: str, audit: Audit) -> GroupOwnerWatch:
        names = [f"{group.version}.{group.name}" for group in GROUPS]
        return GroupOwnerWatch(
            self.api_server, service, names, lambda why: audit.note("group_has_another_owner", why=why)
        )

    def _upstream_adapter(self, connections: AsyncApiClient, audit: Audit) -> UpstreamAdapter:
        return UpstreamAdapter(
            connections, self._learn, time.monotonic, lambda why: audit.note("upstream_adapter_fails", why=why)
        )

    def _learn(self, discovery: Discovery) -> None:
        self.discovered(discovery)

    def _trust_front_proxy(self, front_proxy: FrontProxy) -> None:
        """Replace the context first: a client comes back at once when its connection ends."""
        before = self.access_control.front_proxy
        self.certificates.trust(front_proxy.ca)
        self.certificates.refresh()
        self.access_control.front_proxy = front_proxy
        if before is None or before.ca != front_proxy.ca:
            self.drop_peers()

    async def _keep_certificates(self) -> None:
        while True:
            await asyncio.sleep(POLL_SECONDS)
            self.certificates.refresh()
            for event, why in (("certificate_not_used", self.certificates.fault), ("trust_unknown", self._trust.fault)):
                if why:
                    self._audit.note(event, why=why)


def _connections(upstream: UpstreamOptions) -> AsyncApiClient:
    server = f"https://{upstream.host}:{upstream.port}"
    config = ClientConfig(server, ca_file=upstream.ca_file, token_file=upstream.token_file)
    return AsyncApiClient(ApiClient(lambda: config, connections=THREADS, timeout=UPSTREAM_TIMEOUT_SECONDS), THREADS)


@asynccontextmanager
async def running_beside(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """`work` goes on beside the requests while the block lasts."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


class GroupOwner(StrEnum):
    """The Service behind an API group: ours, none, another, or one that the API server would not name."""

    US = "us"
    NONE = "none"
    OTHER = "other"
    UNKNOWN = "unknown"


def owner_of(registered: ApiService | None, own_service: str) -> GroupOwner:
    """The owner of a registration; `own_service` is `namespace/name` of our Service."""
    service = registered.spec.service if registered else None
    if service is None:
        return GroupOwner.NONE
    return GroupOwner.US if str(service) == own_service else GroupOwner.OTHER


def advice(group: str, registered: ApiService | None, own_service: str) -> str:
    """A sentence for the log where a group belongs to another Service; empty where it does not."""
    if owner_of(registered, own_service) is not GroupOwner.OTHER or registered is None:
        return ""
    return (
        f"{group} belongs to the Service {registered.spec.service}, which we leave alone: serve through KEDA or "
        "Prometheus, or stand in front of it (serving.secure.upstream) before you point its APIService here"
    )


OWNER_CHECK_SECONDS = 30.0


class GroupOwnerWatch:
    """The present owner of each group, by its APIService."""

    def __init__(self, reader: AsyncApiClient, service: str, names: Sequence[str], tell: Callable[[str], None]) -> None:
        self._reader = reader
        self._service = service
        self._tell = tell
        self.owners: dict[str, GroupOwner] = dict.fromkeys(names, GroupOwner.UNKNOWN)

    async def refresh(self) -> None:
        """Read once."""
        for name in self.owners:
            registered = None
            try:
                registered = await self._reader.get(api_service_path(name), ApiService)
            except ApiError as error:
                if error.status != HTTPStatus.NOT_FOUND:
                    self.owners[name] = GroupOwner.UNKNOWN
                    continue
            self.owners[name] = owner_of(registered, self._service)
            if why := advice(name, registered, self._service):
                self._tell(why)

    async def keep_current(self) -> None:
        """Read again every `OWNER_CHECK_SECONDS`."""
        while True:
            await self.refresh()
            await asyncio.sleep(OWNER_CHECK_SECONDS)


def server_context(certificate: Path, key: Path, proxy_ca: str = "") -> ssl.SSLContext:
    """Return a context for TLS 1.2 and 1.3, HTTP/1.1, no session tickets; with a CA, client certificates are requested.

    Only the CA of proxies is loaded. With a second one it would be unclear which of them signed a certificate, and any
    user's certificate with the right name would make its owner a proxy, that is, any user. A ticket would outlive the
    CA that the session was verified with.

    Raises OSError: a file cannot be read or is no certificate, the key does not belong to it, or the CA is no CA.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.num_tickets = 0
    context.options |= ssl.OP_NO_TICKET | ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION
    context.set_alpn_protocols(["http/1.1"])
    context.load_cert_chain(certificate, key)
    if proxy_ca:
        context.load_verify_locations(cadata=proxy_ca.encode("ascii", "ignore").decode())  # a bundle may have comments
        context.verify_mode = ssl.CERT_OPTIONAL
    return context


Stamp = tuple[tuple[int, int], ...]


class ServingCertificates:
    """Watches the serving certificate and receives the CA of proxies.

    A pair that does not match, as between the writing of two files, leaves the last good one in place.
    """

    def __init__(self, certificate: Path, key: Path) -> None:
        self._files = (certificate, key)
        self._proxy_ca = ""
        self._stamp: Stamp = ()
        self.context: ssl.SSLContext | None = None
        self.fault = ""
        """Reason why the latest files are not used; empty when they are."""

    def trust(self, proxy_ca: str) -> None:
        """Verify client certificates against this bundle from the next handshake on."""
        if proxy_ca != self._proxy_ca:
            self._proxy_ca, self._stamp = proxy_ca, ()

    def refresh(self) -> None:
        """Load changed files."""
        try:
            stamp = tuple((status.st_mtime_ns, status.st_ino) for status in (file.stat() for file in self._files))
            if stamp != self._stamp:
                self.context = server_context(*self._files, self._proxy_ca)
                self._stamp, self.fault = stamp, ""
        except OSError as error:
            self.fault = f"the serving certificate {self._files[0]} is not used: {error.strerror or error}"

    def current(self) -> ssl.SSLContext:
        """The context for the next handshake. Raises OSError before the first good one."""
        if self.context is None:
            raise OSError(self.fault)
        return self.context
