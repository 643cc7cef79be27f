"""Panel: many series on one regular grid of time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from .errors import PanelError

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

Floats: TypeAlias = npt.NDArray[np.floating]
DAY = timedelta(days=1)
DIMENSIONS = 2  # series, time
# Beyond what a float32 holds nothing is demand, and a model that adds two such values has none.
LARGEST_VALUE = 1e38


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Panel:
    """Demand of many series, latest last.

    Attributes:
        values: float32 or float64 [series, time], >= 0; NaN means that there was no sample, and nothing else.
        start: aware instant at which the first bin begins; `values[:, t]` covers [start + t·step, start + (t+1)·step).
        step: length of one bin.
        keys: one distinct name per series.
        notes: what was done to samples so that they lie on this grid, in sentences.

    Raises:
        PanelError: shapes disagree, a value is negative or above 1e38 (`Panel.cleaned` makes gaps of them), the start
            is naive, a key comes twice.
    """

    values: Floats
    start: datetime
    step: timedelta
    keys: tuple[str, ...]
    notes: tuple[str, ...] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        """Refuse values that are no panel."""
        _check_shape(self)
        _check_clock(self)
        _check_values(self)

    @classmethod
    def cleaned(cls, values: Floats, start: datetime, step: timedelta, keys: Sequence[str]) -> Panel:
        """A panel in which impossible samples (negative, infinite, above 1e38) have become gaps."""
        impossible = ~((values >= 0) & (values <= LARGEST_VALUE))
        return cls(np.where(impossible, np.nan, values), start, step, tuple(keys))

    @classmethod
    def from_frame(cls, frame: pd.DataFrame) -> Panel:
        """A panel of a frame with one column per series and bin starts as an aware index; missing rows become gaps."""
        from .frames import panel_of  # noqa: PLC0415  pandas takes 0.3 s to import and the service does not need it here

        return panel_of(frame)

    @classmethod
    def from_long(cls, frame: pd.DataFrame, step: timedelta | None = None) -> Panel:
        """Make a panel from a frame with one row per sample: timestamp, value and, for several series, their name.

        Series may begin and end apart, lack samples, and have steps of their own; `notes` says what was done about it.
        """
        from .frames import panel_of_long  # noqa: PLC0415  as above

        return panel_of_long(frame, step)

    def to_frame(self) -> pd.DataFrame:
        """Return one column per series, bin starts as index."""
        from .frames import frame_of  # noqa: PLC0415  as above

        return frame_of(self)

    def plot(self, keys: Sequence[str] = ()) -> Figure:
        """A row a series over time, the first six unless `keys` says which."""
        from .pictures import plot_panel  # noqa: PLC0415  a picture for people

        return plot_panel(self, keys)

    def __repr__(self) -> str:
        from .display import summary  # noqa: PLC0415  as above

        return summary(self)

    def _repr_html_(self) -> str:
        from .display import panel_html  # noqa: PLC0415  as above

        return panel_html(self)

    def __getitem__(self, key: str) -> Panel:
        """The panel of one series, see `key`."""
        return self.select([self.key(key)])

    def key(self, name: str) -> str:
        """Return the key of one series: its own, or the only one with these parts in this order, as in `shop/checkout`.

        Raises:
            PanelError: there is none, or there are several.
        """
        if name in self.keys:
            return name
        parts = name.split("/")
        matches = [key for key in self.keys if _parts_within(parts, key.split("/"))]
        if len(matches) == 1:
            return matches[0]
        near = matches or get_close_matches(name, self.keys, n=3, cutoff=0.4)
        remedy = f"did you mean {' or '.join(near)}?" if near else f"its keys are {', '.join(self.keys[:3])}, ..."
        raise PanelError(f"{len(matches)} of {len(self)} series are {name!r}; {remedy}")

    def __len__(self) -> int:
        """Number of series."""
        return len(self.keys)

    @property
    def length(self) -> int:
        """Number of bins."""
        return int(self.values.shape[1])

    @property
    def end(self) -> datetime:
        """Instant at which the latest bin ends: the origin of a forecast made from this panel."""
        return self.start + self.length * self.step

    def bins(self, duration: timedelta) -> int:
        """Return the number of whole bins in a duration."""
        return duration // self.step

    def last(self, duration: timedelta) -> Panel:
        """The latest part; a view, or the panel itself when it is not longer than that."""
        return self._columns(max(0, self.length - self.bins(duration)), self.length)

    def until(self, instant: datetime) -> Panel:
        """All bins that are over at `instant`; a view."""
        return self._columns(0, min(self.length, max(0, (instant - self.start) // self.step)))

    def around(self, instant: datetime, before: timedelta, after: timedelta) -> Panel:
        """The bins from so long before to so long after an instant, as far as the panel goes; a view."""
        place = (instant - self.start) // self.step
        first, last = place - self.bins(before), place + self.bins(after)
        return self._columns(min(self.length, max(0, first)), max(0, min(self.length, last)))

    def take(self, rows: Sequence[int] | npt.NDArray[np.integer] | npt.NDArray[np.bool_] | slice) -> Panel:
        """Some of the series, by position or mask."""
        keys = np.asarray(self.keys, dtype=object)[rows]
        return trusted(self.values[rows], self.start, self.step, tuple(keys))

    def select(self, keys: Sequence[str]) -> Panel:
        """Some of the series, by key and in that order."""
        row = {key: i for i, key in enumerate(self.keys)}
        absent = [key for key in keys if key not in row]
        if absent:
            raise PanelError(f"series {absent[0]!r} is not in this panel of {len(self)}; ask only for its keys")
        return self.take([row[key] for key in keys])

    def append(self, newer: Panel) -> Panel:
        """Return this panel continued by a newer one of the same series; where both have values, the newer counts.

        What this panel knows after the end of the newer one stays: samples that were late correct only their own bins.

        Raises:
            PanelError: the newer panel has other series, another step or phase, or lies beyond a hole in time.
        """
        check_continues(self, newer)
        before = max(0, (newer.start - self.start) // self.step)
        after = (newer.end - self.start) // self.step
        if not before and after >= self.length:
            return newer
        parts = (self.values[:, :before], newer.values.astype(self.values.dtype, copy=False), self.values[:, after:])
        return trusted(np.concatenate(parts, axis=1), min(self.start, newer.start), self.step, self.keys)

    def resample(self, step: timedelta) -> Panel:
        """A coarser panel of means; its bins count back from the end, so that the latest is whole, and leave gaps out.

        Raises:
            PanelError: `step` is not a multiple of this panel's step.
        """
        if step < self.step or step % self.step:
            raise PanelError(f"cannot resample a panel of step {self.step} to {step}; ask for a multiple")
        width = step // self.step
        count = self.length // width
        bins = self.values[:, self.length - count * width :].reshape(len(self), count, width)
        known = np.isfinite(bins).sum(axis=2)
        means = np.where(known, np.nansum(bins, axis=2) / np.maximum(1, known), np.nan).astype(bins.dtype)
        return trusted(means, self.end - count * step, step, self.keys)

    def _columns(self, first: int, last: int) -> Panel:
        return trusted(self.values[:, first:last], self.start + first * self.step, self.step, self.keys)


def trusted(values: Floats, start: datetime, step: timedelta, keys: tuple[str, ...]) -> Panel:
    """A panel made of parts of checked panels, without looking at every value again."""
    panel = object.__new__(Panel)
    fields = (("values", values), ("start", start), ("step", step), ("keys", keys), ("notes", ()))
    for name, value in fields:
        object.__setattr__(panel, name, value)
    return panel


def _parts_within(needed: Sequence[str], parts: Sequence[str]) -> bool:
    """Whether the requested parts occur among these, in order."""
    left = iter(parts)
    return all(part in left for part in needed)


def _check_shape(panel: Panel) -> None:
    kind = getattr(panel.values, "dtype", type(panel.values).__name__)
    if kind not in {np.dtype(np.float32), np.dtype(np.float64)}:
        raise PanelError(f"values are {kind}; use an array of float32 or float64")
    object.__setattr__(panel, "keys", tuple(panel.keys))
    if not all(isinstance(key, str) for key in panel.keys):
        raise PanelError(f"keys are {panel.keys[:3]}; name each series by a text")
    if panel.values.ndim != DIMENSIONS or panel.values.shape[0] != len(panel.keys):
        raise PanelError(f"values have shape {panel.values.shape} for {len(panel.keys)} keys; use [series, time]")
    if len(set(panel.keys)) != len(panel.keys):
        twice = next(key for i, key in enumerate(panel.keys) if key in panel.keys[:i])
        raise PanelError(f"series {twice!r} comes twice; give every series its own key")


def _check_clock(panel: Panel) -> None:
    if getattr(panel.start, "tzinfo", None) is None:
        raise PanelError(f"start {panel.start} has no time zone; use aware UTC datetimes")
    if getattr(panel.step, "days", -1) < 0 or not panel.step:
        raise PanelError(f"step {panel.step} is not positive; use a timedelta")
    object.__setattr__(panel, "start", panel.start.astimezone(UTC))


def _check_values(panel: Panel) -> None:
    if not panel.values.size:
        return
    low, high = np.fmin.reduce(panel.values, axis=None), np.fmax.reduce(panel.values, axis=None)
    if np.isnan(low) or (low >= 0 and high <= LARGEST_VALUE):
        return
    row, column = np.argwhere((panel.values > LARGEST_VALUE) | (panel.values < 0))[0]
    raise PanelError(
        f"series {panel.keys[row]!r} has the value {panel.values[row, column]} at {panel.start + column * panel.step};"
        f" demand lies between 0 and {LARGEST_VALUE:g}, use Panel.cleaned to turn such samples into gaps"
    )


def check_continues(panel: Panel, newer: Panel) -> None:
    """Raise the PanelError of `Panel.append` when a panel does not continue another one."""
    if newer.keys != panel.keys:
        other = next(iter(set(newer.keys) ^ set(panel.keys)), "their order")
        raise PanelError(f"the panels differ in series {other!r}; select the same keys first")
    if newer.step != panel.step or (newer.start - panel.start) % panel.step:
        grids = f"{newer.start} / {newer.step} does not continue {panel.start} / {panel.step}"
        raise PanelError(f"a panel on the grid {grids}; bring both to one grid first")
    first, last = sorted((panel, newer), key=lambda part: part.start)
    if last.start > first.end:
        raise PanelError(f"nothing is known between {first.end} and {last.start}; pass the gap as NaN")
