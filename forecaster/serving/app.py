"""The application of the serving process: access, metrics API and pages, and how its parts are put together."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from forecaster import __version__
from forecaster.publish.new_pods import NewPodsFile
from forecaster.publish.reader import PublishedTable, TableReader, now, watching
from forecaster.publish.table import pictures_path
from forecaster.serving.access_control import PROBE_PATHS, AccessControl
from forecaster.serving.audit import Audit
from forecaster.serving.dashboard import Dashboard
from forecaster.serving.external_metrics import ApiRequest, MetricsApi
from forecaster.serving.integrations import IntegrationPages
from forecaster.serving.metrics import CountRequests, ParentState, ServingMetrics
from forecaster.serving.new_pods import PATH as ADMISSION_PATH
from forecaster.serving.new_pods import NewPodAdmission
from forecaster.serving.openapi import WORKLOAD, OpenApi
from forecaster.serving.replicas import ReplicaFiles
from forecaster.serving.reply import HttpReply, failure
from forecaster.serving.rest import ProblemError, RecommendationPages, answer_problem, answer_refusal, whole_body
from forecaster.serving.secured import SecureListening
from forecaster.serving.server import HttpServer
from forecaster.serving.weekly_report import WeeklyReport
from forecaster.serving.what_if import WhatIfProcess
from forecaster.serving.workloads import RowExplanations, Workloads

if TYPE_CHECKING:
    import socket

    from starlette.requests import Request
    from starlette.types import ASGIApp, Receive, Scope, Send

    from forecaster.publish.values import Moment
    from forecaster.serving.options import ServingOptions
    from forecaster.serving.upstream import UpstreamAdapter

KUBERNETES = ("/apis", "/openapi")
OPEN_BESIDE = PROBE_PATHS | {"/metrics"}
"""Paths that the plain port still answers where there is a secure one."""
ELSEWHERE = failure(HTTPStatus.FORBIDDEN, "this is answered on the secure port only")

UNCERTIFIED = failure(HTTPStatus.FORBIDDEN, "reviews of new pods are answered to the API server's certificate only")


@dataclass(eq=False)
class FrontApplication:
    """One ASGI application for both listeners.

    With access control the plain port is left with probes and metrics without names; on the secure one every request is
    controlled, but for reviews of new pods: the API server shows webhooks no credentials.
    """

    metrics_api: MetricsApi
    pages: ASGIApp
    count: Callable[[str, int], None]
    access_control: AccessControl | None = None
    upstream: UpstreamAdapter | None = None
    admission: NewPodAdmission | None = None
    certified_reviews: bool = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or follow the lifespan of the process."""
        if scope["type"] != "http":
            await self.pages(scope, receive, send)
            return
        if self.admission is not None and scope["path"] == ADMISSION_PATH and scope["state"].get("secure"):
            proxy = self.access_control.front_proxy if self.access_control else None
            shown = not self.certified_reviews or (proxy is not None and proxy.shown_by(scope["state"]["peer"]))
            body = await whole_body(receive)
            reply = await self.admission.answered(scope["method"], body) if shown else UNCERTIFIED
            await self._send("admission", reply, send)
            return
        refusal = None if self.access_control is None else await self._refusal(scope, self.access_control)
        if refusal is not None:
            await self._send("refused", refusal, send)
        elif scope["path"].startswith(KUBERNETES):
            await self._kubernetes(_api_request(scope), send)
        else:
            await self.pages(scope, receive, send)

    async def _kubernetes(self, request: ApiRequest, send: Send) -> None:
        if self.upstream is not None and self.upstream.has(request):
            await self._send("upstream", await self.upstream.answer(request), send)
        else:
            await self._send("metrics_api", self.metrics_api.answer(request), send)

    async def _refusal(self, scope: Scope, access_control: AccessControl) -> HttpReply | None:
        if scope["state"].get("secure"):
            return await access_control.refusal(scope)
        return None if scope["path"] in OPEN_BESIDE else ELSEWHERE

    async def _send(self, handler: str, reply: HttpReply, send: Send) -> None:
        self.count(handler, reply.status)
        length = str(len(reply.body)).encode()
        headers = [(b"content-type", reply.content_type), (b"content-length", length), *reply.headers]
        await send({"type": "http.response.start", "status": reply.status, "headers": headers})
        await send({"type": "http.response.body", "body": reply.body})


def _api_request(scope: Scope) -> ApiRequest:
    headers: dict[bytes, bytes] = dict(scope["headers"])
    accept, if_none_match = headers.get(b"accept", b"").decode("latin-1"), headers.get(b"if-none-match", b"")
    return ApiRequest(scope["method"], scope["path"], scope["query_string"], accept, if_none_match)


