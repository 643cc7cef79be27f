"""Plots of panels and forecasts; matplotlib is imported when one is drawn.

One look for all: colours with one meaning each (`models.display`), no frame, quiet grid, values from zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np

from .calendar import EPOCH
from .display import DEMAND, FORECAST, level_text, middle_of
from .evaluate import Backtest, above_zero, known_mean
from .panel import DAY, Floats, Panel

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .forecast import Forecast

INK, SOFT, RULE = "#1d2125", "#6a727a", "#e2e3e0"
MAX_DRAWN = 6
WIDTH, ROW_HEIGHT = 10.0, 1.9


def figure_of(rows: int = 1, *, height: float = ROW_HEIGHT, columns: int = 1) -> tuple[Figure, list[Axes]]:
    """Return a styled figure with its axes; rows below each other share one axis of time."""
    from matplotlib.figure import Figure  # noqa: PLC0415  a picture for people; half a second

    figure = Figure(figsize=(WIDTH, max(2.4, height * rows)), layout="constrained", dpi=110)
    axes = figure.subplots(rows, columns, squeeze=False, sharex=columns == 1).ravel().tolist()
    for ax in axes:
        dress(ax)
    return figure, axes


def dress(axes: Axes, title: str = "", up: str = "") -> None:
    """The common look."""
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(RULE)
    axes.grid(visible=True, axis="y", color=RULE, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(colors=SOFT, labelsize=8, length=0)
    if title:
        axes.set_title(title, loc="left", fontsize=10, color=INK)
    if up:
        axes.set_ylabel(up, fontsize=8, color=SOFT)


def by_time(axes: Axes) -> None:
    """Dates on one line, as few as can be."""
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter  # noqa: PLC0415  as above

    axes.xaxis_date(tz="UTC")
    locator = AutoDateLocator(minticks=4, maxticks=8)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]


def key_of_lines(axes: Axes) -> None:
    """The legend, beside the lines and without a frame."""
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=8, labelcolor=INK)


def instants(start: datetime, step: timedelta, count: int) -> Floats:
    """[bin] the middle of each bin, where its value is drawn, as matplotlib counts days."""
    return day_of(start) + (np.arange(count) + 0.5) * (step / DAY)


def day_of(instant: datetime) -> float:
    """An instant as matplotlib counts days."""
    return (instant - EPOCH) / DAY


def draw_history(axes: Axes, panel: Panel, row: int, *, label: str = "measured") -> None:
    """Draw one series as a line; gaps stay open."""
    when = instants(panel.start, panel.step, panel.length)
    axes.plot(when, panel.values[row], color=DEMAND, linewidth=1.1, label=label)
    by_time(axes)


def draw_band(axes: Axes, forecast: Forecast, key: str, *, labelled: bool = True) -> None:
    """One series ahead: lowest to highest level as a band, the middle level as a line, the origin as a mark."""
    row = forecast.provenance.row(key)
    when = instants(forecast.origin, forecast.step, forecast.steps)
    low, high, middle = 0, len(forecast.levels) - 1, middle_of(forecast.levels)
    lower = forecast.values[row, low] if high else np.zeros(forecast.steps)
    named = f"{level_text(forecast.levels[low])} to {level_text(forecast.levels[high])}" if high else "below it"
    axes.fill_between(
        when, lower, forecast.values[row, high], color=FORECAST, alpha=0.22, linewidth=0, label=named * labelled
    )
    axes.plot(
        when,
        forecast.values[row, middle],
        color=FORECAST,
        linewidth=1.4,
        label=level_text(forecast.levels[middle]) * labelled,
    )
    axes.axvline(day_of(forecast.origin), color=SOFT, linewidth=0.8, linestyle=(0, (3, 3)))
    by_time(axes)


def plot_panel(panel: Panel, keys: Sequence[str] = ()) -> Figure:
    """A row a series, the first six unless `keys` says which."""
    rows = [panel.keys.index(panel.key(key)) for key in keys] or list(range(min(MAX_DRAWN, len(panel))))
    figure, axes = figure_of(max(1, len(rows)))
    for ax, row in zip(axes, rows, strict=False):
        draw_history(ax, panel, row)
        dress(ax, panel.keys[row])
        ax.set_ylim(bottom=0)
    return figure


def plot_forecast(forecast: Forecast, panel: Panel | None = None, keys: Sequence[str] = ()) -> Figure:
    """Plot a row per series with its forecast band, and measurements before (and after) where a panel is given."""
    chosen = list(keys) or list(forecast.keys[:MAX_DRAWN])
    figure, axes = figure_of(max(1, len(chosen)))
    for ax, name in zip(axes, chosen, strict=False):
        key = panel.key(name) if panel else name
        draw_band(ax, forecast, key)
        if panel:
            before = panel.around(forecast.origin, 8 * forecast.steps * forecast.step, forecast.steps * forecast.step)
            draw_history(ax, before, panel.keys.index(key))
        dress(ax, key)
        ax.set_ylim(bottom=0)
        key_of_lines(ax)
    return figure


def plot_cut_offs(test: Backtest, key: str, count: int) -> Figure:
    """Plot the forecasts of one series at the origins of its largest errors, and the outcome."""
    places = test.worst_origins(key, count)
    figure, axes = figure_of(-(-len(places) // 2), columns=2)
    row = test.panel.keys.index(key)
    for ax, place in zip(axes, places, strict=False):
        forecast = test.forecasts[place]
        ahead = forecast.steps * forecast.step
        draw_history(ax, test.panel.around(forecast.origin, 4 * ahead, ahead), row)
        if key in forecast.keys:
            draw_band(ax, forecast, key)
        dress(ax, f"made at {forecast.origin:%a %d %b %H:%M} UTC")
        ax.set_ylim(bottom=0)
    for ax in axes[len(places) :]:
        ax.set_visible(False)
    key_of_lines(axes[min(1, len(places) - 1)])
    figure.suptitle(f"{test.name}, {key}: its largest errors", x=0.01, ha="left", fontsize=11, color=INK)
    return figure


MODEL_COLOURS = ("#0a7d5f", "#0b5cad", "#c8481a", "#7b5aa6", "#a57c00", "#5f6770")
MARKS = "osD^v"


def model_mark(place: int) -> dict[str, Any]:
    """Colour and mark of one of several models; all pairs differ."""
    colour = MODEL_COLOURS[place % len(MODEL_COLOURS)]
    return {"color": colour, "marker": MARKS[place // len(MODEL_COLOURS) % len(MARKS)], "markersize": 4, "linewidth": 1}


def plot_calibration(tests: Sequence[Backtest]) -> Figure:
    """Plot by how much the share at or below each quantile is off its level, with error bars; zero is right."""
    figure, (axes,) = figure_of(height=3.4)
    places = np.arange(len(tests[0].levels))
    for i, test in enumerate(tests):
        calibration = test.calibration()
        off, shift = calibration["share"] - calibration.index, 0.7 * (i + 0.5) / len(tests) - 0.35
        bars = np.clip([calibration["share"] - calibration["low"], calibration["high"] - calibration["share"]], 0, None)
        style = {**model_mark(i), "linestyle": "none", "capsize": 2, "label": test.name}
        axes.errorbar(places + shift, off.to_numpy(), yerr=bars, **style)
    axes.axhline(0, color=SOFT, linewidth=0.8, linestyle=(0, (3, 3)))
    axes.set_xticks(places, [level_text(level) for level in tests[0].levels])
    dress(axes, "Share of values at or below each quantile, minus its level: below zero it is passed too often")
    key_of_lines(axes)
    return figure


def plot_origins(tests: Sequence[Backtest]) -> Figure:
    """Mean loss over all series at each origin, a line a model."""
    figure, (axes,) = figure_of(height=3.0)
    for i, test in enumerate(tests):
        loss = known_mean(2 * test.summed("loss") / above_zero(test.summed("scale")), axis=1)
        axes.plot([day_of(origin) for origin in test.origins], loss, label=test.name, **model_mark(i))
    dress(axes, "Loss at each origin, in the usual change over a day")
    axes.set_ylim(bottom=0)
    by_time(axes)
    key_of_lines(axes)
    return figure


def plot_losses(table: pd.DataFrame, reference: str, levels: Sequence[float]) -> Figure:
    """Losses as bars with error bars, best on top, and how far coverage is off its level."""
    from matplotlib.figure import Figure  # noqa: PLC0415  as above

    best_last = table.iloc[::-1]
    figure = Figure(figsize=(WIDTH, 1.4 + 0.36 * len(table)), layout="constrained", dpi=110)
    losses, shares = figure.subplots(1, 2, sharey=True)
    bars = np.clip([best_last["sQL_rel"] - best_last["low"], best_last["high"] - best_last["sQL_rel"]], 0, None)
    losses.barh(best_last.index, best_last["sQL_rel"], color=FORECAST, alpha=0.55, height=0.6)
    losses.errorbar(best_last["sQL_rel"], best_last.index, xerr=bars, fmt="none", ecolor=INK, elinewidth=1, capsize=2)
    losses.axvline(1, color=SOFT, linewidth=0.8, linestyle=(0, (3, 3)))
    losses.set_xlim(0, min(3, best_last["high"].max() * 1.1))
    dress(losses, f"quantile loss, {reference} = 1")
    for i, level in enumerate(levels):
        off = best_last[f"cov{100 * level:g}"] - level
        strength = (i + 1) / len(levels)
        shares.plot(off, best_last.index, "o", markersize=5, label=level_text(level), color=DEMAND, alpha=strength)
    shares.axvline(0, color=SOFT, linewidth=0.8, linestyle=(0, (3, 3)))
    dress(shares, "share at or below the quantile, minus its level")
    for axes in (losses, shares):
        axes.grid(visible=False, axis="y")
        axes.grid(visible=True, axis="x", color=RULE, linewidth=0.8)
    key_of_lines(shares)
    return figure
