"""PromQL about containers: usage and facts of each, once an hour, and the losses to limits, also of starting pods.

Usage is that of the hottest pod at each instant, never a mean over pods, because a size has to carry the hottest one.
Labels and placeholders are those of `promql`, with `container` added. For a past span, pods are joined to their
workloads of that time, five minutes at a time and one day per query.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from forecaster.domain.workload import ContainerLosses, WorkloadId
from forecaster.sources.blocks import workload_of
from forecaster.sources.promql import CONTAINERS, READY, SELECTED, by_owner, stated_by_pod
from forecaster.sources.wire import at_instant

if TYPE_CHECKING:
    from forecaster.sources.prometheus import PrometheusSource


def hottest(per_container: str) -> str:
    """Return the query for the highest value of any pod, from a query by pod and container."""
    return by_owner("max", per_container, "container")


ENDED = f"""\
unless on (namespace, pod) (kube_pod_status_phase{{phase=~"Failed|Succeeded",{SELECTED}}} == 1)"""
"""Pods that failed or were evicted are no part of the workload any more, and may be of an older template."""


def _stated(side: str) -> str:
    return by_owner("max", f"({stated_by_pod(side)} {ENDED})", "container", "resource")


def named_containers(extra: str, *selectors: str) -> str:
    """Return the query for the containers of these series, with one of their labels."""
    named = " or ".join(f"group by (namespace, pod, container, {extra}) ({selector})" for selector in selectors)
    return by_owner("group", f"(({named}) {ENDED})", "container", extra)


CONTAINER_USAGE: dict[str, str] = {
    "container_cpu": hottest(
        "sum by (namespace, pod, container) (max by (namespace, pod, container, id) "
        f"(rate(container_cpu_usage_seconds_total{{{CONTAINERS}}}[$window])))"
    ),
    "container_memory": hottest(
        "max by (namespace, pod, container) "
        f"(max_over_time(container_memory_working_set_bytes{{{CONTAINERS}}}[$window]))"
    ),
}
"""Usage by container: cores over the window, the highest bytes within it."""

CONTAINER_FACTS: dict[str, str] = {
    "container_images": named_containers(
        "image",
        f"kube_pod_container_info{{{SELECTED}}}",
        f'kube_pod_init_container_info{{restart_policy="Always",{SELECTED}}}',
    ),
    "init_containers": named_containers("restart_policy", f"kube_pod_init_container_info{{{SELECTED}}}"),
    "container_requests": _stated("requests"),
    "container_limits": _stated("limits"),
    "oom_kills": hottest(
        f"""\
max_over_time((
    max by (namespace, pod, container) (kube_pod_container_resource_limits{{resource="memory",{SELECTED}}})
    and on (namespace, pod, container)
    max by (namespace, pod, container)
      (kube_pod_container_status_last_terminated_reason{{reason="OOMKilled",{SELECTED}}}) == 1
    and on (namespace, pod, container)
    max by (namespace, pod, container) (increase(kube_pod_container_status_restarts_total{{{SELECTED}}}[15m])) > 0
  )[1w:15m])"""
    ),
    "held_back": hottest(
        f"""\
(
    sum by (namespace, pod, container) (increase(container_cpu_cfs_throttled_periods_total{{{CONTAINERS}}}[1h]))
    / sum by (namespace, pod, container) (increase(container_cpu_cfs_periods_total{{{CONTAINERS}}}[1h]))
    or
    max by (namespace, pod, container) (rate(container_pressure_cpu_waiting_seconds_total{{{CONTAINERS}}}[1h]))
  )"""
    ),
}
"""Queries of container facts. An OOM kill is dated by the restart that follows it, and gets the limit of that time, so
that a limit raised in place later is not mistaken for the one that was too low."""


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
"""A kill is dated by the restart that follows it; 0 where restarts are known and none was a kill."""

THROTTLED = f"""\
sum_over_time((sum by (namespace, workload_kind, workload) (
  sum by (namespace, pod) (max by (namespace, pod, container, id)
    (rate(container_cpu_cfs_throttled_seconds_total{{{CONTAINERS}}}[5m])))
  {_BY_OWNER}
))[{SPAN}:5m])"""
"""Containers held back by their CPU limit: means of five minutes."""


ThrottledShares = dict[WorkloadId, dict[str, list[float]]]
STARTING_AFTER = timedelta(seconds=30)
"""Age from which on a container that starts is looked at: two scrapes, in most clusters."""
MIN_PERIODS = 50
"""Smallest number of CPU periods of 100 ms with work in a start that is evaluated."""
STARTS = f"""\
(
  max by (namespace, pod, container) (container_cpu_cfs_throttled_periods_total{{{CONTAINERS}}})
  / (max by (namespace, pod, container) (container_cpu_cfs_periods_total{{{CONTAINERS}}}) >= {MIN_PERIODS})
  and on (namespace, pod, container)
  (time() - max by (namespace, pod, container) (container_start_time_seconds{{{CONTAINERS}}})
    >= {STARTING_AFTER.seconds} < {SPAN})
  and on (namespace, pod) max by (namespace, pod) ({READY}) == 0
  unless on (namespace, pod, container) {_RESTARTS} > 0
)
{_BY_OWNER}"""
"""Throttled share of CPU periods since a container started, while its pod is not ready. Both counters begin with the
container, so one sample is enough. A container that was restarted may have its own limit again, and is left out."""


def throttled_starts(source: PrometheusSource, at: datetime, since: timedelta) -> ThrottledShares:
    """Return throttled shares by workload and container of starts that turned 30 s old within `since` before `at`.

    Each start is looked at once, if one call follows the other. Raises `SourceError`.
    """
    query = source.queries.rendered(STARTS).replace(SPAN, str(int((STARTING_AFTER + since).total_seconds())))
    shares: ThrottledShares = {}
    for row in source.rows(at_instant("starts", query, at)):
        if id_ := workload_of(row.labels):
            shares.setdefault(id_, {}).setdefault(row.labels["container"], []).append(row.value)
    return shares


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
    sums: dict[WorkloadId, float] = defaultdict(float)
    while begin < until:
        end = min(begin + AT_A_TIME, until)
        span_query = source.queries.rendered(query).replace(SPAN, f"{int((end - begin).total_seconds())}s")
        for row in source.rows(at_instant(name, span_query, end)):
            if id_ := workload_of(row.labels):
                sums[id_] += row.value
        begin = end
    yield from sums.items()
