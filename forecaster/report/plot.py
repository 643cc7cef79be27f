"""Plots for pages that load nothing: SVG paths that stretch with the page, labels and dots that do not, data to hover.

Every plot is 0 to 1 across and up; axes turn values into that. The script of `page` shows what `hover` says.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log2, log10
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from forecaster.domain.amounts import alike
from forecaster.domain.window import FIVE_MINUTES, Window
from forecaster.domain.workload import WorkloadId
from forecaster.ports import Histories

Floats = NDArray[np.float64]

TICKS = 5
DRAWING_SIZE = 1000
"""Size of the drawing in its own coordinates; the page stretches them."""
ZERO, SMALLEST = 0.03, 0.13
"""On a logarithmic axis: where zero stands, and where the smallest other value does."""
EDGE = 0.94
"""Labels beyond it end at their mark, so that they stay within the page."""


def scale_of(unit: str, largest: float) -> tuple[float, str]:
    """Return the amount that counts as 1 on an axis up to `largest`, and its name: one scale for the whole axis."""
    if unit == "bytes" and largest >= 1:
        power = min(int(log2(largest) / 10), len(BINARY) - 1)
        return 1024.0**power, BINARY[power]
    return (0.001, "millicores") if unit == "cores" and largest < 1 else (1.0, unit)


BINARY = ("bytes", "Ki", "Mi", "Gi", "Ti", "Pi")


class Tick(NamedTuple):
    """A mark of an axis; a minor one is left out where there is little room."""

    at: float
    label: str
    minor: bool = False


@dataclass(frozen=True, slots=True)
class Axis:
    """Axis from `low` to `high`; a logarithmic one shows zero at a place of its own."""

    low: float
    high: float
    log: bool = False

    def place(self, value: float) -> float:
        """0 to 1."""
        if not self.log:
            return (value - self.low) / (self.high - self.low)
        if value < self.low:
            return ZERO
        share = (log10(value) - log10(self.low)) / (log10(self.high) - log10(self.low))
        return SMALLEST + (1 - SMALLEST) * share

    def ticks(self, suffix: str = "") -> list[Tick]:
        """Round numbers, or powers of ten and zero."""
        if not self.log:
            return [Tick(self.place(value), f"{value:g}{suffix}") for value in round_numbers(self.low, self.high)]
        decades = range(round(log10(self.low)), round(log10(self.high)) + 1)
        powers = [Tick(self.place(10.0**exponent), f"{10.0**exponent:g}{suffix}") for exponent in decades]
        return [Tick(ZERO, f"0{suffix}"), *powers]


def linear(values: Sequence[float], *, from_zero: bool = False) -> Axis:
    """An axis around these values, with a little room."""
    low, high = (0.0 if from_zero else min(values)), max(values)
    padding = (high - low) * 0.04 or abs(high) * 0.1 or 1.0
    return Axis(low if from_zero else low - padding, high + padding)


def logarithmic(values: Sequence[float]) -> Axis:
    """Return an axis of whole decades around the values above zero; one decade without any."""
    positive = [value for value in values if value > 0] or [0.1]
    low, high = floor(log10(min(positive))), ceil(log10(max(positive)))
    return Axis(10.0**low, 10.0 ** max(high, low + 1), log=True)


def round_numbers(low: float, high: float) -> list[float]:
    """About `TICKS` round numbers between two values: multiples of 1, 2 or 5 times a power of ten."""
    span = high - low
    if span <= 0:
        return [low]
    power = 10.0 ** floor(log10(span / TICKS))
    step = next(multiple * power for multiple in (1, 2, 5, 10) if span / (multiple * power) <= TICKS)
    return [round(i * step, 10) for i in range(ceil(low / step), floor(high / step) + 1)]


class Mark(NamedTuple):
    """A dot, and its text."""

    x: float
    y: float
    says: str
    own: bool = False
    """Whether it is drawn larger, to mark the present state."""


@dataclass(frozen=True, slots=True)
class Line:
    """A series, its points 0 to 1; `style` is a class of the page."""

    points: Sequence[tuple[float, float]]
    style: str
    stepped: bool = False
    """Whether a value holds until the next one, as pods do."""
    marks: Sequence[Mark] = ()


class Area(NamedTuple):
    """Between two series of the same places, where the first is above the second."""

    upper: Sequence[tuple[float, float]]
    lower: Sequence[tuple[float, float]]
    style: str


@dataclass(frozen=True, slots=True)
class Plot:
    """Lines within two named axes; `hover` has the script's text for a point in time."""

    title: str
    across: Sequence[Tick]
    up: Sequence[Tick]
    up_name: str
    lines: Sequence[Line]
    areas: Sequence[Area] = ()
    across_name: str = ""
    note: str = ""
    """Note at the first of our own marks."""
    hover: Mapping[str, object] | None = None

    def html(self) -> str:
        """A figure."""
        marks = [(line.style, mark) for line in self.lines for mark in line.marks]
        data = f'<script type="application/json">{_json(self.hover)}</script>' if self.hover else ""
        return (
            f'<figure class="plot" role="img" aria-label="{escape(self.title)}"><figcaption>{escape(self.up_name)}'
            f'</figcaption><div class="area" tabindex="0">{self._drawing()}{"".join(map(_up, self.up))}'
            f"{''.join(map(_across, self.across))}{''.join(_dot(*mark) for mark in marks)}{self._note(marks)}</div>"
            f'<div class="name">{escape(self.across_name)}</div>{data}</figure>'
        )

    def _drawing(self) -> str:
        grid = "".join(f'<path class="grid" d="M0,{_y(tick.at):g}H{DRAWING_SIZE}"/>' for tick in self.up)
        areas = "".join(f'<path class="{area.style}" d="{_between(area)}"/>' for area in self.areas)
        lines = "".join(f'<path class="line {line.style}" d="{_path(line)}"/>' for line in self.lines if line.points)
        drawn = f"{grid}{areas}{lines}"
        box = f"0 0 {DRAWING_SIZE} {DRAWING_SIZE}"
        return f'<svg viewBox="{box}" preserveAspectRatio="none" aria-hidden="true">{drawn}</svg>'

    def _note(self, marks: Sequence[tuple[str, Mark]]) -> str:
        own = next((mark for _, mark in marks if mark.own), None)
        if not self.note or own is None:
            return ""
        side = " left" if own.x > 0.6 else ""  # noqa: PLR2004  to the side with more room
        return f'<span class="note{side}" style="{_position(own.x, own.y)}">{escape(self.note)}</span>'


