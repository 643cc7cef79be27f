"""Nearest days: what followed on the past days with last hours that looked most like today's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .clean import bins_seen, filled
from .model import Fitted
from .panel import DAY, Floats, Panel
from .residuals import Bins, Places, fitted_residuals, interpolation, residuals_of, too_short
from .trailing import mean_of, running_total

NEAREST_DAYS = 3
# Series looked at together; the squared differences to every earlier day of 256 of them take 120 MB.
NEAREST_ROWS = 256
# Share of the observations that speak for "nothing of it remains": little, as a week holds few independent hours.
SHRINK = 0.02


@dataclass(frozen=True)
class NearestDay:
    """The mean of what followed on the nearest past days, plus what remains of the present difference to them.

    A past day is near when its hours up to this time of day differ little from today's, in mean squares. Analogue
    forecasting, Lorenz 1969; days rather than any shift, because load repeats by the clock. Needs three days.

    Attributes:
        nearest: days that are averaged, nearer ones counting more; 8 lost 2 % less than 4 on 40 recorded series.
        hours: how much of the shape is compared.
        days: latest days looked through.

    >>> import numpy as np, datetime as dt
    >>> from models import Panel
    >>> monday = dt.datetime(2026, 1, 5, tzinfo=dt.UTC)
    >>> wave = 10 + 5 * np.sin(np.arange(96) / 24 * 2 * np.pi)
    >>> panel = Panel(wave[None], monday, dt.timedelta(hours=1), ("shop/web",))
    >>> NearestDay().fit(panel).forecast(3, (0.5,)).values.round(1).tolist()
    [[[10.0, 11.3, 12.5]]]
    """

    nearest: int = 8
    hours: int = 6
    days: int = 14
    name: str = "nearest-day"

    def fit(self, panel: Panel) -> Fitted:
        """Learn from past origins how much of the present difference remains."""
        panel = panel.last(self.days * DAY)
        day = panel.bins(DAY)
        places = Places.of(panel, 2 * day)
        if day < NEAREST_DAYS or panel.length < NEAREST_DAYS * day or not places:
            return too_short(self.name, panel)
        pairs = [self._followed(panel.take(part), places) for part in blocks(len(panel))]
        followed, columns = (np.concatenate(parts) for parts in zip(*pairs, strict=True))
        actual = panel.values[:, np.minimum(places.ahead(), panel.length - 1)]
        weights = persistence(columns, np.where(places.ahead() < panel.length, actual - followed, np.nan))
        residuals = residuals_of(panel, places, followed + columns @ weights)
        return fitted_residuals(self.name, panel, Followers(self, places.anchors, weights), residuals)

    def _followed(self, panel: Panel, places: Places) -> tuple[Floats, Floats]:
        """[series, origin, anchor] what followed on near days, and [series, origin, column] differences to them."""
        known, day = filled(panel.values).astype(np.float64), panel.bins(DAY)
        days = near_days(known, places.origins, day, self)
        followed = blend(known, days, places.origins[:, None] + places.anchors, day)
        return followed, differences(known, days, places.origins, day)


class NearDays(NamedTuple):
    """Distance of the near days in days, and the weight of each: both [series, origin, nearest]."""

    back: Bins
    weight: Floats


@dataclass(frozen=True, eq=False)
class Followers:
    """Remaining share of the present difference to the near days: weights [series, column, anchor]."""

    spec: NearestDay
    anchors: Bins
    weights: Floats

    def expected(self, history: Panel, steps: int) -> Floats:
        """See Expects."""
        day = history.bins(DAY)
        if history.length < NEAREST_DAYS * day:
            return np.full((len(history), steps), np.nan)
        parts = [self._point(history.take(part), part, steps) for part in blocks(len(history))]
        young = bins_seen(history.values) < NEAREST_DAYS * day
        return np.where(young[:, None], np.nan, np.concatenate(parts))

    def _point(self, history: Panel, part: slice, steps: int) -> Floats:
        known, day = filled(history.values).astype(np.float64), history.bins(DAY)
        latest = np.array([known.shape[1] - 1])
        days = near_days(known, latest, day, self.spec)
        followed = blend(known, days, latest[:, None] + np.arange(1, steps + 1), day)[:, 0]
        remains = self.weights[part] @ interpolation(self.anchors, steps)
        return np.asarray(followed + np.einsum("sp,spa->sa", differences(known, days, latest, day)[:, 0], remains))


def blocks(series: int) -> list[slice]:
    """Parts of the series, so that memory stays bounded."""
    return [slice(i, i + NEAREST_ROWS) for i in range(0, max(1, series), NEAREST_ROWS)]


def near_days(known: Floats, origins: Bins, day: int, spec: NearestDay) -> NearDays:
    """The nearest days before each origin; a day that is not wholly known is infinitely far."""
    width = max(2, spec.hours * day // 24)
    most = max(1, int(origins[-1] + 1 - width) // day)
    distance = np.stack([_distance(known, origins, back * day, width) for back in range(1, most + 1)], axis=2)
    order = np.argsort(distance, axis=2, kind="stable")[:, :, : spec.nearest]
    near = np.take_along_axis(distance, order, axis=2)
    unit = np.where(near[:, :, :1] > 0, near[:, :, :1], 1.0)
    weight = np.where(np.isfinite(near), 1 / (near / unit + 1e-3), 0.0)
    total = weight.sum(axis=2, keepdims=True)
    return NearDays(order + 1, weight / np.where(total > 0, total, 1.0))


def _distance(known: Floats, origins: Bins, lag: int, width: int) -> Floats:
    """[series, origin] mean square difference of the latest bins to those `lag` earlier."""
    first = int(origins[0]) - width + 1
    begin = max(0, first - lag)
    apart = np.square(known[:, begin + lag :] - known[:, begin : known.shape[1] - lag])
    places = origins - begin - lag
    reachable = places - width + 1 >= 0
    return np.where(reachable, mean_of(running_total(apart), width, np.maximum(places, 0)), np.inf)


def blend(known: Floats, days: NearDays, targets: Bins, day: int) -> Floats:
    """[series, origin, target] weighted mean of what stood on the near days at targets [origin, target].

    A target more than a near day ahead is looked up on the last of its days that is known.
    """
    rows = np.arange(len(known))[:, None, None]
    out = np.zeros((len(known), *targets.shape))
    for nth in range(days.back.shape[2]):
        place = targets - days.back[:, :, nth, None] * day
        beyond = np.maximum(0, place - (known.shape[1] - 1))
        place = np.maximum(place - -(-beyond // day) * day, 0)
        out += days.weight[:, :, nth, None] * known[rows, place]
    return out


def differences(known: Floats, days: NearDays, origins: Bins, day: int) -> Floats:
    """[series, origin, 2]: how far the latest value, and the last hour on average, are off the near days."""
    hour = max(2, day // 24)
    recent = origins[:, None] - np.arange(hour)
    off = known[:, recent] - blend(known, days, recent, day)
    return np.stack([off[:, :, 0], off.mean(axis=2)], axis=2)


def persistence(columns: Floats, targets: Floats) -> Floats:
    """[series, column, anchor] weights of columns [series, origin, column] for targets [series, origin, anchor].

    Least squares, drawn to 0 a little; targets that are NaN count nothing. All series and anchors in one batch.
    """
    count = columns.shape[2]
    size = np.sqrt(np.mean(np.square(columns), axis=(1, 2), keepdims=True))
    unit = columns / np.where(size > 0, size, 1.0)
    known = np.isfinite(targets)
    pairs = (unit[:, :, :, None] * unit[:, :, None, :]).reshape(*unit.shape[:2], count * count)
    squares = (pairs.swapaxes(1, 2) @ known).reshape(len(unit), count, count, known.shape[2]).transpose(0, 3, 1, 2)
    cross = (unit.swapaxes(1, 2) @ np.nan_to_num(targets)).swapaxes(1, 2)[:, :, :, None]
    penalty = SHRINK * known.sum(axis=1)[:, :, None, None] + 1.0
    weights = np.linalg.solve(squares + penalty * np.eye(count), cross)[:, :, :, 0].swapaxes(1, 2)
    return np.asarray(weights / np.where(size > 0, size, 1.0))
