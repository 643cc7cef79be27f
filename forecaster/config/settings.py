"""Settings of the process and policies of the workloads: YAML, environment, command line; all faults at once.

source:       which kind of source is read           (sources/factory.py)
prometheus:   how to reach it                        (sources/settings.py)
queries:      what to ask                            (sources/queries.py)
kubernetes:   what the API server is asked for        (sources/settings.py)
signals:      what is measured beside CPU, memory and requests   (sources/settings.py)
history:      how much to keep                       (store/history.py)
cycle:        when to run
forecast:     which model, how often it is fitted
serving:      where the API listens                  (serving/settings.py)
keda:         where KEDA's external scaler listens   (serving/settings.py)
remote_write: where forecasts are written            (publish/settings.py)
state:        where snapshot, ledger and table lie     (store/state.py)
acting:       how the cluster is written to           (actuators/settings.py)
floor:        how minReplicas is written              (actuators/settings.py)
scale:        how counts are written                  (actuators/settings.py)
resources:    whether objects of the cluster state policies   (domain/ceilings.py)
resize:       how running pods are resized            (actuators/settings.py)
replicas:     how others come by what one computes    (publish/settings.py)
sharding:     how a large fleet is computed in parts   (config/sharding.py)
prices:       what requests cost                     (publish/settings.py)
policy:       defaults of every workload             (domain/policy.py)
overrides:    - match: {namespace, kind, name}; policy: {...}
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field, ValidationError, ValidationInfo, create_model, field_validator
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, EnvSettingsSource, SettingsError

from forecaster.actuators.settings import ActingSettings, FloorSettings, ResizeSettings, ScaleSettings
from forecaster.config.files import faults_of, faults_of_overrides, read_file, setting_files
from forecaster.config.sharding import ShardingSettings, fitting
from forecaster.domain.layers import ResourceSettings, merged
from forecaster.domain.policies import Policies
from forecaster.domain.policy import Policy, PolicySelector
from forecaster.domain.settings import UNKNOWN_SETTING, Duration, Section
from forecaster.domain.signal import BUILT_IN, Signals
from forecaster.errors import ConfigError, Fault, nearest
from forecaster.publish.settings import PriceSettings, RemoteWriteSettings, ReplicaSettings
from forecaster.serving.settings import KedaSettings, ServingSettings
from forecaster.sources.factory import SourceSettings
from forecaster.sources.queries import Queries
from forecaster.sources.settings import (
    KubernetesSettings,
    PrometheusSettings,
    SignalSettings,
    check_signals,
    signals_of,
)
from forecaster.store.history import HistorySettings
from forecaster.store.state import StateSettings

Positive = Annotated[Duration, Field(gt=timedelta(0))]


class CycleSettings(Section):
    """Schedule of the cycle."""

    interval: Duration = Field(
        timedelta(minutes=1),
        ge=timedelta(minutes=1),
        le=timedelta(minutes=15),
        description="From one evaluation time to the next; whole minutes, aligned to the clock.",
    )
    delay: Duration = Field(
        timedelta(seconds=5),
        ge=timedelta(0),
        le=timedelta(seconds=90),
        description="How long after the full minute to start, so that its scrapes have arrived: longer where they come "
        "by remote write. `forecaster doctor` measures how late they are.",
    )
    grace: Positive = Field(
        timedelta(seconds=30), description="On SIGTERM, how long the running cycle may take to finish."
    )
    stuck_after: Duration = Field(
        timedelta(minutes=15),
        ge=timedelta(minutes=10),
        description="A cycle that has run for longer hangs: the process ends with code 70, to be started again. The "
        "first cycle of a large fleet takes some minutes.",
    )
    snapshot_every: Positive = Field(
        timedelta(hours=1),
        description="How often the history is saved, and once more at the end; a restart reads what came since.",
    )

    @field_validator("interval")
    @classmethod
    def _whole_minutes(cls, value: timedelta) -> timedelta:
        if value % timedelta(minutes=1) or timedelta(hours=1) % value:
            raise ValueError("must be whole minutes that divide an hour, so that evaluation times stay aligned")
        return value


class ForecastSettings(Section):
    """The model."""

    model: str = Field(
        "adaptive",
        description="A name of the catalogue (`forecaster models`), or module:Name of your own; with its settings in "
        "brackets, e.g. nearest-day(nearest=4).",
    )
    refit_after: Positive = Field(
        timedelta(hours=6),
        description="Age at which a model is fitted anew; in rotation, a part of the workloads at a time.",
    )

    @field_validator("model")
    @classmethod
    def _known(cls, value: str) -> str:
        import models  # noqa: PLC0415  a fifth of a second, which settings without a model of their own do not wait for

        try:
            models.create(value)
        except models.ModelError as error:
            near = nearest(value, models.CATALOGUE)
            raise ValueError(f"{error}; did you mean {' or '.join(near)}?" if near else str(error)) from error
        return value


ANY_DAY = (datetime(2026, 1, 1, tzinfo=UTC),) * 2


class Override(Section):
    """A policy for some workloads; fields left out have their defaults."""

    match: PolicySelector = PolicySelector()
    policy: dict[str, Any] = Field(default_factory=dict)


class Settings(Section):
    """All settings of `forecaster`."""

    source: SourceSettings = SourceSettings()
    prometheus: PrometheusSettings = PrometheusSettings()
    queries: Queries = Queries()
    kubernetes: KubernetesSettings = KubernetesSettings()
    signals: dict[str, SignalSettings] = Field(
        default_factory=dict,
        description="Signals of your own by name, beside cpu, memory and requests; of those, further HPA metrics.",
    )
    history: HistorySettings = HistorySettings()
    cycle: CycleSettings = CycleSettings()
    forecast: ForecastSettings = ForecastSettings()
    serving: ServingSettings = ServingSettings()
    keda: KedaSettings = KedaSettings()
    remote_write: RemoteWriteSettings = RemoteWriteSettings()
    state: StateSettings = StateSettings()
    acting: ActingSettings = ActingSettings()
    floor: FloorSettings = FloorSettings()
    scale: ScaleSettings = ScaleSettings()
    resize: ResizeSettings = ResizeSettings()
    replicas: ReplicaSettings = ReplicaSettings()
    sharding: ShardingSettings = ShardingSettings()
    resources: ResourceSettings = ResourceSettings()
    prices: PriceSettings = PriceSettings()
    policy: Policy = Policy()
    overrides: tuple[Override, ...] = Field(
        (), description="Policies for some workloads: a list of {match: {namespace, kind, name}, policy: {...}}."
    )

    @field_validator("policy")
    @classmethod
    def _minutes_are_kept(cls, value: Policy, info: ValidationInfo) -> Policy:
        history = info.data.get("history")
        if history and value.min_history > history.minutes_kept:
            raise ValueError(f"min_history must not be longer than history.minutes_kept, {history.minutes_kept}")
        return value

    @field_validator("serving")
    @classmethod
    def _holidays_are_known(cls, value: ServingSettings) -> ServingSettings:
        import models  # noqa: PLC0415  as above

        try:
            models.Calendar(value.holidays.zone, value.holidays.countries).holidays(*ANY_DAY)
        except models.ModelError as error:
            raise ValueError(f"holidays: {error}") from error
        return value

    @field_validator("signals")
    @classmethod
    def _metrics_mean_one_signal(cls, value: dict[str, SignalSettings]) -> dict[str, SignalSettings]:
        check_signals(value)
        return value

    @field_validator("floor")
    @classmethod
    def _floors_outlive_cycles(cls, value: FloorSettings, info: ValidationInfo) -> FloorSettings:
        cycle = info.data.get("cycle")
        if cycle and value.expires_after < 5 * cycle.interval:
            raise ValueError(f"expires_after must be five times cycle.interval, {cycle.interval}, or longer")
        return value

    @field_validator("replicas")
    @classmethod
    def _leaders_are_verified(cls, value: ReplicaSettings, info: ValidationInfo) -> ReplicaSettings:
        serving = info.data.get("serving")
        if value.enabled and serving and not (serving.enabled and serving.secure.enabled and serving.secure.service):
            raise ValueError("enabled needs serving.secure.enabled and serving.secure.service: replicas ask each other")
        return value

    @field_validator("sharding")
    @classmethod
    def _shards_fit(cls, value: ShardingSettings, info: ValidationInfo) -> ShardingSettings:
        return fitting(value, info.data)

    @field_validator("resources")
    @classmethod
    def _resources_are_watched(cls, value: ResourceSettings, info: ValidationInfo) -> ResourceSettings:
        kubernetes = info.data.get("kubernetes")
        if value.enabled and kubernetes and kubernetes.live == "off":
            raise ValueError("enabled: true needs live facts; leave kubernetes.live at its default")
        return value

    @field_validator("policy", "overrides")
    @classmethod
    def _modes_are_enabled(cls, value: Any, info: ValidationInfo) -> Any:
        modes = [policy.get("mode") for policy in _stated_in(value)]
        for mode in ("floor", "scale"):
            section = info.data.get(mode)
            if mode in modes and section and not section.enabled:
                raise ValueError(f"mode {mode} needs {mode}.enabled: true, and the rights of deploy/components/{mode}")
        return value

    @field_validator("policy", "overrides")
    @classmethod
    def _sizes_are_enabled(cls, value: Any, info: ValidationInfo) -> Any:
        policies = _stated_in(value)
        modes = [_part(policy, "vertical", "mode") for policy in policies]
        resize = info.data.get("resize")
        if "in-place" in modes and resize and not resize.enabled:
            raise ValueError("vertical mode in-place needs resize.enabled: true, and deploy/components/vertical")
        if not resize or resize.initial:
            return value
        if "initial" in modes:
            raise ValueError("vertical mode initial needs resize.initial: true, and deploy/components/initial")
        if any(_part(policy, "vertical", "evict") is True for policy in policies):
            raise ValueError("vertical.evict needs resize.initial: true: the next pod would have the template's size")
        if any(_part(policy, "vertical", "startup_boost") is not None for policy in policies):
            raise ValueError("vertical.startup_boost needs resize.initial: true, and deploy/components/initial")
        return value

    @field_validator("resize")
    @classmethod
    def _pods_are_watched(cls, value: ResizeSettings, info: ValidationInfo) -> ResizeSettings:
        kubernetes = info.data.get("kubernetes")
        if value.enabled and kubernetes and kubernetes.live == "off":
            raise ValueError("enabled needs the pods of the cluster, and kubernetes.live is off")
        serving = info.data.get("serving")
        if value.initial and not value.enabled:
            raise ValueError("initial needs enabled: true, by which new pods are watched and released")
        if value.initial and serving and not (serving.enabled and serving.secure.enabled):
            raise ValueError("initial needs serving.secure.enabled: the API server asks over TLS")
        return value

    @field_validator("policy", "overrides")
    @classmethod
    def _signals_are_measured(cls, value: Any, info: ValidationInfo) -> Any:
        known = {str(signal) for signal in BUILT_IN.demand} | set(info.data.get("signals", ()))
        for policy in _stated_in(value):
            for name in _signals_named(policy):
                if name not in known:
                    raise ValueError(f"signal {name!r} is not measured; use one of {', '.join(sorted(known))}")
        return value

    @field_validator("policy", "overrides")
    @classmethod
    def _errors_are_asked_for(cls, value: Any, info: ValidationInfo) -> Any:
        queries = info.data.get("queries")
        for name in (_part(policy, "rollback", "errors") for policy in _stated_in(value)):
            if queries and isinstance(name, str) and name and name not in queries.errors:
                known = ", ".join(sorted(queries.errors)) or "none is there"
                raise ValueError(f"rollback.errors {name!r} is not one of queries.errors ({known})")
        return value

    @property
    def signal_table(self) -> Signals:
        """The table of signals."""
        return signals_of(self.signals)

    @cached_property
    def policies(self) -> Policies:
        """The policies of all workloads: one object, which takes over what HPAs are annotated with."""
        overrides = tuple((override.match, override.policy) for override in self.overrides)
        return Policies(self.policy, overrides, signals=self.signal_table, ceilings=self.resources.owners)


def _stated_in(value: Any) -> list[Mapping[str, Any]]:
    """Return the stated parts of the default policy, or of each override."""
    return [value.model_dump()] if isinstance(value, Policy) else [override.policy for override in value]


def _part(policy: Mapping[str, Any], section: str, name: str) -> object:
    """Return one setting of a policy as it was written; an override has parts of a policy, in YAML's types."""
    part = policy.get(section)
    return part.get(name) if isinstance(part, dict) else None


