"""The dashboard: one page at `/` that draws the table and the pictures beside it, and its JSON.

The page is the same for all readers and names no workload; answers that do are authorised like `/api/v1`. Columns are
made in a thread, once per table, so that an HPA never waits for them.
"""

from __future__ import annotations

import asyncio
import base64
import gzip
import hashlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import wraps
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from weakref import ReferenceType, ref

import msgspec
from starlette.responses import Response
from starlette.routing import Route

from forecaster.domain.decision import Reason
from forecaster.domain.report import DecisionChange
from forecaster.horizontal.row import REASONS
from forecaster.publish.beside import BenefitView, VpasOfWorkload, benefit_of_workload, vpas_of_workload
from forecaster.publish.decision_history import AccuracyView
from forecaster.publish.reader import TableAge
from forecaster.publish.values import NotNamed
from forecaster.publish.views import RecommendationView
from forecaster.serving.answers import NotThere, entry_of
from forecaster.serving.fleet import fleet_view
from forecaster.serving.pause import Writing, WritingView, pause_request
from forecaster.serving.rest import ProblemError, missing
from forecaster.serving.what_if import WhatIfProcess, changes_of, past_of
from forecaster.serving.workloads import RowExplanations, SignalForecastView, signal_forecast_view

if TYPE_CHECKING:
    from starlette.requests import Request

    from forecaster.publish.reader import PublishedTable, TableEntry, TableReader
    from forecaster.serving.weekly_report import WeeklyReport

    Handler = Callable[[Request], Awaitable[Response]]

STATIC_FOLDER = Path(__file__).parent / "static"
MEDIA_TYPES = {".css": "text/css", ".html": "text/html", ".js": "text/javascript", ".svg": "image/svg+xml"}
PAGE_GUARDS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
"""Headers that allow only what this process serves: no inline script, no request to another host."""
REPLAY_REMEDY = "Ask the replica that computes, which holds the Lease, or use `forecaster replay`."
SOURCE_DOWN = REASONS.index(Reason.SOURCE_DOWN)
MAX_SENTENCES = 100
"""Most rows whose sentences one request gets: each takes some 100 µs."""
MAX_DIGITS = 9
"""Most digits of a row number in a request."""


class Now(TableAge, frozen=True, kw_only=True):
    """Answer for a page that asks every few seconds: the present table and picture, and the age of the table."""

    drawn_at: datetime | None
    """Instant of the pictures, which a cycle writes after its table; null where there are none."""
    interval_seconds: float
    workloads: int
    version: str
    note: str
    fault: str
    follows: bool
    """Whether this replica copies another one's table."""
    down: str
    """Sentence that says since when and why no source answers; empty unless every workload is held for it."""
    reported_at: datetime | None
    """Instant of the latest weekly report; null where there is none."""


class Waiting(msgspec.Struct, frozen=True):
    """Answer of each path until a first cycle has ended."""

    waiting: str
    """Reason, as a sentence."""


class DrawnSeries(msgspec.Struct, frozen=True):
    """Half a day of a workload: float32 [name, point] in base64, little-endian, NaN where unknown."""

    names: tuple[str, ...]
    until: datetime
    """Instant of the last point."""
    values: str


class WorkloadPage(msgspec.Struct, frozen=True):
    """All facts about one workload."""

    published_at: datetime
    recommendation: RecommendationView
    lines: list[str]
    outlooks: list[SignalForecastView]
    decisions: tuple[DecisionChange, ...]
    accuracy: tuple[AccuracyView, ...]
    series: DrawnSeries | None
    benefit: BenefitView
    """Benefit of the decisions about it, over the HPA alone."""
    currency: str
    beside: VpasOfWorkload
    """VPAs of the cluster, which are shown whatever their mode is."""
    what_if: bool
    """Whether other settings can be tried."""
    what_if_refused: str
    """Sentence that says why other settings cannot be tried."""


class Sentences(msgspec.Struct, frozen=True):
    """Reasons for the decisions of some rows."""

    messages: list[str]


class _Body(NamedTuple):
    etag: str
    raw: bytes
    packed: bytes

    @classmethod
    def of(cls, raw: bytes) -> _Body:
        return cls(f'"{hashlib.sha256(raw).hexdigest()[:16]}"', raw, gzip.compress(raw, 1, mtime=0))


class _Fleet(NamedTuple):
    """A cached body and the files that it was made from; it keeps no replaced file open."""

    table: ReferenceType[PublishedTable]
    pictures: ReferenceType[PublishedTable] | None
    body: _Body

    def is_of(self, table: PublishedTable, pictures: PublishedTable | None) -> bool:
        """Whether the body was made from these files."""
        return self.table() is table and (self.pictures() if self.pictures else None) is pictures


