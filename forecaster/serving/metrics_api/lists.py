"""The wire types: lists of values, and the same as a Table for `kubectl get`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from forecaster.serving.metrics_api.quantity import quantity

if TYPE_CHECKING:
    from forecaster.serving.metrics_api.find import Found

EXTERNAL = "external.metrics.k8s.io/v1beta1"
CUSTOM = "custom.metrics.k8s.io/v1beta2"
GROUP_OF_KIND = {"Deployment": "apps/v1", "StatefulSet": "apps/v1", "ReplicaSet": "apps/v1"}


class ExternalMetricValue(msgspec.Struct, frozen=True, rename="camel"):
    """external.metrics.k8s.io/v1beta1."""

    metric_name: str
    metric_labels: dict[str, str]
    timestamp: str
    value: str


class ExternalMetricValueList(msgspec.Struct, frozen=True, rename="camel"):
    """external.metrics.k8s.io/v1beta1; the HPA adds its items up."""

    items: tuple[ExternalMetricValue, ...]
    kind: str = "ExternalMetricValueList"
    api_version: str = EXTERNAL
    metadata: dict[str, str] = {}


class ObjectReference(msgspec.Struct, frozen=True, rename="camel"):
    """The object that a value describes."""

    kind: str
    namespace: str
    name: str
    api_version: str


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
    api_version: str = CUSTOM
    metadata: dict[str, str] = {}


def external(found: Found) -> ExternalMetricValueList:
    """A list of the one value."""
    value = found.value
    item = ExternalMetricValue(value.metric, found.labels(), instant(value.at), quantity(value.value))
    return ExternalMetricValueList((item,))


def custom(found: Found) -> MetricValueList:
    """A list of the one value, with its workload as the object."""
    entry, value = found.entry, found.value
    whose = ObjectReference(entry.kind, entry.namespace, entry.name, GROUP_OF_KIND.get(entry.kind, ""))
    item = MetricValue(whose, MetricIdentifier(value.metric), instant(value.at), quantity(value.value))
    return MetricValueList((item,))


def instant(at: datetime) -> str:
    """RFC 3339 in whole seconds, as the API's own types write it."""
    return at.astimezone(UTC).replace(microsecond=0, tzinfo=None).isoformat() + "Z"


COLUMNS = (
    ("Metric", "Which number."),
    ("Workload", "The workload that the value belongs to."),
    ("Signal", "Which demand; empty for counts."),
    ("Value", "Cores, bytes, requests per second or replicas."),
    ("Source", "forecast, measured, or what is said while neither is known."),
    ("Age", "Of the newest sample behind the value."),
)


def print_table(found: Found, now: datetime) -> dict[str, Any]:
    """meta.k8s.io/v1 Table: what `kubectl get` prints."""
    value, entry = found.value, found.entry
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
            {"name": name, "type": "string", "format": "", "description": text, "priority": 0} for name, text in COLUMNS
        ],
        "rows": [{"cells": cells, "object": partial}],
    }


def age(span: timedelta) -> str:
    """Whole seconds below two minutes, whole minutes above, as `kubectl` has it."""
    seconds = int(span.total_seconds())
    return f"{seconds}s" if seconds < 120 else f"{seconds // 60}m"  # noqa: PLR2004  stated above
