"""PromQL that describes a cluster: one query per signal and one per fact of the inventory, never one per workload.

Every signal query answers with the labels `namespace`, `workload_kind` and `workload` and nothing else, in the unit of
its signal, as the total over all pods of the workload. A query of the configuration keeps to that.

Placeholders, usable in any query:

- `$window`      range of a rate, e.g. `2m`
- `$namespaces`  regular expression for the label `namespace`
- `$labels`      further matchers with a leading comma, e.g. `,cluster="prod"`, or nothing
- `$copies`      labels in which copies of a series differ, for `max without`
- `$kinds`       regular expression of the kinds that count as workloads
- `$containers`  regular expression of the containers that HPAs name (ContainerResource)
- `$owners`      one series per pod, value 1, with `workload_kind` and `workload`: to multiply pod series with
- `$workloads`   one series per workload name, value 1, with `workload_kind`: to find the kind of a name

Why the queries look as they do: every side of a join, and what `label_replace` gets, passes `group by`, `max by` or
`topk(1, ...)` first, because one duplicate (a second kube-state-metrics, series that a tenant exports under the same
name, a pod recreated within the look-back) would otherwise fail the query for the whole cluster; and
`max by (..., id)` drops duplicates of a container while it keeps its restarts, of which the cgroup `id` differs.

`cpu_pods` says what a sum of CPU is made of, by the label `what`. `settled`: the usage of pods that are past their
start, those that were ready at some time in the five minutes before the window of the rate (HPA rules §6: a pod that
has never been ready is left out, and so is one with a sample older than its readiness). `samples`: of these pods, two
counts in one number, 1e9 for each that has a rate, and the samples of its best container within the window.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import timedelta
from functools import lru_cache

from forecaster.domain.amounts import duration_text

CARRIED = "capacity_"
"""Prefix of the names of queries for pod capacity by signals of the settings."""
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})
_SPECIAL = re.compile(r"([\\.+*?()|\[\]{}^$])")


def quoted(value: str) -> str:
    """`value` as a double-quoted PromQL string."""
    return f'"{escaped(value)}"'


def escaped(value: str) -> str:
    """`value` as it stands between double quotes."""
    return value.translate(_ESCAPES)


def any_of(names: Iterable[str]) -> str:
    """Return a regular expression that matches exactly these names. RE2 refuses the escape of `-` by `re.escape`."""
    return "|".join(_SPECIAL.sub(r"\\\1", name) for name in names)


def equalities(labels: Mapping[str, str]) -> str:
    """Matchers to append inside a selector: `,a="x",b="y"`, or nothing."""
    return "".join(f",{name}={quoted(value)}" for name, value in labels.items())


@lru_cache
def duration(span: timedelta) -> str:
    """A PromQL duration of whole seconds, such as `2m`; names of recorded series can carry it, too."""
    return duration_text(timedelta(seconds=round(span.total_seconds())))


def filled(template: str, values: Mapping[str, str]) -> str:
    """`template` with `$name` replaced for the names in `values`, in one pass: a value is never searched again.

    Everything else that starts with a dollar sign, such as the `$1` of `label_replace`, stays as it is.
    """
    return re.sub(r"\$([a-z]+)\b", lambda match: values.get(match[1], match[0]), template)


NAMED_BY_OWNER = frozenset({"DaemonSet", "Deployment", "ReplicaSet", "Rollout", "StatefulSet"})
"""Kinds whose pods have names that begin with theirs."""
_LONGEST_NAME = 40
"""Beyond it the names of pods are cut: 63 characters have to hold two endings more."""
_SERIES = re.compile(
    r"\b(?:container_\w+|forecaster:\w+(?P<rule>:\w+)"
    r"|kube_(?P<of>pod|replicaset|deployment|statefulset|daemonset|horizontalpodautoscaler(?=_info))_\w+)\{"
)


def expression_of(pattern: str) -> str:
    """A shell pattern as a regular expression, to be anchored by its use."""
    pieces = re.split(r"(\*|\?|\[[^\]]+\])", pattern)
    expressions = (_SHELL.get(piece) or (piece if piece[:1] == "[" else any_of([piece])) for piece in pieces)
    return "".join(expressions).replace("[!", "[^")


_SHELL = {"*": ".*", "?": "."}


def about_workloads(query: str, name: str) -> str:
    """Return `query` with matchers for the workloads with these names, a regular expression.

    Where a series has the name of a pod or ReplicaSet instead, all names with that prefix match, which selects a little
    more.
    """
    return _SERIES.sub(lambda match: match[0] + _of_name(match, name), query)


def _of_name(series: re.Match[str], name: str) -> str:
    if series["rule"]:
        return f"workload=~{quoted(name)},"
    match series["of"]:
        case "deployment" | "statefulset" | "daemonset" as kind:
            return f"{kind}=~{quoted(name)},"
        case "horizontalpodautoscaler":
            return f"scaletargetref_name=~{quoted(name)},"
        case "replicaset":
            return f"replicaset=~{quoted(f'({name})(-.+)?')},"
        case _:
            return f"pod=~{quoted(f'({name})-.+')}," if len(name) <= _LONGEST_NAME else ""


SELECTED = 'namespace=~"$namespaces"$labels'

_REPLICASET_OWNERS = f"""\
topk by (namespace, replicaset) (1,
    label_replace(label_replace(label_replace(label_replace(
      group by (namespace, replicaset, owner_kind, owner_name) (
        kube_replicaset_owner{{owner_is_controller!="false",owner_kind=~"$kinds|<none>|",{SELECTED}}}
      ),
      "workload_kind", "ReplicaSet", "", ""), "workload", "$1", "replicaset", "(.+)"),
      "workload_kind", "$1", "owner_kind", "([^<].*)"), "workload", "$1", "owner_name", "([^<].*)")
  )"""
"""The owner of a ReplicaSet; itself when it has none (`<none>` in older kube-state-metrics, empty in newer)."""

OWNER_JOIN = f"""\
topk by (namespace, pod) (1,
  group by (namespace, pod, workload_kind, workload) (
    label_replace(label_replace(group by (namespace, pod, owner_kind, owner_name) (
      kube_pod_owner{{owner_is_controller="true",owner_kind=~"$kinds",owner_kind!="ReplicaSet",{SELECTED}}}
    ), "workload_kind", "$1", "owner_kind", "(.+)"), "workload", "$1", "owner_name", "(.+)")
    or
    label_replace(group by (namespace, pod, owner_name) (
      kube_pod_owner{{owner_is_controller="true",owner_kind="ReplicaSet",{SELECTED}}}
    ), "replicaset", "$1", "owner_name", "(.+)")
    * on (namespace, replicaset) group_left (workload_kind, workload)
    {_REPLICASET_OWNERS}
  )
)"""


def _counted(deployment: str, statefulset: str, daemonset: str, replicaset: str) -> str:
    """A count of pods per workload; behind other kinds than Deployment, the sum over their ReplicaSets."""
    named = "\n  or\n".join(
        f"  label_replace(label_replace(max by (namespace, {kind.lower()}) ({metric}{{{SELECTED}}}),"
        f' "workload_kind", "{kind}", "", ""), "workload", "$1", "{kind.lower()}", "(.+)")'
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
  max by (namespace, replicaset) ({replicaset}{{{SELECTED}}})
  * on (namespace, replicaset) group_left (workload_kind, workload)
  {owners}
)"""


