"""Checks of `forecaster doctor` against a Prometheus: one per thing that has to work, each with its remedy.

First the address, then the data: do the queries have series, how fresh, how dense, how far back.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

from forecaster.domain.amounts import counted, duration_text
from forecaster.domain.report import Check
from forecaster.domain.signal import CPU, MEMORY
from forecaster.domain.window import FIVE_MINUTES, HOUR
from forecaster.errors import SourceError, SourceUnavailable, shown_url
from forecaster.sources import factory
from forecaster.sources.facts import Identity, identity_of
from forecaster.sources.identity import PERMISSIONS
from forecaster.sources.inventory import WITH_FRACTIONS, older
from forecaster.sources.wire import Denied, Untrusted, at_instant, by_its_own_clock

if TYPE_CHECKING:
    from forecaster.sources.prometheus import PrometheusSource
    from forecaster.sources.queries import Queries
    from forecaster.sources.settings import PrometheusSettings, SignalSettings

_CLOCK_TOLERANCE = timedelta(seconds=30)
"""Half of a one-minute cycle: beyond it the latest minute is missed or is not there yet."""

_LIMITS = ("query.timeout", "query.max-samples", "query.lookback-delta", "storage.tsdb.retention.time")

_ADDRESS = "check prometheus.url, and that the address can be reached from here"
_SERVER = "prometheus.url must be the address of the Prometheus API, without /api/v1"
_TLS = "state in prometheus.ca_file who signed its certificate, or http:// in prometheus.url where it speaks no TLS"
_CREDENTIALS = "state bearer_token_file, username and password_file, client_certificate_file, or identity"
_CLOCK = "run a time service on both machines"


def probe(
    settings: PrometheusSettings,
    queries: Queries,
    now: datetime,
    signals: Mapping[str, SignalSettings] = factory.NO_SIGNALS,
    delay: timedelta = timedelta(seconds=5),
) -> list[Check]:
    """Try the address first, and everything else only if it answers. `now` is our own clock, `delay` of the cycle."""
    with closing(factory.prometheus(settings, queries, signals)) as source:
        reached = _reached(source, settings, now)
        if reached[-1].name != "version":
            return reached
        late = _guarded("sample lag", partial(_lag, source, now, delay))
        return [*reached, *probe_data(source, now.replace(second=0, microsecond=0)), late]


def _reached(source: PrometheusSource, settings: PrometheusSettings, now: datetime) -> list[Check]:
    """Check address, authentication and clock with one small query; end at a failure that would fail all others."""
    address = Check("address", ok=True, detail=f"{shown_url(settings.url)} answers")
    try:
        rows = source.rows(by_its_own_clock("time", "vector(time())"))
    except Denied as error:
        remedy = PERMISSIONS.get(settings.identity, _CREDENTIALS)
        return [address, Check("authentication", ok=False, detail=str(error), remedy=remedy)]
    except SourceError as error:
        remedy = _ADDRESS if isinstance(error, SourceUnavailable) else _TLS if isinstance(error, Untrusted) else _SERVER
        return [Check("address", ok=False, detail=str(error), remedy=remedy)]
    if not rows:
        return [Check("address", ok=False, detail=f"{address.detail} vector(time()) with no value", remedy=_SERVER)]
    ahead_seconds = rows[0].value - now.timestamp()
    detail = f"the server is {abs(ahead_seconds):.1f} s {'ahead' if ahead_seconds >= 0 else 'behind'}"
    clock = Check("clock", abs(ahead_seconds) <= _CLOCK_TOLERANCE.total_seconds(), detail, _CLOCK)
    reached = [address, Check("authentication", ok=True, detail="accepted"), clock]
    return [*reached, _version(source)] if clock.ok or _answers_for(source, now) else reached


def _answers_for(source: PrometheusSource, now: datetime) -> bool:
    """Whether the server answers for this instant; with a clock that is minutes off each question is refused."""
    with suppress(SourceError):
        return bool(source.rows(at_instant("clock", "vector(time())", now)))
    return False


def _version(source: PrometheusSource) -> Check:
    version = source.client.status("buildinfo").get("version", "not stated")
    flags = source.client.status("flags")
    limits = [f"{name} {flags[name]}" for name in _LIMITS if name in flags]
    return Check("version", ok=True, detail=", ".join([version, *limits]))


_STALE = timedelta(minutes=3)
_RATES_PER_WINDOW = 2
"""A rate needs two samples; with fewer scrapes in its window it has gaps."""

_HISTORY_AGES = (timedelta(hours=1), *(timedelta(days=days) for days in (1, 2, 7, 8, 14)))
_ENOUGH = timedelta(days=2)
"""Two days: what yesterday shows of today can be checked against the day before. A week is better."""

_CONTAINERS = 'container_cpu_usage_seconds_total{container!="",container!="POD",namespace=~"$namespaces"$labels}'
_PODS = 'kube_pod_owner{namespace=~"$namespaces"$labels}'
_RECORDED = 'forecaster:workload_cpu_cores:rate$window{namespace=~"$namespaces"$labels}'

_NO_CONTAINERS = "let Prometheus scrape the kubelet's /metrics/cadvisor, or mend queries.namespaces and queries.labels"
_NO_PODS = "let Prometheus scrape kube-state-metrics with honor_labels, or mend queries.namespaces and queries.labels"
_NO_JOIN = "pods and containers are there but do not meet: compare their namespace and pod labels, and queries.kinds"
_NO_RULES = "load deploy/rules into Prometheus, or set queries.preset to raw"
_OWN_QUERY = "the configuration can replace this query (queries.NAME) by one that the server answers"
_NOT_NOW = "mend what the server names; while it answers so, workloads are held"
_NO_RANGES = "let the server, and what is before it, answer /api/v1/query_range: without it workloads are held"
_SHORT = "wait, or read from a store with longer retention; until then forecasts fall back to measured demand"
_NO_SCALING = "no HorizontalPodAutoscaler is known"

LONGEST_DELAY = timedelta(seconds=90)
_REPEATED = "minutes are queried again after two minutes, after their decisions"
_NOT_EXPORTED = {
    WITH_FRACTIONS: "targets of HPAs with a fraction are missing, workloads with an HPA are held",
    (2, 7): "targets on one container (ContainerResource) are missing",
    (2, 19): "targets on one container look like those on the pod",
}

_OF_CONTAINERS = (CPU, MEMORY)
"""Queries of kubelet series about containers, beside the kube-state-metrics series of their pods."""

_OPTIONAL = {
    "requests": "no known counter of requests has data; queries.requests can state a query of your own",
    "cpu_pods": "whether pods lack samples is not known",
    "pod_requests": "no pod states requests on all its containers",
    "pod_limits": "no pod states limits on all its containers",
    "hpa_scale_targets": _NO_SCALING,
    "hpa_min_replicas": _NO_SCALING,
    "hpa_max_replicas": _NO_SCALING,
    "hpa_containers": "no container states requests or limits",
    "identity": "no series says when workloads were created",
    "state_metrics": "the version of kube-state-metrics is not known",
    "hpa_metric_targets": "no target of a HorizontalPodAutoscaler is known",
}
"""Meaning of a missing series that is worth knowing and no fault."""


def probe_data(source: PrometheusSource, at: datetime) -> Iterator[Check]:
    """One check per query, then age, density and length of the data. None of them keeps the others from running."""
    for name, query in source.queries.all_queries().items():
        yield _guarded(f"query {name}", partial(_series, source, name, query, at))
    if source.queries.detects_requests:
        yield _guarded("query requests", partial(_detected, source, at))
    looks = (
        ("sample age", _age),
        ("scrape interval", _interval),
        ("history", _history),
        ("copies", _copies),
        ("clusters", _clusters),
        ("honor_labels", _honoured),
        ("kube-state-metrics", _state_metrics),
    )
    for title, look in looks:
        yield _guarded(title, partial(look, source, at))


def _guarded(name: str, look: Callable[[], Check]) -> Check:
    try:
        return look()
    except SourceError as error:
        remedy = _NOT_NOW if isinstance(error, SourceUnavailable) else _OWN_QUERY
        return Check(name, ok=False, detail=str(error), remedy=remedy)


def _series(source: PrometheusSource, name: str, query: str, at: datetime) -> Check:
    count = len(source.rows(at_instant(name, query, at), whole=True))
    if count or name in _OPTIONAL:
        return Check(f"query {name}", ok=True, detail=f"{count} series" if count else f"no series: {_OPTIONAL[name]}")
    remedy = (
        f"compare signals.{name}.query with the series that there are"
        if source.queries.is_own(name)
        else _missing(source, at, usage=name in _OF_CONTAINERS)
    )
    return Check(f"query {name}", ok=False, detail="no series", remedy=remedy)


def _missing(source: PrometheusSource, at: datetime, *, usage: bool = True) -> str:
    """Name the empty sides of the join; `usage` is whether the query reads the usage of containers."""
    if source.queries.preset == "recorded":
        return _NO_RULES
    sides = [_NO_CONTAINERS] if usage and not _count(source, _CONTAINERS, at) else []
    return "; ".join([*sides, *([] if _count(source, _PODS, at) else [_NO_PODS])]) or _NO_JOIN


def _count(source: PrometheusSource, selector: str, at: datetime) -> float:
    return _number(source, f"count({source.queries.rendered(selector)})", at) or 0.0


def _detected(source: PrometheusSource, at: datetime) -> Check:
    """Report the origins of request rates that have data, and their numbers of workloads."""
    ids_by_origin = source.origins_at(at)
    if not ids_by_origin:
        return Check("query requests", ok=True, detail=f"no series: {_OPTIONAL['requests']}")
    counts = ", ".join(f"{counted(len(ids), 'workload')} from {name}" for name, ids in ids_by_origin.items())
    origins = Counter(id_ for ids in ids_by_origin.values() for id_ in ids)
    several = sum(count > 1 for count in origins.values())
    doubled = f"; {several} have several and take the first of these, which they keep" if several else ""
    return Check("query requests", ok=True, detail=counts + doubled)


def _age(source: PrometheusSource, at: datetime) -> Check:
    newest = _number(source, f"max(timestamp({_selector(source.queries)}))", at)
    if newest is None:
        return Check("sample age", ok=False, detail="no CPU sample in the last minutes", remedy=_missing(source, at))
    age = timedelta(seconds=max(at.timestamp() - newest, 0.0))
    return Check("sample age", age <= _STALE, f"the latest sample is {duration_text(age)} old", "see if targets are up")


def _interval(source: PrometheusSource, at: datetime) -> Check:
    """The longest distance of samples that occurs, from the number in ten minutes."""
    samples = _number(source, f"quantile(0.5, count_over_time({_selector(source.queries)}[10m]))", at)
    if not samples:
        return Check("scrape interval", ok=False, detail="no CPU sample in ten minutes", remedy=_missing(source, at))
    interval = timedelta(seconds=round(600 / samples))
    window = source.queries.rate_window
    detail = f"one sample every {duration_text(interval)}, rates over {duration_text(window)}"
    enough = source.queries.preset == "recorded" or window >= _RATES_PER_WINDOW * interval
    remedy = f"set queries.rate_window to {duration_text(_RATES_PER_WINDOW * interval)}"
    return Check("scrape interval", enough, detail, remedy)


def _lag(source: PrometheusSource, now: datetime, delay: timedelta) -> Check:
    """Measure the smallest age at which samples are available; a sample may itself be up to an interval old."""
    selector = _selector(source.queries)
    age = _number(source, f"quantile(0.9, time() - timestamp({selector}))", now)
    samples = _number(source, f"quantile(0.5, count_over_time({selector}[10m]))", now)
    if age is None or not samples or source.queries.preset == "recorded":
        return Check("sample lag", ok=True, detail="not measured: no CPU sample, or recorded series")
    interval = 600 / samples
    late = max(age - interval, 0.0)
    enough = timedelta(seconds=math.ceil((late + interval) / 5) * 5)
    remedy = f"set cycle.delay to {duration_text(enough)}"
    if enough > LONGEST_DELAY:
        remedy = f"samples come too late for cycle.delay, at most {duration_text(LONGEST_DELAY)}: {_REPEATED}"
    detail = f"ingestion delay {late:.0f} s; cycles wait {duration_text(delay)}"
    return Check("sample lag", late <= delay.total_seconds(), detail, remedy)


def _copies(source: PrometheusSource, at: datetime) -> Check:
    """Report pods with several series, and the labels that differ."""
    duplicates = []
    for label in ("instance", *source.queries.copies):
        each = source.queries.rendered(f"group by (namespace, pod, {label}) ({_PODS})")
        if pods := _number(source, f"count(count by (namespace, pod) ({each}) > 1)", at):
            duplicates.append(f"{pods:.0f} pods are reported more than once, by {label}")
    detail = "; ".join([*duplicates, "they count once"]) if duplicates else "no duplicate series"
    return Check("copies", ok=True, detail=detail)


def _identity(source: PrometheusSource, at: datetime) -> Identity:
    return identity_of(source.rows(at_instant("identity", source.queries.fact("identity"), at)))


def _clusters(source: PrometheusSource, at: datetime) -> Check:
    facts = _identity(source, at)
    unknown = "not known: no series says when kube-system was created"
    detail = counted(facts.clusters, "cluster") if facts.clusters else unknown
    if facts.several:
        workloads = counted(len(facts.several), "workload")
        detail += f"; {workloads} reported as several objects, {min(facts.several)} among them"
    return Check("clusters", not facts.several, detail, "state which is meant in queries.labels, e.g. {cluster: prod}")


def _honoured(source: PrometheusSource, at: datetime) -> Check:
    pods = _identity(source, at).exported
    detail = f"{pods} pods have the label exported_pod" if pods else "pods keep their own names"
    return Check("honor_labels", not pods, detail, "scrape kube-state-metrics with honor_labels: true")


def _state_metrics(source: PrometheusSource, at: datetime) -> Check:
    """Report the facts about HPAs that this version of kube-state-metrics does not export."""
    rows = source.rows(at_instant("state_metrics", source.queries.fact("state_metrics"), at))
    versions = sorted({row.labels.get("version", "") for row in rows})
    if not versions:
        return Check("kube-state-metrics", ok=True, detail="its version is not known: its own port is not scraped")
    lacks = [missing for than, missing in _NOT_EXPORTED.items() if all(older(version, than) for version in versions)]
    detail = "; ".join([", ".join(versions), *lacks])
    old = all(older(version, WITH_FRACTIONS) for version in versions)
    return Check("kube-state-metrics", not old, detail, "use 2.19 or later")


def _history(source: PrometheusSource, at: datetime) -> Check:
    counts = {back: len(source.latest(CPU, at - back).ids) for back in _HISTORY_AGES}
    reach = max((back for back, count in counts.items() if count), default=timedelta(0))
    text = ", ".join(f"{duration_text(back)}: {count}" for back, count in counts.items())
    try:
        list(source.history(CPU, at - HOUR, at, FIVE_MINUTES))
    except SourceError as error:
        return Check("history", ok=False, detail=f"spans are not answered: {error}", remedy=_NO_RANGES)
    return Check("history", reach >= _ENOUGH, f"workloads with CPU samples, by age: {text}", _SHORT)


def _selector(queries: Queries) -> str:
    return queries.rendered(_RECORDED if queries.preset == "recorded" else _CONTAINERS)


def _number(source: PrometheusSource, query: str, at: datetime) -> float | None:
    """The only value of `query`; None when it has no series."""
    rows = source.rows(at_instant("doctor", query, at))
    return rows[0].value if rows else None
