"""Names of the metrics that autoscalers read from here."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

DEMAND_METRIC = "forecaster_demand"
"""Total demand of a workload at the lead time, in the unit of its signal."""
REPLICAS = "forecaster_replicas"
"""Replicas recommended, before the HPA's own stabilisation and bounds."""
FLOOR = "forecaster_floor"
"""Replicas that the forecast alone asks for: the least that should stand by then."""
METRICS = (DEMAND_METRIC, FLOOR, REPLICAS)
COUNTS = frozenset({REPLICAS, FLOOR})

KEDA_PREFIX = "forecaster-"
"""Our metrics in KEDA: `forecaster-cpu`, `forecaster-replicas`. In the HPA that KEDA makes they stand behind `s0-`."""
KEDA_LOCATION = "forecaster"
"""The object in our JSON that holds the number under its signal; KEDA names a metric by its place, `-` for a dot."""
_OF_KEDA = re.compile(rf"s[0-9]+-(?:metric-api-{KEDA_LOCATION}-|{KEDA_PREFIX})(\w+)", re.ASCII)
KEDA_FORMULA = "composite-metric"  # of scalingModifiers: a formula over triggers, ours perhaps among them


class OwnMetric(NamedTuple):
    """One of our metrics; of demand, the signal where the name says it."""

    metric: str
    signal: str = ""


@lru_cache(maxsize=1024)
def own_metric(metric: str) -> OwnMetric | None:
    """Return the metric of forecaster that an HPA refers to by a name; None for any other metric.

    >>> own_metric("s1-forecaster-cpu")
    OwnMetric(metric='forecaster_demand', signal='cpu')
    >>> own_metric("s0-metric-api-forecaster-cpu")
    OwnMetric(metric='forecaster_demand', signal='cpu')
    """
    if metric == DEMAND_METRIC or metric in COUNTS:
        return OwnMetric(metric)
    match = _OF_KEDA.fullmatch(metric)
    if match is None:
        return None
    count = f"forecaster_{match[1]}"
    return OwnMetric(count) if count in COUNTS else OwnMetric(DEMAND_METRIC, match[1])


def is_unnamed_by_keda(metric: str) -> bool:
    """Whether KEDA gave a metric a name that does not show its origin: one of ours or any other."""
    return metric == KEDA_FORMULA or re.fullmatch(r"s[0-9]+-(?:prometheus|metric-api-value)", metric) is not None
