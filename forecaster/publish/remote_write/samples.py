"""Which samples a cycle's recommendations make. Pure.

    forecaster_demand_forecast{namespace, kind, workload, signal, quantile}   peak of the window ahead
    forecaster_demand_measured{namespace, kind, workload, signal}             total demand at its own time
    forecaster_replicas_recommended{namespace, kind, workload}                while something is recommended

What is not known makes no sample: no zero, no NaN.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from forecaster.domain.decision import Scale

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from forecaster.domain.decision import Recommendation, SignalView
    from forecaster.domain.outlook import Ahead
    from forecaster.publish.remote_write.settings import RemoteWriteSettings

FORECAST, MEASURED = "forecaster_demand_forecast", "forecaster_demand_measured"
RECOMMENDED = "forecaster_replicas_recommended"
AHEAD_AT_MOST = timedelta(minutes=10)
"""Prometheus refuses what is further ahead of its own clock (web/api: maxAheadTime)."""


class Sample(NamedTuple):
    """One value at one time, and the labels of its series, sorted by name as the protocol wants them."""

    labels: tuple[tuple[str, str], ...]
    value: float
    at: datetime


def samples_of(rows: Iterable[Recommendation], settings: RemoteWriteSettings) -> Iterator[Sample]:
    """Everything that is known of these workloads."""
    for row in rows:
        namespace, kind, name = row.id
        who = (("kind", kind), ("namespace", namespace), ("workload", name))
        if isinstance(row.replicas, Scale):
            yield Sample(_labels(RECOMMENDED, who), row.replicas.replicas, row.at)
        for view in row.signals:
            signal = ("signal", view.signal)
            if view.measured is not None and view.measured_at is not None:
                yield Sample(_labels(MEASURED, (*who, signal)), view.measured, view.measured_at)
            for quantile, value, at in _forecasts(view, row.at, settings):
                yield Sample(_labels(FORECAST, (*who, signal, ("quantile", f"{quantile:g}"))), value, at)


def _forecasts(
    view: SignalView, evaluated_at: datetime, settings: RemoteWriteSettings
) -> Iterator[tuple[float, float, datetime]]:
    """Quantile, value and time of each forecast of a signal."""
    ahead = view.forecast
    if ahead is None:
        return
    at = ahead.begin if settings.timestamps == "target" else evaluated_at
    if at - evaluated_at > AHEAD_AT_MOST:
        return
    for quantile, value in _quantiles(ahead, every=settings.quantiles == "all").items():
        yield quantile, value, at


def _quantiles(ahead: Ahead, *, every: bool) -> dict[float, float]:
    others = {0.1: ahead.low, 0.5: ahead.median, 0.95: ahead.high} if every else {}
    return {**others, ahead.quantile: ahead.peak}


def _labels(name: str, rest: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    return (("__name__", name), *sorted(rest))
