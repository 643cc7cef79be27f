"""/metrics: the computing process's metrics from its table, gauges of every workload, and the serving process's own.

`forecaster_demand`, `forecaster_replicas` and `forecaster_floor` are the offer, number by number what an HPA reads of
the external metrics of these names; only of published workloads. All other gauges are to look at: what there is, what
was decided and what is forecast. A number that is not known has no series: readers would take 0 or NaN for a number.
"""

from __future__ import annotations

import asyncio
import zlib
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus

from prometheus_client import CONTENT_TYPE_LATEST, Metric, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from forecaster.domain.published import DEMAND_METRIC, FLOOR, REPLICAS
from forecaster.publish.reader import PublishedTable, TableEntry, TableReader
from forecaster.publish.values import sampled_values
from forecaster.serving.options import FOLLOWS, LEADS, WRITTEN

ON_SECURE_PORT = b"# The gauges of the workloads are at /metrics of the secure port.\n"


@dataclass(slots=True)
class ParentState:
    """State of the computing process, as it reports it over the standard input of this one."""

    writes: Counter[str] = field(default_factory=lambda: Counter(written=0, failed=0))
    """Tables since this process began, by outcome."""
    follows: bool = False
    """Whether the table is a copy of what another replica has computed."""

    def receive(self, byte: bytes) -> None:
        """Take in one byte of `serving.options`."""
        if byte in {LEADS, FOLLOWS}:
            self.follows = byte == FOLLOWS
        else:
            self.writes["written" if byte == WRITTEN else "failed"] += 1


class ServingMetrics(Collector):
    """Requests by handler and code, and the state of the table."""

    def __init__(self, reader: TableReader, denials: Mapping[str, int] | None = None) -> None:
        self._reader = reader
        self.owners: Mapping[str, str] = {}
        """Owners of the API groups by their APIServices, where these are read."""
        self.names_on_plain_port = True
        """Whether the plain port has the gauges of workloads."""
        self.parent = ParentState()
        self.admissions: Mapping[str, int] = {}
        """New pods of which the API server asked, by what became of them."""
        self._denials = {} if denials is None else denials
        self._gauges = TableGauges()
        self._requests: Counter[tuple[str, int]] = Counter()

    def count(self, handler: str, code: int) -> None:
        """Count an answered request."""
        self._requests[handler, code] += 1

    def collect(self) -> Iterator[Metric]:
        """Yield metrics that are counted without the library: its counters cost more than a request's answer.

        Without a table its age is NaN, not 0.
        """
        table = self._reader.table
        age = (self._reader.clock() - table.meta.published_at).total_seconds() if table else float("nan")
        yield GaugeMetricFamily("forecaster_serving_table_age_seconds", "Age of the table that is served.", age)
        rows = table.rows if table else 0
        yield GaugeMetricFamily("forecaster_serving_table_workloads", "Workloads in the table.", rows)
        unread = "Tables that could not be read."
        yield CounterMetricFamily("forecaster_serving_table_failures", unread, self._reader.failures)
        requests = CounterMetricFamily(
            "forecaster_serving_requests", "Requests by handler and status code.", labels=["handler", "code"]
        )
        for (handler, code), count in sorted(self._requests.items()):
            requests.add_metric([handler, str(code)], count)
        yield requests
        refused = "Requests and connections that were refused, by status."
        yield _counted("forecaster_serving_denials", refused, "status", self._denials)
        if self.admissions:
            sized = "New pods by what became of their size."
            yield _counted("forecaster_serving_admissions", sized, "outcome", self.admissions)
        written = "Tables that computing wrote, or could not write."
        yield _counted("forecaster_serving_table_writes", written, "outcome", self.parent.writes)
        owners = GaugeMetricFamily(
            "forecaster_serving_group_owner",
            "1 for the owner of an API group in this cluster.",
            labels=["group", "owner"],
        )
        for group, owner in sorted(self.owners.items()):
            owners.add_metric([group, owner], 1)
        yield owners
        follows = "1 where the table is a copy of what another replica computes."
        yield GaugeMetricFamily("forecaster_serving_follows", follows, self.parent.follows)

    async def answer(self, request: Request) -> Response:
        """Return the metrics of both processes, then the gauges of the workloads while the table is fresh."""
        return StreamingResponse(self._pieces(request, self._reader.table), media_type=CONTENT_TYPE_LATEST)

    async def _pieces(self, request: Request, table: PublishedTable | None) -> AsyncIterator[bytes]:
        """Labels of gauges name tenants: only for clients with the right to read them, where that is controlled."""
        yield self._own(table)
        if not self.names_on_plain_port and not request.scope["state"]["secure"]:
            yield ON_SECURE_PORT
        elif table is not None and not self._reader.age(table).stale:
            async for piece in self._gauges.pieces(table):
                yield piece

    def _own(self, table: PublishedTable | None) -> bytes:
        """Return this process's metrics. Metrics of computing in a copied table are left to the leader."""
        computing = "" if table is None or self.parent.follows else table.meta.metrics
        return computing.encode() + generate_latest(self)


