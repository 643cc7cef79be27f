"""Connection to a Prometheus, or any server with its HTTP API, and the signals that are read from it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Self
from urllib.parse import urlsplit, urlunsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator

from forecaster.domain.published import COUNTS
from forecaster.domain.settings import AutoOrOff, Section
from forecaster.domain.signal import BUILT_IN, DEMAND, PODS, Signal, Signals
from forecaster.sources.presets import MODEL_SERVERS, SERVER_UNIT
from forecaster.vertical.cluster_rules.node import POOL_LABELS

SIGNAL_NAME = re.compile(r"[a-z][a-z0-9_]{0,15}", re.ASCII)
"""Names of signals are values of labels, parts of KEDA's metric names and a column of the ledger."""
TAKEN = frozenset({str(PODS), *(count.removeprefix("forecaster_") for count in COUNTS)})


Provider = Literal["", "aws-sigv4", "azure", "gcp"]
"""Clouds whose managed Prometheus knows a pod by its identity; empty: none of them."""


class ScalableKind(Section):
    """A kind of workload with a scale subresource, and of the form of a Deployment: replicas, selector, template."""

    kind: str = Field(pattern=r"^[A-Za-z][A-Za-z0-9]*$", description="E.g. Rollout; one of queries.kinds, too.")
    group: str = Field(pattern=r"^[a-z0-9.-]+$", description="E.g. argoproj.io.")
    version: str = Field(pattern=r"^v[a-z0-9]+$", description="E.g. v1alpha1.")
    plural: str = Field(pattern=r"^[a-z0-9.-]+$", description="E.g. rollouts.")

    @property
    def path(self) -> str:
        """Return the API path of its objects in all namespaces."""
        return f"/apis/{self.group}/{self.version}/{self.plural}"


class KubernetesSettings(Section):
    """The API server as a source of facts: counts, HPAs and requests as they are now."""

    live: AutoOrOff = Field(
        "auto",
        description="auto: watch workloads, HPAs and pods where this is a pod with an account, or a kubeconfig is "
        "named; facts that may not be read come from kube-state-metrics, as with off.",
    )
    kubeconfig: Path | None = Field(
        None,
        description="Client configuration for that. Default: serving.secure.kubeconfig, else the pod's own account.",
    )
    custom_kinds: tuple[ScalableKind, ...] = Field(
        (), description="Custom resources to be watched: a list of {kind, group, version, plural}."
    )
    pool_labels: tuple[str, ...] = Field(
        POOL_LABELS,
        description="Labels that identify node pools; the first one of a node counts. Lead times are measured by pool.",
    )


