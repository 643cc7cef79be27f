"""The PromQL that describes a cluster: one query per signal and one per fact of the inventory, never one per workload.

Every signal query answers with the labels `namespace`, `workload_kind` and `workload` and nothing else, in the unit of
its signal, as the total over all pods of the workload. Whoever replaces one in the configuration keeps to that.

Placeholders, usable in any query:

- `$window`      range of a rate, e.g. `2m`
- `$namespaces`  regular expression for the label `namespace`
- `$labels`      further matchers with a leading comma, e.g. `,cluster="prod"`, or nothing
- `$kinds`       regular expression of the kinds that count as workloads
- `$owners`      one series per pod, value 1, with `workload_kind` and `workload`: to multiply pod series with
- `$workloads`   one series per workload name, value 1, with `workload_kind`: to find the kind of a name

Why the queries look as they do: every side of a join passes `group by` or `topk(1, ...)` first, because one duplicate
(a second kube-state-metrics, a second scrape of the kubelet, a pod recreated within the look-back) would otherwise fail
the query for the whole cluster; and `max by (..., id)` drops duplicates of a container while it keeps its restarts,
whose cgroup `id` differs.
"""

from __future__ import annotations

_SELECTED = 'namespace=~"$namespaces"$labels'

_REPLICASET_OWNERS = f"""\
topk by (namespace, replicaset) (1,
    group by (namespace, replicaset, workload_kind, workload) (
      label_replace(label_replace(label_replace(label_replace(
        kube_replicaset_owner{{owner_is_controller!="false",owner_kind=~"$kinds|<none>|",{_SELECTED}}},
        "workload_kind", "ReplicaSet", "", ""), "workload", "$1", "replicaset", "(.+)"),
        "workload_kind", "$1", "owner_kind", "([^<].*)"), "workload", "$1", "owner_name", "([^<].*)")
    )
  )"""
"""Who a ReplicaSet belongs to; itself when nobody owns it (`<none>` in older kube-state-metrics, empty in newer)."""

OWNERS = f"""\
topk by (namespace, pod) (1,
  group by (namespace, pod, workload_kind, workload) (
    label_replace(label_replace(
      kube_pod_owner{{owner_is_controller="true",owner_kind=~"$kinds",owner_kind!="ReplicaSet",{_SELECTED}}},
      "workload_kind", "$1", "owner_kind", "(.+)"), "workload", "$1", "owner_name", "(.+)")
    or
    label_replace(
      kube_pod_owner{{owner_is_controller="true",owner_kind="ReplicaSet",{_SELECTED}}},
      "replicaset", "$1", "owner_name", "(.+)")
    * on (namespace, replicaset) group_left (workload_kind, workload)
    {_REPLICASET_OWNERS}
  )
)"""


def _counted(deployment: str, statefulset: str, daemonset: str, replicaset: str) -> str:
    """A count of pods per workload; behind other kinds than Deployment, the sum over their ReplicaSets."""
    named = "\n  or\n".join(
        f'  label_replace(label_replace({metric}{{{_SELECTED}}}, "workload_kind", "{kind}", "", ""),'
        f' "workload", "$1", "{kind.lower()}", "(.+)")'
        for kind, metric in (("Deployment", deployment), ("StatefulSet", statefulset), ("DaemonSet", daemonset))
    )
    owners = _REPLICASET_OWNERS.replace(
        'owner_kind=~"$kinds|<none>|"', 'owner_kind=~"$kinds|<none>|",owner_kind!="Deployment"'
    )
    return f"""\
max by (namespace, workload_kind, workload) (
{named}
)
or
sum by (namespace, workload_kind, workload) (
  max by (namespace, replicaset) ({replicaset}{{{_SELECTED}}})
  * on (namespace, replicaset) group_left (workload_kind, workload)
  {owners}
)"""