def _counted(name: str, text: str, label: str, counts: Mapping[str, int]) -> Metric:
    """Return a counter with one label."""
    family = CounterMetricFamily(name, text, labels=[label])
    for value, count in sorted(counts.items()):
        family.add_metric([value], count)
    return family


class CountRequests:
    """ASGI middleware that counts answers."""

    def __init__(self, app: ASGIApp, metrics: ServingMetrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on and note the code of its answer; what fails is answered 500 further out."""
        status = HTTPStatus.INTERNAL_SERVER_ERROR.value

        async def noting(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        try:
            await self._app(scope, receive, noting)
        finally:
            if scope["type"] == "http":
                self._metrics.count(getattr(scope.get("endpoint"), "__name__", "none"), status)


FAMILIES = {
    DEMAND_METRIC: "Demand to scale by, in the signal's unit: the external metric of this name.",
    REPLICAS: "Replicas to scale to, before the HPA's own stabilization and bounds: the external metric of this name.",
    FLOOR: "Least replicas by the forecast: the external metric of this name.",
    "forecaster_workload_replicas": "Requested replicas.",
    "forecaster_workload_recommended_replicas": "Replicas with stabilization and bounds; absent while holding.",
    "forecaster_workload_measured": "Latest measured demand, in the signal's unit.",
    "forecaster_workload_sampled_timestamp_seconds": "Instant of the latest sample of a signal.",
    "forecaster_workload_verdict": "1 for the present verdict and its reason.",
    "forecaster_forecast_peak": "Forecast peak by quantile, in the signal's unit: to look at, acting or not.",
    "forecaster_forecast_lead_seconds": "Seconds until the window begins in which the peak is forecast.",
    "forecaster_forecast_coverage_ratio": "Share of peaks at or below the forecast quantile; a day old counts half.",
    "forecaster_forecast_coverage_aim_ratio": "What the coverage should be.",
    "forecaster_forecast_error_ratio": "Absolute error of the median by the measured peak.",
}
OUTER_LEVELS = (("0.1", "low"), ("0.5", "median"), ("0.95", "high"))
GAUGE_ROWS = 50
"""Rows between two looks at other requests: some milliseconds."""
GaugeSample = tuple[str, str, float]


class TableGauges:
    """Gauges of the latest requested table, compressed, because their text repeats the same ten thousand times."""

    def __init__(self) -> None:
        self._table: PublishedTable | None = None
        self._text: dict[str, list[bytes]] = {}
        self._lock = asyncio.Lock()

    async def pieces(self, table: PublishedTable) -> AsyncIterator[bytes]:
        """The text of a table, family by family, a piece at a time.

        It is made on when its reader has given up: of 100,000 workloads it takes as long as a scrape may.
        """
        text = await asyncio.shield(asyncio.ensure_future(self._text_of(table)))
        for family, pieces in text.items():
            yield _head(family)
            opened = zlib.decompressobj()
            for piece in pieces:
                yield opened.decompress(piece)

    async def _text_of(self, table: PublishedTable) -> dict[str, list[bytes]]:
        async with self._lock:
            if self._table is not table:
                self._text, self._table = await _compressed(table), table
            return self._text


async def _compressed(table: PublishedTable) -> dict[str, list[bytes]]:
    """The lines of each family that has any."""
    if table.meta.gauges == "none":
        return {}
    packers = {family: zlib.compressobj(1) for family in FAMILIES}
    chunks: dict[str, list[bytes]] = {}
    for begin in range(0, table.rows, GAUGE_ROWS):
        lines: dict[str, list[str]] = {}
        for row in range(begin, min(begin + GAUGE_ROWS, table.rows)):
            for family, labels, value in samples(table, table.entry(row)):
                lines.setdefault(family, []).append(f"{family}{{{labels}}} {value!r}\n")
        for family, texts in lines.items():
            chunks.setdefault(family, []).append(packers[family].compress("".join(texts).encode()))
        await asyncio.sleep(0)
    return {family: [*chunks[family], packers[family].flush()] for family in FAMILIES if family in chunks}


def _head(family: str) -> bytes:
    return f"# HELP {family} {FAMILIES[family]}\n# TYPE {family} gauge\n".encode()


def samples(table: PublishedTable, entry: TableEntry) -> Iterator[GaugeSample]:
    """All gauges of one workload: family, labels and value."""
    every = table.meta.gauges == "all"
    labels = f'namespace="{_escaped(entry.namespace)}",kind="{_escaped(entry.kind)}",workload="{_escaped(entry.name)}"'
    yield from _offer(table, entry, labels)
    yield "forecaster_workload_replicas", labels, int(table.number("current", entry.row))
    if entry.verdict != "hold":
        yield "forecaster_workload_recommended_replicas", labels, int(table.number("recommended", entry.row))
    for plane, signal in enumerate(table.signals):
        yield from _signal(table, entry.row, plane, f'{labels},signal="{_escaped(signal)}"', every=every)
    if lead := table.number("lead", entry.row):
        yield "forecaster_forecast_lead_seconds", labels, lead
    if every:
        yield "forecaster_workload_verdict", f'{labels},verdict="{entry.verdict}",reason="{entry.reason}"', 1
        yield from _history(table, entry, labels)


def _offer(table: PublishedTable, entry: TableEntry, labels: str) -> Iterator[GaugeSample]:
    offer = table.published(entry)
    for value in sampled_values(offer, table.meta.published_at) if offer else ():
        signal = f',signal="{_escaped(value.signal)}"' if value.signal else ""
        yield value.metric, labels + signal, value.value


def _signal(table: PublishedTable, row: int, plane: int, labels: str, *, every: bool) -> Iterator[GaugeSample]:
    def known(name: str) -> float | None:
        value: float = table.columns[name][plane][row]
        return None if value != value else value  # noqa: PLR0124  NaN

    for family, name in (
        ("forecaster_workload_measured", "measured"),
        ("forecaster_workload_sampled_timestamp_seconds", "measured_at"),
    ):
        if (value := known(name)) is not None:
            yield family, labels, value
    if (peak := known("peak")) is None:
        return
    outer = {quantile: value for quantile, name in OUTER_LEVELS if every and (value := known(name)) is not None}
    for quantile, value in {**outer, f"{known('forecast_quantile') or 0:g}": peak}.items():
        yield "forecaster_forecast_peak", f'{labels},quantile="{quantile}"', value


def _history(table: PublishedTable, entry: TableEntry, labels: str) -> Iterator[GaugeSample]:
    for accuracy in table.past(entry).accuracy:
        signal = f'{labels},signal="{_escaped(accuracy.signal)}"'
        yield "forecaster_forecast_coverage_ratio", signal, accuracy.coverage
        yield "forecaster_forecast_coverage_aim_ratio", signal, accuracy.quantile
        if accuracy.error_ratio is not None:
            yield "forecaster_forecast_error_ratio", signal, accuracy.error_ratio


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
