"""Display of panels, forecasts and backtests in a notebook: a line, a small table, a sparkline per series.

HTML and SVG text of our own: a notebook shows it without matplotlib, on light and on dark ground.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from html import escape

import numpy as np

from .forecast import Forecast
from .panel import Floats, Panel

DEMAND, FORECAST, SHORTAGE, CAPACITY = "#0b5cad", "#0a7d5f", "#c8481a", "#5f6770"
"""Colours with one meaning each, in every picture, also for eyes that confuse red and green."""
WIDTH, HEIGHT = 180, 28
DISPLAY_POINTS = 120
DISPLAY_ROWS = 12
PLAIN = (1e-3, 1e4)
"""Sizes of numbers that are written without a power of ten."""


def panel_html(panel: Panel) -> str:
    """Return a panel's span, the changes made to it, and its first series."""
    rows = [
        (escape(key), sparkline(values), *_figures(values))
        for key, values in zip(panel.keys[:DISPLAY_ROWS], panel.values[:DISPLAY_ROWS], strict=True)
    ]
    heads = ("series", f"{panel.start:%d %b} to {panel.end:%d %b %Y}", "latest", "median", "largest", "gaps")
    notes = "".join(f"<li>{escape(note)}</li>" for note in panel.notes)
    return f"<p>{escape(summary(panel))}</p><ul>{notes}</ul>{table(heads, rows, len(panel))}"


def summary(panel: Panel) -> str:
    """A panel in a sentence."""
    if not panel.values.size:
        return f"Panel of {len(panel)} series without samples"
    length = span_text(panel.length * panel.step)
    return f"Panel of {len(panel)} series, {length} by {span_text(panel.step)}, until {panel.end:%Y-%m-%d %H:%M} UTC"


def forecast_html(forecast: Forecast) -> str:
    """A forecast: its band a series, the largest of each quantile, and why some series have none."""
    chosen = sorted({0, middle_of(forecast.levels), len(forecast.levels) - 1})
    heads = ("series", "model", "band ahead", *(f"largest {level_text(forecast.levels[i])}" for i in chosen), "note")
    provenance = forecast.provenance
    rows = [
        (
            escape(key),
            escape(provenance.models[i]),
            sparkband(forecast.values[i], forecast.levels),
            *(number(forecast.values[i, level].max()) for level in chosen),
            escape(provenance.reasons[i]),
        )
        for i, key in enumerate(forecast.keys[:DISPLAY_ROWS])
    ]
    unknown = "".join(f"<li>{escape(f'{key}: {why}')}</li>" for key, why in forecast.unknown.items())
    return f"<p>{escape(forecast_summary(forecast))}</p>{table(heads, rows, len(forecast.keys))}<ul>{unknown}</ul>"


def forecast_summary(forecast: Forecast) -> str:
    """A forecast in a sentence."""
    ahead = f"{forecast.steps} steps of {span_text(forecast.step)}"
    return f"Forecast of {len(forecast.keys)} series from {forecast.origin:%Y-%m-%d %H:%M} UTC, {ahead}"


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], count: int) -> str:
    """Rows of ready HTML under their heads, and how many more there are."""
    head = "".join(f"<th style='text-align:left'>{escape(heading)}</th>" for heading in heads)
    body = "".join(
        "<tr>" + "".join(f"<td style='text-align:left'>{cell}</td>" for cell in row) + "</tr>" for row in rows
    )
    more = f"<p>and {count - len(rows)} more</p>" if count > len(rows) else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def sparkline(values: Floats) -> str:
    """A series as a line without axes, from zero; gaps stay open."""
    thinned = _thinned(values)
    top = _top(thinned)
    parts, pen = [], "M"
    for i, value in enumerate(thinned):
        if np.isnan(value):
            pen = "M"
        else:
            parts.append(f"{pen}{_across(i, len(thinned)):.1f},{_up(value, top):.1f}")
            pen = "L"
    return _svg(f'<path d="{"".join(parts)}" fill="none" stroke="{DEMAND}" stroke-width="1.2"/>')


def sparkband(quantiles: Floats, levels: Sequence[float]) -> str:
    """Quantiles [quantile, step] as a band with its middle, from zero."""
    top, steps = _top(quantiles), quantiles.shape[1]
    low, middle, high = (quantiles[i] for i in (0, middle_of(levels), -1))
    rim = [f"{_across(i, steps):.1f},{_up(value, top):.1f}" for i, value in enumerate(high)]
    rim += [f"{_across(i, steps):.1f},{_up(low[i], top):.1f}" for i in reversed(range(steps))]
    line = " ".join(f"{_across(i, steps):.1f},{_up(value, top):.1f}" for i, value in enumerate(middle))
    return _svg(
        f'<polygon points="{" ".join(rim)}" fill="{FORECAST}" fill-opacity=".25"/>'
        f'<polyline points="{line}" fill="none" stroke="{FORECAST}" stroke-width="1.2"/>'
    )


def number(value: float) -> str:
    """Three significant digits; a dash where nothing is known."""
    if not np.isfinite(value):
        return "–"
    return f"{value:.3g}" if PLAIN[0] <= abs(value) < PLAIN[1] or not value else f"{value:.2e}"


def level_text(level: float) -> str:
    """A quantile level as p90."""
    return f"p{100 * level:g}"


def middle_of(levels: Sequence[float]) -> int:
    """The place of the level nearest to the median."""
    return min(range(len(levels)), key=lambda i: abs(levels[i] - 0.5))


def span_text(span: timedelta) -> str:
    """Format a duration in its two largest units: 12 days 4 h."""
    minutes = span.total_seconds() / 60
    if minutes < 1:
        return f"{span.total_seconds():g} s"
    days, rest = divmod(round(minutes), 24 * 60)
    hours, rest = divmod(rest, 60)
    words = ("1 day" if days == 1 else f"{days} days", f"{hours} h", f"{rest} min")
    named = [word for count, word in zip((days, hours, rest), words, strict=True) if count]
    return " ".join(named[:2]) or "0 min"


def _figures(values: Floats) -> tuple[str, ...]:
    known = values[np.isfinite(values)]
    if not len(known):
        return "–", "–", "–", "100 %"
    gaps = 1 - len(known) / len(values)
    return number(known[-1]), number(float(np.median(known))), number(known.max()), f"{gaps:.1%}" if gaps else "–"


def _thinned(values: Floats) -> Floats:
    """Return at most DISPLAY_POINTS values, each the largest of its bins; NaN where a bin has no sample."""
    if len(values) <= DISPLAY_POINTS:
        return values
    parts = np.array_split(values, DISPLAY_POINTS)
    return np.array([np.fmax.reduce(part) for part in parts])


def _top(values: Floats) -> float:
    known = values[np.isfinite(values)]
    return float(known.max()) if len(known) and known.max() > 0 else 1.0


def _across(place: int, count: int) -> float:
    return 1 + place * (WIDTH - 2) / max(1, count - 1)


def _up(value: float, top: float) -> float:
    return HEIGHT - 2 - float(value) / top * (HEIGHT - 4)


def _svg(drawn: str) -> str:
    return f'<svg width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">{drawn}</svg>'
