"""The outermost application: who may pass, then the metrics API by the shortest way, and all other pages behind it."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from forecaster.serving.access.gate import OPEN
from forecaster.serving.external_metrics import ApiRequest, MetricsApi
from forecaster.serving.reply import failure

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp, Receive, Scope, Send

    from forecaster.serving.access.gate import Gate
    from forecaster.serving.owner.previous import Previous
    from forecaster.serving.reply import HttpReply

KUBERNETES = ("/apis", "/openapi")
OPEN_BESIDE = OPEN | {"/metrics"}
"""What the plain door still answers where there is a secure one."""
ELSEWHERE = failure(HTTPStatus.FORBIDDEN, "this is answered on the secure port only")


class Front:
    """One ASGI application for both doors.

    With a gate, the plain door is left with probes and metrics, and every request of the secure one passes the gate.
    """

    def __init__(
        self,
        metrics_api: MetricsApi,
        pages: ASGIApp,
        count: Callable[[str, int], None],
        gate: Gate | None = None,
        previous: Previous | None = None,
    ) -> None:
        self._metrics_api = metrics_api
        self._pages = pages
        self._count = count
        self._gate = gate
        self._previous = previous

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, or the lifespan of the process."""
        if scope["type"] != "http":
            await self._pages(scope, receive, send)
            return
        refusal = None if self._gate is None else await self._refusal(scope, self._gate)
        if refusal is not None:
            await self._send("refused", refusal, send)
        elif scope["path"].startswith(KUBERNETES):
            await self._kubernetes(_request(scope), send)
        else:
            await self._pages(scope, receive, send)

    async def _kubernetes(self, request: ApiRequest, send: Send) -> None:
        if self._previous is not None and self._previous.has(request):
            await self._send("previous", await self._previous.answer(request), send)
        else:
            await self._send("metrics_api", self._metrics_api.answer(request), send)

    async def _refusal(self, scope: Scope, gate: Gate) -> HttpReply | None:
        if scope["state"].get("secure"):
            return await gate.refusal(scope)
        return None if scope["path"] in OPEN_BESIDE else ELSEWHERE

    async def _send(self, handler: str, reply: HttpReply, send: Send) -> None:
        self._count(handler, reply.status)
        length = str(len(reply.body)).encode()
        headers = [(b"content-type", reply.content_type), (b"content-length", length), *reply.headers]
        await send({"type": "http.response.start", "status": reply.status, "headers": headers})
        await send({"type": "http.response.body", "body": reply.body})


def _request(scope: Scope) -> ApiRequest:
    accept = if_none_match = b""
    headers: list[tuple[bytes, Any]] = scope["headers"]
    for name, value in headers:
        if name == b"accept":
            accept = value
        elif name == b"if-none-match":
            if_none_match = value
    return ApiRequest(scope["method"], scope["path"], scope["query_string"], accept.decode("latin-1"), if_none_match)