def _json(value: object) -> str:
    """Text that cannot end its own script element."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")


def _position(x: float, y: float) -> str:
    return f"left:{100 * x:.2f}%;bottom:{100 * y:.2f}%"


def _dot(style: str, mark: Mark) -> str:
    own = " own" if mark.own else ""
    return f'<i class="dot {style}{own}" style="{_position(mark.x, mark.y)}" data-says="{escape(mark.says)}"></i>'


def _up(tick: Tick) -> str:
    return f'<span class="up" style="bottom:{100 * tick.at:.2f}%">{escape(tick.label)}</span>'


def _across(tick: Tick) -> str:
    kind = ("across minor" if tick.minor else "across") + (" last" if tick.at > EDGE else "")
    return f'<span class="{kind}" style="left:{100 * tick.at:.2f}%">{escape(tick.label)}</span>'


def _x(value: float) -> float:
    return round(value * DRAWING_SIZE, 1)


def _y(value: float) -> float:
    return round((1 - value) * DRAWING_SIZE, 1)


def _path(line: Line) -> str:
    if line.stepped:
        return _stepped(line.points)
    return "M" + "L".join(f"{_x(x):g},{_y(y):g}" for x, y in line.points)


def _stepped(points: Sequence[tuple[float, float]]) -> str:
    """Return points only where the value changes: a day of minutes is mostly straight."""
    (x, before), *others = points
    parts = [f"M{_x(x):g},{_y(before):g}"]
    for across, up in others:
        if up != before:
            parts.append(f"H{_x(across):g}V{_y(up):g}")
            before = up
    return "".join(parts) + f"H{_x(points[-1][0]):g}"


def _between(area: Area) -> str:
    """A rectangle for each place at which the upper series is above the lower one, until the next place."""
    ends = [x for x, _ in area.upper[1:]] + [area.upper[-1][0]] if area.upper else []
    return "".join(
        f"M{_x(x):g},{_y(low):g}V{_y(high):g}H{_x(end):g}V{_y(low):g}Z"
        for (x, high), (_, low), end in zip(area.upper, area.lower, ends, strict=True)
        if high > low
    )


PAST = 144
"""Half a day by five minutes."""
BLOCKS = "▁▂▃▄▅▆▇█"


def windows_of(history: Histories) -> dict[str, Window]:
    """The five minutes of every signal, by its name: taken once for all workloads that are shown."""
    return {str(signal): history.window(signal, FIVE_MINUTES) for signal in history.signals}


def half_day(windows: Mapping[str, Window], id_: WorkloadId, signal: str) -> Floats:
    """Demand by five minutes, the newest last; empty where nothing is known."""
    known = windows.get(signal)
    if known is None or id_ not in known.row:
        return np.zeros(0)
    return np.asarray(known.values[known.row[id_], -PAST:], dtype=float)


def sparkline(values: Floats, points: int) -> str:
    """The largest value of each of `points` spans as a block between nothing and the largest; a gap is a space."""
    if not np.isfinite(values).any():
        return ""
    peaks = [float(np.nanmax(part)) if np.isfinite(part).any() else np.nan for part in np.array_split(values, points)]
    top = np.nanmax(peaks)
    return "".join(" " if np.isnan(peak) else BLOCKS[_height(peak, top)] for peak in peaks)


def _height(value: float, top: float) -> int:
    return min(len(BLOCKS) - 1, max(0, int(value / top * len(BLOCKS)))) if top > 0 else 0


def spoken_half_day(windows: Mapping[str, Window], id_: WorkloadId, signal: str, unit: str) -> str:
    """One line: the picture, the least and the most; empty where nothing is known."""
    values = half_day(windows, id_, signal)
    if not np.isfinite(values).any():
        return ""
    low, high = alike((float(np.nanmin(values)), float(np.nanmax(values))), unit)
    return f"{signal}, the last {len(values) // 12} h: {sparkline(values, 36)} {low} to {high}"
