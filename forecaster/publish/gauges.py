"""Gauges of every workload as text for /metrics.

`forecaster_demand`, `forecaster_replicas` and `forecaster_floor` are the offer, number by number what an HPA reads of
the external metrics of these names; only of workloads whose policy publishes. All others are to look at: what there
is, what was decided and what is forecast. What is not known has no series: neither 0 nor NaN, which readers would take
for a number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from forecaster.domain.published import DEMAND, FLOOR, REPLICAS
from forecaster.publish.values import sampled_values

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from forecaster.publish.decision_history import WorkloadHistory
    from forecaster.publish.table import TableRow
    from forecaster.publish.values import WorkloadOffer
    from forecaster.publish.views import RecommendationView, SignalItem

Level = Literal["none", "counts", "all"]
FAMILIES = {
    DEMAND: "Demand to scale by, in the signal's unit: the external metric of this name.",
    REPLICAS: "Replicas to scale to, before the HPA's own stabilization and bounds: the external metric of this name.",
    FLOOR: "Least replicas that the forecast asks for: the external metric of this name.",
    "forecaster_workload_replicas": "Replicas asked for now.",
    "forecaster_workload_recommended_replicas": "Replicas with stabilization and bounds; absent while holding.",
    "forecaster_workload_measured": "Newest measured demand, in the signal's unit.",
    "forecaster_workload_sampled_timestamp_seconds": "Instant of the newest sample of a signal.",
    "forecaster_workload_verdict": "1 for the present verdict and its reason.",
    "forecaster_forecast_peak": (
        "Forecast peak by quantile within the horizon in seconds, in the signal's unit: to look at, acting or not."
    ),
    "forecaster_forecast_coverage_ratio": "Share of peaks at or below the forecast quantile; a day old counts half.",
    "forecaster_forecast_coverage_aim_ratio": "What the coverage should be.",
    "forecaster_forecast_error_ratio": "Absolute error of the median by the measured peak.",
}
OUTER = (("0.1", "low"), ("0.5", "median"), ("0.95", "high"))
GaugeSample = tuple[str, str, float]


def workload_gauges(rows: Sequence[TableRow], level: Level, at: datetime) -> bytes:
    """All families of a level in the text format of Prometheus; empty at level none."""
    lines: dict[str, list[str]] = {family: [] for family in FAMILIES}
    if level != "none":
        for row in rows:
            for family, labels, value in _samples(row, level, at):
                lines[family].append(f"{family}{{{labels}}} {value!r}\n")
    return "".join(text for family, found in lines.items() if found for text in (_head(family), *found)).encode()


def _head(family: str) -> str:
    return f"# HELP {family} {FAMILIES[family]}\n# TYPE {family} gauge\n"


def _samples(row: TableRow, level: Level, at: datetime) -> Iterator[GaugeSample]:
    labels = _identity(row.view)
    if row.published is not None:
        yield from _offer(row.published, labels, at)
    yield from _counts(row.view, labels)
    for signal in row.view.signals:
        yield from _signal(signal, f'{labels},signal="{_escaped(signal.signal)}"')
        yield from _forecast(row.view, signal, labels, level)
    if level == "all":
        verdict = f'{labels},verdict="{row.view.replicas.verdict}",reason="{row.view.replicas.reason}"'
        yield "forecaster_workload_verdict", verdict, 1
        yield from _past(row.past, labels)


def _offer(offer: WorkloadOffer, labels: str, at: datetime) -> Iterator[GaugeSample]:
    for value in sampled_values(offer, at):
        signal = f',signal="{_escaped(value.signal)}"' if value.signal else ""
        yield value.metric, labels + signal, value.value


def _counts(view: RecommendationView, labels: str) -> Iterator[GaugeSample]:
    yield "forecaster_workload_replicas", labels, view.replicas.now
    if view.replicas.recommended is not None:
        yield "forecaster_workload_recommended_replicas", labels, view.replicas.recommended


def _signal(signal: SignalItem, labels: str) -> Iterator[GaugeSample]:
    if signal.measured is not None:
        yield "forecaster_workload_measured", labels, signal.measured
    if signal.measured_at is not None:
        yield "forecaster_workload_sampled_timestamp_seconds", labels, signal.measured_at.timestamp()


def _forecast(view: RecommendationView, signal: SignalItem, labels: str, level: Level) -> Iterator[GaugeSample]:
    ahead = signal.forecast
    if ahead is None:
        return
    horizon = f"{(ahead.until - view.at).total_seconds():g}"
    outer = [(quantile, getattr(ahead, field)) for quantile, field in OUTER] if level == "all" else []
    for quantile, value in {**dict(outer), f"{ahead.quantile:g}": ahead.peak}.items():
        which = f'{labels},signal="{_escaped(signal.signal)}",quantile="{quantile}",horizon="{horizon}"'
        yield "forecaster_forecast_peak", which, value


def _past(past: WorkloadHistory, labels: str) -> Iterator[GaugeSample]:
    for one in past.accuracy:
        signal = f'{labels},signal="{one.signal}"'
        yield "forecaster_forecast_coverage_ratio", signal, one.coverage
        yield "forecaster_forecast_coverage_aim_ratio", signal, one.quantile
        if one.error_ratio is not None:
            yield "forecaster_forecast_error_ratio", signal, one.error_ratio


def _identity(view: RecommendationView) -> str:
    return f'namespace="{_escaped(view.namespace)}",kind="{_escaped(view.kind)}",workload="{_escaped(view.name)}"'


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
