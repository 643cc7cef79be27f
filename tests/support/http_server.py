"""A tiny real HTTP server that answers with a test's function, and remembers its requests."""

from __future__ import annotations

import json
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Self
from urllib.parse import parse_qsl

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Mapping
    from types import TracebackType


@dataclass(frozen=True)
class HttpRequest:
    method: str
    path: str
    headers: Mapping[str, str]
    form: Mapping[str, str]
    body: bytes = b""


@dataclass(frozen=True)
class Reply:
    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=lambda: {"Content-Type": "application/json"})


def vector(*series: tuple[Mapping[str, str], str], at: float = 0.0, **envelope: object) -> Reply:
    """The answer of an instant query."""
    result = [{"metric": labels, "value": [at, value]} for labels, value in series]
    return success("vector", result, **envelope)


def matrix(*series: tuple[Mapping[str, str], list[tuple[float, str]]], **envelope: object) -> Reply:
    """The answer of a range query."""
    return success("matrix", [{"metric": labels, "values": samples} for labels, samples in series], **envelope)


def success(kind: str, result: object, **envelope: object) -> Reply:
    body = {"status": "success", "data": {"resultType": kind, "result": result}, **envelope}
    return Reply(body=json.dumps(body).encode())


def verdict(status: int, kind: str, message: str) -> Reply:
    """An error as the Prometheus API states it."""
    return Reply(status, json.dumps({"status": "error", "errorType": kind, "error": message}).encode())


def page(status: int, text: str) -> Reply:
    """Answer of a proxy."""
    return Reply(status, text.encode(), {"Content-Type": "text/html"})


class Running:
    """A server that answers while its block lasts, on a port that the system chose."""

    def __init__(
        self, handler: type[BaseHTTPRequestHandler], tls: ssl.SSLContext | None, *, lazy: bool = False
    ) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self._server.block_on_close = False
        if tls:
            self._server.socket = tls.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=not lazy
            )
        self.url = f"{'https' if tls else 'http'}://localhost:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class Server(Running):
    """Answers each request with `respond(asked)`; `asked` holds all of them in order."""

    def __init__(self, respond: Callable[[HttpRequest], Reply], *, tls: ssl.SSLContext | None = None) -> None:
        self.requests: list[HttpRequest] = []

        def recorded(request: HttpRequest) -> Reply:
            self.requests.append(request)
            return respond(request)

        super().__init__(answering(recorded), tls)


def answering(respond: Callable[[HttpRequest], Reply]) -> type[BaseHTTPRequestHandler]:
    """A handler that answers GET, POST and PATCH with this function."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1

        def do_GET(self) -> None:
            self.do_POST()

        def do_PATCH(self) -> None:
            self.do_POST()

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            form = dict(parse_qsl(body.decode("utf-8", "replace")))
            reply = respond(HttpRequest(self.command, self.path, dict(self.headers), form, body))
            begin = self.send_response_only if "Date" in reply.headers else self.send_response
            begin(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            if "Content-Length" not in reply.headers:
                self.send_header("Content-Length", str(len(reply.body)))
            self.end_headers()
            self.wfile.write(reply.body)
            self.close_connection = "Content-Length" in reply.headers

        def log_message(self, *args: object) -> None:
            pass

    return Handler


def dripping(whole: str, drips: str = " " * 200, *, pause: float) -> type[BaseHTTPRequestHandler]:
    """A server that sends the beginning of an answer whole, and one sign of the rest after each pause."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.wfile.write(whole.encode())
            with suppress(ConnectionError):
                for sign in drips:
                    self.wfile.write(sign.encode())
                    self.wfile.flush()
                    time.sleep(pause)

        def do_GET(self) -> None:
            self.do_POST()

        def do_PATCH(self) -> None:
            self.do_POST()

        def log_message(self, *args: object) -> None:
            pass

    return Handler


DRIPPING = {
    "status": ("HTTP/1.1 ", "2" * 200),
    "header": ("HTTP/1.1 200 OK\r\n", "X-Header: 1\r\n" * 20),
    "continued": ("", "HTTP/1.1 100 Continue\r\n\r\n" * 8),
    "body": ("HTTP/1.1 200 OK\r\nContent-Length: 200\r\n\r\n", " " * 200),
    "chunk": ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "1;" + "x" * 198),
}
"""Parts of an answer that each come within the time-out of a read, and as a whole would take ten seconds."""
