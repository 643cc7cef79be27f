"""/api/v1/recommendations: pages of the published table, and refusals as JSON (RFC 9457)."""

from __future__ import annotations

import asyncio
import base64
import binascii
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from itertools import islice, takewhile
from typing import Any

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive

from forecaster.kube.objects import NOT_READ
from forecaster.publish.reader import PublishedTable, TableAge, TableEntry, TableReader
from forecaster.publish.values import NotKnown, NotNamed
from forecaster.publish.views import RecommendationView
from forecaster.serving.answers import NotThere, NoValue, entry_of


class Problem(msgspec.Struct, frozen=True):
    """The body of every error."""

    status: int
    title: str
    detail: str
    remedy: str


class ProblemError(Exception):
    """Ends a request with this problem."""

    def __init__(self, status: HTTPStatus, detail: str, remedy: str) -> None:
        super().__init__(detail)
        self.problem = Problem(status, status.phrase, detail, remedy)


MISSING = {
    NotKnown: (HTTPStatus.SERVICE_UNAVAILABLE, "The explanation of the workload says what is missing."),
    NotNamed: (HTTPStatus.BAD_REQUEST, "Name exactly one of them."),
    NotThere: (HTTPStatus.NOT_FOUND, "/api/v1/recommendations?namespace= lists what there is."),
}
"""Status and remedy of a number that is not available."""


def missing(why: NoValue, remedy: str = "") -> ProblemError:
    """Return the problem of a number that is not available, with the given remedy, if any."""
    status, usual = MISSING[type(why)]
    return ProblemError(status, why.message, remedy or usual)


STATUS_REMEDIES = {
    HTTPStatus.NOT_FOUND: "Ask /api/v1/recommendations for the list.",
    HTTPStatus.METHOD_NOT_ALLOWED: "This interface is read-only: use GET.",
}


def answer_problem(_request: Request, error: Exception) -> Response:
    """The response for a `ProblemError`."""
    if not isinstance(error, ProblemError):
        raise error
    return problem_response(error.problem)


def answer_refusal(request: Request, error: Exception) -> Response:
    """Return the response for the router's refusals: unknown paths and verbs."""
    if not isinstance(error, HTTPException):
        raise error
    status = HTTPStatus(error.status_code)
    detail = f"{request.method} {request.url.path}: {status.phrase.lower()}"
    problem = Problem(status, status.phrase, detail, STATUS_REMEDIES.get(status, ""))
    return problem_response(problem, error.headers)


def problem_response(problem: Problem, headers: Mapping[str, str] | None = None) -> Response:
    """A problem as an HTTP response."""
    body = msgspec.json.encode(problem)
    return Response(body, problem.status, headers, media_type="application/problem+json")


FILTERS = ("namespace", "kind", "verdict", "reason")
SCALES = ("verdict", "scale")
"""Any count that is recommended: `keep`, `up` and `down`."""
LISTED_VERDICTS = ("keep", "up", "down", "hold", SCALES[1])
LIMIT = 500
LIMIT_MAX = 5000
TEXT = {"type": "string"}
LIST_PARAMETERS: dict[str, dict[str, Any]] = {
    **dict.fromkeys((*FILTERS, "continue"), TEXT),
    "verdict": {**TEXT, "enum": list(LISTED_VERDICTS)},
    "limit": {"type": "integer", "minimum": 1, "maximum": LIMIT_MAX, "default": LIMIT},
}
"""JSON Schema of each parameter of a list."""
Key = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class ListQuery:
    """Filters of a list request."""

    filters: tuple[tuple[str, str], ...] = ()
    limit: int = LIMIT
    after: Key | None = None

    def accepts(self, entry: TableEntry) -> bool:
        """Does this row pass every filter?"""
        return all(
            entry.verdict != "hold" if (field, value) == SCALES else getattr(entry, field) == value
            for field, value in self.filters
        )


def parameters_of(request: Request, *names: str) -> dict[str, str]:
    """Return the parameters of a URL. Raises ProblemError: one has another name than these, or comes twice."""
    pairs = request.query_params.multi_items()
    for name, times in Counter(name for name, _ in pairs).items():
        if name not in names:
            raise _bad(f"unknown parameter {name!r}", f"Use {', '.join(names) or 'none'}.")
        if times > 1:
            raise _bad(f"{name!r} is given {times} times", "Give it once; ask again for each further value.")
    return dict(pairs)


def parse_query(parameters: Mapping[str, str]) -> ListQuery:
    """The query of a list's parameters. Raises ProblemError: a value out of range."""
    if parameters.get("verdict", SCALES[1]) not in LISTED_VERDICTS:
        raise _bad(f"verdict {parameters['verdict'][:20]!r} is not allowed", f"Use {', '.join(LISTED_VERDICTS)}.")
    return ListQuery(
        filters=tuple((field, parameters[field]) for field in FILTERS if field in parameters),
        limit=_limit(parameters.get("limit", str(LIMIT))),
        after=_key(parameters["continue"]) if "continue" in parameters else None,
    )


