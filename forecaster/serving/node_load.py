"""Node load ahead of time over HTTP: `/watcher` as load-watcher answers it, `/metrics`, `/healthz`.

    GET /watcher              every node
    GET /watcher?host=NODE    one node; 404 where nothing is known of it
    GET /watcher/health       200 while the answer is fresh

An answer that is too old is 503, so that schedulers fall back to their own ways; it is never an old number.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime, timedelta

    from starlette.requests import Request

NODE_METRICS_MAP = "NodeMetricsMap"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What is served until the next one: the answer of `/watcher`, the text of `/metrics`, and when it was true."""

    at: datetime
    watcher: Mapping[str, Any]
    metrics: str


class NodeLoad:
    """The newest snapshot, replaced whole; a request never waits for a cycle."""

    def __init__(self, clock: Callable[[], datetime], stale_after: timedelta) -> None:
        self._clock = clock
        self._stale_after = stale_after
        self._snapshot: Snapshot | None = None

    def replace(self, snapshot: Snapshot) -> None:
        """Serve this from now on."""
        self._snapshot = snapshot

    def app(self) -> Starlette:
        """The application."""
        return Starlette(
            routes=[
                Route("/watcher", self.watcher),
                Route("/watcher/health", self.health),
                Route("/metrics", self.metrics),
                Route("/healthz", healthz),
            ]
        )

    async def watcher(self, request: Request) -> Response:
        """All nodes, or the one that `host` names."""
        snapshot = self._fresh()
        if snapshot is None:
            return PlainTextResponse("no forecast that is fresh enough\n", status_code=503)
        host = request.query_params.get("host")
        return _all(snapshot) if host is None else _one(snapshot, host)

    async def health(self, _request: Request) -> Response:
        """Answer the probe as load-watcher does: 200 or 503, without a body."""
        return Response(status_code=503 if self._fresh() is None else 200)

    async def metrics(self, _request: Request) -> Response:
        """Gauges of the pools; nothing while nothing is fresh."""
        snapshot = self._fresh()
        return PlainTextResponse("" if snapshot is None else snapshot.metrics)

    def _fresh(self) -> Snapshot | None:
        snapshot = self._snapshot
        if snapshot is None or self._clock() - snapshot.at > self._stale_after:
            return None
        return snapshot


async def healthz(_request: Request) -> Response:
    """The process is alive."""
    return PlainTextResponse("ok\n")


def _all(snapshot: Snapshot) -> Response:
    return Response(json.dumps(snapshot.watcher), media_type="application/json")


def _one(snapshot: Snapshot, host: str) -> Response:
    known = snapshot.watcher["data"][NODE_METRICS_MAP]
    if host not in known:
        return JSONResponse({"error": f"nothing is known of node {host}"}, status_code=404)
    return JSONResponse({**snapshot.watcher, "data": {NODE_METRICS_MAP: {host: known[host]}}})
