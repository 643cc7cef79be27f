"""Answers from the published table. Nothing is computed here but ages."""

from __future__ import annotations

from datetime import datetime, timedelta
from http import HTTPStatus
from typing import TYPE_CHECKING

import msgspec
from starlette.responses import Response

from forecaster.serving.problem import ProblemError
from forecaster.serving.query import page, parse_query

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request

    from forecaster.serving.reader import Table, TableReader
    from forecaster.serving.table import Entry, Meta

STALE_INTERVALS = 3
"""Intervals without a new table before its values are called stale: one may be late, two may be skipped."""


class Age(msgspec.Struct, frozen=True):
    """How old the decisions are, and whether that is too old."""

    published_at: datetime
    age_seconds: float
    stale: bool


class RecommendationPage(Age, frozen=True, kw_only=True, rename={"next_page": "continue"}):
    """Some recommendations, all of the same age, and the token of the next page."""

    items: list[msgspec.Raw]
    next_page: str | None


class OneRecommendation(Age, frozen=True, kw_only=True):
    """One recommendation and its age."""

    recommendation: msgspec.Raw


class Readiness(Age, frozen=True, kw_only=True):
    """The table that is served; `fault` says why a newer file is not."""

    version: str
    workloads: int
    fault: str


def age_of(meta: Meta, now: datetime, stale_after: timedelta | None) -> Age:
    """The age of a table at `now`; never negative, whatever the clocks say."""
    limit = timedelta(seconds=STALE_INTERVALS * meta.interval_seconds) if stale_after is None else stale_after
    age = max(now - meta.published_at, timedelta(0))
    return Age(meta.published_at, age.total_seconds(), age > limit)


class Api:
    """The handlers; they share the reader, the clock and the limit of staleness."""

    def __init__(self, reader: TableReader, clock: Callable[[], datetime], stale_after: timedelta | None) -> None:
        self._reader = reader
        self._clock = clock
        self._stale_after = stale_after

    async def readyz(self, _request: Request) -> Response:
        """200 while a table is served that is not stale; otherwise 503 and why."""
        table = self._table()
        age = self._age(table)
        if age.stale:
            raise _unavailable(
                f"the table is {age.age_seconds:.0f} s old. {self._reader.fault}".strip(),
                "Look at the log of the computing process; the values are still served, marked as stale.",
            )
        version, workloads = table.meta.version, len(table.entries)
        return _json(Readiness(*_fields(age), version=version, workloads=workloads, fault=self._reader.fault))

    async def recommendations(self, request: Request) -> Response:
        """A page of the table, filtered."""
        query = parse_query(request.query_params)
        table = self._table()
        rows, next_page = page(table.entries, query)
        items = [table.record(entry) for entry in rows]
        return _json(RecommendationPage(*_fields(self._age(table)), items=items, next_page=next_page))

    async def recommendation(self, request: Request) -> Response:
        """The recommendation for one workload."""
        table = self._table()
        entry = _one(table, **request.path_params, kind=request.query_params.get("kind"))
        return _json(OneRecommendation(*_fields(self._age(table)), recommendation=table.record(entry)))

    def _table(self) -> Table:
        if self._reader.table is None:
            raise _unavailable(
                self._reader.fault, "Wait for the first cycle, or look at the log of the computing process."
            )
        return self._reader.table

    def _age(self, table: Table) -> Age:
        return age_of(table.meta, self._clock(), self._stale_after)


def _one(table: Table, *, namespace: str, name: str, kind: str | None) -> Entry:
    found = [entry for entry in table.named(namespace, name) if kind in {None, entry.kind}]
    wanted = f"{kind or 'workload'} {namespace}/{name}"
    if not found:
        raise ProblemError(
            HTTPStatus.NOT_FOUND,
            f"no {wanted} in the table",
            "Check the spelling and the selectors; /api/v1/recommendations?namespace= lists what there is.",
        )
    if len(found) > 1:
        kinds = ", ".join(entry.kind for entry in found)
        raise ProblemError(HTTPStatus.CONFLICT, f"{wanted} is one of {kinds}", f"Add ?kind= with one of {kinds}.")
    return found[0]


def _unavailable(detail: str, remedy: str) -> ProblemError:
    return ProblemError(HTTPStatus.SERVICE_UNAVAILABLE, detail, remedy)


def _fields(age: Age) -> tuple[datetime, float, bool]:
    return age.published_at, age.age_seconds, age.stale


def _json(value: msgspec.Struct) -> Response:
    return Response(msgspec.json.encode(value), media_type="application/json")
