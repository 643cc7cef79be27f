"""Eventful: any model, with events that are known beforehand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from .calendar import Event, within
from .forecast import Forecast, Peak, Provenance, StepWindow
from .model import Fitted, Forgets, Model
from .panel import DAY, Floats, Panel, trusted

# Demand during an event is compared with the same clock time on so many days before.
USUAL_DAYS = 7
# What a few bins of one event say is held within these factors.
MIN_LIFT, MAX_LIFT = 0.1, 10.0


@dataclass(frozen=True)
class Eventful:
    """A model that sees history without the effect of events, and gives coming events the effect that past ones had.

    The effect of an event is one factor per name and series: demand during past events of that name over demand at the
    same clock time on the days before. An event with a name that has not been seen changes nothing.

    Attributes:
        model: makes the forecast without events.
        events: past and coming ones.
    """

    model: Model
    events: tuple[Event, ...]

    @property
    def name(self) -> str:
        """Return the name of the model with a suffix for events."""
        return f"{self.model.name}-with-events"

    def fit(self, panel: Panel) -> EventfulFitted:
        """Measure the effects, and fit the model on history without them."""
        effects = lifts(panel, self.events)
        return EventfulFitted(self, self.model.fit(without(panel, self.events, effects)), panel.keys, effects)


@dataclass(frozen=True, eq=False)
class EventfulFitted:
    """The fitted model, and the factor [series] of each name."""

    spec: Eventful
    fitted: Fitted
    keys: tuple[str, ...]
    effects: Mapping[str, Floats]

    def update(self, panel: Panel) -> EventfulFitted:
        """See Fitted.update."""
        return replace(self, fitted=self.fitted.update(without(panel, self.spec.events, self.effects)))

    def without_history(self) -> EventfulFitted:
        """See Forgets; the inner model keeps its samples if it cannot do without."""
        return replace(self, fitted=self.fitted.without_history()) if isinstance(self.fitted, Forgets) else self

    def forecast(self, steps: int, quantiles: Sequence[float]) -> Forecast:
        """See Fitted.forecast."""
        forecast = self.fitted.forecast(steps, quantiles)
        factors = self._factors(forecast, steps)
        values = forecast.values * factors[:, None, :]
        return replace(forecast, values=values, provenance=self._named(forecast.provenance))

    def forecast_peak(self, window: StepWindow, quantiles: Sequence[float]) -> Peak:
        """See Fitted.forecast_peak; the window is as high as its highest event."""
        peak = self.fitted.forecast_peak(window, quantiles)
        factors = self._factors(peak, window.last)[:, window.first - 1 :].max(axis=1, initial=0.0)
        return replace(peak, values=peak.values * factors[:, None], provenance=self._named(peak.provenance))

    def _factors(self, forecast: Forecast | Peak, steps: int) -> Floats:
        """[row, step] of the coming steps."""
        coming = trusted(np.ones((len(self.keys), steps)), forecast.origin, forecast.step, self.keys)
        lifted = 1 / without(coming, self.spec.events, self.effects).values
        rows = {key: row for row, key in enumerate(self.keys)}
        return np.asarray(lifted[[rows[key] for key in forecast.keys]])

    def _named(self, provenance: Provenance) -> Provenance:
        own = self.spec.model.name
        return replace(provenance, models=tuple(self.spec.name if name == own else name for name in provenance.models))


def lifts(panel: Panel, events: Sequence[Event]) -> dict[str, Floats]:
    """Factor [series] of each name: demand during its events over demand at the same time on the days before."""
    busy = within(panel, events)
    usual = _usual(panel, busy)
    names = dict.fromkeys(event.name for event in events)
    bins = {name: within(panel, [event for event in events if event.name == name]) for name in names}
    return {name: _ratio(panel.values[:, during], usual[:, during]) for name, during in bins.items()}


def without(panel: Panel, events: Sequence[Event], effects: Mapping[str, Floats]) -> Panel:
    """The panel as it would have been without its events; where two meet, both have their effect."""
    values = panel.values.copy()
    for name, factor in effects.items():
        bins = within(panel, [event for event in events if event.name == name])
        values[:, bins] /= factor[:, None]
    return trusted(values, panel.start, panel.step, panel.keys)


def _usual(panel: Panel, busy: npt.NDArray[np.bool_]) -> Floats:
    """[series, time] mean of the same clock time on the days before, without events; NaN where there is none."""
    day = max(1, panel.bins(DAY))
    quiet = np.where(busy, np.nan, panel.values)
    total, count = np.zeros(quiet.shape), np.zeros(quiet.shape)
    for back in range(day, min(USUAL_DAYS * day, panel.length - 1) + 1, day):
        earlier = quiet[:, : panel.length - back]
        total[:, back:] += np.nan_to_num(earlier)
        count[:, back:] += np.isfinite(earlier)
    return np.where(count > 0, total / np.maximum(1, count), np.nan)


def _ratio(during: Floats, usual: Floats) -> Floats:
    """[series] sum over sum of the bins that both know, 1 where there is nothing to compare."""
    both = np.isfinite(during) & np.isfinite(usual)
    above, below = np.where(both, during, 0.0).sum(axis=1), np.where(both, usual, 0.0).sum(axis=1)
    known = (above > 0) & (below > 0)
    return np.where(known, np.clip(above / np.where(known, below, 1.0), MIN_LIFT, MAX_LIFT), 1.0)
