"""Queries in use: the templates of a preset or of the user, filled in for a part of the cluster."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from datetime import timedelta
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, field_validator, model_validator

from forecaster.domain.settings import Duration
from forecaster.domain.signal import CPU, CPU_CONTAINER, DEMAND, MEMORY, MEMORY_CONTAINER, PODS, REQUESTS
from forecaster.errors import nearest
from forecaster.sources import promql
from forecaster.sources.container_queries import CONTAINER_FACTS, CONTAINER_USAGE
from forecaster.sources.presets import DETECTION, PRESETS
from forecaster.sources.promql import CARRIED, OF_NAMED, OWNER_JOIN, OWNERS_RECORDED, RAW, RECORDED
from forecaster.sources.settings import SignalSettings

_TEMPLATES: Mapping[str, str] = {
    CPU: "cpu",
    CPU_CONTAINER: "cpu_container",
    MEMORY: "memory",
    MEMORY_CONTAINER: "memory_container",
    PODS: "ready_replicas",
    REQUESTS: "requests",
}
OF_PODS = "cpu_pods"
_MADE_OF: Mapping[str, str] = {CPU: OF_PODS, CPU_CONTAINER: "cpu_container_pods"}
"""The query that says what sums of a signal are made of."""
ERROR_SIGNAL_PREFIX = "errors of "
"""Prefix of the names of error signals."""
ANY_CONTAINER = ".+"
MAX_NAMED_CONTAINERS = 500
"""Largest number of containers that a query names one by one; above it, all containers are read."""
INVENTORY = tuple(name for name in RAW if name not in DEMAND and name != OF_PODS)

_Kind = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9]*$")]


class Queries(BaseModel):
    """Queries in use, and the part of the cluster that they cover."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    _own: Mapping[str, SignalSettings] = PrivateAttr(default_factory=dict)
    _names: str = PrivateAttr(default="")
    _narrowed: bool = PrivateAttr(default=False)

    preset: Literal["raw", "recorded"] = Field(
        "raw",
        description="`raw` asks the series of cAdvisor and kube-state-metrics; `recorded` those of the recording rules "
        "in deploy/rules, which costs a fraction but is up to one evaluation interval older.",
    )
    requests_from: str = Field(
        "auto",
        description="A preset of request rates by name, `none`, or `auto`: the first with data of each workload.",
    )
    namespaces: str = Field(
        ".+", description="RE2 regular expression of the namespaces to read. Default: all. Anchored at both ends."
    )
    labels: dict[Annotated[str, Field(pattern=r"^[a-zA-Z_][a-zA-Z0-9_]*$")], str] = Field(
        default_factory=dict,
        description="Labels that every series must carry, e.g. the cluster where one Prometheus holds several.",
    )
    copies: tuple[Annotated[str, Field(pattern=r"^[a-zA-Z_][a-zA-Z0-9_]*$")], ...] = Field(
        ("job", "prometheus", "prometheus_replica", "replica"),
        min_length=1,
        description="Labels in which copies of one series differ: of replicas of Prometheus, of two jobs that scrape "
        "the same target. Request rates count them once; everything else is distinguished by pod and container.",
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

    specifications_every: Duration = Field(
        timedelta(minutes=6),
        ge=timedelta(0),
        le=timedelta(hours=1),
        description="How old requests, limits and HPAs may be. They are most of the inventory and change seldom, so "
        "their six queries take turns, one a minute by default; a new workload triggers all of them. 0s: every cycle.",
    )

    cpu: str = Field("", description="CPU in cores. Empty: the preset's.")
    cpu_pods: str = Field(
        "",
        description="What a sum of CPU is made of, label `what`: `settled`, the cores of pods past their start, and "
        "`samples`, 1e9 for each of them plus its samples in the window. Empty: the preset's; none beside a `cpu` of "
        "your own, and whether that is complete is then not known.",
    )
    memory: str = Field("", description="Working set in bytes. Empty: the preset's.")
    cpu_container: str = Field(
        "", description="CPU of the containers that HPAs name ($containers), label `container`. Empty: our own."
    )
    cpu_container_pods: str = Field(
        "", description="What those sums are made of, as `cpu_pods`, label `container`. Empty: our own."
    )
    memory_container: str = Field(
        "", description="Working set of the containers that HPAs name, label `container`. Empty: our own."
    )
    requests: str = Field("", description="Requests per second. Empty: as `requests_from` says.")
    replicas: str = Field("", description="Asked-for pods. Empty: the preset's.")
    ready_replicas: str = Field("", description="Ready pods. Empty: the preset's.")
    pod_requests: str = Field("", description="Requests of one pod, label `resource`. Empty: the preset's.")
    pod_limits: str = Field("", description="Limits of one pod, label `resource`. Empty: the preset's.")
    hpa_scale_targets: str = Field("", description="Which object each HPA scales. Empty: the preset's.")
    hpa_min_replicas: str = Field("", description="Lower bound of each HPA. Empty: the preset's.")
    hpa_max_replicas: str = Field("", description="Upper bound of each HPA. Empty: the preset's.")
    hpa_metric_targets: str = Field("", description="Metric targets of each HPA. Empty: the preset's.")

    hpa_containers: str = Field(
        "",
        description="Requests and limits of the containers that HPAs name, labels `container`, `resource` and `what`, "
        "which is `request` or `limit`. Empty: our own.",
    )
    identity: str = Field(
        "",
        description="What makes series those of something else, label `what`: `several` for workloads reported as "
        "more than one object, `exported`, pods under other names, and `clusters`. Empty: our own.",
    )
    state_metrics: str = Field("", description="Versions of kube-state-metrics, label `version`. Empty: our own.")

    errors: dict[Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,31}$")], str] = Field(
        default_factory=dict,
        description="Signals of errors by name, for `rollback.errors` of policies: PromQL with one series a workload, "
        "labels namespace, workload_kind and workload, e.g. the share of requests that fail. Asked only while "
        "something is changed or watched.",
    )
    per_container: bool = Field(
        default=True, description="Whether usage and requests are read by container; if not, pods are sized as a whole."
    )
    container_cpu: str = Field("", description="CPU of each container in the hottest pod, cores. Empty: our own.")
    container_memory: str = Field("", description="Its highest working set within $window, bytes. Empty: our own.")
    container_images: str = Field("", description="App containers, label `image`. Empty: our own.")
    init_containers: str = Field("", description="Init containers, label `restart_policy`. Empty: our own.")
    container_requests: str = Field("", description="Requests of containers, label `resource`. Empty: our own.")
    container_limits: str = Field("", description="Limits of containers, label `resource`. Empty: our own.")
    oom_kills: str = Field("", description="Memory limits at OOM kills of a week, bytes. Empty: our own.")
    held_back: str = Field("", description="Share of time with throttled or stalled CPU. Empty: our own.")

    @model_validator(mode="before")
    @classmethod
    def _spell_out(cls, given: Any) -> Any:
        """Fill in the preset, so that the model shows the text of each query."""
        if not isinstance(given, dict):
            return given
        known = (
            RAW | OF_NAMED | CONTAINER_USAGE | CONTAINER_FACTS | (RECORDED if given.get("preset") == "recorded" else {})
        )
        origin = PRESETS.get(str(given.get("requests_from", "")))
        known |= {"requests": origin.query} if origin else {}
        if given.get("cpu") and given["cpu"] != known["cpu"]:
            known = {name: text for name, text in known.items() if name != OF_PODS}
        return given | {name: text for name, text in known.items() if not given.get(name)}

    @field_validator("requests_from")
    @classmethod
    def _known(cls, value: str) -> str:
        allowed = ("auto", "none", *PRESETS)
        if value not in allowed:
            near = nearest(value, allowed)
            raise ValueError(f"must be one of {', '.join(allowed)}" + (f"; did you mean {near[0]}?" if near else ""))
        return value

    @field_validator("namespaces")
    @classmethod
    def _compiles(cls, value: str) -> str:
        try:
            re.compile(value)
        except re.error as error:
            raise ValueError(f"must be a regular expression: {error}") from error
        return value

    @field_validator("errors")
    @classmethod
    def _errors_are_asked(cls, value: dict[str, str]) -> dict[str, str]:
        if empty := [name for name, query in value.items() if not query.strip()]:
            raise ValueError(f"{empty[0]}: needs a query")
        return value

    def with_signals(self, signals: Mapping[str, SignalSettings]) -> Queries:
        """Return the queries with those of the settings' signals added."""
        queries = self.model_copy()
        queries._own = {name: signal for name, signal in signals.items() if signal.query}  # noqa: SLF001  its own
        return queries

    def about(self, namespace: str, name: str) -> Queries:
        """Return the queries restricted to workloads of one namespace and name, shell patterns.

        A namespace beside `namespaces` is read where both fit into one expression. Pods are selected by the names of
        their owners where all kinds are those of Kubernetes and Argo. Selecting too much does no harm.
        """
        literal = not set("*?[") & set(namespace)
        narrower = namespace != "*" and (
            self.namespaces == ".+" or (literal and re.fullmatch(self.namespaces, namespace) is not None)
        )
        queries = self.model_copy(update={"namespaces": promql.expression_of(namespace)} if narrower else {})
        queries._narrowed = True  # noqa: SLF001  its own
        if name != "*" and set(self.kinds) <= promql.NAMED_BY_OWNER:
            queries._names = promql.expression_of(name)  # noqa: SLF001  its own
        return queries

    @property
    def narrowed(self) -> bool:
        """Whether these queries are about some names only: that nothing answers is no fault of the source."""
        return self._narrowed

    def is_own(self, name: str) -> bool:
        """Whether a query is that of a signal of the settings."""
        return name in self._own

    @property
    def detects_requests(self) -> bool:
        """Whether the origin of request rates has to be found out by asking."""
        return self.requests_from == "auto" and not self.requests

    def with_requests_from(self, preset: str) -> Queries:
        """Return the queries with request rates from this preset."""
        return self.model_copy(update={"requests_from": preset, "requests": PRESETS[preset].query})

    def requests_of(self, preset: str, step: timedelta = timedelta(0)) -> str:
        """The query for the request rates of one origin at points `step` apart."""
        return self.rendered(PRESETS[preset].query, self.window(step))

    def window(self, step: timedelta) -> timedelta:
        """Range of a rate for points `step` apart."""
        return max(self.rate_window, step)

    def signal(self, signal: str, step: timedelta = timedelta(0), containers: Collection[str] = ()) -> str:
        """Return the query for `signal` of every workload at points `step` apart; empty when there is none.

        A signal of containers is read for these `containers`.
        """
        return self.rendered(self._template(signal), self.window(step), containers)

    def _template(self, signal: str) -> str:
        if signal.startswith(ERROR_SIGNAL_PREFIX):
            return self.errors.get(signal.removeprefix(ERROR_SIGNAL_PREFIX), "")
        own = self._own.get(signal)
        return str(getattr(self, _TEMPLATES[signal])) if own is None else self._total(own)

    def _total(self, own: SignalSettings) -> str:
        """The total over all pods: the mean of a pod times the ready ones where the query answers with that."""
        if not own.per_pod:
            return own.query
        return f"(\n{own.query}\n)\n* on (namespace, workload_kind, workload)\n(\n{self.ready_replicas}\n)"

    def of_pods(self, signal: str, step: timedelta, containers: Collection[str] = ()) -> str:
        """Return the query for the pods behind the sums of a signal at points `step` apart, or an empty text."""
        name = _MADE_OF.get(signal)
        return self.rendered(getattr(self, name), self.window(step), containers) if name else ""

    def is_rate(self, signal: str) -> bool:
        """Whether a signal is a rate over a window."""
        return "$window" in self._template(signal)

    def inventory(self) -> dict[str, str]:
        """The queries that together describe every workload, by name."""
        return {name: self.fact(name) for name in INVENTORY}

    def fact(self, name: str, containers: Collection[str] = ()) -> str:
        """Return one query of the inventory, where HPAs name these containers."""
        return self.rendered(getattr(self, name), containers=containers)

    def hpa_count(self) -> str:
        """The query for the number of HPAs."""
        return f"count(\n{self.rendered(self.hpa_scale_targets)}\n)"

    def container_usage(self, signal: str, step: timedelta) -> str:
        """The query for the usage of every container at points `step` apart."""
        return self.rendered(getattr(self, f"container_{signal}"), self.window(step))

    def container_facts(self) -> dict[str, str]:
        """The queries that together describe every container, and what pods carry, by name."""
        carried = {f"{CARRIED}{name}": signal.capacity for name, signal in self._own.items() if signal.capacity}
        stated = {name: getattr(self, name) for name in CONTAINER_FACTS}
        return {name: self.rendered(template) for name, template in (stated | carried).items()}

    def detection(self) -> str:
        """The query that finds out where request rates can come from."""
        return self.rendered(DETECTION)

    def all_queries(self) -> dict[str, str]:
        """Return every query that one cycle may send, as it is sent."""
        errors = (f"{ERROR_SIGNAL_PREFIX}{name}" for name in self.errors)
        signals = {str(name): self.signal(name) for name in (*DEMAND, *self._own, *errors)}
        counted = {OF_PODS: self.of_pods(CPU, timedelta(0))}
        return {name: text for name, text in (signals | counted | self.inventory()).items() if text}

    def rendered(self, template: str, window: timedelta | None = None, containers: Collection[str] = ()) -> str:
        """`template` with a text for each of its names."""
        owners = OWNERS_RECORDED if self.preset == "recorded" else OWNER_JOIN
        text = promql.filled(template, {"workloads": _named_once(self.replicas), "owners": owners})
        named = promql.any_of(sorted(containers)) if 0 < len(containers) <= MAX_NAMED_CONTAINERS else ANY_CONTAINER
        values = {
            "namespaces": promql.escaped(self.namespaces),
            "labels": promql.equalities(self.labels),
            "copies": ", ".join(self.copies),
            "kinds": "|".join(self.kinds),
            "window": promql.duration(window or self.rate_window),
            "containers": promql.escaped(named),
        }
        text = promql.filled(text, values)
        return promql.about_workloads(text, self._names) if self._names else text


def _named_once(replicas: str) -> str:
    """One series of value 1 per workload name, from any query that has one series per workload."""
    return f"topk by (namespace, workload) (1, group by (namespace, workload_kind, workload) (\n{replicas}\n))"
