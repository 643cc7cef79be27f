"""Inputs of `forecaster replay`, `tune` and `report`: demand, HPAs, policies, and assumptions about the cluster."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from forecaster import __version__
from forecaster.app import traces
from forecaster.app.clock import instant
from forecaster.cli.hpa_inputs import amounts_of, specs_of
from forecaster.cli.options import chosen, duration_of, narrowed, of_namespaces
from forecaster.cli.replay import PricedOptions, ReplayOptions
from forecaster.cli.streams import tell
from forecaster.config.settings import Settings, parse
from forecaster.domain.layers import merged
from forecaster.domain.policies import Policies
from forecaster.domain.signal import Signal, Signals
from forecaster.domain.window import MINUTE
from forecaster.domain.workload import Prices, Workload, WorkloadId
from forecaster.errors import MAX_NAMED, ConfigError, Fault, UnknownName
from forecaster.hpa.spec import SHIPPED, HpaSpec
from forecaster.replay.assumptions import START_UP, Assumptions, Feedback, Timing
from forecaster.replay.forecasts import ForecastRequest, ReplayForecasts, cached_or_forecast, forecast_minutes
from forecaster.replay.setup import Capacity, autoscaler_of
from forecaster.sources.bundle import SUFFIX, read_bundle
from forecaster.store.forecast_cache import ForecastFiles, usual_directory

if TYPE_CHECKING:
    from forecaster.publish.settings import PriceSettings
    from forecaster.replay.compare import Forecasting
    from forecaster.replay.traces import Measurements, Traces

REQUESTS_POLICY: dict[str, object] = {"horizontal": {"requests_metric": traces.REQUESTS_METRIC}}
"""Policy for the HPAs of the packaged recording, unless a settings file states another one."""
UNTIL = "--until"
OUTSIDE = ("Pods", "Object", "External")


@dataclass(frozen=True, slots=True)
class ReplayInputs:
    """Inputs of a replay."""

    settings: Settings
    traces: Traces
    policies: Policies
    begin: datetime
    until: datetime
    assumed: Assumptions
    forecasting: Forecasting


def inputs_of(options: ReplayOptions, begin: datetime | None = None) -> ReplayInputs:
    """Read the inputs named by the options; the span begins a `length` before its end, or at `begin`.

    Raises:
        ConfigError: an option cannot be used. SourceError: demand could not be read.
    """
    settings = _settings(options)
    length = duration_of("--length", options.length)
    specs = specs_of(options.hpa or (), SHIPPED)
    recorded = _completed(_traces(options, settings, length), specs, _amounts(options.request or ()))
    if not recorded.minutes:
        raise ConfigError("command line", [Fault("--export", str(options.export), "it holds no signal known here")])
    until = min(recorded.end, instant(options.until, UNTIL)) if options.until else recorded.end
    if until <= recorded.start:
        when = f"from {recorded.start:%Y-%m-%d %H:%M} to {recorded.end:%Y-%m-%d %H:%M} UTC"
        given = (UNTIL, options.until) if options.until else ("--export", str(options.export))
        raise ConfigError("command line", [Fault(*given, f"demand was recorded {when}")])
    return ReplayInputs(
        settings=settings,
        traces=recorded,
        policies=_policies(options, settings, specs),
        begin=max(recorded.start - MINUTE, begin or until - length),
        until=until,
        assumed=_assumptions(options, recorded, specs, settings),
        forecasting=_forecasting(options),
    )


def _settings(options: ReplayOptions) -> Settings:
    """Return the settings of --config; a bundle brings its own unless a file is given, but names no code to run.

    Raises:
        ConfigError: the bundle has settings that are none, or a model that would be imported.
    """
    if options.config or not options.export or options.export.suffix != SUFFIX:
        return options.settings
    stated, source = read_bundle(options.export).manifest.settings, str(options.export)
    forecast = stated.get("forecast")
    if isinstance(forecast, dict) and ":" in str(forecast.get("model")):
        remedy = "a bundle may not name code to import; name settings of your own by --config"
        raise ConfigError(source, [Fault("forecast.model", forecast["model"], remedy)])
    return parse(stated, source)


def _traces(options: ReplayOptions, settings: Settings, length: timedelta) -> Traces:
    if options.export and options.measured:
        remedy = "leave out --prometheus and --from-prometheus, or the file: demand comes from one of them"
        raise ConfigError("command line", [Fault("--export", str(options.export), remedy)])
    if options.measured:
        until = instant(options.until, UNTIL) if options.until else None
        return traces.measured(
            settings.prometheus,
            narrowed(settings, options.workload).queries,
            settings.signals,
            length=length,
            history=settings.history.weeks_kept,
            until=until,
            chosen=partial(chosen, pattern=options.workload, settings=settings),
        )
    if options.export is None:
        whole = traces.recorded()
    elif options.export.suffix == SUFFIX:
        whole = traces.bundled(options.export, settings.signal_table)
    else:  # a table, which has demand alone
        whole = traces.exported(options.export, lambda id_, _signals: Workload(id_, 0, 0), settings.signal_table)
    ids = [workload.id for workload in whole.workloads]
    chosen_ids = chosen(of_namespaces(ids, options.namespace), options.workload)
    return whole.take([i for i, id_ in enumerate(ids) if id_ in chosen_ids])


def _completed(recorded: Traces, specs: Sequence[HpaSpec], requests: Mapping[str, float]) -> Traces:
    """The workloads with the manifests' HPAs, a single one for all without, and these requests where they have none."""
    pairs = [(workload, _spec_for(workload, specs)) for workload in recorded.workloads]
    lent = [str(workload.id) for workload, spec in pairs if spec and not _names(spec, workload.id)]
    if lent:
        more = f" and {len(lent) - MAX_NAMED} more" if len(lent) > MAX_NAMED else ""
        tell(f"! no HPA names {', '.join(lent[:MAX_NAMED])}{more}: HPA {specs[0].name} is taken for them")
    scaled = (replace(workload, autoscaler=autoscaler_of(spec)) if spec else workload for workload, spec in pairs)
    return replace(recorded, workloads=tuple(_with_requests(workload, requests) for workload in scaled))


