"""Session: kept connections to one server, made with one reading of the client configuration."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from http import HTTPStatus
from http.client import HTTPResponse
from math import inf
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote, urlsplit

from urllib3 import PoolManager, ProxyManager, Timeout, make_headers
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import ResponseError

if TYPE_CHECKING:
    from weakref import WeakSet

    from urllib3.connectionpool import HTTPConnectionPool
    from urllib3.response import BaseHTTPResponse

    from forecaster.kube.config import ClientConfig

RESPONSE_MAX = 8 * 2**20
JSON = "application/json"
READ_BYTES = 1 << 16
"""Bytes of a stream that are taken at once; less where less has come."""
ALIVE = [
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    *(
        (socket.IPPROTO_TCP, getattr(socket, name), seconds)
        for name, seconds in (("TCP_KEEPIDLE", 3), ("TCP_KEEPINTVL", 1), ("TCP_KEEPCNT", 3))
        if hasattr(socket, name)
    ),
]
"""Keep-alive: a silent stream may be that of a living server; a dead one is noticed after these seconds."""


class BodyTooLargeError(ResponseError):
    """The answer is larger than `RESPONSE_MAX`."""


class TimedConnection(HTTPConnection):
    """Connection with a time-out for an answer as a whole: that of a socket is for each read alone."""

    until = inf
    """End of the time for the present answer, by the monotonic clock; of a stream there is none."""
    slowest = inf
    """Bytes that prolong this time by a second."""
    receiving: socket.socket | None = None
    """Socket of the present answer; `sock` is None by then where the server says that it will close it."""

    def response_class(self, sock: socket.socket, **more: Any) -> HTTPResponse:  # type: ignore[override]
        """Return the answer that is about to come."""
        answer: Any = HTTPResponse(sock, **more)
        self.receiving = sock
        self.until = monotonic() + (self.timeout or inf)
        answer.fp.raw.readinto = partial(self._read, answer.fp.raw.readinto, sock)
        return answer  # type: ignore[no-any-return]

    def _read(self, readinto: Callable[[Any], int], sock: socket.socket, buffer: Any) -> int:
        if (left := self.until - monotonic()) <= 0.0:
            raise TimeoutError("the answer took too long as a whole")
        if self.timeout:
            sock.settimeout(min(left, self.timeout))
        count = readinto(buffer)
        self.until += count / self.slowest
        return count


def timed(adapter: Any) -> Any:
    """Have each answer through an adapter of requests come within its time-out as a whole."""
    connections = adapter.get_connection_with_tls_context

    def timed_connections(*given: Any, **more: Any) -> Any:
        pool = connections(*given, **more)
        if not issubclass(pool.ConnectionCls, TimedConnection):
            pool.ConnectionCls = type("Timed", (TimedConnection, pool.ConnectionCls), {})
        return pool

    adapter.get_connection_with_tls_context = timed_connections
    return adapter


class RawRequest(NamedTuple):
    """One request. It may be sent twice: a read, a review, or a change that names the version it changes."""

    method: str
    target: str
    body: bytes | None = None
    content_type: str = JSON
    accept: str = JSON

    def __str__(self) -> str:
        return f"{self.method} {self.target}"


class RawAnswer(NamedTuple):
    """An answer whatever its status."""

    status: int
    body: bytes
    content_type: str


class Session:
    """Connections made with one reading of the client configuration, which are added to those in `opened`."""

    def __init__(self, config: ClientConfig, connections: int, timeout: float, opened: WeakSet[Any]) -> None:
        self._config = config
        self._timeout = Timeout(connect=timeout, read=timeout)
        self._prefix = urlsplit(config.server).path.rstrip("/")
        self._open = opened
        self._pool = _pool(config, connections, opened)

    def exchange(self, request: RawRequest) -> RawAnswer:
        """One request and its answer. Raises HTTPError, OSError, ClientConfigError."""
        return _whole(self._sent(request, self._timeout))

    @contextmanager
    def stream(self, request: RawRequest, silence: float) -> Iterator[RawAnswer | Iterator[bytes]]:
        """The pieces of a body that goes on while the block lasts, as they come, or a refusal.

        Raises HTTPError, OSError, ClientConfigError; also where nothing came for `silence` seconds.
        """
        timeout = Timeout(connect=self._timeout.connect_timeout, read=silence)
        answer = self._sent(request, timeout)
        try:
            yield _endless(answer) if answer.status == HTTPStatus.OK else _whole(answer)
        finally:
            _ended(answer)

    def _sent(self, request: RawRequest, timeout: Timeout) -> BaseHTTPResponse:
        headers = {"Accept": request.accept, "Content-Type": request.content_type, **self._config.headers()}
        return self._pool.urlopen(
            request.method,
            self._prefix + request.target,
            body=request.body,
            headers=headers,
            retries=False,
            redirect=False,
            timeout=timeout,
            preload_content=False,
        )

    def close(self, *, abort: bool = False) -> None:
        """End idle connections; with `abort` also those with a request under way, of earlier sessions, too."""
        under_way = list(self._open) if abort else []
        self._pool.close()  # first: a request whose connection ends is sent again where the pool still gives one
        for connection in under_way:
            _shut_down(connection)


def _whole(answer: BaseHTTPResponse) -> RawAnswer:
    """An answer, read to its end. Raises BodyTooLargeError."""
    body = answer.read(RESPONSE_MAX + 1)
    if len(body) > RESPONSE_MAX:
        _ended(answer)
        raise BodyTooLargeError(f"the answer has more than {RESPONSE_MAX // 2**20} MiB")
    answer.release_conn()
    return RawAnswer(answer.status, body, answer.headers.get("Content-Type", ""))


def _endless(answer: BaseHTTPResponse) -> Iterator[bytes]:
    """Return the pieces of an answer that as a whole may take any time."""
    answer.connection.until = inf  # type: ignore[union-attr]  # it is a TimedConnection
    return answer.stream(READ_BYTES)


def _ended(answer: BaseHTTPResponse) -> None:
    """End a connection with a response that is not read to its end, and free its place in the pool."""
    answer.close()
    answer.release_conn()


def _pool(config: ClientConfig, connections: int, opened: WeakSet[HTTPSConnection]) -> HTTPConnectionPool:
    """Return a pool of at most `connections` connections; `opened` has the open ones."""

    class OpenedConnection(TimedConnection, HTTPSConnection):
        slowest = 100_000.0  # a long list over a slow line has more time than a short answer

        def connect(self) -> None:
            opened.add(self)
            super().connect()

    options: dict[str, Any] = {"ssl_context": config.tls_context(), "maxsize": connections, "block": True}
    options["socket_options"] = [*HTTPSConnection.default_socket_options, *ALIVE]
    if config.tls_server_name:
        options["server_hostname"] = config.tls_server_name
    manager = _proxied(config.proxy, options) if config.proxy else PoolManager(**options)
    pool = manager.connection_from_url(config.server)
    pool.ConnectionCls = OpenedConnection
    return pool


def _proxied(proxy: str, options: dict[str, Any]) -> ProxyManager:
    """Connections through a proxy; name and password of its address go into a header of their own."""
    address = urlsplit(proxy)
    login = f"{unquote(address.username)}:{unquote(address.password or '')}" if address.username else None
    return ProxyManager(proxy, proxy_headers=make_headers(proxy_basic_auth=login), **options)


def _shut_down(connection: TimedConnection) -> None:
    """Wake the thread that waits on a connection; closing the descriptor under it would not."""
    with suppress(OSError):
        if (sock := connection.sock or connection.receiving) is not None:
            socket.socket.shutdown(sock, socket.SHUT_RDWR)
