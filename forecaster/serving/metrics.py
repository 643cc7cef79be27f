"""/metrics: what the computing process said with its table, and what the serving process says of itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, generate_latest
from starlette.responses import Response

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from starlette.requests import Request
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from forecaster.serving.reader import TableReader


class ServingMetrics:
    """Requests by handler and code, and the state of the table."""

    def __init__(self, reader: TableReader, clock: Callable[[], datetime]) -> None:
        self._reader = reader
        self._clock = clock
        self._registry = registry = CollectorRegistry()
        self._requests = Counter(
            "forecaster_serving_requests",
            "Requests by handler and status code.",
            ["handler", "code"],
            registry=registry,
        )
        self._age = Gauge("forecaster_serving_table_age_seconds", "Age of the table that is served.", registry=registry)
        self._rows = Gauge("forecaster_serving_table_workloads", "Workloads in the table.", registry=registry)
        self._failures = Gauge(
            "forecaster_serving_table_failures_total", "Tables that could not be read.", registry=registry
        )

    def count(self, handler: str, code: int) -> None:
        """One more request was answered."""
        self._requests.labels(handler, code).inc()

    async def answer(self, _request: Request) -> Response:
        """Both processes in one text. Without a table there is no age: an absent series, not a zero."""
        table = self._reader.table
        self._failures.set(self._reader.failures)
        self._rows.set(0 if table is None else len(table.entries))
        self._age.set(float("nan") if table is None else (self._clock() - table.meta.published_at).total_seconds())
        computing = "" if table is None else table.meta.metrics
        return Response(computing.encode() + generate_latest(self._registry), media_type=CONTENT_TYPE_LATEST)


class CountRequests:
    """ASGI middleware that counts what was answered."""

    def __init__(self, app: ASGIApp, metrics: ServingMetrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on and note the code of its answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def noting(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._metrics.count(getattr(scope.get("endpoint"), "__name__", "none"), message["status"])
            await send(message)

        await self._app(scope, receive, noting)