@dataclass(eq=False)
class Dashboard:
    """The handlers; they share the table and the pictures."""

    table: Callable[[], PublishedTable]
    reader: TableReader
    pictures: TableReader
    replaying: WhatIfProcess | None = None
    """None where nothing can be replayed: no computing process is beside this one."""
    writing: Writing | None = None
    """None where nothing is written to a cluster."""
    follows: Callable[[], bool] = lambda: False
    """Whether another replica computes, and this one copies its files."""
    report: WeeklyReport | None = None
    calendar: Mapping[str, object] | None = None
    """Time zone, and countries whose holidays are marked."""
    explanations: RowExplanations = field(default_factory=RowExplanations)

    def __post_init__(self) -> None:
        self._files = {
            file.name: _Body.of(file.read_bytes()) for file in STATIC_FOLDER.iterdir() if file.suffix in MEDIA_TYPES
        }
        self._fleet: _Fleet | None = None
        self._making = asyncio.Lock()
        """Start one thread for long answers, so that many open pages leave the threads that read tables free."""

    def routes(self) -> list[Route]:
        """Return the routes of the dashboard."""
        return [
            Route("/", self.page),
            Route("/static/{file}", self.static),
            Route("/dashboard/now", self._once_published(self.now)),
            Route("/dashboard/fleet", self._once_published(self.fleet)),
            Route("/dashboard/sentences", self._once_published(self.sentences)),
            Route("/dashboard/health", self._once_published(self.health)),
            Route("/dashboard/nodes", self._once_published(self.nodes)),
            Route("/dashboard/workloads/{namespace}/{kind}/{name}", self._once_published(self.workload)),
            Route("/dashboard/what-if/{namespace}/{kind}/{name}", self.what_if),
            Route("/dashboard/writing", self.show_writing),
            Route("/dashboard/pause", self.pause, methods=["PUT"]),
            Route("/dashboard/past/{namespace}/{kind}/{name}", self.past),
        ]

    def _once_published(self, handler: Handler) -> Handler:
        """Return a handler that needs a table; a page that waits for the first one is no fault."""

        @wraps(handler)
        async def answered(request: Request) -> Response:
            return await handler(request) if self.reader.table else _json(Waiting(_sentence(self.reader.fault)))

        return answered

    async def page(self, request: Request) -> Response:
        """Return the page."""
        return _answer(request, self._files["index.html"], MEDIA_TYPES[".html"])

    async def static(self, request: Request) -> Response:
        """A script or a style sheet."""
        name = request.path_params["file"]
        if name not in self._files:
            raise ProblemError(HTTPStatus.NOT_FOUND, f"no file {name[:80]!r}", "The dashboard is at /.")
        return _answer(request, self._files[name], MEDIA_TYPES[Path(name).suffix])

    async def now(self, _request: Request) -> Response:
        """Return the identity of the present table."""
        table, pictures = self.table(), self.pictures.table
        age = self.reader.age(table)
        return _json(
            Now(
                age.published_at,
                age.age_seconds,
                age.stale,
                drawn_at=pictures.meta.published_at if pictures else None,
                interval_seconds=table.meta.interval_seconds,
                workloads=table.rows,
                version=table.meta.version,
                note=table.meta.note,
                fault=self.reader.fault,
                follows=self.follows(),
                down=_down(table),
                reported_at=self.report.made_at() if self.report else None,
            )
        )

    async def fleet(self, request: Request) -> Response:
        """All workloads, column by column; 304 while nothing has changed."""
        table, pictures = self.table(), self.pictures.table
        async with self._making:
            known = self._fleet
            if known is None or not known.is_of(table, pictures):
                body = await asyncio.to_thread(lambda: _Body.of(msgspec.json.encode(fleet_view(table, pictures))))
                known = self._fleet = _Fleet(ref(table), ref(pictures) if pictures else None, body)
        return _answer(request, known.body, "application/json")

    async def sentences(self, request: Request) -> Response:
        """Return the reasons for the decisions of some rows of the table of one instant; nothing of another table."""
        table, parameters = self.table(), request.query_params
        if parameters.get("of") != msgspec.to_builtins(table.meta.published_at):
            return _json(Sentences([]))
        rows = _rows(parameters.get("rows", ""), table.rows)
        async with self._making:
            messages = await asyncio.to_thread(lambda: [table.view(table.entry(row)).replicas.message for row in rows])
        return _json(Sentences(messages))

    async def health(self, _request: Request) -> Response:
        """The computing process: cycles, sources, forecasts by lead, settings; as it has written it."""
        return _raw(self.table().whole("health") or b"{}")

    async def nodes(self, _request: Request) -> Response:
        """Node pools ahead of time."""
        return _raw(self.table().whole("nodes") or b"{}")

    async def workload(self, request: Request) -> Response:
        """Return everything about one workload."""
        table = self.table()
        entry = _entry(table, **request.path_params)
        view, paths, past = table.view(entry), table.paths(entry), table.past(entry)
        now = table.meta.published_at
        return _json(
            WorkloadPage(
                published_at=now,
                recommendation=view,
                lines=await self.explanations.lines(table, entry),
                outlooks=[signal_forecast_view(signal, paths.get(signal.signal), now) for signal in view.signals],
                decisions=past.decisions,
                accuracy=past.accuracy,
                series=_series(self.pictures.table, entry),
                benefit=benefit_of_workload(table, entry),
                currency=table.meta.prices.currency if table.meta.prices else "",
                beside=vpas_of_workload(table, entry),
                what_if=not self._cannot_replay(),
                what_if_refused=self._cannot_replay(),
            )
        )

    async def what_if(self, request: Request) -> Response:
        """The last hours of one workload under other settings, replayed."""
        return await self._replayed(request, {"changes": changes_of(request.query_params)})

    async def past(self, request: Request) -> Response:
        """Return the forecasts of one workload in the last half day, at a chosen lead, and their outcome."""
        return await self._replayed(request, {**past_of(request.query_params), **(self.calendar or {})})

    async def show_writing(self, _request: Request) -> Response:
        """Return the replica that writes to the cluster, and whether it is paused."""
        return _json(await self.writing.view() if self.writing else WritingView())

    async def pause(self, request: Request) -> Response:
        """Stop all writes to the cluster, or let them go on."""
        user, paused = await pause_request(request)
        if self.writing is None:
            raise ProblemError(HTTPStatus.CONFLICT, "nothing is written to the cluster", "Enable mode floor or scale.")
        return _json(await self.writing.pause(user, paused=paused))

    def _cannot_replay(self) -> str:
        """Say why what-if and look back are unavailable here; empty where they are available."""
        if self.follows():
            return "this replica copies what another one computes, and only that one has the history to replay"
        return "" if self.replaying else "this replica does not compute, so it cannot replay"

    async def _replayed(self, request: Request, parameters: Mapping[str, object]) -> Response:
        table = self.table()
        entry = _entry(table, **request.path_params)
        refused = self._cannot_replay()
        if refused or self.replaying is None:
            raise ProblemError(HTTPStatus.SERVICE_UNAVAILABLE, refused, REPLAY_REMEDY)
        id_ = (entry.namespace, entry.kind, entry.name)
        question = {"id": id_, "at": table.meta.published_at, **parameters}
        return _raw(await self.replaying.ask(msgspec.json.encode(question), caller_of(request)))