def page(entries: Sequence[TableEntry], query: ListQuery) -> tuple[list[TableEntry], str | None]:
    """The rows of one page and the token of the next, None on the last.

    The token names the last row, not a position: it stays good when the table is replaced between two pages. Rows are
    in the order of the table, so of a namespace only its own are looked at.
    """
    filters = dict(query.filters)
    before: tuple[str, ...] = max(query.after or (), (filters.get("namespace", ""),))
    start = bisect_right(entries, before, key=lambda entry: entry.key)
    following = (entries[row] for row in range(start, len(entries)))
    within = takewhile(lambda entry: entry.namespace == filters.get("namespace", entry.namespace), following)
    matches = list(islice(filter(query.accepts, within), query.limit + 1))
    rows = matches[: query.limit]
    return rows, _token(rows[-1].key) if len(matches) > query.limit else None


def _limit(text: str) -> int:
    if text.isascii() and text.isdigit() and len(text) <= len(str(LIMIT_MAX)) and 1 <= int(text) <= LIMIT_MAX:
        return int(text)
    raise _bad(f"limit {text[:20]!r} is not allowed", f"Use a whole number from 1 to {LIMIT_MAX}.")


def _token(key: Key) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(key)).decode().rstrip("=")


def _key(token: str) -> Key:
    try:
        raw = base64.urlsafe_b64decode(token.encode() + b"=" * (-len(token) % 4))
        key: Key = msgspec.json.decode(raw, type=Key)
    except (binascii.Error, UnicodeEncodeError, *NOT_READ) as error:
        raise _bad("the continue token is not one of ours", "Start again without it.") from error
    return key


def _bad(detail: str, remedy: str) -> ProblemError:
    return ProblemError(HTTPStatus.BAD_REQUEST, detail, remedy)


class RecommendationPage(TableAge, frozen=True, kw_only=True, rename={"next_page": "continue"}):
    """Some recommendations, all of the same age, and the token of the next page."""

    items: list[RecommendationView]
    next_page: str | None


class SingleRecommendation(TableAge, frozen=True, kw_only=True):
    """One recommendation and its age."""

    recommendation: RecommendationView


class Readiness(TableAge, frozen=True, kw_only=True):
    """The table that is served; `fault` says why a newer file is not."""

    version: str
    workloads: int
    fault: str


class RecommendationPages:
    """The handlers; they share the reader."""

    def __init__(
        self,
        reader: TableReader,
        fault: Callable[[], str] = str,
    ) -> None:
        self.reader, self._fault = reader, fault
        self._listing = asyncio.Lock()
        """One list at a time is made, in a thread: thousands of rows take longer than an HPA may wait."""

    async def readyz(self, _request: Request) -> Response:
        """200 from the first table on, however old it grows: a process that is not ready cannot abstain either."""
        if why := self._fault():
            remedy = "Callers cannot be distinguished before that is mended."
            raise ProblemError(HTTPStatus.SERVICE_UNAVAILABLE, why, remedy)
        table = self.table()
        version, workloads = table.meta.version, table.rows
        age = self.age(table)
        return json_response(Readiness(*age, version=version, workloads=workloads, fault=self.reader.fault))

    async def recommendations(self, request: Request) -> Response:
        """A page of the table, filtered."""
        query = parse_query(parameters_of(request, *LIST_PARAMETERS))
        table = self.table()
        async with self._listing:
            return await asyncio.to_thread(self._listed, table, query)

    def _listed(self, table: PublishedTable, query: ListQuery) -> Response:
        rows, next_page = page(table.entries, query)
        items = [table.view(entry) for entry in rows]
        return json_response(RecommendationPage(*self.age(table), items=items, next_page=next_page))

    async def recommendation(self, request: Request) -> Response:
        """The recommendation for one workload."""
        table, kind = self.table(), parameters_of(request, "kind").get("kind", "")
        entry = _entry(table, **request.path_params, kind=kind)
        return json_response(SingleRecommendation(*self.age(table), recommendation=table.view(entry)))

    def table(self) -> PublishedTable:
        """Return the served table; before the first one, raise the problem that there is none."""
        if self.reader.table is None:
            remedy = "Wait for the first cycle, or look at the log of the computing process."
            raise ProblemError(HTTPStatus.SERVICE_UNAVAILABLE, self.reader.fault, remedy)
        return self.reader.table

    def age(self, table: PublishedTable) -> tuple[Any, ...]:
        """Return the fields of a `TableAge`, with which answers begin."""
        return msgspec.structs.astuple(self.reader.age(table))


def _entry(table: PublishedTable, *, namespace: str, name: str, kind: str) -> TableEntry:
    entry = entry_of(table, namespace, name, kind)
    if isinstance(entry, NotNamed):
        raise ProblemError(HTTPStatus.CONFLICT, entry.message, "Add ?kind= with one of these.")
    if isinstance(entry, NotThere):
        remedy = "Check the spelling and the selectors; /api/v1/recommendations?namespace= lists what there is."
        raise missing(entry, remedy)
    return entry


async def whole_body(receive: Receive) -> bytes:
    """Return the whole body, which the connection bounds; the received part where the client went away."""
    parts: list[bytes] = []
    while True:
        message = await receive()
        parts.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(parts)


def json_response(value: msgspec.Struct) -> Response:
    """The answer that a structure is in JSON."""
    return Response(msgspec.json.encode(value), media_type="application/json")
