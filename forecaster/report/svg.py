"""Small pictures as SVG text: axes, lines, points. No library, no script; colours that the page names."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

LEFT, RIGHT, TOP, BOTTOM = 56.0, 12.0, 12.0, 34.0
TICKS = 5


@dataclass(frozen=True, slots=True)
class Line:
    """A series in the data's own units; `style` is a class of the page's style sheet."""

    points: Sequence[tuple[float, float]]
    style: str
    title: str = ""
    dots: bool = False
    stepped: bool = False
    """Whether a value holds until the next one, as pods do."""
    marked: tuple[float, float] | None = None
    """The point that is drawn larger: where things stand."""


@dataclass(frozen=True, slots=True)
class Picture:
    """Lines over two named axes."""

    lines: Sequence[Line]
    across: str
    up: str
    width: float = 640.0
    height: float = 260.0
    across_labels: Sequence[tuple[float, str]] = ()
    """Where the axis has marks, and what they say; by default round numbers."""

    def svg(self) -> str:
        """The picture, or a sentence where there is nothing to draw."""
        points = [point for line in self.lines for point in line.points]
        if not points:
            return "<p>Nothing to draw.</p>"
        frame = Frame.around(points, self.width, self.height)
        parts = [*self._axes(frame), *(_line(line, frame) for line in self.lines if line.points)]
        return (
            f'<svg viewBox="0 0 {self.width:g} {self.height:g}" role="img" aria-label="{escape(self.up)} over '
            f'{escape(self.across)}">{"".join(parts)}</svg>'
        )

    def _axes(self, frame: Frame) -> list[str]:
        right, bottom = self.width - RIGHT, self.height - BOTTOM
        marks = [f'<path class="axis" d="M{LEFT:g},{TOP:g}V{bottom:g}H{right:g}"/>']
        for value in round_numbers(frame.low_y, frame.high_y):
            y = frame.y(value)
            marks.append(f'<path class="grid" d="M{LEFT:g},{y:.1f}H{right:g}"/>')
            marks.append(f'<text x="{LEFT - 6:g}" y="{y + 4:.1f}" class="end">{value:g}</text>')
        for value, label in self.across_labels or [(v, f"{v:g}") for v in round_numbers(frame.low_x, frame.high_x)]:
            marks.append(f'<text x="{frame.x(value):.1f}" y="{bottom + 16:g}" class="mid">{escape(label)}</text>')
        marks.append(f'<text x="{right:g}" y="{self.height - 4:g}" class="end">{escape(self.across)}</text>')
        marks.append(f'<text x="{LEFT + 6:g}" y="{TOP + 8:g}">{escape(self.up)}</text>')
        return marks


@dataclass(frozen=True, slots=True)
class Frame:
    """From data to the page."""

    low_x: float
    high_x: float
    low_y: float
    high_y: float
    width: float
    height: float

    @classmethod
    def around(cls, points: Sequence[tuple[float, float]], width: float, height: float) -> Frame:
        """All points within; upwards from zero."""
        across, up = [x for x, _ in points], [y for _, y in points]
        low, high = min(across), max(across)
        top = max(up)
        return cls(low, high if high > low else low + 1.0, 0.0, top * 1.05 if top > 0 else 1.0, width, height)

    def x(self, value: float) -> float:
        """Across."""
        return LEFT + (value - self.low_x) / (self.high_x - self.low_x) * (self.width - LEFT - RIGHT)

    def y(self, value: float) -> float:
        """Up."""
        return self.height - BOTTOM - (value - self.low_y) / (self.high_y - self.low_y) * (self.height - TOP - BOTTOM)


def round_numbers(low: float, high: float) -> list[float]:
    """About `TICKS` round numbers between two values: multiples of 1, 2 or 5 times a power of ten."""
    span = high - low
    if span <= 0:
        return [low]
    power = 10.0 ** floor(log10(span / TICKS))
    step = next(one * power for one in (1, 2, 5, 10) if span / (one * power) <= TICKS)
    return [round(i * step, 10) for i in range(ceil(low / step), floor(high / step) + 1)]


def _line(line: Line, frame: Frame) -> str:
    points = [(frame.x(x), frame.y(y)) for x, y in line.points]
    title = f"<title>{escape(line.title)}</title>" if line.title else ""
    drawn = f'<path class="line {line.style}" d="{_stepped(points) if line.stepped else _straight(points)}"/>'
    dots = "".join(f'<circle class="{line.style}" cx="{x:.1f}" cy="{y:.1f}" r="2.5"/>' for x, y in points)
    return f"<g>{title}{drawn}{dots if line.dots else ''}{_mark(line, frame)}</g>"


def _mark(line: Line, frame: Frame) -> str:
    if line.marked is None:
        return ""
    return f'<circle class="{line.style}" cx="{frame.x(line.marked[0]):.1f}" cy="{frame.y(line.marked[1]):.1f}" r="5"/>'


def _straight(points: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:.1f},{y:.1f}" for x, y in points)


def _stepped(points: Sequence[tuple[float, float]]) -> str:
    """Only where the value changes: a day of minutes is mostly straight."""
    (x, y), parts, before = points[0], [], points[0][1]
    parts.append(f"M{x:.1f},{y:.1f}")
    for across, up in points[1:]:
        if up != before:
            parts.append(f"H{across:.1f}V{up:.1f}")
            before = up
    return "".join(parts) + f"H{points[-1][0]:.1f}"
