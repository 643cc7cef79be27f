"""Clean: history fit to learn from. Gaps where nothing was measured, bounds where something was that will not return.

`masked` and `without_outliers` look back only: what they make of a bin does not depend on later ones. `bounded` looks
at the whole panel, which holds nothing but the past of the moment at which a model is fitted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from .calendar import within
from .gaps import filled
from .panel import DAY, Panel, trusted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .calendar import Event
    from .panel import Floats

# Load doubles and triples for good, but ten times everything that was seen until yesterday is a fault of measurement.
OUTLIER = 10.0
# What a least-squares fit sees at most: ten times the p99. A few bins a thousand times higher would be all it fits; on
# one recorded series they made the loss of a harmonic regression 22 times that of seasonal naive, with this 9 times.
LARGE, FAR = 0.99, 10.0


def masked(panel: Panel, spans: Sequence[Event] | Mapping[str, Sequence[Event]]) -> Panel:
    """The panel with gaps in spans of censored demand: throttled, at the largest size, an outage.

    Spans are those of all series, or a mapping from key to the spans of that series.

    >>> from datetime import UTC, datetime, timedelta
    >>> from models.calendar import Event
    >>> monday = datetime(2026, 1, 5, tzinfo=UTC)
    >>> panel = Panel(np.ones((1, 4)), monday, timedelta(hours=1), ("a",))
    >>> outage = Event("outage", monday + timedelta(hours=1), monday + timedelta(hours=3))
    >>> masked(panel, [outage]).values.tolist()
    [[1.0, nan, nan, 1.0]]
    """
    values = panel.values.copy()
    for row, key in enumerate(panel.keys):
        of_series = spans.get(key, ()) if isinstance(spans, Mapping) else spans
        values[row, within(panel, of_series)] = np.nan
    return trusted(values, panel.start, panel.step, panel.keys)


def without_outliers(panel: Panel, times: float = OUTLIER) -> Panel:
    """The panel with values cut off at `times` the largest value seen up to a day before them.

    Nothing is cut while nothing but 0 is known, and a new level passes after a day: from then on it has been seen.

    >>> from datetime import UTC, datetime, timedelta
    >>> hours = [2.0] * 24 + [2.0, 1e12, 3.0]
    >>> panel = Panel(np.array([hours]), datetime(2026, 1, 5, tzinfo=UTC), timedelta(hours=1), ("a",))
    >>> without_outliers(panel).values[0, -3:].tolist()
    [2.0, 20.0, 3.0]
    """
    bound = times * _largest_until_yesterday(panel)
    values = np.where(panel.values > bound, bound, panel.values).astype(panel.values.dtype)
    return trusted(values, panel.start, panel.step, panel.keys)


def bounded(panel: Panel) -> Panel:
    """The panel with values cut off at FAR times the p99 of their series: for fits by least squares, which square them.

    A series that is 0 for 99 % of the time is left as it is.
    """
    if not panel.values.size:
        return panel
    large = np.quantile(filled(panel.values), LARGE, axis=1, keepdims=True)
    bound = np.where(large > 0, FAR * large, np.inf).astype(panel.values.dtype)
    return trusted(np.minimum(panel.values, bound), panel.start, panel.step, panel.keys)


def _largest_until_yesterday(panel: Panel) -> Floats:
    """[series, time]; infinite where nothing but 0 is known."""
    day = panel.bins(DAY)
    largest = np.fmax.accumulate(panel.values, axis=1)
    shifted = np.full(panel.values.shape, np.nan)
    shifted[:, day:] = largest[:, : max(0, panel.length - day)]
    return np.where(shifted > 0, shifted, np.inf)
