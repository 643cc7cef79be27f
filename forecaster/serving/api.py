"""Answers from the published table. Nothing is computed here but ages."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

import msgspec
from starlette.responses import Response

from forecaster.serving.age import Age, age_of
from forecaster.serving.problem import ProblemError
from forecaster.serving.query import page, parse_query

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime, timedelta

    from starlette.requests import Request

    from forecaster.publish.table import TableEntry
    from forecaster.serving.reader import Table, TableReader


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


class Api:
    """The handlers; they share the reader, the clock and the limit of staleness."""

    def __init__(
        self,
        reader: TableReader,
        clock: Callable[[], datetime],
        stale_after: timedelta | None,
        fault: Callable[[], str] = str,
    ) -> None:
        self._reader = reader
        self._fault = fault
        self._clock = clock
        self._stale_after = stale_after

    async def readyz(self, _request: Request) -> Response:
        """200 from the first table on, however old it grows: a process that is not ready cannot abstain either."""
        if why := self._fault():
            raise _unavailable(why, "Callers cannot be told apart before that is mended.")
        table = self.table()
        age = self._age(table)
        version, workloads = table.meta.version, len(table.entries)
        return _json(Readiness(*_fields(age), version=version, workloads=workloads, fault=self._reader.fault))

    async def recommendations(self, request: Request) -> Response:
        """A page of the table, filtered."""
        query = parse_query(request.query_params)
        table = self.table()
        rows, next_page = page(table.entries, query)
        items = [table.record(entry) for entry in rows]
        return _json(RecommendationPage(*_fields(self._age(table)), items=items, next_page=next_page))

    async def recommendation(self, request: Request) -> Response:
        """The recommendation for one workload."""
        table = self.table()
        entry = _one(table, **request.path_params, kind=request.query_params.get("kind"))
        return _json(OneRecommendation(*_fields(self._age(table)), recommendation=table.record(entry)))

    def table(self) -> Table:
        """The table that is served; before the first one, the problem that there is none."""
        if self._reader.table is None:
            raise _unavailable(
                self._reader.fault, "Wait for the first cycle, or look at the log of the computing process."
            )
        return self._reader.table

    def _age(self, table: Table) -> Age:
        return age_of(table.meta, self._clock(), self._stale_after)


def _one(table: Table, *, namespace: str, name: str, kind: str | None) -> TableEntry:
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
