"""Intermittent demand: batch work on a schedule, or work that comes now and then."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from .gaps import bins_seen, filled
from .panel import DAY
from .residuals import Places, fitted_residuals, residuals_of, too_short

if TYPE_CHECKING:
    from .model import Fitted
    from .panel import Floats, Panel
    from .residuals import Bins

INTERMITTENT_DAYS = 1
# Work is what exceeds a tenth of the largest demand (p99); idle programs use a little too.
IDLE_SHARE, LARGE = 0.1, 0.99
# A schedule explains most of when there is work: chance alone correlates by 0.1 over the four days looked at.
SCHEDULED, DETECTED_DAYS = 0.5, 4
# Smoothing of Teunter, Syntetos, Babai: how often there is work, and how much it is then.
OFTEN, MUCH = 0.05, 0.1
# Weights of the smoothing beyond this many bins are below 1e-10.
SMOOTHING_REACH = 450


@dataclass(frozen=True)
class Intermittent:
    """Demand with pauses: by its schedule where it has one, otherwise how often times how much.

        scheduled: expected(t) = mean of y at t - k, t - 2k, ... for the period k at which work and pause repeat
        otherwise: expected = p · z;  p' = p + β·(1{work} - p) in each bin;  z' = z + α·(y - z) when there is work

    The period is the best peak of the autocorrelation of work and pause, by one Fourier transform of all series. Demand
    without pauses gets p = 1: simple exponential smoothing. Needs a day. Source: Teunter, Syntetos, Babai, Intermittent
    demand: linking forecasting to inventory obsolescence, EJOR 2011 (TSB, after Croston 1972).

    Attributes:
        cycles: latest repetitions of a schedule that are averaged.
        days: latest days used.

    >>> import numpy as np, datetime as dt
    >>> from models import Panel
    >>> monday = dt.datetime(2026, 1, 5, tzinfo=dt.UTC)
    >>> every_four_hours = np.where(np.arange(96) % 4 == 0, 8.0, 0.0)
    >>> panel = Panel(every_four_hours[None], monday, dt.timedelta(hours=1), ("shop/report",))
    >>> Intermittent().fit(panel).forecast(6, (0.5,)).values.round(1).tolist()
    [[[8.0, 0.0, 0.0, 0.0, 8.0, 0.0]]]
    """

    cycles: int = 6
    days: int = 14
    name: str = "intermittent"

    def fit(self, panel: Panel) -> Fitted:
        """Find schedules, and how wrong this was in the past."""
        panel = panel.last(self.days * DAY)
        day = panel.bins(DAY)
        places = Places.of(panel, day)
        if day <= 1 or not places:
            return too_short(self.name, panel)
        known = filled(panel.values).astype(np.float64)
        idle = idle_below(known)
        found = Rhythm(self.cycles, idle, periods(known > idle[:, None], day))
        return fitted_residuals(
            self.name, panel, found, residuals_of(panel, places, found.at(known, places.origins, places.ahead()))
        )


@dataclass(frozen=True, eq=False)
class Rhythm:
    """What is a pause, and the period of the schedule in bins, 0 for none: both [series]."""

    cycles: int
    idle: Floats
    period: Bins

    def expected(self, history: Panel, steps: int) -> Floats:
        """See Expects."""
        known, newest = filled(history.values).astype(np.float64), np.array([history.length - 1])
        point = self.at(known, newest, newest[:, None] + np.arange(1, steps + 1))[:, 0]
        young = bins_seen(history.values) < INTERMITTENT_DAYS * history.bins(DAY)
        return np.where(young[:, None], np.nan, point)

    def at(self, known: Floats, origins: Bins, targets: Bins) -> Floats:
        """[series, origin, target] expected at targets [origin, target] from what was known at origins."""
        rate = work_rate(known, self.idle, origins)
        out = np.repeat(rate[:, :, None], targets.shape[1], axis=2)
        for row in np.flatnonzero(self.period):
            out[row] = self._scheduled(known[row], int(self.period[row]), origins, targets)
        return out

    def _scheduled(self, known: Floats, period: int, origins: Bins, targets: Bins) -> Floats:
        """[origin, target] mean of one series at the same place of the latest cycles that are over."""
        newest = targets - -(-(targets - origins[:, None]) // period) * period
        places = newest[:, :, None] - period * np.arange(self.cycles)
        exists = places >= 0
        return np.asarray((known[np.maximum(places, 0)] * exists).sum(axis=2) / np.maximum(1, exists.sum(axis=2)))


class Work(NamedTuple):
    """How often there is work and how much it is then: both [series]."""

    often: Floats
    much: Floats


def idle_below(known: Floats) -> Floats:
    """[series] demand up to which a series [series, time] pauses."""
    return np.asarray(IDLE_SHARE * np.quantile(known, LARGE, axis=1))


def periods(work: npt.NDArray[np.bool_], day: int) -> Bins:
    """[series] bins between repetitions of work and pause [series, time], up to a day; 0 where nothing repeats."""
    newest = work[:, -DETECTED_DAYS * day :].astype(np.float64)
    share = newest.mean(axis=1, keepdims=True)
    alike = autocorrelation(newest - share, day + 1)
    peak = (alike[:, 1:-1] >= alike[:, :-2]) & (alike[:, 1:-1] > alike[:, 2:])
    height = np.where(peak, alike[:, 1:-1], -1.0)
    best = height.max(axis=1, keepdims=True)
    # A schedule also repeats after two and three periods; the shortest one that is nearly as good is meant.
    first = (height >= best - 0.1).argmax(axis=1) + 1
    return np.where(best[:, 0] >= SCHEDULED, first, 0)


def autocorrelation(centred: Floats, lags: int) -> Floats:
    """[series, lag 0..lags] correlation of centred series with themselves; 0 where nothing varies."""
    length = centred.shape[1]
    spectrum = np.fft.rfft(centred, 2 * length, axis=1)
    product = np.fft.irfft(np.abs(spectrum) ** 2, axis=1)[:, : lags + 1]
    overlap = length - np.arange(product.shape[1])
    power = product[:, :1] / length
    return np.asarray(product / overlap / np.where(power > 0, power, 1.0))


def work_rate(known: Floats, idle: Floats, origins: Bins) -> Floats:
    """[series, origin] how often times how much, smoothed over gapless values [series, time] up to each origin."""
    begin = max(0, int(origins[0]) + 1 - SMOOTHING_REACH)
    work = known > idle[:, None]
    now = first_work(known[:, begin : begin + SMOOTHING_REACH], work[:, begin : begin + SMOOTHING_REACH])
    rates = np.empty((len(known), int(origins[-1]) + 1 - begin))
    for i in range(rates.shape[1]):
        here = work[:, begin + i]
        often = now.often + OFTEN * (here - now.often)
        much = np.where(here, now.much + MUCH * (known[:, begin + i] - now.much), now.much)
        now = Work(often, much)
        rates[:, i] = often * much
    return np.asarray(rates[:, origins - begin])


def first_work(known: Floats, work: npt.NDArray[np.bool_]) -> Work:
    """Return the initial state of the smoothing: the mean of the first hundred bins."""
    often, much = work[:, :100].mean(axis=1), (known * work)[:, :100].sum(axis=1)
    return Work(often, much / np.maximum(1, work[:, :100].sum(axis=1)))
