"""What limits did to containers over a span that is over: OOM kills and throttled time of each workload.

Pods of then are joined to their workloads as they were then, five minutes at a time and a day a question.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta
from typing import TYPE_CHECKING

from forecaster.domain.workload import ContainerLosses
from forecaster.sources.blocks import workload_of
from forecaster.sources.promql import CONTAINERS, SELECTED
from forecaster.sources.wire import at_instant

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from forecaster.domain.workload import WorkloadId
    from forecaster.sources.prometheus import PrometheusSource

SPAN = "SPAN"
"""Stands for the length of a question."""
AT_A_TIME = timedelta(days=1)
LOSS_STEP_SECONDS = 300.0
"""Seconds of a step."""
_BY_OWNER = "* on (namespace, pod) group_left (workload_kind, workload) $owners"
_RESTARTS = f"max by (namespace, pod, container) (kube_pod_container_status_restarts_total{{{SELECTED}}})"
_RESTARTS_BEFORE = _RESTARTS.replace("})", "} offset 5m)")

OOM_KILLS = f"""\
sum by (namespace, workload_kind, workload) (
  sum_over_time((sum by (namespace, workload_kind, workload) ((
    ({_RESTARTS} - {_RESTARTS_BEFORE} > 0)
    and on (namespace, pod, container)
    max by (namespace, pod, container)
      (kube_pod_container_status_last_terminated_reason{{reason="OOMKilled",{SELECTED}}}) == 1
  ) {_BY_OWNER}))[{SPAN}:5m])
)
or
0 * max by (namespace, workload_kind, workload) ({_RESTARTS} {_BY_OWNER})"""
"""A kill is told by the restart that follows it; 0 where restarts are known and there was none."""

THROTTLED = f"""\
sum_over_time((sum by (namespace, workload_kind, workload) (
  sum by (namespace, pod) (max by (namespace, pod, container, id)
    (rate(container_cpu_cfs_throttled_seconds_total{{{CONTAINERS}}}[5m])))
  {_BY_OWNER}
))[{SPAN}:5m])"""
"""Containers held back by their CPU limit: means of five minutes."""


def container_losses(source: PrometheusSource, begin: datetime, until: datetime) -> dict[WorkloadId, ContainerLosses]:
    """Return losses by workload; without a series they stay unknown. Raises `SourceError`."""
    kills = dict(_summed(source, "OOM kills", OOM_KILLS, begin, until))
    throttled = dict(_summed(source, "throttling", THROTTLED, begin, until))
    return {
        id_: ContainerLosses(
            round(kills[id_]) if id_ in kills else None,
            throttled[id_] * LOSS_STEP_SECONDS / 3600.0 if id_ in throttled else None,
        )
        for id_ in kills.keys() | throttled.keys()
    }


def _summed(
    source: PrometheusSource, name: str, query: str, begin: datetime, until: datetime
) -> Iterator[tuple[WorkloadId, float]]:
    found: dict[WorkloadId, float] = defaultdict(float)
    while begin < until:
        end = min(begin + AT_A_TIME, until)
        asked = source.queries.rendered(query).replace(SPAN, f"{int((end - begin).total_seconds())}s")
        for row in source.rows(at_instant(name, asked, end)):
            if id_ := workload_of(row.labels):
                found[id_] += row.value
        begin = end
    yield from found.items()