def _signals_named(policy: Mapping[str, Any]) -> list[str]:
    """The signals that the horizontal part of a policy names."""
    amounts = _part(policy, "horizontal", "pod_amounts")
    parts = [part for part in amounts if isinstance(part, dict)] if isinstance(amounts, list | tuple) else []
    named = (_part(policy, "horizontal", "demand_signal"), *(part.get("signal") for part in parts))
    return [name for name in named if isinstance(name, str)]


ENVIRONMENT_PREFIX = "FORECASTER__"
"""Prefix of environment variables that are settings: `FORECASTER__PROMETHEUS__URL` is `prometheus.url`."""


def load(path: Path | None = None, given: Mapping[str, object] | None = None) -> Settings:
    """Settings of a file, or of all `*.yaml` of a folder; over them the environment, and over it the command line.

    Files of a folder are put over each other in the order of their names: a mounted ConfigMap may be made of parts.

    Raises:
        ConfigError: the file cannot be read, or with all its faults; an option of the command line with its own.
    """
    value: Mapping[str, object] = {}
    if given:
        parse(given, "command line")  # so that a wrong option is not called a fault of the file
    for _, layer in layers(path, given):
        value = merged(value, layer)
    return parse(value, str(path or "environment and command line"))


def layers(path: Path | None, given: Mapping[str, object] | None = None) -> list[tuple[str, Mapping[str, object]]]:
    """Return the layers of settings with their names; later ones take precedence."""
    files = [(str(file), read_file(file)) for file in setting_files(path)]
    return [*files, ("environment", environment()), ("command line", given or {})]


