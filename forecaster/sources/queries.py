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

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from forecaster.domain.duration import Duration
from forecaster.domain.signal import DEMAND, Signal
from forecaster.sources import promql
from forecaster.sources.request_rates import PRESETS, detection

if TYPE_CHECKING:
    from collections.abc import Mapping

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

_TEMPLATES = {
    Signal.CPU: "cpu",
    Signal.MEMORY: "memory",
    Signal.REQUESTS: "requests",
    Signal.PODS: "ready_replicas",
}
INVENTORY = tuple(name for name in RAW if name not in DEMAND)

_Kind = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9]*$")]


class Queries(BaseModel):
    """Which queries are asked, and of which part of the cluster."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    preset: Literal["raw", "recorded"] = Field(
        "raw",
        description="`raw` asks the series of cAdvisor and kube-state-metrics; `recorded` those of the recording rules "
        "in deploy/rules, which costs a fraction but is up to one evaluation interval older.",
    )
    requests_from: str = Field(
        "auto",
        description="Where request rates come from: a preset by name, `auto` for the first that has data, or `none`.",
    )
    namespaces: str = Field(
        ".+", description="RE2 regular expression of the namespaces to read. Default: all. Anchored at both ends."
    )
    labels: dict[Annotated[str, Field(pattern=r"^[a-zA-Z_][a-zA-Z0-9_]*$")], str] = Field(
        default_factory=dict,
        description="Labels that every series must carry, e.g. the cluster where one Prometheus holds several.",
    )
    kinds: tuple[_Kind, ...] = Field(
        ("Deployment", "ReplicaSet", "Rollout", "StatefulSet"),
        min_length=1,
        description="Kinds that count as workloads: controllers of pods or of ReplicaSets. DaemonSet may be added; "
        "Jobs end, so their demand is not a level to hold.",
    )
    rate_window: Duration = Field(
        timedelta(minutes=2),
        ge=timedelta(seconds=10),
        le=timedelta(hours=1),
        description="Range of a rate for points up to this far apart; coarser points use their own distance. At least "
        "two scrape intervals; short keeps a spike visible, and two minutes suits scrapes every 15 to 60 seconds.",
    )

    cpu: str = Field("", description="CPU in cores. Empty: the preset's.")
    memory: str = Field("", description="Working set in bytes. Empty: the preset's.")
    requests: str = Field("", description="Requests per second. Empty: as `requests_from` says.")
    replicas: str = Field("", description="Asked-for pods. Empty: the preset's.")
    ready_replicas: str = Field("", description="Ready pods. Empty: the preset's.")
    pod_requests: str = Field("", description="Requests of one pod, label `resource`. Empty: the preset's.")
    pod_limits: str = Field("", description="Limits of one pod, label `resource`. Empty: the preset's.")
    hpa_scale_targets: str = Field("", description="Which object each HPA scales. Empty: the preset's.")
    hpa_min_replicas: str = Field("", description="Lower bound of each HPA. Empty: the preset's.")
    hpa_max_replicas: str = Field("", description="Upper bound of each HPA. Empty: the preset's.")
    hpa_metric_targets: str = Field("", description="Metric targets of each HPA. Empty: the preset's.")

    @model_validator(mode="before")
    @classmethod
    def _spell_out(cls, given: Any) -> Any:
        """Fill in the preset, so that the model shows the text that is asked."""
        if not isinstance(given, dict):
            return given
        known = RAW | (RECORDED if given.get("preset") == "recorded" else {})
        origin = PRESETS.get(str(given.get("requests_from", "")))
        known |= {"requests": origin.query} if origin else {}
        return given | {name: text for name, text in known.items() if not given.get(name)}

    @field_validator("requests_from")
    @classmethod
    def _known(cls, value: str) -> str:
        allowed = ("auto", "none", *PRESETS)
        if value not in allowed:
            raise ValueError(f"must be one of {', '.join(allowed)}")
        return value

    @property
    def detects_requests(self) -> bool:
        """Whether the origin of request rates has to be found out by asking."""
        return self.requests_from == "auto" and not self.requests

    def with_requests_from(self, preset: str) -> Queries:
        """The same queries with request rates from this preset."""
        return self.model_copy(update={"requests_from": preset, "requests": PRESETS[preset].query})

    def window(self, step: timedelta) -> timedelta:
        """Range of a rate for points `step` apart."""
        return max(self.rate_window, step)

    def signal(self, signal: Signal, step: timedelta = timedelta(0)) -> str:
        """The query for `signal` of every workload at points `step` apart; empty when there is none."""
        return self.rendered(getattr(self, _TEMPLATES[signal]), self.window(step))

    def inventory(self) -> dict[str, str]:
        """The queries that together describe every workload, by name."""
        return {name: self.rendered(getattr(self, name)) for name in INVENTORY}

    def detection(self) -> str:
        """The query that finds out where request rates can come from."""
        return self.rendered(detection())

    def all_queries(self) -> dict[str, str]:
        """Every query that may be asked in one cycle, as it is sent."""
        signals = {str(signal): self.signal(signal) for signal in DEMAND}
        return {name: text for name, text in (signals | self.inventory()).items() if text}

    def rendered(self, template: str, window: timedelta | None = None) -> str:
        """`template` with every placeholder filled in."""
        pieces = {"workloads": _named_once(self.replicas), "owners": self._owners}
        return promql.filled(promql.filled(template, pieces), self._values(window or self.rate_window))

    @property
    def _owners(self) -> str:
        return OWNERS_RECORDED if self.preset == "recorded" else OWNERS

    def _values(self, window: timedelta) -> Mapping[str, str]:
        return {
            "namespaces": promql.escaped(self.namespaces),
            "labels": promql.equalities(self.labels),
            "kinds": "|".join(self.kinds),
            "window": promql.duration(window),
        }


def _named_once(replicas: str) -> str:
    """One series of value 1 per workload name, from any query that has one series per workload."""
    return f"topk by (namespace, workload) (1, group by (namespace, workload_kind, workload) (\n{replicas}\n))"
