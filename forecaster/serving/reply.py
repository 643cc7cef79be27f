"""Replies: status and body, lists of metric values, Kubernetes' Table for `kubectl get`, and `Status` for errors."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Any

import msgspec

from forecaster.serving.answers import WorkloadValue

JSON_TYPE = b"application/json"
STATUS_REASONS = {
    HTTPStatus.BAD_REQUEST: "BadRequest",
    HTTPStatus.UNAUTHORIZED: "Unauthorized",
    HTTPStatus.FORBIDDEN: "Forbidden",
    HTTPStatus.NOT_FOUND: "NotFound",
    HTTPStatus.METHOD_NOT_ALLOWED: "MethodNotAllowed",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "RequestEntityTooLarge",
    HTTPStatus.REQUEST_URI_TOO_LONG: "RequestURITooLong",
    HTTPStatus.TOO_MANY_REQUESTS: "TooManyRequests",
    HTTPStatus.INTERNAL_SERVER_ERROR: "InternalError",
    HTTPStatus.BAD_GATEWAY: "InternalError",
    HTTPStatus.SERVICE_UNAVAILABLE: "ServiceUnavailable",
    HTTPStatus.GATEWAY_TIMEOUT: "Timeout",
}


class HttpReply(msgspec.Struct, frozen=True, gc=False):
    """One HTTP answer, without the transport. Thousands are kept: the garbage collector need not look at them."""

    status: int
    body: bytes
    content_type: bytes = JSON_TYPE
    headers: tuple[tuple[bytes, bytes], ...] = ()


class RefusalStatus(msgspec.Struct, frozen=True, rename="camel"):
    """meta.k8s.io/v1 Status of a refusal."""

    message: str
    reason: str
    code: int
    kind: str = "Status"
    api_version: str = "v1"
    metadata: dict[str, str] = {}
    status: str = "Failure"


def failure(status: HTTPStatus, message: str) -> HttpReply:
    """Reply with a refusal. The message reaches conditions and events that tenants read: no internals belong in it.

    There is never a Retry-After: clients of the Go library would sleep on it within one sync of an HPA.
    """
    return HttpReply(status, msgspec.json.encode(RefusalStatus(message, STATUS_REASONS.get(status, "Unknown"), status)))


def success(value: msgspec.Struct) -> HttpReply:
    """Reply with the requested object."""
    return HttpReply(HTTPStatus.OK, msgspec.json.encode(value))


MILLI_MAX = 9_200_000_000_000_000_000
"""Largest number of milli-units in a signed 64-bit integer, which the HPA's controller counts in."""


def quantity(value: float) -> str:
    """Format as decimal SI, whole or in milli-units, rounded up as the HPA does (HPA rules §2), within 0 and 9.2e15.

    The inner rounding takes back what the multiplication adds: 1.001 are 1001 m and not 1002 m.

    Raises:
        ValueError: the value is not a number.

    >>> quantity(12.5), quantity(3.0), quantity(8e9)
    ('12500m', '3', '8000000000')
    """
    if math.isnan(value):
        raise ValueError("NaN is no quantity")
    milli = math.ceil(round(min(max(value * 1000, 0.0), MILLI_MAX), 6))
    return f"{milli}m" if milli % 1000 else str(milli // 1000)


class ExternalMetricValue(msgspec.Struct, frozen=True, rename="camel"):
    """external.metrics.k8s.io/v1beta1."""

    metric_name: str
    metric_labels: dict[str, str]
    timestamp: str
    value: str


class ExternalMetricValueList(msgspec.Struct, frozen=True, rename="camel"):
    """external.metrics.k8s.io/v1beta1, or our own group; the HPA adds its items up."""

    items: tuple[ExternalMetricValue, ...]
    api_version: str
    kind: str = "ExternalMetricValueList"
    metadata: dict[str, str] = {}


class ObjectReference(msgspec.Struct, frozen=True, rename="camel"):
    """Object described by a value; custom metrics belong to Deployments and StatefulSets."""

    kind: str
    namespace: str
    name: str
    api_version: str = "apps/v1"


class MetricIdentifier(msgspec.Struct, frozen=True):
    """Name of a custom metric."""

    name: str


class MetricValue(msgspec.Struct, frozen=True, rename="camel"):
    """custom.metrics.k8s.io/v1beta2."""

    described_object: ObjectReference
    metric: MetricIdentifier
    timestamp: str
    value: str


class MetricValueList(msgspec.Struct, frozen=True, rename="camel"):
    """custom.metrics.k8s.io/v1beta2."""

    items: tuple[MetricValue, ...]
    kind: str = "MetricValueList"
    api_version: str = "custom.metrics.k8s.io/v1beta2"
    metadata: dict[str, str] = {}


def external(workload_value: WorkloadValue, version: str) -> ExternalMetricValueList:
    """Return a list with the one value, in the group and version of the request."""
    value = workload_value.value
    item = ExternalMetricValue(value.metric, workload_value.labels(), instant(value.at), quantity(value.value))
    return ExternalMetricValueList((item,), version)


def custom(workload_value: WorkloadValue) -> MetricValueList:
    """Return a list with the one value, described by its workload."""
    entry, value = workload_value.entry, workload_value.value
    described = ObjectReference(entry.kind, entry.namespace, entry.name)
    item = MetricValue(described, MetricIdentifier(value.metric), instant(value.at), quantity(value.value))
    return MetricValueList((item,))


def instant(at: datetime) -> str:
    """Format an instant by RFC 3339 in whole seconds, as the API's own types do."""
    return at.astimezone(UTC).replace(microsecond=0, tzinfo=None).isoformat() + "Z"


TABLE_COLUMNS = (
    ("Metric", "Which number."),
    ("Workload", "The workload that the value belongs to."),
    ("Signal", "Which demand; empty for counts."),
    ("Value", "Cores, bytes, requests per second or replicas."),
    ("Source", "forecast, measured, or the answer while neither is known."),
    ("Age", "Time of the latest sample behind the value."),
)


def print_table(workload_value: WorkloadValue, now: datetime) -> dict[str, Any]:
    """meta.k8s.io/v1 Table: what `kubectl get` prints."""
    value, entry = workload_value.value, workload_value.entry
    cells = [
        value.metric,
        f"{entry.kind}/{entry.name}",
        value.signal,
        quantity(value.value),
        value.source,
        age(value.age(now)),
    ]
    about = {"metadata": {"name": value.metric, "namespace": entry.namespace, "creationTimestamp": None}}
    partial = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", **about}
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {},
        "columnDefinitions": [
            {"name": name, "type": "string", "format": "", "description": text, "priority": 0}
            for name, text in TABLE_COLUMNS
        ],
        "rows": [{"cells": cells, "object": partial}],
    }


def age(span: timedelta) -> str:
    """Format an age in whole seconds below two minutes, else in whole minutes, as `kubectl` does."""
    seconds = int(span.total_seconds())
    return f"{seconds}s" if seconds < 120 else f"{seconds // 60}m"  # noqa: PLR2004  stated above