def _with_requests(workload: Workload, requests: Mapping[str, float]) -> Workload:
    own = workload.resources
    cpu, memory = own.cpu_request or requests.get("cpu"), own.memory_request or requests.get("memory")
    return replace(workload, resources=replace(own, cpu_request=cpu, memory_request=memory))


def _spec_for(workload: Workload, specs: Sequence[HpaSpec]) -> HpaSpec | None:
    named = [spec for spec in specs if _names(spec, workload.id)]
    if named:
        return named[0]
    return specs[0] if len(specs) == 1 and workload.autoscaler is None else None


def _names(spec: HpaSpec, id_: WorkloadId) -> bool:
    return spec.scale_target.name == id_.name and spec.namespace in {"", id_.namespace}


def _policies(options: ReplayOptions, settings: Settings, specs: Sequence[HpaSpec]) -> Policies:
    """Return the policies of the settings; where they name no request rate, it is the HPA's only other metric."""
    policies = settings.policies
    if policies.defaults.horizontal.requests_metric is not None:
        return policies
    named = policies.signals.by_metric
    metrics = (metric for spec in specs for metric in spec.metrics if metric.source in OUTSIDE)
    outside = {metric.name for metric in metrics if metric.name not in named}
    given: dict[str, object] = {}
    if len(outside) == 1:
        given = {"horizontal": {"requests_metric": outside.pop()}}
    elif not options.export and not options.measured:
        given = REQUESTS_POLICY
    defaults = type(policies.defaults).model_validate(merged(policies.defaults.model_dump(), given))
    return Policies(defaults, policies.overrides, signals=policies.signals)


