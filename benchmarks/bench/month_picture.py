"""The picture of one month: pods of the last week above, demand that was not served on each day below."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from benchmarks.bench.loads import DAY_SECONDS
from benchmarks.bench.replay import TICK

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from benchmarks.bench.replay import Counts, Replay

    Floats = NDArray[np.float64]

WEEK_DAYS = 7
QUARTER = 15
"""Minutes of a point of the upper chart, which shows the most pods of each."""
HPA_COLOUR, OUR_COLOUR, DEMAND_COLOUR = "#c2571a", "#1f6f8b", "#d9dde2"
STYLE = {"svg.fonttype": "none", "svg.hashsalt": "month", "font.family": "sans-serif", "font.size": 9}


def pictured(replay: Replay, hpa: Counts, forecaster: Counts) -> str:
    """Draw one setting of each on one replay, as SVG that is the same for the same counts."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(9, 4.2), layout="constrained")
        pods, unserved = figure.subplots(2, 1, height_ratios=[3, 1.3])
        _pods(pods, replay, hpa, forecaster)
        _unserved(unserved, replay, hpa, forecaster)
        drawing = io.StringIO()
        figure.savefig(drawing, format="svg", metadata={"Date": None})
    return "\n".join(line.rstrip() for line in drawing.getvalue().splitlines()) + "\n"


def _pods(axes: Axes, replay: Replay, hpa: Counts, forecaster: Counts) -> None:
    ticks = WEEK_DAYS * DAY_SECONDS // TICK
    days = np.arange(0, ticks, QUARTER) * TICK / DAY_SECONDS
    axes.fill_between(days, _most(replay.needed, ticks), color=DEMAND_COLOUR, step="post", label="needed by the demand")
    axes.step(days, _most(hpa.ready[0], ticks), color=HPA_COLOUR, lw=0.9, where="post", label="ready, HPA alone")
    axes.step(
        days, _most(forecaster.ready[0], ticks), color=OUR_COLOUR, lw=0.9, where="post", label="ready, forecaster"
    )
    axes.set(title=replay.name, ylabel="pods", xlabel="days of the last week", xlim=(0, WEEK_DAYS), ylim=(0, None))
    axes.legend(ncols=3, frameon=False, loc="upper left", bbox_to_anchor=(0, 1.0))
    axes.set_ylim(0, axes.get_ylim()[1] * 1.12)


def _most(values: Floats, ticks: int) -> Floats:
    return values[-ticks:].reshape(-1, QUARTER).max(axis=1)


def _unserved(axes: Axes, replay: Replay, hpa: Counts, forecaster: Counts) -> None:
    shares = [_daily(replay, counts) for counts in (hpa, forecaster)]
    days = 1 + np.arange(len(shares[0]))
    for place, (share, colour, label) in enumerate(
        zip(shares, (HPA_COLOUR, OUR_COLOUR), ("HPA alone", "forecaster"), strict=True)
    ):
        axes.bar(days + (place - 0.5) * 0.4, 100 * share, 0.4, color=colour, label=label)
    axes.set(ylabel="% unserved", xlabel="day of the month", xlim=(0.4, len(days) + 0.6))


def _daily(replay: Replay, counts: Counts) -> Floats:
    """Share of each day's demand that was not served."""
    day = DAY_SECONDS // TICK
    short = np.maximum(0.0, replay.demand - counts.ready[0] * replay.pod).reshape(-1, day).sum(axis=1)
    return short / np.maximum(replay.demand.reshape(-1, day).sum(axis=1), 1e-12)
