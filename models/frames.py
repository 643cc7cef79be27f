"""Panels from and to pandas frames; pandas is imported with this file only."""

from __future__ import annotations

import numpy as np
import pandas as pd

from .errors import PanelError
from .panel import Panel


def panel_of(frame: pd.DataFrame) -> Panel:
    """A panel of a wide frame.

    Raises:
        PanelError: the index is not made of aware, distinct, ascending instants on one regular grid.
    """
    index = _checked_index(frame)
    step = _step(index)
    grid = pd.date_range(index[0], index[-1], freq=step)
    if len(index.difference(grid)):
        odd = index.difference(grid)[0]
        raise PanelError(f"{odd} is off the grid of {step} that begins at {index[0]}; resample the frame first")
    values = frame.reindex(grid).to_numpy(dtype=np.float64).T
    start = index[0].to_pydatetime()
    length = step.to_pytimedelta()
    return Panel(np.ascontiguousarray(values), start, length, tuple(map(str, frame.columns)))


def frame_of(panel: Panel) -> pd.DataFrame:
    """One column per series, bin starts as index."""
    index = pd.date_range(panel.start, periods=panel.length, freq=pd.Timedelta(panel.step))
    return pd.DataFrame(panel.values.T, index=index, columns=list(panel.keys))


def _checked_index(frame: pd.DataFrame) -> pd.DatetimeIndex:
    index = frame.index
    if not isinstance(index, pd.DatetimeIndex) or index.tz is None:
        raise PanelError(f"the index is {index.dtype}; use aware instants, the start of each bin")
    if len(index) <= 1:
        raise PanelError(f"{len(index)} rows have no step; give at least two")
    if index.has_duplicates:
        raise PanelError(f"the instant {index[index.duplicated()][0]} comes twice; keep one row for it")
    if not index.is_monotonic_increasing:
        newest = index[int(np.argmax(np.diff(index.asi8) < 0))]
        raise PanelError(f"the index does not ascend after {newest}; sort the frame")
    return index.tz_convert("UTC")


def _step(index: pd.DatetimeIndex) -> pd.Timedelta:
    return pd.Series(index).diff().min()
