"""Protocols of other autoscalers over HTTP: Kapacity's result ConfigMap and the recommender webhook of WatermarkPodAutoscaler."""

from __future__ import annotations

import math
from datetime import (
    datetime,  # noqa: TC003  msgspec resolves the annotations
    timedelta,
)
from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from forecaster.domain.published import REPLICAS
from forecaster.publish.table import TableEntry
from forecaster.publish.views import RecommendationView
from forecaster.serving.rest import ProblemError
from forecaster.serving.values import (
    MetricRequest,
    NotKnown,
    NotNamed,
    NotThere,
    OfferedValue,
    answer,
    entry_of,
    moment_at,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from forecaster.publish.views import ForecastView
    from forecaster.serving.reader import TableReader
    from forecaster.serving.values import AskedAt


class Deciding(NamedTuple):
    """A forecast, and the replicas that it asks for."""

    forecast: ForecastView
    replicas: int


def deciding(view: RecommendationView) -> Deciding | None:
    """The one that asks for the most; None where nothing is forecast."""
    asking = [
        Deciding(one.forecast, one.forecast_replicas)
        for one in view.signals
        if one.forecast is not None and one.forecast_replicas is not None
    ]
    return max(asking, key=lambda one: one.replicas, default=None)


# Kapacity's result ConfigMap: replicas at coming instants, for an IHPA whose algorithm is an external job. Pure.
#
# We have no right to write it. `curl | kubectl apply -f -` by whoever has one makes us a source of its portrait.


UNTIL_AT_LEAST = timedelta(minutes=5)
"""A result that has expired is none to Kapacity: this much for whoever carries it over once a minute."""


class ObjectName(msgspec.Struct, frozen=True):
    """Where it belongs."""

    name: str
    namespace: str


class KapacityResult(msgspec.Struct, frozen=True, rename={"api_version": "apiVersion"}):
    """A manifest."""

    api_version: str
    kind: str
    metadata: ObjectName
    data: dict[str, str]


def kapacity_result(
    portrait: ObjectName, value: OfferedValue, view: RecommendationView, moment: AskedAt
) -> KapacityResult:
    """The count now, and from the beginning of the forecast window on; it expires with that window."""
    counts, until = {_epoch(moment.now): round(value.value)}, moment.now + UNTIL_AT_LEAST
    ahead = deciding(view)
    if ahead is not None:
        counts[_epoch(ahead.forecast.begin)] = max(round(value.value), ahead.replicas)
        until = max(until, ahead.forecast.until)
    data = {
        "type": "TimeSeries",
        "expireTime": f"{until:%Y-%m-%dT%H:%M:%SZ}",
        "timeSeries": msgspec.json.encode(counts).decode(),
    }
    return KapacityResult("v1", "ConfigMap", ObjectName(f"{portrait.name}-result", portrait.namespace), data)


def _epoch(at: datetime) -> str:
    return str(int(at.timestamp()))


# The recommender webhook of Datadog's WatermarkPodAutoscaler: a count with an interval and a reason. Pure.
#
# It scales up at once while there are fewer pods than the lower bound and down while there are more than the upper one.
# So the lower bound is the count itself, because a forecast only raises; the upper one is what the 95 % quantile of the
# deciding forecast would need, because between the two nobody knows that a pod is idle.


class TargetRef(msgspec.Struct, frozen=True):
    """Whom it is about."""

    kind: str
    name: str
    namespace: str


class WatermarkRequest(msgspec.Struct, frozen=True, rename="camel"):
    """What the controller posts; what it says of state and targets we know better from the source."""

    target_ref: TargetRef


class WatermarkReply(msgspec.Struct, frozen=True, rename="camel"):
    """Exactly the fields that it knows: it refuses others."""

    target_replicas: int
    lower_bound_replicas: int
    upper_bound_replicas: int
    timestamp: datetime
    reason: str


class WatermarkError(msgspec.Struct, frozen=True):
    """Why there is no count; the controller then leaves the workload alone."""

    code: int
    message: str


class WatermarkErrorReply(msgspec.Struct, frozen=True):
    """The same as an answer."""

    error: WatermarkError


def watermark_reply(value: OfferedValue, view: RecommendationView) -> WatermarkReply:
    """The answer for a count."""
    count = math.ceil(value.value)
    return WatermarkReply(count, count, max(count, _widest(view)), value.at, view.replicas.message)


def _widest(view: RecommendationView) -> int:
    """Replicas for the upper quantile of the deciding forecast; 0 where there is none."""
    found = deciding(view)
    if found is None or found.forecast.peak <= 0:
        return 0
    return math.ceil(found.replicas * found.forecast.high / found.forecast.peak)


# The addresses of the other protocols, and what goes over HTTP when there is no number.


WORKLOAD = "/api/v1/namespaces/{namespace}/workloads/{kind}/{name}"
BODY_MAX = 64 * 1024
STATUS = {
    NotKnown: HTTPStatus.SERVICE_UNAVAILABLE,
    NotNamed: HTTPStatus.BAD_REQUEST,
    NotThere: HTTPStatus.NOT_FOUND,
}

_recommendation = msgspec.json.Decoder(RecommendationView)


class OfferedCount(NamedTuple):
    """A number with all that is said about it."""

    value: OfferedValue
    view: RecommendationView
    moment: AskedAt


class IntegrationPages:
    """The handlers; ignorance is an error in each protocol's own form, never a 0."""

    def __init__(self, reader: TableReader, clock: Callable[[], datetime], stale_after: timedelta | None) -> None:
        self._reader = reader
        self._clock = clock
        self._stale_after = stale_after

    def routes(self) -> list[Route]:
        """What an application adds to its own."""
        return [
            Route(f"{WORKLOAD}/kapacity/{{portrait}}", self.kapacity_result),
            Route("/api/v1/recommenders/watermark", self.watermark_recommendation, methods=["POST"]),
        ]

    async def kapacity_result(self, request: Request) -> Response:
        """For `kubectl apply`."""
        names = request.path_params
        found = self._found(MetricRequest(names["namespace"], names["name"], names["kind"], REPLICAS))
        if not isinstance(found, OfferedCount):
            raise _problem(found, "GET /api/v1/recommendations lists what there is and why something is not known.")
        portrait = Metadata(names["portrait"], names["namespace"])
        return _json(config_map(portrait, found.value, found.view, found.moment))

    async def watermark_recommendation(self, request: Request) -> Response:
        """For WatermarkPodAutoscaler, which takes errors inside an answer."""
        target = await _target(request)
        found = self._found(MetricRequest(target.namespace, target.name, target.kind, REPLICAS))
        if isinstance(found, OfferedCount):
            return _json(reply(found.value, found.view))
        return _json(ErrorReply(Error(STATUS[type(found)], found.message)))

    def _found(self, asked: MetricRequest) -> OfferedCount | NotKnown | NotNamed | NotThere:
        table = self._reader.table
        if table is None:
            return NotKnown(self._reader.fault)
        moment = moment_at(table, self._clock(), self._stale_after)
        entry = entry_of(table, asked.namespace, asked.name, asked.kind)
        if not isinstance(entry, TableEntry):
            return entry
        value = answer(table, asked, moment)
        return (
            OfferedCount(value, _recommendation.decode(table.record(entry)), moment)
            if isinstance(value, OfferedValue)
            else value
        )


async def _target(request: Request) -> TargetRef:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > BODY_MAX:
            raise ProblemError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "the request is too large", "Send less.")
    try:
        return msgspec.json.decode(body, type=Request).target_ref
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _problem(NotNamed(f"this is no request of the protocol: {error}"), "See docs/integrate.md.") from error


def _problem(why: NotKnown | NotNamed | NotThere, remedy: str) -> ProblemError:
    return ProblemError(STATUS[type(why)], why.message, remedy)


def _json(value: msgspec.Struct) -> Response:
    return Response(msgspec.json.encode(value), media_type="application/json")