def _assumptions(options: ReplayOptions, recorded: Traces, specs: Sequence[HpaSpec], settings: Settings) -> Assumptions:
    capacity = _capacity(options.pod_capacity, settings.signal_table)
    behaviors = {workload.id: spec.behavior for workload in recorded.workloads if (spec := _spec_for(workload, specs))}
    return Assumptions(
        start_ups=tuple(duration_of("--start-up", text) for text in options.start_up or ()) or (START_UP,),
        timing=_timing(options),
        every=options.every,
        capacities={workload.id: capacity for workload in recorded.workloads} if capacity else {},
        behaviors={id_: behavior for id_, behavior in behaviors.items() if behavior},
        feedback=_feedback(options),
        prices=_prices(options, settings.prices),
    )


def _prices(options: ReplayOptions, stated: PriceSettings) -> Prices | None:
    """Return the prices of the options, where one that is not given is 0; without both those of the settings."""
    if not isinstance(options, PricedOptions) or (options.core_hour is None and options.gib_hour is None):
        return stated.stated
    return Prices(options.core_hour or 0.0, options.gib_hour or 0.0, stated.currency)


def _timing(options: ReplayOptions) -> Timing:
    try:
        return Timing(duration_of("--sync", options.sync), duration_of("--metrics-delay", options.metrics_delay))
    except ValueError as error:
        given = f"{options.sync}, {options.metrics_delay}"
        raise ConfigError("command line", [Fault("--sync, --metrics-delay", given, str(error))]) from error


def _feedback(options: ReplayOptions) -> Feedback:
    cold = duration_of("--cold", options.cold)
    try:
        return Feedback(options.returns, cold, options.cold_share if cold else 1.0)
    except ValueError as error:
        given = f"{options.returns:g}, {options.cold_share:g}"
        raise ConfigError("command line", [Fault("--returns, --cold-share", given, str(error))]) from error


def known_models(names: Iterable[str]) -> None:
    """Refuse a model that there is not.

    Raises:
        UnknownName: the catalogue has no such model.
        ConfigError: a model of one's own cannot be used.
    """
    from models import CATALOGUE, ModelError, create, parsed_name

    for name in names:
        try:
            bare = parsed_name(name).name
            if ":" not in bare and bare not in CATALOGUE:
                raise UnknownName("model", bare, CATALOGUE)
            create(name)
        except ModelError as error:
            raise ConfigError("command line", [Fault("--model", name, str(error))]) from error


def _forecasting(options: ReplayOptions) -> Forecasting:
    """Forecasts from the cache; a model of one's own may change without a version, so it is always asked."""
    cache = None if options.no_cache else ForecastFiles(options.cache or usual_directory())

    def forecast(measurements: Measurements, signals: Sequence[Signal], request: ForecastRequest) -> ReplayForecasts:
        if cache is not None and ":" not in request.model:
            return cached_or_forecast(measurements, signals, request, cache, models_version())
        made = forecast_minutes(measurements, signals, request)
        for failure in made.failures:
            tell(f"! {request.model}: {failure}; while it failed, the HPA alone decided")
        return made

    return forecast


def models_version() -> str:
    """The release and a hash of the models as they are installed: an edited model makes other forecasts."""
    import models

    digest = hashlib.sha256()
    for path in sorted(Path(models.__file__).parent.glob("*.[pn][yp]*")):
        digest.update(path.name.encode() + path.read_bytes())
    return f"{__version__} {digest.hexdigest()}"


def _capacity(text: str | None, known: Signals) -> Capacity | None:
    if text is None:
        return None
    ((name, amount),) = _amounts([text], "--pod-capacity").items()
    signal = known.by_name.get(name)
    if signal is None or not amount:
        raise ConfigError("command line", [Fault("--pod-capacity", text, "must be like cpu=500m or requests=60")])
    return Capacity(amount, signal)


def _amounts(pairs: Sequence[str], option: str = "--request") -> dict[str, float]:
    return {name: milli / 1000 for name, milli in amounts_of(pairs, option).items()}
