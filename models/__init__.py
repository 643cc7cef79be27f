"""Forecasting on panels of series: numpy in, quantiles out.

What belongs here: panels, forecasts, models, their evaluation. What does not: Kubernetes, HTTP, the clock, forecaster.

    panel = Panel(values, start, step, keys)            # [series, time], NaN = gap; start of the first bin, aware
    fitted = create("adaptive").fit(panel)              # slow, rarely
    fitted = fitted.update(newer_panel)                 # cheap, every cycle: new bins, or the whole newer window
    forecast = fitted.forecast(12, (0.5, 0.9, 0.95))    # .values [series, quantile, step]; step 1 begins at panel.end
    peak = fitted.forecast_peak(StepWindow(2, 8), (0.9,))  # Peak.values [series, quantile]: the maximum over steps 2..8
    forecast.provenance.models, .reasons                # per row: the model that spoke, and why no other ("")
    forecast.unknown                                    # key -> reason for series about which nothing can be said
    forecast.provenance.rows(keys)                      # row per key, -1 where unknown: back to arrays over workloads

    panel["shop/checkout"].plot(), forecast.plot(panel)  # panels, forecasts and backtests show themselves in a notebook
    Panel.from_long(frame).notes                        # ragged ends, gaps and double samples: what was done about them

    masked(panel, outages)                              # spans with censored demand become gaps
    lent(panel, groups).panel                           # newcomers with the past of a relative, at their own level
    Eventful(create("adaptive"), events)                # any model, with events that are known beforehand
    HourOfWeek(Calendar("Europe/Berlin", ("DE",)))      # local time, its DST days and holidays

Values are finite, not negative and ascend with the level. `Forecast.values` holds only series that have a forecast.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from .adaptive import Adaptive
from .calendar import Calendar, Event
from .clean import masked
from .donors import Lent, lent
from .errors import ContractError, ModelError, PanelError, QuestionError
from .forecast import Forecast, Peak, Provenance, StepWindow
from .model import Fitted, Forgets, HasStandIn, Model, SeesAll, Stacks
from .named import imported, parsed_name, with_settings
from .panel import DAY, Panel
from .prior import Prior
from .ridge import Ridge

if TYPE_CHECKING:
    from .eventful import Eventful
    from .hour_of_week import HourOfWeek
    from .nearest_day import NearestDay
    from .regressions import Boosting, PooledLinear
    from .seasonal_naive import LastValue, SeasonalNaive
    from .theta import Theta

IMPORTED_LATE = {
    "Boosting": "regressions",
    "Eventful": "eventful",
    "HourOfWeek": "hour_of_week",
    "LastValue": "seasonal_naive",
    "NearestDay": "nearest_day",
    "PooledLinear": "regressions",
    "SeasonalNaive": "seasonal_naive",
    "Theta": "theta",
}
"""Models that are imported when they are named, with their modules: the service uses `Adaptive` alone."""


def __getattr__(name: str) -> Any:
    """Import a model that is named for the first time."""
    if name not in IMPORTED_LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{IMPORTED_LATE[name]}", __package__), name)


def _made(name: str, *given: Any, **settings: Any) -> Model:
    """Make the model of this class."""
    made: Model = __getattr__(name)(*given, **settings)
    return made


CATALOGUE: Mapping[str, Callable[..., Model]] = {
    "adaptive": Adaptive,
    "analog": partial(Adaptive, similar=True, name="analog"),
    "boosting": partial(_made, "Boosting"),
    "hour-of-week": partial(_made, "HourOfWeek"),
    "last-value": partial(_made, "LastValue"),
    "nearest-day": partial(_made, "NearestDay"),
    "pooled-linear": partial(_made, "PooledLinear"),
    "prior": Prior,
    "ridge": Ridge,
    "seasonal-naive-day": partial(_made, "SeasonalNaive"),
    "seasonal-naive-week": partial(_made, "SeasonalNaive", 7 * DAY),
    "theta": partial(_made, "Theta"),
}


def create(name: str) -> Model:
    """The model of that name; `package.module:Name` imports one of your own, brackets say what differs from defaults.

    >>> create("nearest-day(nearest=4)").nearest
    4

    Raises:
        QuestionError: the catalogue does not know the name, it does not import, or it has no such setting.
        ContractError: the model of your own breaks the contract that all models keep.
    """
    bare, settings = parsed_name(name)
    if ":" in bare:
        return imported(name)
    if bare not in CATALOGUE:
        raise QuestionError(f"there is no model {bare!r}; choose one of {', '.join(CATALOGUE)}")
    for setting, value in settings.items():
        if isinstance(value, (int, float)) and value <= 0 and value is not False:
            raise QuestionError(f"{name!r}: {setting} is {value}; it must be above 0")
    return with_settings(name, CATALOGUE[bare], settings)


__all__ = [
    "CATALOGUE",
    "DAY",
    "Adaptive",
    "Boosting",
    "Calendar",
    "ContractError",
    "Event",
    "Eventful",
    "Fitted",
    "Forecast",
    "Forgets",
    "HasStandIn",
    "HourOfWeek",
    "LastValue",
    "Lent",
    "Model",
    "ModelError",
    "NearestDay",
    "Panel",
    "PanelError",
    "Peak",
    "PooledLinear",
    "Prior",
    "Provenance",
    "QuestionError",
    "Ridge",
    "SeasonalNaive",
    "SeesAll",
    "Stacks",
    "StepWindow",
    "Theta",
    "create",
    "lent",
    "masked",
    "parsed_name",
]
