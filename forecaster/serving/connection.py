"""One HTTP/1.1 connection: uvicorn's protocol with the name of the peer and with limits."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple

from httptools import HttpParserError
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

if TYPE_CHECKING:
    import asyncio
    from ssl import SSLObject

    from uvicorn.config import Config
    from uvicorn.server import ServerState

URL_MAX = 16 * 1024
HEADERS_MAX = 64 * 1024
HEADER_LINES_MAX = 128
BODY_MAX = 64 * 1024
POD_MAX = 256 * 1024
"""Largest body at `ADMISSION`, which holds a pod; larger pods, which are rare, are admitted unchanged."""
ADMISSION = b"/admit/"
PATIENCE_SECONDS = 10.0
"""Time that a client may take for its headers, for its body, and for reading an answer."""


class Peer(NamedTuple):
    """A client certificate that verified against the CA for proxies."""

    common_name: str


class Connection(HttpToolsProtocol):
    """Counts arriving bytes and times a connection. `overdue` is called from outside: no timer per request."""

    def __init__(
        self,
        config: Config,
        state: ServerState,
        app_state: dict[str, Any],
        *,
        secure: bool,
        refused: Callable[[str, str], None],
    ) -> None:
        super().__init__(config, state, app_state)
        self.secure = secure
        self._refused = refused
        self._refusal = HTTPStatus.BAD_REQUEST
        self._unfinished = 0
        self._body = 0
        self._in_headers = False
        self._waiting_since: float | None = None
        self._unread_since: float | None = None
        self.peer: Peer | None = None

    @property
    def idle(self) -> bool:
        """Whether no request is being answered."""
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is None or cycle.response_complete

    def overdue(self, now: float) -> bool:
        """Whether the client has kept us waiting for too long, for a request or by not reading its answer."""
        began = (self._waiting_since, self._unread_since)
        return any(since is not None and now - since > PATIENCE_SECONDS for since in began)

    def give_up(self) -> None:
        """Close a connection that is overdue; a caller that sent half a request is answered with the reason."""
        self._refusal = HTTPStatus.REQUEST_TIMEOUT
        if self._in_headers or self._body:
            self.send_400_response("too slow")
        else:
            self.transport.abort()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in the base
        """The handshake is over: the peer is known from here on."""
        super().connection_made(transport)
        self.peer = peer_of(transport.get_extra_info("ssl_object"))
        self.app_state = {**self.app_state, "peer": self.peer, "secure": self.secure}
        self._waiting_since = self.loop.time()

    def data_received(self, data: bytes) -> None:
        """Some bytes of some requests."""
        super().data_received(data)
        self._unfinished = self._unfinished + len(data) if self._in_headers else 0
        if self._unfinished > HEADERS_MAX and not self.transport.is_closing():
            self._refusal = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
            self.send_400_response("the headers are too large")

    def on_message_begin(self) -> None:
        """The first bytes of a request. One is answered at a time: thousands may come in one piece, 2 kB each."""
        if not self.idle:
            raise HttpParserError("the request before it is being answered")
        super().on_message_begin()
        self._in_headers, self._body = True, 0
        self._waiting_since = self.loop.time()

    def on_url(self, url: bytes) -> None:
        """A part of the target."""
        super().on_url(url)
        if len(self.url) > URL_MAX:
            self._refuse(HTTPStatus.REQUEST_URI_TOO_LONG)

    def on_headers_complete(self) -> None:
        """Note that the headers are complete."""
        self._in_headers = False
        size = sum(len(name) + len(value) for name, value in self.headers)
        if size > HEADERS_MAX or len(self.headers) > HEADER_LINES_MAX:
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Add a part of the body, which is short in all requests answered here."""
        self._body += len(body)
        if self._body > (POD_MAX if self.url.startswith(ADMISSION) else BODY_MAX):
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is whole: from here on it is our turn."""
        self._waiting_since = None
        super().on_message_complete()

    def pause_writing(self) -> None:
        """The client does not read, whatever it sends meanwhile."""
        self._unread_since = self.loop.time()
        super().pause_writing()

    def resume_writing(self) -> None:
        """Resume writing."""
        self._unread_since = None
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        """Refuse a malformed or excessive request and close, after the answer to the request before it."""
        status, self._refusal = self._refusal, HTTPStatus.BAD_REQUEST
        self._in_headers, self._body = False, 0
        self._refused(f"{status.value} {status.phrase}", self.client[0] if self.client else "")
        if not self.idle and (self.cycle.response_started or not self.cycle.more_body):
            self.cycle.keep_alive = False
            self.flow.pause_reading()
            return
        body = f"{status.phrase}: {msg}\n".encode("ascii")
        length = str(len(body)).encode()
        head = b"content-type: text/plain; charset=utf-8\r\nconnection: close\r\ncontent-length: " + length
        self.transport.write(STATUS_LINE[status] + head + b"\r\n\r\n" + body)
        self.transport.close()

    def _refuse(self, status: HTTPStatus) -> None:
        self._refusal = status
        raise HttpParserError(status.phrase)


def peer_of(ssl_object: SSLObject | None) -> Peer | None:
    """The certificate that the client showed; the context has verified it."""
    shown = ssl_object.getpeercert() if ssl_object else None
    if not shown:
        return None
    subject: Any = shown.get("subject", ())
    names = [value for group in subject for key, value in group if key == "commonName"]
    return Peer(names[-1] if names else "")
