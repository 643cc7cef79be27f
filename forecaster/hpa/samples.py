"""Reading what the metrics APIs answer (HPA rules §5).

An answer is turned once into samples by pod, one value, or a list of values; an empty list is no answer. The age of a
sample is never checked here.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from forecaster.hpa.numbers import MAX_INT64, wrap_int64
from forecaster.hpa.proposals import Unmeasured

DEFAULT_WINDOW = timedelta(seconds=60)


class PodSample(NamedTuple):
    """One pod's value in milli-units, when it was taken and over which window."""

    value_milli: int
    timestamp: datetime
    window: timedelta = DEFAULT_WINDOW


class ContainerUsage(NamedTuple):
    """One container's usage by resource name, in milli-units."""

    name: str
    usage_milli: Mapping[str, int]


class PodMetrics(NamedTuple):
    """One entry of metrics.k8s.io."""

    pod: str
    timestamp: datetime
    window: timedelta
    containers: Sequence[ContainerUsage]


class SampledPods(NamedTuple):
    """Values by pod name, of the resource API or the custom API. A pod without a value is absent."""

    samples: Mapping[str, PodSample]


class ObjectMetric(NamedTuple):
    """Value of an Object metric."""

    value_milli: int


class ExternalValues(NamedTuple):
    """The values of all series that an External metric matched."""

    values_milli: Sequence[int]


Answer = SampledPods | ObjectMetric | ExternalValues | Unmeasured


def read_pod_usage(items: Sequence[PodMetrics], resource: str, container: str = "") -> SampledPods | Unmeasured:
    """HPA rules §5: samples of the resource API, summed over a pod's containers or of the one named container.

    A pod without containers, or with one that lacks the resource, has no sample; with `container` only that one is
    looked at.
    """
    if not items:
        return Unmeasured("no_samples", "no metrics returned from resource metrics API")
    samples = {}
    for item in items:
        value = _pod_value(item, resource, container)
        if value is not None:
            samples[item.pod] = PodSample(value, item.timestamp, item.window)
    return SampledPods(samples)


def read_pod_values(values: Iterable[tuple[str, int, datetime, timedelta | None]]) -> SampledPods | Unmeasured:
    """HPA rules §5: samples of the custom API as (pod, milli-value, timestamp, window); no window means 60 seconds."""
    samples = {
        pod: PodSample(value, timestamp, DEFAULT_WINDOW if window is None else window)
        for pod, value, timestamp, window in values
    }
    return SampledPods(samples) if samples else Unmeasured("no_samples", "no metrics returned from custom metrics API")


def read_external_values(values_milli: Sequence[int]) -> ExternalValues | Unmeasured:
    """HPA rules §5: the values of the external API."""
    if not values_milli:
        return Unmeasured("no_samples", "no metrics returned from external metrics API")
    return ExternalValues(values_milli)


def external_total(values_milli: Iterable[int]) -> int:
    """HPA rules §8.3: the sum, held at 2^63-1 by the first value that would overflow it; later values are ignored."""
    total = 0
    for value in values_milli:
        if value > 0 and total > MAX_INT64 - value:
            return MAX_INT64
        total = wrap_int64(total + value)
    return total


def external_shared_total(values_milli: Iterable[int]) -> int:
    """HPA rules §8.4: the sum, where a running sum below zero passes for an overflow and becomes 2^63-1."""
    total = 0
    for value in values_milli:
        total = wrap_int64(total + value)
        if total < 0:
            return MAX_INT64
    return total


def _pod_value(item: PodMetrics, resource: str, container: str) -> int | None:
    """The sum over the containers, or over the first one of this name; None where one of them has no value."""
    counted = item.containers if not container else [usage for usage in item.containers if usage.name == container][:1]
    values = [usage.usage_milli.get(resource) for usage in counted]
    if not values or None in values:
        return None
    return wrap_int64(sum(value for value in values if value is not None))
