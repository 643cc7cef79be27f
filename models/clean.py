"""Clean: history fit to learn from, with gaps where nothing was measured and bounds on values that will not return.

`masked` looks back only: what it makes of a bin does not depend on later ones. `bounded` looks
at the whole panel, which holds nothing but the past of the moment at which a model is fitted.
`filled` carries the last known value into gaps and never looks ahead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from .calendar import Event, within
from .panel import Floats, Panel, trusted

# A missed scrape is a gap of all series in a few columns; those are filled in a tenth of the time of the whole array.
FEW_COLUMNS = 50
# Below this share of its size a series does not move, and teaches nothing.
UNMOVED = 1e-9


def filled(values: Floats) -> Floats:
    """[series, time] every gap has the latest earlier sample, leading gaps the first one, 0 without samples.

    The array itself when it has no gaps.
    """
    gaps = np.isnan(values)
    columns = np.flatnonzero(gaps.any(axis=0))
    if not len(columns):
        return values
    out = values.copy()
    if len(columns) <= FEW_COLUMNS:
        _carry_columns(out, gaps, columns)
    else:
        rows = np.flatnonzero(gaps.any(axis=1))
        out[rows] = _carried(values[rows])
    return out


def bins_seen(values: Floats) -> npt.NDArray[np.intp]:
    """[series] bins since the first sample; 0 without one."""
    return np.asarray(values.shape[1] - _leading_gaps(values))


def bins_silent(values: Floats) -> npt.NDArray[np.intp]:
    """[series] bins since the latest sample, 0 when the latest bin has one, all of them without samples."""
    return _leading_gaps(values[:, ::-1])


def _leading_gaps(values: Floats) -> npt.NDArray[np.intp]:
    """[series] columns before the first sample. Most series begin with one, so only the others are looked at whole."""
    gaps = np.zeros(len(values), dtype=np.intp)
    if values.shape[1]:
        late = np.flatnonzero(~np.isfinite(values[:, 0]))
        known = np.isfinite(values[late])
        gaps[late] = np.where(known.any(axis=1), known.argmax(axis=1), values.shape[1])
    return gaps


def _carry_columns(out: Floats, gaps: npt.NDArray[np.bool_], columns: npt.NDArray[np.intp]) -> None:
    """Fill a few columns in place, one after the other."""
    late = np.flatnonzero(gaps[:, 0])
    first = np.minimum(_leading_gaps(out[late]), out.shape[1] - 1)
    out[late, 0] = np.nan_to_num(out[late, first])
    for column in columns[columns > 0].tolist():
        np.copyto(out[:, column], out[:, column - 1], where=gaps[:, column])


def _carried(values: Floats) -> Floats:
    known = np.isfinite(values)
    latest = np.maximum.accumulate(np.where(known, np.arange(values.shape[1]), -1), axis=1)
    position = np.where(latest < 0, known.argmax(axis=1)[:, None], latest)
    return np.nan_to_num(np.take_along_axis(values, position, axis=1))


# What a least-squares fit sees at most: ten times the p99. A few bins a thousand times higher would be all it fits; on
# one recorded series they made the loss of a harmonic regression 22 times that of seasonal naive, with this 9 times.
LARGE, FAR = 0.99, 10.0


def masked(panel: Panel, spans: Sequence[Event] | Mapping[str, Sequence[Event]]) -> Panel:
    """Return the panel with gaps in spans of censored demand: throttled, at the largest size, an outage.

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


def bounded(panel: Panel) -> Panel:
    """The panel with values cut off at FAR times the p99 of their series: for fits by least squares, which square them.

    A series that is 0 for 99 % of the time is left as it is.
    """
    if not panel.values.size:
        return panel
    large = np.quantile(filled(panel.values), LARGE, axis=1, keepdims=True)
    bound = np.where(large > 0, FAR * large, np.inf).astype(panel.values.dtype)
    return trusted(np.minimum(panel.values, bound), panel.start, panel.step, panel.keys)