def by_owner(aggregated: str, of_pods: str, *labels: str) -> str:
    """The query that aggregates series of pods by the workloads that own them, and by further labels."""
    return f"""\
{aggregated} by ({", ".join(("namespace", "workload_kind", "workload", *labels))}) (
  {of_pods}
  * on (namespace, pod) group_left (workload_kind, workload)
  $owners
)"""


def sidecars(selected: str) -> str:
    """Native sidecars: init containers that are restarted, and so run beside the app (HPA rules §7)."""
    return f'group by (namespace, pod, container) (kube_pod_init_container_info{{restart_policy="Always",{selected}}})'


def stated_by_pod(side: str, selected: str = SELECTED, resources: str = "cpu|memory") -> str:
    """Requests or limits of each container that runs beside the others: app containers and native sidecars."""
    app, init = (
        f'max by (namespace, pod, container, resource) ({metric}{{resource=~"{resources}",{selected}}})'
        for metric in (f"kube_pod_container_resource_{side}", f"kube_pod_init_container_resource_{side}")
    )
    return f"({app} or ({init} and on (namespace, pod, container) {sidecars(selected)}))"


def _per_pod(side: str) -> str:
    """Mean over a workload's live pods of the sum over their containers; a pod with a silent container does not count.

    The mean, because the HPA divides the usage of all pods by the requests of all pods.
    """
    stated = stated_by_pod(side)
    of_pods = f"""\
(
    sum by (namespace, pod, resource) ({stated})
    and on (namespace, pod, resource)
    count by (namespace, pod, resource) ({stated})
      == on (namespace, pod) group_left ()
    count by (namespace, pod) (
        group by (namespace, pod, container) (kube_pod_container_info{{{SELECTED}}}) or {sidecars(SELECTED)}
      )
    and on (namespace, pod)
    (kube_pod_status_phase{{phase=~"Pending|Running",{SELECTED}}} == 1)
  )"""
    return by_owner("avg", of_pods, "resource")


