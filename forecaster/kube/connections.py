"""Session: kept connections to one server, made with one reading of the client configuration."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote, urlsplit
from weakref import WeakSet

from urllib3 import PoolManager, ProxyManager, Timeout, make_headers
from urllib3.connection import HTTPSConnection
from urllib3.exceptions import ResponseError

if TYPE_CHECKING:
    from urllib3.connectionpool import HTTPConnectionPool

    from forecaster.kube.config import ClientConfig

BODY_MAX = 8 * 2**20
JSON = "application/json"


class RawRequest(NamedTuple):
    """One request. It may be sent twice: a read, a review, or a change that names the version it changes."""

    method: str
    target: str
    body: bytes | None = None
    content_type: str = JSON

    def __str__(self) -> str:
        return f"{self.method} {self.target}"


class RawAnswer(NamedTuple):
    """An answer whatever its status."""

    status: int
    body: bytes
    content_type: str


class Session:
    """Connections made with one reading of the client configuration."""

    def __init__(self, config: ClientConfig, connections: int, timeout: float) -> None:
        self._config = config
        self._timeout = Timeout(connect=timeout, read=timeout)
        self._prefix = urlsplit(config.server).path.rstrip("/")
        self._open: WeakSet[HTTPSConnection] = WeakSet()
        self._pool = _pool(config, connections, self._open)

    def exchange(self, request: RawRequest) -> RawAnswer:
        """One request and its answer. Raises HTTPError, OSError, ClientConfigError."""
        headers = {"Accept": JSON, "Content-Type": request.content_type, **self._config.headers()}
        answer = self._pool.urlopen(
            request.method,
            self._prefix + request.target,
            body=request.body,
            headers=headers,
            retries=False,
            redirect=False,
            timeout=self._timeout,
            preload_content=False,
        )
        body = answer.read(BODY_MAX + 1)
        if len(body) > BODY_MAX:
            answer.close()
            raise ResponseError(f"the answer has more than {BODY_MAX // 2**20} MiB")
        answer.release_conn()
        return RawAnswer(answer.status, body, answer.headers.get("Content-Type", ""))

    def close(self, *, abort: bool = False) -> None:
        """End idle connections; with `abort` those with a request under way, too."""
        under_way = list(self._open) if abort else []
        self._pool.close()  # first: a request whose connection ends is sent again where the pool still gives one
        for connection in under_way:
            _shut_down(connection)


def _pool(config: ClientConfig, connections: int, opened: WeakSet[HTTPSConnection]) -> HTTPConnectionPool:
    """A pool of at most so many connections; `opened` has those that are there."""

    class Connection(HTTPSConnection):
        def connect(self) -> None:
            opened.add(self)
            super().connect()

    options: dict[str, Any] = {"ssl_context": config.tls_context(), "maxsize": connections, "block": True}
    if config.tls_server_name:
        options["server_hostname"] = config.tls_server_name
    manager = _proxied(config.proxy, options) if config.proxy else PoolManager(**options)
    pool = manager.connection_from_url(config.server)
    pool.ConnectionCls = Connection
    return pool


def _proxied(proxy: str, options: dict[str, Any]) -> ProxyManager:
    """Connections through a proxy; name and password of its address go into a header of their own."""
    address = urlsplit(proxy)
    login = f"{unquote(address.username)}:{unquote(address.password or '')}" if address.username else None
    return ProxyManager(proxy, proxy_headers=make_headers(proxy_basic_auth=login), **options)


def _shut_down(connection: HTTPSConnection) -> None:
    """Wake the thread that waits on a connection; closing the descriptor under it would not."""
    try:
        if connection.sock is not None:
            socket.socket.shutdown(connection.sock, socket.SHUT_RDWR)
    except OSError:
        return