def create_app(
    reader: TableReader,
    *,
    secured: SecureListening | None = None,
    metrics: ServingMetrics | None = None,
    pictures: TableReader | None = None,
    replicas: ReplicaFiles | None = None,
    what_if: WhatIfProcess | None = None,
    report: WeeklyReport | None = None,
    calendar: Mapping[str, object] | None = None,
    facts: str = "",
    admission: NewPodAdmission | None = None,
) -> FrontApplication:
    """Return the application on top of a reader; with a secure listener it answers authorized callers only.

    With `pictures` there is a dashboard, with `replicas` others may copy what is served, with `facts` the next step of
    an HPA is explained, with `admission` new pods are sized on the secure port.
    """
    metrics = metrics or ServingMetrics(reader)

    def served() -> tuple[PublishedTable, Moment] | None:
        table = reader.table
        return None if table is None else (table, reader.moment(table))

    api = RecommendationPages(reader, secured.fault if secured else str)
    integrations = IntegrationPages(reader)
    writing = secured.writing if secured else None
    explanations = RowExplanations(facts, lambda: metrics.parent.follows)
    controls = what_if, writing, lambda: metrics.parent.follows, report, calendar, explanations
    dashboard = Dashboard(api.table, reader, pictures, *controls) if pictures else None
    shown = [*(dashboard.routes() if dashboard else ()), *(report.routes() if report else ())]
    further = [*shown, *(replicas.routes() if replicas else ())]
    beside = partial(_lifespan, reader, secured, dashboard)
    pages = _pages(
        api, Workloads(api, explanations), [*integrations.routes(), *further], metrics, lambda _app: beside()
    )
    metrics_api = MetricsApi(served)
    if secured is None:
        return FrontApplication(metrics_api, pages, metrics.count)
    metrics.names_on_plain_port = False
    secured.discovered = lambda discovery: setattr(metrics_api, "discovery", discovery)
    parts = secured.access_control, secured.upstream, admission
    return FrontApplication(metrics_api, pages, metrics.count, *parts, certified_reviews=secured.certified_reviews)


def _pages(
    api: RecommendationPages,
    workloads: Workloads,
    further: Sequence[Route],
    metrics: ServingMetrics,
    lifespan: Callable[[Starlette], AbstractAsyncContextManager[None]],
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
            *further,
        ],
        middleware=[Middleware(CountRequests, metrics=metrics)],
        exception_handlers={ProblemError: answer_problem, HTTPException: answer_refusal},
        lifespan=lifespan,
    )


@asynccontextmanager
async def _lifespan(
    reader: TableReader, secured: SecureListening | None, dashboard: Dashboard | None
) -> AsyncIterator[None]:
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(watching(reader))
        if dashboard:
            await stack.enter_async_context(watching(dashboard.pictures))
            if dashboard.replaying:
                stack.push_async_callback(dashboard.replaying.close)
        if secured:
            await stack.enter_async_context(secured.running())
        yield


async def healthz(_request: Request) -> Response:
    """The process is alive, whatever it has to serve."""
    return PlainTextResponse("ok\n")


def _beside(options: ServingOptions) -> dict[str, Any]:
    """Return the parts of pages beside the table."""
    return {
        "facts": options.facts,
        "what_if": WhatIfProcess(options.facts) if options.facts else None,
        "calendar": {"zone": options.zone, "countries": options.countries},
        "report": WeeklyReport(options.report) if options.report else None,
    }


def assemble(
    table: Path,
    options: ServingOptions,
    plain: socket.socket,
    secure: socket.socket | None = None,
    parent: ParentState | None = None,
    clock: Callable[[], datetime] = now,
) -> HttpServer:
    """Return the server with all its parts. `parent` has what the computing process reports.

    Raises:
        OSError: there is no good serving certificate.
        ClientConfigError: there is no way to the API server.
    """
    stale_after = None if options.stale_after_seconds is None else timedelta(seconds=options.stale_after_seconds)
    reader, audit = TableReader(table, clock, stale_after), Audit()
    metrics = ServingMetrics(reader, audit.denials)
    metrics.parent = parent or ParentState()
    admission = NewPodAdmission(NewPodsFile(Path(options.new_pods)), clock) if options.new_pods else None
    metrics.admissions = admission.outcomes if admission else {}
    pictures = TableReader(pictures_path(table), clock) if options.dashboard else None
    building = partial(create_app, reader, metrics=metrics, pictures=pictures, **_beside(options))
    if options.secure is None or secure is None:
        return HttpServer(building(), plain, refused=audit.refused)
    secured = SecureListening(options.secure, audit)
    copied = ReplicaFiles(table, clock) if options.replicas else None
    app = building(secured=secured, replicas=copied, admission=admission)
    server = HttpServer(app, plain, secure, secured.certificates.current, audit.refused, secured.ready)
    secured.drop_peers = server.drop_peers
    if secured.owners:
        metrics.owners = secured.owners.owners
    return server
