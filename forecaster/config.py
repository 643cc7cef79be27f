"""Settings of the process and policies of the workloads, from one YAML file; every fault is reported at once.

prometheus:   how to reach it                        (sources/settings.py)
queries:      what to ask                            (sources/queries.py)
history:      how much to keep                       (store/history.py)
cycle:        when to run
forecast:     which model, how often it is fitted
serving:      where the API listens
keda:         where KEDA's external scaler listens
remote_write: where forecasts are written            (remote_write/settings.py)
state:        where snapshot, ledger and table lie
policy:       defaults of every workload             (domain/policy.py)
overrides:    - match: {namespace, kind, name}; policy: {...}
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator, model_validator

import models
from forecaster.domain.duration import Duration
from forecaster.domain.policies import Policies, merged
from forecaster.domain.policy import Policy, Selector
from forecaster.errors import ConfigError, Fault
from forecaster.faults import faults_of, faults_of_overrides
from forecaster.remote_write.settings import RemoteWriteSettings
from forecaster.sources.queries import Queries
from forecaster.sources.settings import PrometheusSettings
from forecaster.store.history import HistorySettings

if TYPE_CHECKING:
    from collections.abc import Mapping

Positive = Annotated[Duration, Field(gt=timedelta(0))]


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class CycleSettings(_Section):
    """When the cycle runs."""

    interval: Duration = Field(
        timedelta(minutes=1),
        ge=timedelta(minutes=1),
        le=timedelta(minutes=15),
        description="From one evaluation time to the next; whole minutes, aligned to the clock.",
    )
    delay: Duration = Field(
        timedelta(seconds=5),
        ge=timedelta(0),
        lt=timedelta(minutes=1),
        description="How long after the full minute to start, so that its scrapes have arrived.",
    )
    grace: Positive = Field(
        timedelta(seconds=30), description="On SIGTERM, how long the running cycle may take to finish."
    )
    snapshot_every: Positive = Field(
        timedelta(hours=1),
        description="How often the history is saved, and once more at the end; a restart asks for what came since.",
    )

    @field_validator("interval")
    @classmethod
    def _whole_minutes(cls, value: timedelta) -> timedelta:
        if value % timedelta(minutes=1) or timedelta(hours=1) % value:
            raise ValueError("must be whole minutes that divide an hour, so that evaluation times stay aligned")
        return value


class ForecastSettings(_Section):
    """The model."""

    model: str = Field("adaptive", description="A name of the catalogue; `forecaster models` lists it.")
    refit_after: Positive = Field(
        timedelta(hours=6),
        description="Age at which a model is fitted anew; in rotation, a part of the workloads at a time.",
    )

    @field_validator("model")
    @classmethod
    def _known(cls, value: str) -> str:
        try:
            models.create(value)
        except models.ModelError as error:
            raise ValueError(str(error)) from error
        return value


class PreviousSettings(_Section):
    """The adapter that had the group of external metrics before; what is not ours to answer goes on to it."""

    server: str = Field(
        "",
        pattern=r"^$|^https://[^/@]+$",
        description="Its address, e.g. https://keda-operator-metrics-apiserver.keda.svc:443. Default: there is none.",
    )
    ca_file: Path | None = Field(None, description="PEM file of the authority that signed its certificate.")
    token_file: Path = Field(
        Path("/var/run/secrets/kubernetes.io/serviceaccount/token"),
        description="Token of ours that it is shown; its account needs `list` on external.metrics.k8s.io.",
    )

    @model_validator(mode="after")
    def _is_verified(self) -> Self:
        if self.server and self.ca_file is None:
            raise ValueError("server needs ca_file: whoever answers in its place would decide what scales")
        return self


class SecureSettings(_Section):
    """A second port, with TLS and the cluster's own users and rights; the plain one keeps probes and /metrics."""

    enabled: bool = Field(default=False, description="Whether to listen there.")
    host: str = Field("0.0.0.0", description="Address to listen on.")  # noqa: S104  the API server comes from outside the pod
    port: int = Field(6443, ge=0, le=65535, description="Port to listen on; 0 takes a free one.")
    certificate_file: Path | None = Field(
        None, description="PEM file with the server's certificate chain; read again whenever it changes."
    )
    key_file: Path | None = Field(None, description="PEM file with the key of that certificate.")
    kubeconfig: Path | None = Field(
        None, description="Client configuration for the API server; default: the pod's own service account."
    )
    service: str = Field(
        "",
        pattern=r"^$|^[^/]+/[^/]+$",
        description="NAMESPACE/NAME of our Service. With it, an API group that another one serves is noticed and told.",
    )
    previous: PreviousSettings = PreviousSettings()

    @model_validator(mode="after")
    def _has_certificate(self) -> Self:
        if self.enabled and not (self.certificate_file and self.key_file):
            raise ValueError("needs certificate_file and key_file")
        return self


class ServingSettings(_Section):
    """The serving process."""

    enabled: bool = Field(default=True, description="Whether `forecaster run` starts it.")
    host: str = Field("0.0.0.0", description="Address to listen on.")  # noqa: S104  probes and Prometheus come from outside the pod
    port: int = Field(8080, ge=0, le=65535, description="Port to listen on; 0 takes a free one.")
    stale_after: Positive | None = Field(
        None,
        description=(
            "An older table is stale: its values are no longer taken as known, and workloads in mode publish abstain. "
            "Default: three intervals."
        ),
    )
    workload_metrics: Literal["none", "counts", "all"] = Field(
        "counts",
        description=(
            "Gauges of every workload in /metrics. counts: replicas and demand at its quantile; all: the whole "
            "forecast and its error, too."
        ),
    )
    secure: SecureSettings = SecureSettings()