CONTAINERS = f'container!="",container!="POD",{SELECTED}'
_NAMED = f'container=~"$containers",{SELECTED}'
"""Containers that HPAs name."""
READY = f'kube_pod_status_ready{{condition="true",{SELECTED}}}'
_STARTING = f"""\
(
      group by (namespace, pod) ({READY})
      unless on (namespace, pod)
      max by (namespace, pod) (max_over_time({READY}[5m] offset $window)) == 1
    )"""
"""Pods that were not ready at any time within five minutes before the window; none where readiness is not exported."""


def _cores(containers: str) -> str:
    return f"max by (namespace, pod, container, id) (rate(container_cpu_usage_seconds_total{{{containers}}}[$window]))"


def _cpu_pods(containers: str, *labels: str) -> str:
    pods = ", ".join(("namespace", "pod", *labels))
    of_pods = f"""\
(
    (
      label_replace(sum by ({pods}) (
        {_cores(containers)}
      ), "what", "settled", "", "")
      or
      label_replace(1e9 + (
        max by ({pods}) (count_over_time(container_cpu_usage_seconds_total{{{containers}}}[$window])) > 1
      ), "what", "samples", "", "")
    )
    unless on (namespace, pod)
    {_STARTING}
  )"""
    return by_owner("sum", of_pods, *labels, "what")


def _memory(containers: str) -> str:
    return f"max by (namespace, pod, container, id) (container_memory_working_set_bytes{{{containers}}})"


def _stated_by_named() -> str:
    """Mean over a workload's live pods, as the HPA divides the usage of all by the requests of all (rules §7)."""
    requests, limits = (stated_by_pod(side, _NAMED) for side in ("requests", "limits"))
    of_pods = f"""\
(
    (label_replace({requests}, "what", "request", "", "") or label_replace({limits}, "what", "limit", "", ""))
    and on (namespace, pod)
    (kube_pod_status_phase{{phase=~"Pending|Running",{SELECTED}}} == 1)
  )"""
    return by_owner("avg", of_pods, "container", "resource", "what")


