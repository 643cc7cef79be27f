"""STL: a season and a trend by local regression, and the present deviation from them; decomposed by statsmodels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .clean import bounded, filled
from .library import Failed, attempted, failures
from .panel import DAY
from .residuals import too_short
from .shape import carried

if TYPE_CHECKING:
    from .model import Fitted
    from .panel import Floats, Panel
    from .residuals import Bins

STL_DAYS = 3
# Local regressions are made this often in a day and joined by lines: thirty times cheaper at steps of five minutes.
SEASON_JUMPS, TREND_JUMPS = 14, 7


@dataclass(frozen=True)
class Stl:
    """The season of the latest day, the latest trend, and what remains of the present deviation from both.

    statsmodels' STL decomposes each series; the deviation is carried for all at once (`shape`), which takes the place
    of following the trend between two fits. Needs three days.
    Source: Cleveland, Cleveland, McRae, Terpenning, STL: a seasonal-trend decomposition procedure based on loess, 1990.

    Attributes:
        days: latest days used.
        smoother: days over which the season may change; odd, 7 at least.

    >>> import numpy as np, datetime as dt
    >>> from models import Panel
    >>> monday = dt.datetime(2026, 1, 5, tzinfo=dt.UTC)
    >>> wave = 10 + 5 * np.sin(np.arange(96) / 24 * 2 * np.pi)
    >>> panel = Panel(wave[None], monday, dt.timedelta(hours=1), ("shop/web",))
    >>> Stl().fit(panel).forecast(3, (0.5,)).values.round(1).tolist()
    [[[10.0, 11.3, 12.5]]]
    """

    days: int = 14
    smoother: int = 13
    name: str = "stl"

    def fit(self, panel: Panel) -> Fitted:
        """Decompose one series after the other."""
        panel = panel.last(self.days * DAY)
        day = panel.bins(DAY)
        if day <= 1 or panel.length < STL_DAYS * day:
            return too_short(self.name, panel)
        known = filled(bounded(panel).values).astype(np.float64)
        found = [attempted(self.name, newest_day, row, day, self.smoother) for row in known]
        profile = np.array([np.full(day, np.nan) if isinstance(one, Failed) else one for one in found])
        shape = Season(profile.reshape(len(panel), day), panel.length % day)
        days = panel.length / day
        reasons = failures(panel.keys, found)
        return carried(self.name, panel, shape, least=STL_DAYS * day, stretch=days / (days - 1), failures=reasons)


@dataclass(frozen=True, eq=False)
class Season:
    """A shape that repeats daily: [series, bin of the day], and the bin of which the first column speaks."""

    profile: Floats
    first: int

    def at(self, bins: Bins) -> Floats:
        """See Shape."""
        return np.asarray(self.profile[:, (bins - self.first) % self.profile.shape[1]])


def newest_day(values: Floats, day: int, smoother: int) -> Floats:
    """[bin] the season of the latest day of one gapless series [time], around the trend at its end."""
    parts = library_model(values, day, smoother).fit()
    profile = np.asarray(parts.seasonal[-day:] + parts.trend[-1])
    if not np.isfinite(profile).all():
        raise ArithmeticError("the season is not finite")
    return profile


def library_model(values: Floats, day: int, smoother: int) -> Any:
    """Statsmodels' decomposition of one gapless series [time]."""
    from statsmodels.tsa.seasonal import STL  # noqa: PLC0415  two seconds; only fitting needs it

    season, trend = max(1, day // SEASON_JUMPS), max(1, day // TREND_JUMPS)
    return STL(values, period=day, seasonal=smoother, seasonal_jump=season, trend_jump=trend, low_pass_jump=trend)
