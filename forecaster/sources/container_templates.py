"""The PromQL that describes containers, with the placeholders of `templates`.

Usage is that of the hottest pod at each instant, never a mean over pods: a hot shard is what a size has to carry.
Every query answers with `namespace`, `workload_kind`, `workload` and `container`.
"""

from __future__ import annotations

_SELECTED = 'namespace=~"$namespaces"$labels'
_CONTAINERS = f'container!="",container!="POD",{_SELECTED}'


def _hottest(per_container: str) -> str:
    """The highest value of any pod."""
    return f"""\
max by (namespace, workload_kind, workload, container) (
  {per_container}
  * on (namespace, pod) group_left (workload_kind, workload)
  $owners
)"""


def _stated(metric: str) -> str:
    return f"""\
max by (namespace, workload_kind, workload, container, resource) (
  max by (namespace, pod, container, resource) ({metric}{{resource=~"cpu|memory",{_SELECTED}}})
  * on (namespace, pod) group_left (workload_kind, workload)
  $owners
)"""


def _named(metric: str, extra: str) -> str:
    return f"""\
group by (namespace, workload_kind, workload, container, {extra}) (
  group by (namespace, pod, container, {extra}) ({metric}{{{_SELECTED}}})
  * on (namespace, pod) group_left (workload_kind, workload)
  $owners
)"""


CONTAINER_USAGE: dict[str, str] = {
    "container_cpu": _hottest(
        "sum by (namespace, pod, container) (max by (namespace, pod, container, id) "
        f"(rate(container_cpu_usage_seconds_total{{{_CONTAINERS}}}[$window])))"
    ),
    "container_memory": _hottest(
        "max by (namespace, pod, container) "
        f"(max_over_time(container_memory_working_set_bytes{{{_CONTAINERS}}}[$window]))"
    ),
}
"""Usage by container: cores over the window, the highest bytes within it."""

CONTAINER_FACTS: dict[str, str] = {
    "container_images": _named("kube_pod_container_info", "image"),
    "init_containers": _named("kube_pod_init_container_info", "restart_policy"),
    "container_requests": _stated("kube_pod_container_resource_requests"),
    "container_limits": _stated("kube_pod_container_resource_limits"),
    "oom_kills": _hottest(
        f"""\
max_over_time((
    max by (namespace, pod, container) (kube_pod_container_resource_limits{{resource="memory",{_SELECTED}}})
    and on (namespace, pod, container)
    max by (namespace, pod, container)
      (kube_pod_container_status_last_terminated_reason{{reason="OOMKilled",{_SELECTED}}}) == 1
    and on (namespace, pod, container)
    max by (namespace, pod, container) (increase(kube_pod_container_status_restarts_total{{{_SELECTED}}}[15m])) > 0
  )[1w:15m])"""
    ),
    "held_back": _hottest(
        f"""\
(
    sum by (namespace, pod, container) (increase(container_cpu_cfs_throttled_periods_total{{{_CONTAINERS}}}[1h]))
    / sum by (namespace, pod, container) (increase(container_cpu_cfs_periods_total{{{_CONTAINERS}}}[1h]))
    or
    max by (namespace, pod, container) (rate(container_pressure_cpu_waiting_seconds_total{{{_CONTAINERS}}}[1h]))
  )"""
    ),
}
"""What is told about containers. An OOM kill is told by the restart that follows it and the limit of that time, so
that a limit raised in place later is not taken for the one that was too low."""
