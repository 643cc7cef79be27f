"""The HTTP face of the serving process: health, metrics and the read-only API."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from forecaster import __version__
from forecaster.serving.external_metrics import MetricsApi
from forecaster.serving.front import Front
from forecaster.serving.integrations import IntegrationPages
from forecaster.serving.metrics import CountRequests, ServingMetrics
from forecaster.serving.openapi import WORKLOAD, OpenApi
from forecaster.serving.reader import watching
from forecaster.serving.rest import ProblemError, RecommendationPages, answer_problem, answer_refusal
from forecaster.serving.values import moment_at
from forecaster.serving.workloads import Workloads

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from datetime import datetime, timedelta

    from starlette.requests import Request

    from forecaster.serving.reader import PublishedTable, TableReader
    from forecaster.serving.secured import Secured
    from forecaster.serving.values import AskedAt


def create_app(
    reader: TableReader,
    *,
    clock: Callable[[], datetime],
    stale_after: timedelta | None = None,
    secured: Secured | None = None,
    metrics: ServingMetrics | None = None,
) -> Front:
    """The application on top of a reader; where there is a secure door, for those who may.

    A table is stale after `stale_after`; when that is None, after three of its own intervals.
    """
    metrics = metrics or ServingMetrics(reader, clock, stale_after)

    def seen() -> tuple[PublishedTable, AskedAt] | None:
        table = reader.table
        return None if table is None else (table, moment_at(table, clock(), stale_after))

    api = RecommendationPages(reader, clock, stale_after, secured.fault if secured else str)
    workloads = Workloads(api.table, clock, stale_after)
    seams = IntegrationPages(reader, clock, stale_after)
    pages = _pages(reader, api, workloads, seams, metrics, secured)
    metrics_api = MetricsApi(seen)
    if secured is None:
        return Front(metrics_api, pages, metrics.count)
    secured.discovered = lambda found: setattr(metrics_api, "discovery", found)
    return Front(metrics_api, pages, metrics.count, secured.gate, secured.previous)


def _pages(
    reader: TableReader,
    api: RecommendationPages,
    workloads: Workloads,
    seams: IntegrationPages,
    metrics: ServingMetrics,
    secured: Secured | None,
) -> Starlette:
    return Starlette(
        routes=[
            Route("/healthz", healthz),
            Route("/livez", healthz),
            Route("/readyz", api.readyz),
            Route("/metrics", metrics.answer),
            Route("/api/v1/recommendations", api.recommendations),
            Route("/api/v1/recommendations/{namespace}/{name}", api.recommendation),
            Route("/api/v1/openapi.json", OpenApi(__version__).answer),
            Route(f"{WORKLOAD}/forecasts", workloads.forecasts),
            Route(f"{WORKLOAD}/decisions", workloads.decisions),
            Route(f"{WORKLOAD}/explanation", workloads.explanation),
            Route(f"{WORKLOAD}/accuracy", workloads.accuracy),
            Route(f"{WORKLOAD}/metrics/{{metric}}/forecast", workloads.value),
            *seams.routes(),
        ],
        middleware=[Middleware(CountRequests, metrics=metrics)],
        exception_handlers={ProblemError: answer_problem, HTTPException: answer_refusal},
        lifespan=lambda _app: _lifespan(reader, secured),
    )


@asynccontextmanager
async def _lifespan(reader: TableReader, secured: Secured | None) -> AsyncIterator[None]:
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(watching(reader))
        if secured:
            await stack.enter_async_context(secured.running())
        yield


async def healthz(_request: Request) -> Response:
    """The process is alive, whatever it has to serve."""
    return PlainTextResponse("ok\n")