def environment() -> dict[str, object]:
    """Return the settings from variables such as `FORECASTER__PROMETHEUS__URL`, by section; lists are JSON.

    Raises:
        ConfigError: variables name no section, or their lists are no JSON.
    """
    sections = {name: (field.annotation, field) for name, field in Settings.model_fields.items()}
    known: type[BaseSettings] = create_model("Environment", __base__=BaseSettings, **sections)  # type: ignore[call-overload]
    source = EnvSettingsSource(known, env_prefix=ENVIRONMENT_PREFIX, env_nested_delimiter="__")
    settings, faults = dict[str, object](), list[Fault]()
    for name in sorted(name for name in os.environ if name.startswith(ENVIRONMENT_PREFIX)):
        source.env_vars = {name.lower(): os.environ[name]}  # alone, so that each fault has its variable
        try:
            value, allowed = source(), f"a section follows {ENVIRONMENT_PREFIX}: {', '.join(sections)}"
        except SettingsError:
            value, allowed = {}, 'a list or section is JSON, such as ["a", "b"] or {"url": "http://prometheus:9090"}'
        faults += [] if value else [Fault(name, "(not shown)", allowed)]
        settings = merged(settings, value)
    if faults:
        raise ConfigError("environment", faults)
    return settings


def parse(value: Mapping[str, object], origin: str) -> Settings:
    """Settings of a nested mapping.

    Raises:
        ConfigError: all faults of all sections and of every override.
    """
    settings, faults = None, list[Fault]()
    try:
        settings = Settings.model_validate(value)
    except ValidationError as error:
        faults += faults_of(error)
    faults += faults_of_overrides(value)
    if faults or settings is None:
        raise ConfigError(origin, [with_spelling(fault) for fault in faults])
    return settings


def setting_paths(section: type[BaseModel] = Settings, before: str = "") -> Iterator[tuple[str, FieldInfo]]:
    """Every setting and section by its path, as `policy.horizontal.lead_time`."""
    for name, field in section.model_fields.items():
        yield before + name, field
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from setting_paths(field.annotation, f"{before}{name}.")


def with_spelling(fault: Fault, within: str = "") -> Fault:
    """The fault of a setting that there is not, with those that are spelt like it; `within` is the section it is of."""
    if not fault.allowed.startswith(UNKNOWN_SETTING):
        return fault
    section, _, name = (within + re.sub(r"^overrides\[\d+\]\.", "", fault.path)).rpartition(".")
    names = [path.rpartition(".")[2] for path, _ in setting_paths() if path.rpartition(".")[0] == section]
    near = [f"{section}.{similar}".lstrip(".") for similar in nearest(name, names)]
    near = near or [path for path, _ in setting_paths() if path.startswith("policy.") and path.endswith(f".{name}")]
    return replace(fault, allowed=f"{UNKNOWN_SETTING}; did you mean {' or '.join(near)}?") if near else fault
