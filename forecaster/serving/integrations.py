"""Protocols of other autoscalers over HTTP: Kapacity's result ConfigMap, WatermarkPodAutoscaler's recommender webhook.

Both read the count of the offer. Where it is not known they get an error in their own form, never a 0.
"""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from typing import NamedTuple

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from forecaster.domain.published import REPLICAS
from forecaster.kube.objects import NOT_READ
from forecaster.publish.reader import TableEntry, TableReader
from forecaster.publish.values import KNOWN, NotKnown, NotNamed, OfferedValue, WorkloadOffer
from forecaster.serving.answers import MetricRequest, NotThere, NoValue, answer, entry_of
from forecaster.serving.rest import MISSING, json_response, missing, whole_body

EXPIRES_AFTER = timedelta(minutes=5)
"""Kapacity ignores expired results: this long for a job that passes them on once a minute."""


class ObjectName(msgspec.Struct, frozen=True):
    """Namespace and name of an object."""

    name: str
    namespace: str


class KapacityResult(msgspec.Struct, frozen=True, rename={"api_version": "apiVersion"}):
    """A manifest."""

    api_version: str
    kind: str
    metadata: ObjectName
    data: dict[str, str]


def kapacity_result(portrait: ObjectName, value: OfferedValue, now: datetime) -> KapacityResult:
    """The offered count from now on. We have no right to write it: `curl | kubectl apply -f -` carries it over."""
    data = {
        "type": "TimeSeries",
        "expireTime": f"{now + EXPIRES_AFTER:%Y-%m-%dT%H:%M:%SZ}",
        "timeSeries": msgspec.json.encode({str(int(now.timestamp())): round(value.value)}).decode(),
    }
    return KapacityResult("v1", "ConfigMap", ObjectName(f"{portrait.name}-result", portrait.namespace), data)


class TargetRef(msgspec.Struct, frozen=True):
    """The requested workload."""

    kind: str
    name: str
    namespace: str


class WatermarkRequest(msgspec.Struct, frozen=True, rename="camel"):
    """Body posted by the controller; its state and targets are ignored, because the source knows them better."""

    target_ref: TargetRef


class WatermarkReply(msgspec.Struct, frozen=True, rename="camel"):
    """Exactly the fields that it knows: it refuses others."""

    target_replicas: int
    lower_bound_replicas: int
    upper_bound_replicas: int
    timestamp: datetime
    reason: str


class WatermarkError(msgspec.Struct, frozen=True):
    """Reason why there is no count; the controller then leaves the workload unchanged."""

    code: int
    message: str


class WatermarkErrorReply(msgspec.Struct, frozen=True):
    """A refusal in the controller's own form."""

    error: WatermarkError


def watermark_reply(value: OfferedValue, offer: WorkloadOffer, reason: str) -> WatermarkReply:
    """The offered count with its interval.

    The controller scales up at once while there are fewer pods than the lower bound, and down while there are more than
    the upper one. The lower bound is the count itself, because a forecast only raises; between it and the upper one it
    is not known that a pod is idle.
    """
    count = math.ceil(value.value)
    most = offer.replicas_most if value.source in KNOWN else 0
    return WatermarkReply(count, count, max(count, most), value.at, reason)


INTEGRATION_PATH = "/api/v1/namespaces/{namespace}/workloads/{kind}/{name}"


class OfferedCount(NamedTuple):
    """The count that is offered of a workload, and why it was decided."""

    value: OfferedValue
    offer: WorkloadOffer
    reason: str


class IntegrationPages:
    """The handlers."""

    def __init__(self, reader: TableReader) -> None:
        self._reader = reader

    def routes(self) -> list[Route]:
        """Return the routes for an application."""
        return [
            Route(f"{INTEGRATION_PATH}/kapacity/{{portrait}}", self.kapacity_result),
            Route("/api/v1/recommenders/watermark", self.watermark_recommendation, methods=["POST"]),
        ]

    async def kapacity_result(self, request: Request) -> Response:
        """Return the result object for `kubectl apply`."""
        names = request.path_params
        count = self._count(MetricRequest(names["namespace"], names["name"], names["kind"], REPLICAS, target=1.0))
        if not isinstance(count, OfferedCount):
            raise missing(count, "GET /api/v1/recommendations lists what there is and why something is not known.")
        portrait = ObjectName(names["portrait"], names["namespace"])
        return json_response(kapacity_result(portrait, count.value, self._reader.clock()))

    async def watermark_recommendation(self, request: Request) -> Response:
        """Return the value for WatermarkPodAutoscaler, which expects errors inside an answer."""
        try:
            target = msgspec.json.decode(await whole_body(request.receive), type=WatermarkRequest).target_ref
        except NOT_READ as error:
            raise missing(NotNamed(f"this is no request of the protocol: {error}"), "See docs/integrate.md.") from error
        count = self._count(MetricRequest(target.namespace, target.name, target.kind, REPLICAS, target=1.0))
        if isinstance(count, OfferedCount):
            return json_response(watermark_reply(count.value, count.offer, count.reason))
        return json_response(WatermarkErrorReply(WatermarkError(MISSING[type(count)][0], count.message)))

    def _count(self, request: MetricRequest) -> OfferedCount | NoValue:
        table = self._reader.table
        if table is None:
            return NotKnown(self._reader.fault)
        moment = self._reader.moment(table)
        entry = entry_of(table, request.namespace, request.name, request.kind)
        if not isinstance(entry, TableEntry):
            return entry
        value, offer = answer(table, request, moment), table.published(entry)
        if not isinstance(value, OfferedValue) or offer is None:
            return value if not isinstance(value, OfferedValue) else NotThere("it has no offer")
        return OfferedCount(value, offer, table.recommendation(entry).replicas.message)