class KedaSettings(_Section):
    """The external scaler of KEDA, a process of its own beside the serving one."""

    enabled: bool = Field(default=False, description="Whether `forecaster run` starts it; needs the extra `keda`.")
    host: str = Field("0.0.0.0", description="Address to listen on.")  # noqa: S104  KEDA comes from outside the pod
    port: int = Field(9090, ge=1, le=65535, description="Port to listen on.")
    certificate_file: Path | None = Field(
        None, description="PEM file with the server's certificate chain; read again whenever it changes."
    )
    key_file: Path | None = Field(None, description="PEM file with the key of that certificate.")
    client_ca_file: Path | None = Field(
        None, description="PEM file of the authorities that sign KEDA's client certificate. Without it anybody may ask."
    )
    client_names: tuple[str, ...] = Field(
        (),
        description="Common names of client certificates that are answered. Default: every one of these authorities.",
    )
    plaintext: bool = Field(
        default=False, description="Serve without TLS, to whoever reaches the port. Only where no certificate is given."
    )

    @model_validator(mode="after")
    def _either_way(self) -> Self:
        if (self.certificate_file is None) is not (self.key_file is None):
            raise ValueError("certificate_file and key_file belong together")
        if self.certificate_file is None and (self.client_ca_file or self.client_names):
            raise ValueError("client_ca_file and client_names need certificate_file: without TLS nobody has a name")
        if self.client_names and self.client_ca_file is None:
            raise ValueError("client_names needs client_ca_file, which says whose certificates are believed")
        if self.enabled and self.plaintext is (self.certificate_file is not None):
            raise ValueError("either certificate_file and key_file, or plaintext: true")
        return self


class StateSettings(_Section):
    """What outlives the process."""

    directory: Path = Field(
        Path("forecaster-state"), description="Directory of snapshot, table and the SQLite database."
    )
    database: str = Field(
        "",
        description="SQLAlchemy address of the ledger, e.g. postgresql+psycopg://...; default: SQLite in `directory`.",
    )
    database_file: Path | None = Field(
        None, description="File that holds the address of the database, for addresses with a password."
    )
    keep: Positive = Field(timedelta(days=30), description="How long decisions and scores are kept.")
    tape: Path | None = Field(
        None,
        description="File on which all that is read and decided goes, begun anew at each start, for `forecaster replay "
        "--tape`. It is not bounded: name one to find something out.",
    )

    @field_validator("database_file")
    @classmethod
    def _one_address(cls, value: Path | None, info: ValidationInfo) -> Path | None:
        if value and info.data.get("database"):
            raise ValueError("use either database or database_file")
        return value


class Override(_Section):
    """A policy for some workloads; what it leaves out stays as in the defaults."""

    match: Selector = Selector()
    policy: dict[str, Any] = Field(default_factory=dict)


class Settings(_Section):
    """Everything `forecaster` can be told."""

    prometheus: PrometheusSettings = PrometheusSettings()
    queries: Queries = Queries()
    history: HistorySettings = HistorySettings()
    cycle: CycleSettings = CycleSettings()
    forecast: ForecastSettings = ForecastSettings()
    serving: ServingSettings = ServingSettings()
    keda: KedaSettings = KedaSettings()
    remote_write: RemoteWriteSettings = RemoteWriteSettings()
    state: StateSettings = StateSettings()
    policy: Policy = Policy()
    overrides: tuple[Override, ...] = Field(
        (), description="Policies for some workloads: a list of {match: {namespace, kind, name}, policy: {...}}."
    )

    @field_validator("policy")
    @classmethod
    def _minutes_are_kept(cls, value: Policy, info: ValidationInfo) -> Policy:
        kept = info.data.get("history")
        if kept and value.min_history > kept.minutes_kept:
            raise ValueError(f"min_history must not be longer than history.minutes_kept, {kept.minutes_kept}")
        return value

    @property
    def policies(self) -> Policies:
        """The policies of all workloads."""
        return Policies(self.policy, tuple((one.match, one.policy) for one in self.overrides))


def load(path: Path | None = None, given: Mapping[str, object] | None = None) -> Settings:
    """Settings of a file, or of all `*.yaml` of a folder, with what was given on the command line put over them.

    Files of a folder are put over each other in the order of their names: a mounted ConfigMap may be made of parts.

    Raises:
        ConfigError: the file cannot be read, or with all its faults.
    """
    value: Mapping[str, object] = {}
    for file in _files(path):
        value = merged(value, _read(file))
    return parse(merged(value, given or {}), str(path or "command line"))


def parse(value: Mapping[str, object], origin: str) -> Settings:
    """Settings of a nested mapping.

    Raises:
        ConfigError: all faults of all sections and of every override.
    """
    faults: list[Fault] = []
    settings = None
    try:
        settings = Settings.model_validate(value)
    except ValidationError as error:
        faults += faults_of(error)
    faults += faults_of_overrides(value)
    if faults or settings is None:
        raise ConfigError(origin, faults)
    return settings


def _files(path: Path | None) -> list[Path]:
    if path is None:
        return []
    found = sorted(path.glob("*.yaml")) if path.is_dir() else [path]
    if not found:
        raise ConfigError(str(path), [Fault("(folder)", str(path), "a folder with *.yaml files is expected")])
    return found


def _read(path: Path) -> dict[str, object]:
    try:
        value = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(str(path), [Fault("(file)", str(path), f"a readable UTF-8 file; {error}")]) from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ConfigError(str(path), [Fault("(file)", str(path), f"YAML; {_position(error)}")]) from error
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ConfigError(str(path), [Fault("(file)", type(value).__name__, "a mapping of sections is expected")])
    return value


def _position(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error) or "not parseable"
    return f"line {mark.line + 1}, column {mark.column + 1}: {problem}" if mark else problem