def _identity() -> str:
    """Return the query for workloads reported as several objects: one per cluster in the store, by creation time.

    Copies of kube-state-metrics report the same time. The query also counts pods reported under other names because
    `honor_labels` is not set, if they are the majority (any pod may export a few such series), and clusters, by the
    creation times of kube-system.
    """
    twins = "\n  or\n".join(
        f"""\
  label_replace(label_replace(
    max by (namespace, {label}) (kube_{label}_created{{{SELECTED}}})
    != min by (namespace, {label}) (kube_{label}_created{{{SELECTED}}}),
    "workload_kind", "{kind}", "", ""), "workload", "$1", "{label}", "(.+)")"""
        for kind, label in (("Deployment", "deployment"), ("StatefulSet", "statefulset"), ("DaemonSet", "daemonset"))
    )
    return f"""\
label_replace(max by (namespace, workload_kind, workload) (
{twins}
), "what", "several", "", "")
or
label_replace(
  count(kube_pod_owner{{exported_pod!="",namespace!=""$labels}})
  >= (count(kube_pod_owner{{exported_pod="",namespace!=""$labels}}) or vector(0)), "what", "exported", "", ""
)
or
label_replace(
  count(count_values("created", kube_namespace_created{{namespace="kube-system"$labels}})), "what", "clusters", "", ""
)"""


RAW: dict[str, str] = {
    "cpu": by_owner("sum", _cores(CONTAINERS)),
    "cpu_pods": _cpu_pods(CONTAINERS),
    "memory": by_owner("sum", _memory(CONTAINERS)),
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
    "pod_requests": _per_pod("requests"),
    "pod_limits": _per_pod("limits"),
    "hpa_scale_targets": f"""\
group by (namespace, horizontalpodautoscaler, scaletargetref_kind, scaletargetref_name) (
  kube_horizontalpodautoscaler_info{{{SELECTED}}}
)""",
    "hpa_min_replicas": f"""\
max by (namespace, horizontalpodautoscaler) (kube_horizontalpodautoscaler_spec_min_replicas{{{SELECTED}}})""",
    "hpa_max_replicas": f"""\
max by (namespace, horizontalpodautoscaler) (kube_horizontalpodautoscaler_spec_max_replicas{{{SELECTED}}})""",
    "hpa_metric_targets": f"""\
max by (namespace, horizontalpodautoscaler, metric_name, metric_target_type, container) (
  kube_horizontalpodautoscaler_spec_target_metric{{{SELECTED}}}
)""",
    "hpa_containers": _stated_by_named(),
    "identity": _identity(),
    "state_metrics": 'group by (version) (kube_state_metrics_build_info{version!=""$labels})',
}
"""Queries over series of cAdvisor and kube-state-metrics only."""

OF_NAMED: dict[str, str] = {
    "cpu_container": by_owner("sum", _cores(_NAMED), "container"),
    "cpu_container_pods": _cpu_pods(_NAMED, "container"),
    "memory_container": by_owner("sum", _memory(_NAMED), "container"),
}
"""Usage of the containers that HPAs name, asked only where there are such."""

RECORDED: dict[str, str] = {
    "cpu": f"forecaster:workload_cpu_cores:rate$window{{{SELECTED}}}",
    "cpu_pods": f"forecaster:workload_cpu_pods:rate$window{{{SELECTED}}}",
    "memory": f"forecaster:workload_memory_bytes:sum{{{SELECTED}}}",
    "replicas": f"max by (namespace, workload_kind, workload) (forecaster:workload_replicas:spec{{{SELECTED}}})",
    "ready_replicas": f"max by (namespace, workload_kind, workload) (forecaster:workload_replicas:ready{{{SELECTED}}})",
    "pod_requests": f"forecaster:workload_pod_requests:avg{{{SELECTED}}}",
    "pod_limits": f"forecaster:workload_pod_limits:avg{{{SELECTED}}}",
}
"""Queries of the series recorded by deploy/rules; queries missing here are cheap without recording."""

OWNERS_RECORDED = f"topk by (namespace, pod) (1, forecaster:pod_workload:owner{{{SELECTED}}})"
