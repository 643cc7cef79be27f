"""`/api/v1/namespaces/{namespace}/workloads/{kind}/{name}/...`: one workload from every side."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec

from forecaster.domain.published import REPLICAS
from forecaster.domain.report import DecisionChange
from forecaster.domain.workload import Workload, WorkloadId
from forecaster.errors import unexpected
from forecaster.horizontal.sentences import explanation
from forecaster.hpa.behavior import Behavior
from forecaster.publish.decision_history import AccuracyView
from forecaster.publish.reader import TableAge
from forecaster.publish.record import MODE_CODES
from forecaster.publish.values import NotNamed, OfferedValue, values_for
from forecaster.publish.views import PathView, QuantileView, SignalItem, path_view
from forecaster.serving.answers import MetricRequest, NotThere, answer, entry_of
from forecaster.serving.options import FACTS_SECONDS_MAX
from forecaster.serving.rest import RecommendationPages, json_response, missing, parameters_of
from forecaster.serving.what_if import CallerLimit

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from forecaster.domain.decision import Recommendation
    from forecaster.domain.signal import StepForecast
    from forecaster.publish.reader import PublishedTable, TableEntry


class SignalForecastView(msgspec.Struct, frozen=True):
    """One signal, now and forecast.

    `quantiles` are those of the largest demand in the window that a decision can still reach, empty where there is no
    forecast, and `note` says why. `path` is the coming hour step by step, null where none was made.
    """

    signal: str
    unit: str
    measured: float | None
    measured_at: datetime | None
    model: str | None
    begin: datetime | None
    until: datetime | None
    quantiles: tuple[QuantileView, ...]
    note: str
    path: PathView | None


class WorkloadForecasts(TableAge, frozen=True, kw_only=True):
    """All signals of a workload."""

    forecasts: tuple[SignalForecastView, ...]


class WorkloadDecisions(TableAge, frozen=True, kw_only=True):
    """The last changes of the recommended count, the newest first."""

    decisions: tuple[DecisionChange, ...]


class WorkloadExplanation(TableAge, frozen=True, kw_only=True):
    """Lines from top to bottom: measurements, forecasts, every clamp, the number and why, what the HPA does next."""

    lines: list[str]


class WorkloadAccuracy(TableAge, frozen=True, kw_only=True):
    """Outcome of a workload's forecasts."""

    accuracy: tuple[AccuracyView, ...]


class OfferedReplicas(msgspec.Struct, frozen=True, gc=False):
    """The offered count, null where it is not known, and the current one."""

    recommended: int | None
    current: int


class MetricValueView(msgspec.Struct, frozen=True):
    """One number, for readers that take a number out of JSON (KEDA's metrics-api).

    It stands once more below the name of its signal: KEDA calls its metric after that place, and the HPA's target on it
    is known to mean this signal only by such a name.
    """

    value: float
    forecaster: dict[str, float]
    unit: str
    quantile: float | None
    sampled_at: datetime
    generated_at: datetime
    age_seconds: float
    status: str
    replicas: OfferedReplicas


class HpaFacts(msgspec.Struct, frozen=True):
    """Facts of the computing process about a workload, from which the next sync of its HPA follows."""

    workload: Workload
    policy: dict[str, Any]
    behavior: Behavior | None = None
    least: int | None = None
    scalers: tuple[str, ...] = ()


_facts = msgspec.msgpack.Decoder(HpaFacts)  # made here: threads that each make one at once may end the process


