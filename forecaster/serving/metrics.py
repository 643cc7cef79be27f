"""/metrics: what the computing process said with its table, and what the serving process says of itself."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Gauge, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from starlette.responses import StreamingResponse

from forecaster.serving.answers import age_of
from forecaster.serving.gauges import TableGauges
from forecaster.serving.options import FOLLOWS, LEADS, WRITTEN

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping
    from datetime import datetime, timedelta

    from prometheus_client import Metric
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from forecaster.publish.reader import PublishedTable, TableReader


ON_SECURE_PORT = b"# The gauges of the workloads are at /metrics of the secure port.\n"


@dataclass(slots=True)
class Told:
    """What the computing process has said over the standard input of this one."""

    writes: Counter[str] = field(default_factory=lambda: Counter(written=0, failed=0))
    """Tables since this process began, by outcome."""
    follows: bool = False
    """Whether the table is a copy of what another replica has computed."""

    def hear(self, said: bytes) -> None:
        """One byte of `serving.options`."""
        if said in {LEADS, FOLLOWS}:
            self.follows = said == FOLLOWS
        else:
            self.writes["written" if said == WRITTEN else "failed"] += 1


class ServingMetrics:
    """Requests by handler and code, and the state of the table."""

    def __init__(
        self,
        reader: TableReader,
        clock: Callable[[], datetime],
        stale_after: timedelta | None = None,
        denials: Mapping[str, int] | None = None,
    ) -> None:
        self._stale_after = stale_after
        self._reader = reader
        self.owners: Mapping[str, str] = {}
        """Owners of the API groups by their APIServices, where these are read."""
        self.names_on_plain_port = True
        """Whether the plain port has the gauges of workloads."""
        self.told = Told()
        self.admissions: Mapping[str, int] = {}
        """New pods of which the API server asked, by what became of them."""
        self._denials = {} if denials is None else denials
        self._clock = clock
        self._gauges = TableGauges()
        self.registry = registry = CollectorRegistry()
        self._requests: Counter[tuple[str, int]] = Counter()
        registry.register(self)
        self._age = Gauge("forecaster_serving_table_age_seconds", "Age of the table that is served.", registry=registry)
        self._rows = Gauge("forecaster_serving_table_workloads", "Workloads in the table.", registry=registry)
        self._failures = Gauge(
            "forecaster_serving_table_failures_total", "Tables that could not be read.", registry=registry
        )

    def count(self, handler: str, code: int) -> None:
        """One more request was answered."""
        self._requests[handler, code] += 1

    def collect(self) -> Iterator[Metric]:
        """What is counted without the library: its counters cost more than the answer of a request does."""
        requests = CounterMetricFamily(
            "forecaster_serving_requests", "Requests by handler and status code.", labels=["handler", "code"]
        )
        for (handler, code), count in sorted(self._requests.items()):
            requests.add_metric([handler, str(code)], count)
        yield requests
        denials = CounterMetricFamily(
            "forecaster_serving_denials", "Requests and connections that were refused, by status.", labels=["status"]
        )
        for status, count in sorted(self._denials.items()):
            denials.add_metric([status], count)
        yield denials
        if self.admissions:
            admissions = CounterMetricFamily(
                "forecaster_serving_admissions", "New pods by what became of their size.", labels=["outcome"]
            )
            for outcome, count in sorted(self.admissions.items()):
                admissions.add_metric([outcome], count)
            yield admissions
        writes = CounterMetricFamily(
            "forecaster_serving_table_writes", "Tables that computing wrote, or could not write.", labels=["outcome"]
        )
        for outcome, count in sorted(self.told.writes.items()):
            writes.add_metric([outcome], count)
        yield writes
        owners = GaugeMetricFamily(
            "forecaster_serving_group_owner",
            "1 for the owner of an API group in this cluster.",
            labels=["group", "owner"],
        )
        for group, owner in sorted(self.owners.items()):
            owners.add_metric([group, owner], 1)
        yield owners
        follows = "1 where the table is a copy of what another replica computes."
        yield GaugeMetricFamily("forecaster_serving_follows", follows, self.told.follows)

    async def answer(self, request: Request) -> Response:
        """Return the metrics of both processes, then the gauges of the workloads while the table is fresh."""
        return StreamingResponse(self._pieces(request, self._reader.table), media_type=CONTENT_TYPE_LATEST)

    async def _pieces(self, request: Request, table: PublishedTable | None) -> AsyncIterator[bytes]:
        """Labels of gauges name tenants: only for clients with the right to read them, where that is controlled."""
        yield self._own(table)
        if not self.names_on_plain_port and not request.scope["state"]["secure"]:
            yield ON_SECURE_PORT
        elif table is not None and not age_of(table.meta, self._clock(), self._stale_after).stale:
            async for piece in self._gauges.pieces(table):
                yield piece

    def _own(self, table: PublishedTable | None) -> bytes:
        """Return this process's metrics; without a table there is no age: an absent series, not a zero.

        What the table says of its computing process is that of the leader, which is asked itself.
        """
        self._failures.set(self._reader.failures)
        self._rows.set(0 if table is None else table.rows)
        self._age.set(float("nan") if table is None else (self._clock() - table.meta.published_at).total_seconds())
        computing = "" if table is None or self.told.follows else table.meta.metrics
        return computing.encode() + generate_latest(self.registry)


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