def _per_pod(metric: str) -> str:
    """Mean over a workload's live pods of the sum over their containers; a pod with a silent container does not count.

    The mean, because the HPA divides the usage of all pods by the requests of all pods.
    """
    stated = f'max by (namespace, pod, container, resource) ({metric}{{resource=~"cpu|memory",{_SELECTED}}})'
    return f"""\
avg by (namespace, workload_kind, workload, resource) (
  (
    sum by (namespace, pod, resource) ({stated})
    and on (namespace, pod, resource)
    count by (namespace, pod, resource) ({stated})
      == on (namespace, pod) group_left ()
    count by (namespace, pod) (group by (namespace, pod, container) (kube_pod_container_info{{{_SELECTED}}}))
    and on (namespace, pod)
    (kube_pod_status_phase{{phase=~"Pending|Running",{_SELECTED}}} == 1)
  )
  * on (namespace, pod) group_left (workload_kind, workload)
  $owners
)"""


_CONTAINERS = f'container!="",container!="POD",{_SELECTED}'

RAW: dict[str, str] = {
    "cpu": f"""\
sum by (namespace, workload_kind, workload) (
  max by (namespace, pod, container, id) (rate(container_cpu_usage_seconds_total{{{_CONTAINERS}}}[$window]))
  * on (namespace, pod) group_left (workload_kind, workload)
  $owners
)""",
    "memory": f"""\
sum by (namespace, workload_kind, workload) (
  max by (namespace, pod, container, id) (container_memory_working_set_bytes{{{_CONTAINERS}}})
  * on (namespace, pod) group_left (workload_kind, workload)
  $owners
)""",
    "replicas": _counted(
        "kube_deployment_spec_replicas",
        "kube_statefulset_replicas",
        "kube_daemonset_status_desired_number_scheduled",
        "kube_replicaset_spec_replicas",
    ),
    "ready_replicas": _counted(
        "kube_deployment_status_replicas_ready",
        "kube_statefulset_status_replicas_ready",
        "kube_daemonset_status_number_ready",
        "kube_replicaset_status_ready_replicas",
    ),
    "pod_requests": _per_pod("kube_pod_container_resource_requests"),
    "pod_limits": _per_pod("kube_pod_container_resource_limits"),
    "hpa_scale_targets": f"""\
group by (namespace, horizontalpodautoscaler, scaletargetref_kind, scaletargetref_name) (
  kube_horizontalpodautoscaler_info{{{_SELECTED}}}
)""",
    "hpa_min_replicas": f"""\
max by (namespace, horizontalpodautoscaler) (kube_horizontalpodautoscaler_spec_min_replicas{{{_SELECTED}}})""",
    "hpa_max_replicas": f"""\
max by (namespace, horizontalpodautoscaler) (kube_horizontalpodautoscaler_spec_max_replicas{{{_SELECTED}}})""",
    "hpa_metric_targets": f"""\
max by (namespace, horizontalpodautoscaler, metric_name, metric_target_type) (
  kube_horizontalpodautoscaler_spec_target_metric{{{_SELECTED}}}
)""",
}
"""Queries over what cAdvisor and kube-state-metrics export, nothing else needed."""

RECORDED: dict[str, str] = {
    "cpu": f"forecaster:workload_cpu_cores:rate$window{{{_SELECTED}}}",
    "memory": f"forecaster:workload_memory_bytes:sum{{{_SELECTED}}}",
    "replicas": f"forecaster:workload_replicas:spec{{{_SELECTED}}}",
    "ready_replicas": f"forecaster:workload_replicas:ready{{{_SELECTED}}}",
    "pod_requests": f"forecaster:workload_pod_requests:avg{{{_SELECTED}}}",
    "pod_limits": f"forecaster:workload_pod_limits:avg{{{_SELECTED}}}",
}
"""The same answers from the series that deploy/rules records; what is missing here is cheap enough as it is."""

OWNERS_RECORDED = f"forecaster:pod_workload:owner{{{_SELECTED}}}"