def encoded_facts_of(path: str, id_: WorkloadId) -> bytes:
    """Ask the computing process at this socket for its facts about a workload; empty where it has none.

    Raises:
        OSError: it does not answer.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        asking.settimeout(FACTS_SECONDS_MAX)
        asking.connect(path)
        asking.sendall(msgspec.json.encode(id_) + b"\n")
        return asking.makefile("rb").read()


class RowExplanations:
    """Explains rows of the table: the record in sentences, and what the HPA does next.

    Its bounds, its behavior and the requests of its pods are facts of the computing process at the socket `facts`;
    without one nothing is said of the next step. Where this replica `follows` another, they are those of a time when it
    computed itself. One question is asked at a time, as often as one reader may ask: a cycle must not wait for readers.
    """

    def __init__(self, facts: str = "", follows: Callable[[], bool] = lambda: False) -> None:
        self._facts, self._follows = facts, follows
        self._turn, self.limit = asyncio.Lock(), CallerLimit()

    async def lines(self, table: PublishedTable, entry: TableEntry) -> list[str]:
        """Return the lines as `forecaster explain` prints them."""
        record = table.recommendation(entry)
        lines = explanation(record)
        if not self._facts:
            return lines
        if self._follows():
            following = _not_known(record, "only the replica that computes can say")
        elif not self.limit.allows(""):
            following = _not_known(record, "too many ask; ask again in a moment")
        else:
            async with self._turn:
                following = await asyncio.to_thread(self._next, table, entry, record)
        return [*lines, *(f"  {line}" for line in following)]

    def _next(self, table: PublishedTable, entry: TableEntry, record: Recommendation) -> list[str]:
        from forecaster.horizontal.hpa_next import next_sync  # noqa: PLC0415  no start waits for it

        facts: HpaFacts | None = None
        with suppress(OSError, msgspec.MsgspecError):
            encoded = encoded_facts_of(self._facts, record.id)
            facts = _facts.decode(encoded) if encoded else None
        if facts is None or facts.workload.replicas != record.replicas_now:
            return _not_known(record, "the computing process is busy or gone")
        hpa, mode = facts.workload.autoscaler, MODE_CODES[table.columns["mode"][0][entry.row]]
        reads = facts.policy.get("horizontal", {}).get("demand_signal", "")
        offered = values_for(table.published(entry), hpa.targets if hpa else (), record.at, reads)
        try:
            return next_sync(facts.workload, record, offered, mode, facts.least, facts.behavior, facts.scalers)
        except Exception as error:  # noqa: BLE001  the boundary of a sentence: the record itself is explained
            return _not_known(record, unexpected(error))


def _not_known(record: Recommendation, why: str) -> list[str]:
    return [f"What HPA {record.autoscaler} does next is not known: {why}."] if record.autoscaler else []


class Workloads:
    """The handlers; they share the table and its age with `pages`."""

    def __init__(self, pages: RecommendationPages, explanations: RowExplanations) -> None:
        self._pages, self._explanations = pages, explanations

    async def forecasts(self, request: Request) -> Response:
        """Quantiles of every signal over the window that a decision can still reach, and step by step."""
        table, entry = self._entry(request)
        paths, now = table.paths(entry), self._pages.reader.moment(table).now
        outlooks = tuple(signal_forecast_view(item, paths.get(item.signal), now) for item in table.view(entry).signals)
        return json_response(WorkloadForecasts(*self._pages.age(table), forecasts=outlooks))

    async def decisions(self, request: Request) -> Response:
        """Return the last changes of the recommendation."""
        table, entry = self._entry(request)
        return json_response(WorkloadDecisions(*self._pages.age(table), decisions=table.past(entry).decisions))

    async def explanation(self, request: Request) -> Response:
        """The recommendation in sentences."""
        table, entry = self._entry(request)
        lines = await self._explanations.lines(table, entry)
        return json_response(WorkloadExplanation(*self._pages.age(table), lines=lines))

    async def accuracy(self, request: Request) -> Response:
        """Return the outcome of a workload's forecasts."""
        table, entry = self._entry(request)
        return json_response(WorkloadAccuracy(*self._pages.age(table), accuracy=table.past(entry).accuracy))

    async def value(self, request: Request) -> Response:
        """One metric as HPAs read it, with the same abstaining; what cannot be said is 503 and never 0."""
        table, entry = self._entry(request, "signal")
        metric, signal = request.path_params["metric"], request.query_params.get("signal", "")
        metric_request, moment = MetricRequest(*entry.key, metric, signal), self._pages.reader.moment(table)
        counted = metric_request._replace(metric=REPLICAS, signal="", target=1.0)
        value, count = answer(table, metric_request, moment), answer(table, counted, moment)
        if not isinstance(value, OfferedValue):
            raise missing(value)
        view = table.view(entry)
        units = {item.signal: item.unit for item in view.signals}
        return json_response(
            MetricValueView(
                value=value.value,
                forecaster={value.signal or metric_request.metric.removeprefix("forecaster_"): value.value},
                unit=units.get(value.signal, "") if value.signal else "replicas",
                quantile=value.quantile,
                sampled_at=value.at,
                generated_at=table.meta.published_at,
                age_seconds=value.age(moment.now).total_seconds(),
                status=value.source,
                replicas=OfferedReplicas(
                    round(count.value) if isinstance(count, OfferedValue) else None, view.replicas.now
                ),
            )
        )

    def _entry(self, request: Request, *allowed: str) -> tuple[PublishedTable, TableEntry]:
        parameters_of(request, *allowed)
        table, names = self._pages.table(), request.path_params
        entry = entry_of(table, names["namespace"], names["name"], names["kind"])
        if isinstance(entry, (NotNamed, NotThere)):
            raise missing(entry)
        return table, entry


def signal_forecast_view(item: SignalItem, path: StepForecast | None, now: datetime) -> SignalForecastView:
    """The public form of one signal, now and ahead."""
    ahead = item.forecast
    quantiles = (
        ((0.1, ahead.low), (0.5, ahead.median), (ahead.quantile, ahead.peak), (0.95, ahead.high)) if ahead else ()
    )
    return SignalForecastView(
        signal=item.signal,
        unit=item.unit,
        measured=item.measured,
        measured_at=item.measured_at,
        model=ahead.model if ahead else None,
        begin=ahead.begin if ahead else None,
        until=ahead.until if ahead else None,
        quantiles=tuple(QuantileView(*pair) for pair in sorted(dict(quantiles).items())),
        note=item.note or (ahead.note if ahead else ""),
        path=path_view(path, now) if path else None,
    )
