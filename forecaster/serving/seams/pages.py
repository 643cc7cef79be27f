"""The addresses of the other protocols, and what goes over HTTP when there is no number."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from starlette.responses import Response
from starlette.routing import Route

from forecaster.domain.published import REPLICAS
from forecaster.publish.table import TableEntry
from forecaster.publish.views import RecommendationView
from forecaster.serving.asked import Asked, NotThere, answer, entry_of, moment_at
from forecaster.serving.problem import ProblemError
from forecaster.serving.seams import kapacity, watermark
from forecaster.serving.values import NotKnown, NotNamed, Value

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime, timedelta

    from starlette.requests import Request

    from forecaster.serving.reader import TableReader
    from forecaster.serving.values import Moment

WORKLOAD = "/api/v1/namespaces/{namespace}/workloads/{kind}/{name}"
BODY_MAX = 64 * 1024
STATUS = {
    NotKnown: HTTPStatus.SERVICE_UNAVAILABLE,
    NotNamed: HTTPStatus.BAD_REQUEST,
    NotThere: HTTPStatus.NOT_FOUND,
}

_view = msgspec.json.Decoder(RecommendationView)


class Found(NamedTuple):
    """A number with all that is said about it."""

    value: Value
    view: RecommendationView
    moment: Moment


class Seams:
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
        found = self._found(Asked(names["namespace"], names["name"], names["kind"], REPLICAS))
        if not isinstance(found, Found):
            raise _problem(found, "GET /api/v1/recommendations lists what there is and why something is not known.")
        portrait = kapacity.Metadata(names["portrait"], names["namespace"])
        return _json(kapacity.config_map(portrait, found.value, found.view, found.moment))

    async def watermark_recommendation(self, request: Request) -> Response:
        """For WatermarkPodAutoscaler, which takes errors inside an answer."""
        target = await _target(request)
        found = self._found(Asked(target.namespace, target.name, target.kind, REPLICAS))
        if isinstance(found, Found):
            return _json(watermark.reply(found.value, found.view))
        return _json(watermark.ErrorReply(watermark.Error(STATUS[type(found)], found.message)))

    def _found(self, asked: Asked) -> Found | NotKnown | NotNamed | NotThere:
        table = self._reader.table
        if table is None:
            return NotKnown(self._reader.fault)
        moment = moment_at(table, self._clock(), self._stale_after)
        entry = entry_of(table, asked.namespace, asked.name, asked.kind)
        if not isinstance(entry, TableEntry):
            return entry
        value = answer(table, asked, moment)
        return Found(value, _view.decode(table.record(entry)), moment) if isinstance(value, Value) else value


async def _target(request: Request) -> watermark.TargetRef:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > BODY_MAX:
            raise ProblemError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "the request is too large", "Send less.")
    try:
        return msgspec.json.decode(body, type=watermark.Request).target_ref
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _problem(NotNamed(f"this is no request of the protocol: {error}"), "See docs/integrate.md.") from error


def _problem(why: NotKnown | NotNamed | NotThere, remedy: str) -> ProblemError:
    return ProblemError(STATUS[type(why)], why.message, remedy)


def _json(value: msgspec.Struct) -> Response:
    return Response(msgspec.json.encode(value), media_type="application/json")
