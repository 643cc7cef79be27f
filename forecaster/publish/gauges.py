"""Gauges of every workload as text for /metrics: written once a cycle, and passed on by the serving process as it is.

What is not known has no series: neither 0 nor NaN, which readers would take for a number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from forecaster.publish.decision_history import WorkloadHistory
    from forecaster.publish.table import TableRow
    from forecaster.publish.views import RecommendationView, SignalItem

Level = Literal["none", "counts", "all"]
FAMILIES = {
    "forecaster_workload_replicas": "Replicas asked for now.",
    "forecaster_workload_recommended_replicas": "Replicas recommended; absent while holding.",
    "forecaster_workload_demand": "Forecast demand at the lead time, at the policy's quantile, in the signal's unit.",
    "forecaster_workload_measured": "Newest measured demand, in the signal's unit.",
    "forecaster_workload_sampled_timestamp_seconds": "Instant of the newest sample of a signal.",
    "forecaster_workload_forecast": "Forecast demand by quantile, for the horizon in seconds from now.",
    "forecaster_workload_verdict": "1 for the present verdict and its reason.",
    "forecaster_workload_coverage_ratio": "Share of peaks at or below the forecast quantile; a day old counts half.",
    "forecaster_workload_coverage_aim_ratio": "What the coverage should be.",
    "forecaster_workload_error_ratio": "Absolute error of the median by the measured peak.",
}
OUTER = (("0.1", "low"), ("0.5", "median"), ("0.95", "high"))
Sample = tuple[str, str, float]


def workload_gauges(rows: Sequence[TableRow], level: Level) -> bytes:
    """All families of a level in the text format of Prometheus; empty at level none."""
    lines: dict[str, list[str]] = {family: [] for family in FAMILIES}
    if level != "none":
        for row in rows:
            for family, labels, value in _samples(row, level):
                lines[family].append(f"{family}{{{labels}}} {value!r}\n")
    return "".join(text for family, found in lines.items() if found for text in (_head(family), *found)).encode()


def _head(family: str) -> str:
    return f"# HELP {family} {FAMILIES[family]}\n# TYPE {family} gauge\n"


def _samples(row: TableRow, level: Level) -> Iterator[Sample]:
    labels = _identity(row.view)
    yield from _counts(row.view, labels)
    for signal in row.view.signals:
        yield from _signal(signal, f'{labels},signal="{_escaped(signal.signal)}"')
    if level == "all":
        yield from _forecasts(row.view, labels)
        yield from _past(row.past, labels)


def _counts(view: RecommendationView, labels: str) -> Iterator[Sample]:
    yield "forecaster_workload_replicas", labels, view.replicas.now
    if view.replicas.recommended is not None:
        yield "forecaster_workload_recommended_replicas", labels, view.replicas.recommended


def _signal(signal: SignalItem, labels: str) -> Iterator[Sample]:
    if signal.measured is not None:
        yield "forecaster_workload_measured", labels, signal.measured
    if signal.measured_at is not None:
        yield "forecaster_workload_sampled_timestamp_seconds", labels, signal.measured_at.timestamp()
    if signal.forecast is not None:
        quantile = f'{labels},quantile="{signal.forecast.quantile:g}"'
        yield "forecaster_workload_demand", quantile, signal.forecast.peak


def _forecasts(view: RecommendationView, labels: str) -> Iterator[Sample]:
    verdict = f'{labels},verdict="{view.replicas.verdict}",reason="{view.replicas.reason}"'
    yield "forecaster_workload_verdict", verdict, 1
    for signal in view.signals:
        ahead = signal.forecast
        if ahead is None:
            continue
        horizon = f"{(ahead.until - view.at).total_seconds():g}"
        for quantile, field in OUTER:
            which = f'{labels},signal="{_escaped(signal.signal)}",quantile="{quantile}",horizon="{horizon}"'
            yield "forecaster_workload_forecast", which, getattr(ahead, field)


def _past(past: WorkloadHistory, labels: str) -> Iterator[Sample]:
    for one in past.accuracy:
        signal = f'{labels},signal="{one.signal}"'
        yield "forecaster_workload_coverage_ratio", signal, one.coverage
        yield "forecaster_workload_coverage_aim_ratio", signal, one.quantile
        if one.error_ratio is not None:
            yield "forecaster_workload_error_ratio", signal, one.error_ratio


def _identity(view: RecommendationView) -> str:
    return f'namespace="{_escaped(view.namespace)}",kind="{_escaped(view.kind)}",workload="{_escaped(view.name)}"'


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