class PrometheusSettings(BaseModel):
    """Address, identity and patience. Secrets stay in files, are read when they are used and never shown."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    url: str = Field(
        "http://127.0.0.1:9090",
        description="Address of the HTTP API without /api/v1, e.g. http://prometheus.monitoring:9090/prefix.",
    )
    bearer_token_file: Path | None = Field(
        None,
        description="File with a bearer token; read again whenever it changes, as mounted service account tokens do.",
    )
    username: str = Field("", description="User name of basic authentication; needs `password_file`.")
    password_file: Path | None = Field(
        None, description="File with the password of basic authentication; read again whenever it changes."
    )
    identity: Provider = Field(
        "",
        description="Managed Prometheus that knows this pod by its identity in the cloud: aws-sigv4 (Amazon), "
        "azure (Azure Monitor) or gcp (Google Cloud).",
    )
    client_certificate_file: Path | None = Field(
        None, description="PEM file with the client's certificate chain; without `client_key_file` also with its key."
    )
    client_key_file: Path | None = Field(None, description="PEM file with the key of the client's certificate.")
    ca_file: Path | None = Field(
        None, description="PEM file of the authorities that may sign the server's certificate. Default: the system's."
    )
    insecure_skip_verify: bool = Field(
        default=False, description="Accept any server certificate. For trying things out: any host in between can lie."
    )
    headers: dict[str, SecretStr] = Field(
        default_factory=dict,
        description="Further request headers, e.g. X-Scope-OrgID for the tenant of Mimir. Values count as secrets.",
    )
    connect_timeout_seconds: float = Field(
        5.0,
        gt=0,
        le=60,
        description="How long to wait for a connection. Five seconds cover a restart of the network path.",
    )
    read_timeout_seconds: float = Field(
        30.0,
        gt=0,
        le=600,
        description="How long to wait for an answer, up to its last byte; a third of it after a query without one. "
        "The server gives up a second earlier, so that it says why: below its --query.timeout of two minutes.",
    )
    most_answer_mib: int = Field(
        256,
        ge=1,
        le=4096,
        description="Largest answer that is read. A hundred thousand workloads are 20 MiB at one instant; history is "
        "read in slices of `samples_per_answer`.",
    )
    retries: int = Field(
        2,
        ge=0,
        le=10,
        description="How often to ask again after a refused connection, 429, 502, 503 or 504. Two bridge a restarted "
        "proxy; the next cycle is the better third attempt.",
    )
    retry_backoff_seconds: float = Field(
        0.5, ge=0, le=30, description="Pause before the second attempt of those, doubled each time."
    )
    max_points: int = Field(
        11_000, ge=2, description="Most points per series in one answer; Prometheus refuses more than 11,000."
    )
    samples_per_answer: int = Field(
        1_000_000,
        ge=1_000,
        description="Most samples to ask for at a time when reading history. A million is 20 to 35 MB on the wire, "
        "and two answers are in memory at a time.",
    )

    @model_validator(mode="before")
    @classmethod
    def _hide_credentials(cls, given: Any) -> Any:
        """Credentials in an address would reach messages and logs; from here on only their absence is checked."""
        if isinstance(given, dict) and isinstance(given.get("url"), str):
            return given | {"url": _masked(given["url"])}
        return given

    @field_validator("url")
    @classmethod
    def _address(cls, value: str) -> str:
        parts = urlsplit(value)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ValueError("must be an address like http://prometheus.monitoring:9090")
        if "@" in parts.netloc:
            raise ValueError("must not contain credentials; use username and password_file, or bearer_token_file")
        if parts.query or parts.fragment:
            raise ValueError("must not contain a query or fragment")
        return value.rstrip(" \n/").removesuffix("/api/v1")

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if bool(self.username) != bool(self.password_file):
            raise ValueError("username and password_file belong together")
        if self.username and self.bearer_token_file:
            raise ValueError("use either bearer_token_file or username with password_file")
        if self.identity and (self.username or self.bearer_token_file):
            raise ValueError("identity is used without bearer_token_file, username and password_file")
        if self.client_key_file and not self.client_certificate_file:
            raise ValueError("client_key_file needs client_certificate_file")
        return self


def _masked(url: str) -> str:
    parts = urlsplit(url)
    if "@" not in parts.netloc:
        return url
    return urlunsplit(parts._replace(netloc="***@" + parts.netloc.rpartition("@")[2]))


class SignalSettings(Section):
    """A signal of your own: its query, and how an HPA uses it."""

    preset: Literal["", "vllm", "sglang", "tgi", "triton"] = Field(
        "", description="Requests in flight at a server of models, in place of unit, query and capacity of your own."
    )
    unit: str = Field("", description="Unit of the amounts, in explanations: messages, tokens/s, connections.")
    query: str = Field(
        "",
        description="PromQL with one series a workload, labels namespace, workload_kind and workload, for all at once. "
        "Placeholders as in `queries`: $window, $namespaces, $labels, $kinds, $owners, $workloads.",
    )
    per_pod: bool = Field(
        default=False,
        description="Whether the query answers with the mean of a pod, e.g. the utilization of a GPU, instead of the "
        "total over all pods. It is multiplied by the ready pods.",
    )
    capacity: str = Field(
        "",
        description="PromQL for the capacity of one pod, one series per workload, read once an hour; four fifths of it "
        "are the target where neither an HPA nor `pod_amounts` states one. Empty: nothing is learned.",
    )
    metrics: tuple[str, ...] = Field(
        (), description="Names of the HPA's Pods, Object or External metrics that mean it."
    )
    divided_by: Literal["ready-pods", "all-pods"] = Field(
        "all-pods",
        description="By which pods an HPA divides it. all-pods: an External or Object metric of type AverageValue. "
        "ready-pods: a Pods metric.",
    )
    survives_zero: bool = Field(
        default=True,
        description="Whether it is measured while no pod runs, as a queue in a broker is. A signal that pods export is "
        "not.",
    )
    warm_up: bool = Field(
        default=False, description="Whether new pods use some of it to start; that part is no demand and is left out."
    )
    plateau: bool = Field(
        default=True,
        description="Whether a stretch on its own highest value of weeks is taken for a limit that cut demand off. "
        "False for amounts that stand still by themselves.",
    )

    @model_validator(mode="before")
    @classmethod
    def _spell_out(cls, given: Any) -> Any:
        """Fill in the preset, so that the model shows the text of each query."""
        server = MODEL_SERVERS.get(str(given.get("preset"))) if isinstance(given, dict) else None
        if server is None:
            return given
        known = {"unit": SERVER_UNIT, "query": server.query, "capacity": server.capacity, "survives_zero": False}
        return known | given


def signals_of(settings: Mapping[str, SignalSettings]) -> Signals:
    """Return the table of signals: the built-in ones, then those of the settings."""
    stated = ((signal, settings.get(str(signal))) for signal in BUILT_IN.demand)
    built_in = (signal.named_by(own.metrics) if own else signal for signal, own in stated)
    own = (_signal_of(name, signal) for name, signal in settings.items() if name not in BUILT_IN.by_name)
    return Signals((*built_in, *own))


def check_signals(settings: Mapping[str, SignalSettings]) -> None:
    """Raise ValueError for an impossible name, a missing value, or a metric of two signals."""
    signal_of: dict[str, str] = {signal.resource: str(signal) for signal in DEMAND if signal.resource}
    for name, signal in settings.items():
        if not SIGNAL_NAME.fullmatch(name) or name in TAKEN:
            raise ValueError(
                f"{name!r}: a name is a lowercase word of at most 16 signs, not {', '.join(sorted(TAKEN))}"
            )
        stated = signal.model_fields_set - {"metrics"}
        if name in BUILT_IN.by_name and stated:
            raise ValueError(f"{name}: is built in; only its metrics can be stated, not {', '.join(sorted(stated))}")
        if name not in BUILT_IN.by_name and not (signal.unit and signal.query):
            raise ValueError(f"{name}: needs a unit and a query")
        for metric in signal.metrics:
            if signal_of.setdefault(metric, name) != name:
                raise ValueError(f"{name}: metric {metric!r} means {signal_of[metric]} already")


def _signal_of(name: str, settings: SignalSettings) -> Signal:
    return Signal(
        name,
        unit=settings.unit,
        metrics=settings.metrics,
        of_all_pods=settings.divided_by == "all-pods",
        survives_zero=settings.survives_zero,
        warm_up=settings.warm_up,
        plateau=settings.plateau,
    )
