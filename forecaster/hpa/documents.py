"""Objects as `kubectl get -o json` prints them, to the values one pass looks at.

Pods come as PodList, List or single Pods. Metrics come as the answers of the three metrics APIs: PodMetricsList
(Resource and ContainerResource), MetricValueList (Pods and Object), ExternalMetricValueList. Reading JSON or YAML is
the caller's.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

from forecaster.domain.quantity import QuantityError, parse_quantity
from forecaster.hpa.pods import HpaPod, PodContainer, ReadyCondition
from forecaster.hpa.proposals import Unmeasured
from forecaster.hpa.samples import (
    Answer,
    ContainerUsage,
    ObjectMetric,
    PodMetrics,
    read_external_values,
    read_pod_usage,
    read_pod_values,
)
from forecaster.hpa.selectors import SelectorError, parse_selector
from forecaster.hpa.spec import HpaSpec, MetricSpec

Wire = Mapping[str, Any]

POD_METRICS, METRIC_VALUES, EXTERNAL_VALUES = "PodMetricsList", "MetricValueList", "ExternalMetricValueList"
METRIC_KINDS = (POD_METRICS, METRIC_VALUES, EXTERNAL_VALUES)

_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ns|us|µs|ms|s|m|h)", re.ASCII)
_DURATION = re.compile(rf"({_PART.pattern})+", re.ASCII)
_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


class DocumentError(ValueError):
    """A document is not of the form it claims; the message says which, where, and what came instead."""


def pods_of(documents: Iterable[Any]) -> list[HpaPod]:
    """All pods of Pod, PodList and List documents."""
    return [_pod(item) for item in _items(documents)]


def answers_of(spec: HpaSpec, documents: Sequence[Any]) -> list[Answer]:
    """The answers of the metrics APIs, one per metric of the spec; one that no document mentions has no samples."""
    for document in documents:
        if not isinstance(document, Mapping) or document.get("kind") not in METRIC_KINDS:
            raise DocumentError(f"a metrics document has kind {', '.join(METRIC_KINDS)}; got {_kind(document)}")
    return [_answer(metric, documents) for metric in spec.metrics]


def newest_sample(documents: Iterable[Any]) -> datetime | None:
    """Return the latest timestamp of any sample, None without one."""
    times = [
        _time(item["timestamp"], "timestamp")
        for document in documents
        for item in _list(document, "items")
        if item.get("timestamp") is not None
    ]
    return max(times, default=None)


def _items(documents: Iterable[Any]) -> Iterable[Wire]:
    """Yield single pods, also those in lists of any kind."""
    for document in documents:
        if not isinstance(document, Mapping):
            raise DocumentError(f"a document is a mapping with a kind, got {_kind(document)}")
        if document.get("kind") == "Pod":
            yield document
        elif str(document.get("kind", "")).endswith("List"):
            yield from _list(document, "items")
        else:
            raise DocumentError(f"expected Pod or a list of them, got {_kind(document)}")


def _kind(document: Any) -> str:
    return repr(document.get("kind")) if isinstance(document, Mapping) else f"a {type(document).__name__}"


def _list(document: Any, key: str) -> list[Wire]:
    """The mappings under a key; absent and null are no entries."""
    inner = document.get(key) if isinstance(document, Mapping) else None
    if inner is None:
        return []
    if not isinstance(inner, list) or not all(isinstance(item, Mapping) for item in inner):
        raise DocumentError(f"{key} of {document.get('kind', 'a document')} must be a list of mappings")
    return inner


def _mapping(document: Wire, key: str) -> Wire:
    """The mapping under a key; absent and null are an empty one."""
    inner = document.get(key)
    if inner is not None and not isinstance(inner, Mapping):
        raise DocumentError(f"{key} must be a mapping, got {_kind(inner)}")
    return inner or {}


def _text(document: Wire, key: str) -> str:
    """The text under a key; absent and null are an empty one."""
    return str(document.get(key) or "")


def _pod(item: Wire) -> HpaPod:
    metadata, spec, status = (_mapping(item, key) for key in ("metadata", "spec", "status"))
    name, labels = _text(metadata, "name"), _mapping(metadata, "labels")
    start = status.get("startTime")
    level = _mapping(spec, "resources").get("requests")
    return HpaPod(
        name=name,
        phase=_text(status, "phase"),
        deleting=metadata.get("deletionTimestamp") is not None,
        start_time=None if start is None else _time(start, f"startTime of Pod {name}"),
        ready=_ready(name, _list(status, "conditions")),
        containers=[_container(name, c) for c in _list(spec, "containers")],
        init_containers=[_container(name, c) for c in _list(spec, "initContainers")],
        pod_requests_milli=None if level is None else _quantities(level, f"resources of Pod {name}"),
        overhead_milli=_quantities(spec.get("overhead") or {}, f"overhead of Pod {name}"),
        labels={key: str(value) for key, value in labels.items()},
    )


def _ready(pod: str, conditions: list[Wire]) -> ReadyCondition | None:
    for condition in conditions:
        if condition.get("type") == "Ready":
            since = condition.get("lastTransitionTime")
            at = datetime.min.replace(tzinfo=UTC) if since is None else _time(since, f"Ready of Pod {pod}")
            return ReadyCondition(str(condition.get("status")), at)
    return None


def _container(pod: str, container: Wire) -> PodContainer:
    name, requests = _text(container, "name"), _mapping(_mapping(container, "resources"), "requests")
    where = f"container {name} of Pod {pod}"
    return PodContainer(name, _quantities(requests, where), container.get("restartPolicy") == "Always")


def _answer(metric: MetricSpec, documents: Sequence[Any]) -> Answer:
    if metric.source in {"Resource", "ContainerResource"}:
        items = [_pod_usage(item) for item in _of_kind(documents, POD_METRICS)]
        return read_pod_usage(items, metric.name, metric.container)
    if metric.source == "External":
        listed = (item for item in _of_kind(documents, EXTERNAL_VALUES) if item.get("metricName") == metric.name)
        values = [item for item in listed if _selected(metric, item)]
        return read_external_values([_milli(item.get("value"), f"external metric {metric.name}") for item in values])
    values = [item for item in _of_kind(documents, METRIC_VALUES) if _metric_name(item) == metric.name]
    return _pod_values(metric, values) if metric.source == "Pods" else _object_value(metric, values)


def _of_kind(documents: Sequence[Any], kind: str) -> list[Wire]:
    return [item for document in documents if document.get("kind") == kind for item in _list(document, "items")]


def _selected(metric: MetricSpec, item: Wire) -> bool:
    """Whether a value has the labels that the metric selects, as far as it has any of these keys."""
    labels = {key: str(value) for key, value in _mapping(item, "metricLabels").items()}
    try:
        requirements = parse_selector(metric.selector).requirements
    except SelectorError as error:
        raise DocumentError(f"selector of external metric {metric.name}: {error}") from None
    return all(requirement.matches(labels) for requirement in requirements if requirement.key in labels)


def _metric_name(item: Wire) -> Any:
    """v1beta1 of the custom metrics API has `metricName`, v1beta2 `metric.name`."""
    return _mapping(item, "metric").get("name") or item.get("metricName")


def _pod_usage(item: Wire) -> PodMetrics:
    name = _text(_mapping(item, "metadata"), "name")
    where = f"PodMetrics {name}"
    containers = [
        ContainerUsage(_text(c, "name"), _quantities(c.get("usage") or {}, where)) for c in _list(item, "containers")
    ]
    return PodMetrics(name, _time(item.get("timestamp"), where), _window(item.get("window"), where), containers)


def _pod_values(metric: MetricSpec, items: list[Wire]) -> Answer:
    values = []
    for item in items:
        described = _mapping(item, "describedObject")
        if described.get("kind") == "Pod":
            pod, window = _text(described, "name"), item.get("windowSeconds")
            where = f"metric {metric.name} of Pod {pod}"
            over = None if window is None else _window(f"{window}s", where)
            values.append((pod, _milli(item.get("value"), where), _time(item.get("timestamp"), where), over))
    return read_pod_values(values)


def _object_value(metric: MetricSpec, items: list[Wire]) -> Answer:
    subject = metric.described_object
    for item in items:
        described = _mapping(item, "describedObject")
        if subject and (described.get("kind"), described.get("name")) == (subject.kind, subject.name):
            return ObjectMetric(_milli(item.get("value"), f"metric {metric.name} of {subject.kind} {subject.name}"))
    return Unmeasured("no_samples", f"no value of metric {metric.name} for the described object")


def _quantities(amounts: Any, where: str) -> dict[str, int]:
    if not isinstance(amounts, Mapping):
        raise DocumentError(f"{where}: amounts must be a mapping, got {type(amounts).__name__}")
    return {str(resource): _milli(amount, f"{resource} of {where}") for resource, amount in amounts.items()}


def _milli(amount: Any, where: str) -> int:
    try:
        return parse_quantity(str(amount)).milli
    except QuantityError as error:
        raise DocumentError(f"{where}: {error}") from None


def _time(value: Any, where: str) -> datetime:
    """Read RFC 3339 text, or the value that a YAML reader made of it."""
    try:
        at = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    except ValueError:
        raise DocumentError(f"{where}: {value!r} is no RFC 3339 time") from None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def _window(value: Any, where: str) -> timedelta:
    """A duration as the metrics API writes it: `30s`, `1m0s`, `15.25s`."""
    text = str(value)
    with suppress(OverflowError):
        if _DURATION.fullmatch(text):
            return timedelta(seconds=sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(text)))
    raise DocumentError(f"window of {where}: {value!r} is no duration like 30s or 1m0s")
