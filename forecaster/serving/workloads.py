"""`/api/v1/namespaces/{namespace}/workloads/{kind}/{name}/...`: one workload from every side."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from forecaster.domain.published import REPLICAS
from forecaster.horizontal.explain import explanation
from forecaster.publish.decision_history import AccuracyView, DecisionChange  # noqa: TC001  msgspec resolves them, too
from forecaster.publish.values import NotNamed, OfferedValue
from forecaster.publish.views import PathView, QuantileView, SignalItem, path_view
from forecaster.serving.answers import MetricRequest, NotThere, TableAge, answer, entry_of
from forecaster.serving.rest import RecommendationPages, json_response, missing, parameters_of

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from forecaster.domain.forecast import StepForecast
    from forecaster.publish.reader import PublishedTable, TableEntry


class SignalForecastView(msgspec.Struct, frozen=True):
    """One signal, now and forecast.

    `quantiles` are those of the largest demand in the window that a decision can still reach, empty where there is no
    forecast, and `note` says why. `path` is the coming hour step by step, null where none was made.
    """

    signal: str
    unit: str
    measured: float | None
    measured_at: datetime | None
    model: str | None
    begin: datetime | None
    until: datetime | None
    quantiles: tuple[QuantileView, ...]
    note: str
    path: PathView | None


class WorkloadForecasts(TableAge, frozen=True, kw_only=True):
    """All signals of a workload."""

    forecasts: tuple[SignalForecastView, ...]


class WorkloadDecisions(TableAge, frozen=True, kw_only=True):
    """The last changes of the recommended count, the newest first."""

    decisions: tuple[DecisionChange, ...]


class WorkloadExplanation(TableAge, frozen=True, kw_only=True):
    """Lines from top to bottom: measurements, forecasts, every clamp, the number and its reason."""

    lines: list[str]


class WorkloadAccuracy(TableAge, frozen=True, kw_only=True):
    """Outcome of a workload's forecasts."""

    accuracy: tuple[AccuracyView, ...]


class OfferedReplicas(msgspec.Struct, frozen=True, gc=False):
    """The offered count, null where it is not known, and the current one."""

    recommended: int | None
    current: int


class MetricValueView(msgspec.Struct, frozen=True):
    """One number, for readers that take a number out of JSON (KEDA's metrics-api).

    It stands once more below the name of its signal: KEDA calls its metric after that place, and the HPA's target on it
    is known to mean this signal only by such a name.
    """

    value: float
    forecaster: dict[str, float]
    unit: str
    quantile: float | None
    sampled_at: datetime
    generated_at: datetime
    age_seconds: float
    status: str
    replicas: OfferedReplicas


class Workloads:
    """The handlers; they share the table and its age with `pages`."""

    def __init__(self, pages: RecommendationPages) -> None:
        self._pages = pages

    async def forecasts(self, request: Request) -> Response:
        """Quantiles of every signal over the window that a decision can still reach, and step by step."""
        table, entry = self._entry(request)
        paths, now = table.paths(entry), self._pages.moment(table).now
        outlooks = tuple(signal_forecast_view(item, paths.get(item.signal), now) for item in table.view(entry).signals)
        return json_response(WorkloadForecasts(*self._pages.age(table), forecasts=outlooks))

    async def decisions(self, request: Request) -> Response:
        """Return the last changes of the recommendation."""
        table, entry = self._entry(request)
        return json_response(WorkloadDecisions(*self._pages.age(table), decisions=table.past(entry).decisions))

    async def explanation(self, request: Request) -> Response:
        """The recommendation in sentences."""
        table, entry = self._entry(request)
        lines = explanation(table.recommendation(entry))
        return json_response(WorkloadExplanation(*self._pages.age(table), lines=lines))

    async def accuracy(self, request: Request) -> Response:
        """Return the outcome of a workload's forecasts."""
        table, entry = self._entry(request)
        return json_response(WorkloadAccuracy(*self._pages.age(table), accuracy=table.past(entry).accuracy))

    async def value(self, request: Request) -> Response:
        """One metric as HPAs read it, with the same abstaining; what cannot be said is 503 and never 0."""
        table, entry = self._entry(request, "signal")
        metric, signal = request.path_params["metric"], request.query_params.get("signal", "")
        metric_request, moment = MetricRequest(*entry.key, metric, signal), self._pages.moment(table)
        counted = metric_request._replace(metric=REPLICAS, signal="", target=1.0)
        value, count = answer(table, metric_request, moment), answer(table, counted, moment)
        if not isinstance(value, OfferedValue):
            raise missing(value)
        view = table.view(entry)
        units = {item.signal: item.unit for item in view.signals}
        return json_response(
            MetricValueView(
                value=value.value,
                forecaster={value.signal or metric_request.metric.removeprefix("forecaster_"): value.value},
                unit=units.get(value.signal, "") if value.signal else "replicas",
                quantile=value.quantile,
                sampled_at=value.at,
                generated_at=table.meta.published_at,
                age_seconds=value.age(moment.now).total_seconds(),
                status=value.source,
                replicas=OfferedReplicas(
                    round(count.value) if isinstance(count, OfferedValue) else None, view.replicas.now
                ),
            )
        )

    def _entry(self, request: Request, *allowed: str) -> tuple[PublishedTable, TableEntry]:
        parameters_of(request, *allowed)
        table, names = self._pages.table(), request.path_params
        entry = entry_of(table, names["namespace"], names["name"], names["kind"])
        if isinstance(entry, (NotNamed, NotThere)):
            raise missing(entry)
        return table, entry


def signal_forecast_view(item: SignalItem, path: StepForecast | None, now: datetime) -> SignalForecastView:
    """The public form of one signal, now and ahead."""
    ahead = item.forecast
    quantiles = (
        ((0.1, ahead.low), (0.5, ahead.median), (ahead.quantile, ahead.peak), (0.95, ahead.high)) if ahead else ()
    )
    return SignalForecastView(
        signal=item.signal,
        unit=item.unit,
        measured=item.measured,
        measured_at=item.measured_at,
        model=ahead.model if ahead else None,
        begin=ahead.begin if ahead else None,
        until=ahead.until if ahead else None,
        quantiles=tuple(QuantileView(*pair) for pair in sorted(dict(quantiles).items())),
        note=item.note or (ahead.note if ahead else ""),
        path=path_view(path, now) if path else None,
    )
