"""The PromQL about containers, asked once an hour: the usage of each, and what is told about them.

Usage is that of the hottest pod at each instant, never a mean over pods: a hot shard is what a size has to carry.
Labels and placeholders are those of `promql`, with `container` beside them.
"""

from __future__ import annotations

from forecaster.sources.promql import CONTAINERS, SELECTED, stated_by_pod


def _hottest(per_container: str) -> str:
    """The highest value of any pod."""
    return f"""\
max by (namespace, workload_kind, workload, container) (
  {per_container}
  * on (namespace, pod) group_left (workload_kind, workload)
  $owners
)"""


_ENDED = f"""\
unless on (namespace, pod) (kube_pod_status_phase{{phase=~"Failed|Succeeded",{SELECTED}}} == 1)"""
"""Pods that failed or were evicted are no part of the workload any more, and may be of an older template."""


def _stated(what: str) -> str:
    return f"""\
max by (namespace, workload_kind, workload, container, resource) (
  ({stated_by_pod(what)} {_ENDED})
  * on (namespace, pod) group_left (workload_kind, workload)
  $owners
)"""


def _named_containers(extra: str, *selectors: str) -> str:
    named = " or ".join(f"group by (namespace, pod, container, {extra}) ({selector})" for selector in selectors)
    return f"""\
group by (namespace, workload_kind, workload, container, {extra}) (
  (({named}) {_ENDED})
  * on (namespace, pod) group_left (workload_kind, workload)
  $owners
)"""


CONTAINER_USAGE: dict[str, str] = {
    "container_cpu": _hottest(
        "sum by (namespace, pod, container) (max by (namespace, pod, container, id) "
        f"(rate(container_cpu_usage_seconds_total{{{CONTAINERS}}}[$window])))"
    ),
    "container_memory": _hottest(
        "max by (namespace, pod, container) "
        f"(max_over_time(container_memory_working_set_bytes{{{CONTAINERS}}}[$window]))"
    ),
}
"""Usage by container: cores over the window, the highest bytes within it."""

CONTAINER_FACTS: dict[str, str] = {
    "container_images": _named_containers(
        "image",
        f"kube_pod_container_info{{{SELECTED}}}",
        f'kube_pod_init_container_info{{restart_policy="Always",{SELECTED}}}',
    ),
    "init_containers": _named_containers("restart_policy", f"kube_pod_init_container_info{{{SELECTED}}}"),
    "container_requests": _stated("requests"),
    "container_limits": _stated("limits"),
    "oom_kills": _hottest(
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
    "held_back": _hottest(
        f"""\
(
    sum by (namespace, pod, container) (increase(container_cpu_cfs_throttled_periods_total{{{CONTAINERS}}}[1h]))
    / sum by (namespace, pod, container) (increase(container_cpu_cfs_periods_total{{{CONTAINERS}}}[1h]))
    or
    max by (namespace, pod, container) (rate(container_pressure_cpu_waiting_seconds_total{{{CONTAINERS}}}[1h]))
  )"""
    ),
}
"""What is told about containers. An OOM kill is told by the restart that follows it and the limit of that time, so
that a limit raised in place later is not taken for the one that was too low."""