def _down(table: PublishedTable) -> str:
    """Say since when and why no source answers; empty if one does."""
    if not table.rows or any(code != SOURCE_DOWN for code in table.columns["reason"][0]):
        return ""
    entry = table.entry(0)
    since = next((f" since {decision.at:%H:%M} UTC" for decision in table.past(entry).decisions[:1]), "")
    return f"Not known{since}: {table.view(entry).replicas.message}"


def caller_of(request: Request) -> str:
    """Return the authenticated user of a request, or its address where there is no access control."""
    user: str = request.scope.get("state", {}).get("user", "")
    return user or (request.client.host if request.client else "")


def _entry(table: PublishedTable, *, namespace: str, kind: str, name: str) -> TableEntry:
    entry = entry_of(table, namespace, name, kind)
    if isinstance(entry, (NotNamed, NotThere)):
        raise missing(entry, "The dashboard lists what there is.")
    return entry


def _series(pictures: PublishedTable | None, entry: TableEntry) -> DrawnSeries | None:
    row = None if pictures is None else pictures.row_of(*entry.key)
    if pictures is None or row is None:
        return None
    values = base64.b64encode(pictures.text("series", row) + pictures.text("decided", row)).decode()
    return DrawnSeries(pictures.signals, pictures.meta.published_at, values)


def _rows(text: str, end: int) -> list[int]:
    """Parse whole numbers between commas, each below `end`."""
    numbers = text.split(",", MAX_SENTENCES)
    if len(numbers) > MAX_SENTENCES:
        raise ProblemError(HTTPStatus.BAD_REQUEST, "rows has too many", f"Ask for {MAX_SENTENCES} at most.")
    rows = [int(digits) for digits in numbers if digits.isascii() and digits.isdecimal() and len(digits) <= MAX_DIGITS]
    if len(rows) < len(numbers) or max(rows) >= end:
        raise ProblemError(HTTPStatus.BAD_REQUEST, "rows names no rows of the table", "Use e.g. rows=0,1,2.")
    return rows


def _sentence(fault: str) -> str:
    return f"Nothing is decided yet: {fault}. The page fills itself after the first cycle."


def _answer(request: Request, body: _Body, media_type: str) -> Response:
    """Reply with a body, compressed for a client that accepts it, or 304 if the client has this version."""
    headers = {**PAGE_GUARDS, "ETag": body.etag, "Cache-Control": "no-cache", "Vary": "Accept-Encoding"}
    if body.etag in request.headers.get("if-none-match", ""):
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    if "gzip" not in request.headers.get("accept-encoding", ""):
        return Response(body.raw, media_type=media_type, headers=headers)
    return Response(body.packed, media_type=media_type, headers={**headers, "Content-Encoding": "gzip"})


def _json(value: msgspec.Struct) -> Response:
    return _raw(msgspec.json.encode(value))


def _raw(json: bytes) -> Response:
    return Response(json, media_type="application/json", headers={**PAGE_GUARDS, "Cache-Control": "no-store"})
