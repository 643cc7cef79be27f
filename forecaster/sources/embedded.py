"""A Prometheus-compatible HTTP endpoint over a recording, on loopback, for the demo and for tests.

It is not Prometheus and has no PromQL engine. It recognises the exact text of every query that the `Queries` it was
given generate, for any window, and answers what those queries mean: mean demand over the window for rates, the newest
minute for levels, the live `Fleet` for the inventory. Any other query gets the error of the API (400, `bad_data`). The
protocol in between is the real one: forms by POST or GET, the JSON of the API, its limit of points, its error codes.
"""

from __future__ import annotations

import json
import math
import sys
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import parse_qsl, urlsplit

from forecaster.sources.embedded_answers import Answers, BadQuestion

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from forecaster.sources.queries import Queries
    from forecaster.sources.recorded import RecordedFleet, Recording


class EmbeddedPrometheus:
    """Serves `recording` and `fleet` at `url` between `start` and `stop`, or inside a `with` block."""

    def __init__(self, recording: Recording, queries: Queries, fleet: RecordedFleet, *, port: int = 0) -> None:
        self._server = _Server(("127.0.0.1", port), Answers(recording, queries, fleet))
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    @property
    def url(self) -> str:
        """Address of the endpoint; the port is chosen by the system unless one was asked for."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def start(self) -> None:
        """Begin to answer."""
        self._thread.start()

    def stop(self) -> None:
        """Stop answering and free the port."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False  # connections are kept alive by clients that may outlive us

    def __init__(self, address: tuple[str, int], answers: Answers) -> None:
        self.answers = answers
        super().__init__(address, _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that leaves in the middle of an answer is no fault; everything else is told."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    """The protocol: paths, forms, status codes."""

    server: _Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # head and body leave together

    def do_GET(self) -> None:
        """Parameters come in the address."""
        self._answer({})

    def do_POST(self) -> None:
        """Parameters come as a form."""
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self._answer(dict(parse_qsl(body.decode())))

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the name is http.server's
        """Stay silent: the terminal belongs to the caller."""

    def _answer(self, form: Mapping[str, str]) -> None:
        address = urlsplit(self.path)
        parameters = {**dict(parse_qsl(address.query)), **form}
        try:
            body = self._body(address.path, parameters)
        except BadQuestion as error:
            self._send(HTTPStatus.BAD_REQUEST, _error("bad_data", str(error)))
        else:
            self._send(
                HTTPStatus.OK if body is not None else HTTPStatus.NOT_FOUND, body or _error("not_found", self.path)
            )

    def _body(self, path: str, parameters: Mapping[str, str]) -> bytes | None:
        answers = self.server.answers
        match path:
            case "/api/v1/query":
                return answers.instant(_text(parameters, "query"), _number(parameters, "time"))
            case "/api/v1/query_range":
                return answers.over_range(
                    _text(parameters, "query"),
                    start=_number(parameters, "start"),
                    end=_number(parameters, "end"),
                    step=_number(parameters, "step"),
                )
            case "/api/v1/status/buildinfo":
                return json.dumps({"status": "success", "data": {"version": "embedded"}}).encode()
            case "/-/ready" | "/-/healthy":
                return b"The embedded endpoint is ready.\n"
            case _:
                return None

    def _send(self, status: HTTPStatus, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json" if body.startswith(b"{") else "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _error(kind: str, message: str) -> bytes:
    return json.dumps({"status": "error", "errorType": kind, "error": message}).encode()


def _text(parameters: Mapping[str, str], name: str) -> str:
    if not parameters.get(name):
        raise BadQuestion(f'invalid parameter "{name}": missing')
    return parameters[name]


def _number(parameters: Mapping[str, str], name: str) -> float:
    text = _text(parameters, name)
    try:
        number = float(text)
    except ValueError as error:
        raise BadQuestion(f'invalid parameter "{name}": cannot parse {text!r}') from error
    if not math.isfinite(number):
        raise BadQuestion(f'invalid parameter "{name}": not finite')
    return number
