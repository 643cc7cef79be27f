"""The HTTP face of the serving process: health, metrics and the read-only API."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from forecaster.serving.api import Api
from forecaster.serving.metrics import CountRequests, ServingMetrics
from forecaster.serving.problem import ProblemError, answer_problem, answer_refusal

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from datetime import datetime, timedelta

    from starlette.requests import Request

    from forecaster.serving.reader import TableReader

POLL_SECONDS = 0.25
"""How often the file is looked at: one stat. A new table is served within this time."""


def create_app(
    reader: TableReader, *, clock: Callable[[], datetime], stale_after: timedelta | None = None
) -> Starlette:
    """The application on top of a reader.

    A table is stale after `stale_after`; when that is None, after three of its own intervals.
    """
    api = Api(reader, clock, stale_after)
    metrics = ServingMetrics(reader, clock)
    return Starlette(
        routes=[
            Route("/healthz", healthz),
            Route("/readyz", api.readyz),
            Route("/metrics", metrics.answer),
            Route("/api/v1/recommendations", api.recommendations),
            Route("/api/v1/recommendations/{namespace}/{name}", api.recommendation),
        ],
        middleware=[Middleware(CountRequests, metrics=metrics)],
        exception_handlers={ProblemError: answer_problem, HTTPException: answer_refusal},
        lifespan=lambda _app: _watching(reader),
    )


async def healthz(_request: Request) -> Response:
    """The process is alive, whatever it has to serve."""
    return PlainTextResponse("ok\n")


@asynccontextmanager
async def _watching(reader: TableReader) -> AsyncIterator[None]:
    await asyncio.to_thread(reader.refresh)
    watch = asyncio.create_task(_watch(reader))
    yield
    watch.cancel()
    with suppress(asyncio.CancelledError):
        await watch


async def _watch(reader: TableReader) -> None:
    """Loads new tables beside the requests: none of them waits for it."""
    while True:
        await asyncio.sleep(POLL_SECONDS)
        await asyncio.to_thread(reader.refresh)
