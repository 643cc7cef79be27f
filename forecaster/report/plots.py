"""Plots of replays for notebooks: cost against shortage, and pods over time. The style is that of `models.pictures`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from forecaster.domain.window import MINUTE
from forecaster.replay.strategies import HPA, PERFECT
from models.display import CAPACITY, DEMAND, FORECAST, SHORTAGE
from models.pictures import INK, SOFT, by_time, day_of, dress, figure_of, instants, key_of_lines, model_mark

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from forecaster.replay.comparison import Comparison
    from forecaster.replay.traces import Traces

POLICY_CURVE = "policy"
PLOT_COLOURS = {
    "hpa": CAPACITY,
    "pods": CAPACITY,
    "needed": DEMAND,
    POLICY_CURVE: FORECAST,
    "recommended": FORECAST,
    PERFECT.name: "#a57c00",
}
"""Curves with a fixed colour in every picture."""


def frontier(outcome: Comparison) -> Figure:
    """Pod-hours against demand left short, a line a strategy from lean to safe; large dots: the owner's targets."""
    figure, (axes,) = figure_of(height=3.6)
    for i, strategy in enumerate(outcome.strategies):
        accounts = outcome.curve(strategy.name).values()
        points = sorted((account.pod_hours, account.missing_share or 0.0) for account in accounts)
        own, style = outcome.own(strategy.name), _style(strategy.name, i)
        axes.plot(*zip(*points, strict=True), label=strategy.title, **style)
        axes.plot(
            [own.pod_hours], [own.missing_share or 0.0], color=style["color"], marker=style["marker"], markersize=10
        )
    axes.set_yscale("symlog", linthresh=1e-4)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("pod-hours", fontsize=8, color=SOFT)
    dress(axes, "Share of the demand above what ready pods carry, against pod-hours: lower and further left is better")
    key_of_lines(axes)
    return figure


def _style(name: str, place: int) -> dict[str, Any]:
    own = PLOT_COLOURS.get(name)
    return {**model_mark(place + 2), **({"color": own} if own else {})}


def trajectory(outcome: Comparison, workload: str, traces: Traces, strategy: str = POLICY_CURVE) -> Figure:
    """Demand in pods, ready pods under the HPA alone and under a strategy, and where demand was above them."""
    compared = outcome.named(workload)
    place, first = traces.workloads.index(compared.workload), traces.column(outcome.begin) + 1
    filled = compared.setup.capacity
    minutes = len(compared.curves[strategy].track.ready)
    demand = traces.of(filled.signal)[place, first : first + minutes] / filled.amount
    when = instants(outcome.begin, MINUTE, minutes)
    figure, panels = figure_of(2, height=2.3)
    for axes, name in zip(panels, (HPA.name, strategy), strict=True):
        ready = compared.curves[name].track.ready
        axes.step(when, ready, where="post", color=CAPACITY, linewidth=1.1, label="ready pods")
        axes.plot(when, demand, color=DEMAND, linewidth=0.9, label="demand, in pods")
        axes.fill_between(
            when, ready, demand, where=demand > ready, color=SHORTAGE, alpha=0.8, step="post", label="short"
        )
        title = next(each.title for each in outcome.strategies if each.name == name)
        short = compared.curves[name].own
        dress(
            axes,
            f"{workload}, {title}: {short.pod_hours:.0f} pod-hours, {short.missing_share or 0.0:.2%} of demand short",
        )
        axes.set_ylim(bottom=0)
        by_time(axes)
    key_of_lines(panels[0])
    return figure


def with_spans(figure: Figure, spans: Mapping[str, tuple[datetime, datetime]]) -> Figure:
    """Named spans shaded in every row: events, incidents."""
    for axes in figure.axes:
        for name, (begin, end) in spans.items():
            axes.axvspan(day_of(begin), day_of(end), color=FORECAST, alpha=0.12, linewidth=0)
            axes.annotate(
                name, (day_of(begin), 0.97), xycoords=("data", "axes fraction"), fontsize=8, color=INK, va="top"
            )
    return figure
