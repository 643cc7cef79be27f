"""Which forecast a recommended count follows from. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from forecaster.publish.views import ForecastView, RecommendationView


class Deciding(NamedTuple):
    """A forecast, and the replicas that it asks for."""

    forecast: ForecastView
    replicas: int


def deciding(view: RecommendationView) -> Deciding | None:
    """The one that asks for the most; None where nothing is forecast."""
    asking = [
        Deciding(one.forecast, one.forecast_replicas)
        for one in view.signals
        if one.forecast is not None and one.forecast_replicas is not None
    ]
    return max(asking, key=lambda one: one.replicas, default=None)
