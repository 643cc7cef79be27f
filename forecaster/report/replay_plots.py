"""Plots of a replay: cost against shortage, and one workload's demand against the capacity of its pods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from forecaster.domain.window import DAY, HOUR, MINUTE
from forecaster.replay.account import Account
from forecaster.replay.comparison import WorkloadComparison
from forecaster.replay.strategies import DECIDED, HPA, NAIVE, PERFECT, Strategy, forecaster_of
from forecaster.report.plot import Area, Axis, Line, Mark, Plot, Tick, linear, logarithmic, scale_of

STRATEGY_STYLES = {
    HPA.name: "hpa",
    NAIVE: "naive",
    "policy": "other",
    "gated": "ours",
    DECIDED.name: "ours",
    PERFECT.name: "perfect",
}
OWN_STYLE = "ours"
"""The class of our policy in plots that have but one."""
PLACES = 480
"""Points of a plot over time: two for each point of its width on a phone."""
MAX_LABELS = 6
HOURS = (1, 2, 3, 6, 12, 24, 48, 168)
"""Between two marks of an axis of time."""


def style_of(name: str) -> str:
    """The class of a strategy."""
    return STRATEGY_STYLES.get(name, "further")


def coinciding(curves: Mapping[str, Mapping[float, Account]]) -> dict[str, str]:
    """Return strategies that equal an earlier one at every point, and that one."""
    twins: dict[str, str] = {}
    names_by_points: dict[tuple[tuple[float, float], ...], str] = {}
    for name, by_share in curves.items():
        points = tuple((round(account.pod_hours, 6), round(account.missing, 9)) for account in by_share.values())
        if points in names_by_points:
            twins[name] = names_by_points[points]
        names_by_points.setdefault(points, name)
    return twins


def key(strategies: Iterable[Strategy], same: Mapping[str, str]) -> str:
    """The colour of each strategy; one that coincides with another has its colour, and says so."""
    titles = {strategy.name: strategy.title for strategy in strategies}
    entries = []
    for name, title in titles.items():
        twin = same.get(name)
        label = f"{title}: the same as {titles[twin]}" if twin else title
        entries.append(f'<li><i class="{style_of(twin or name)}"></i>{label}</li>')
    return f'<ul class="key">{"".join(entries)}</ul>'


def frontier(curves: Mapping[str, Mapping[float, Account]], titles: Mapping[str, str], named: str) -> str:
    """Each curve by the share of the targets, on a logarithmic axis of shortage; the owner's own point is marked."""
    same = coinciding(curves)
    drawn = {name: by_share for name, by_share in curves.items() if name not in same}
    accounts = [account for by_share in drawn.values() for account in by_share.values()]
    across = linear([account.pod_hours for account in accounts])
    up = logarithmic([_percent(account) for account in accounts])
    lines = [_frontier_line(name, by_share, titles[name], across, up) for name, by_share in drawn.items()]
    return Plot(
        title=f"Pod-hours against demand that was short, {named}",
        across=across.ticks(),
        up=up.ticks(" %"),
        up_name="demand above what the ready pods carried (each step is ten times less)",
        across_name="pod-hours",
        lines=lines,
        note="the targets that the owners set",
    ).html()


def _frontier_line(name: str, by_share: Mapping[float, Account], title: str, across: Axis, up: Axis) -> Line:
    marks = [
        Mark(across.place(account.pod_hours), up.place(_percent(account)), _says(title, share, account), own=share == 1)
        for share, account in sorted(by_share.items(), key=lambda each: each[1].pod_hours)
    ]
    return Line([(mark.x, mark.y) for mark in marks], style_of(name), marks=marks)


def _percent(account: Account) -> float:
    return 100.0 * (account.missing_share or 0.0)


def _says(title: str, share: float, account: Account) -> str:
    targets = "targets as the owner set them" if share == 1.0 else f"targets × {share:g}"
    return f"{title}, {targets}: {account.pod_hours:.1f} pod-hours, {_percent(account):.3f} % short"


def trajectory(compared: WorkloadComparison, begin: datetime, titles: Mapping[str, str]) -> str:
    """Plot demand, and the capacity of ready pods under the HPA alone and under our policy; shortage is shaded.

    Where there are more minutes than places, each place is the minute of the largest demand in it.
    """
    shown = [name for name in (HPA.name, forecaster_of(compared.curves)) if name in compared.curves]
    minutes, pod = _places(compared.demand), compared.setup.capacity.amount
    ready = {name: compared.curves[name].track.ready[minutes] for name in shown}
    known = compared.demand[minutes]
    largest = max(float(np.nanmax(known, initial=0.0)), *(float(counts.max()) * pod for counts in ready.values()))
    scale, unit = scale_of(compared.setup.capacity.signal.unit, largest)
    demand = known / scale
    carried = {name: (counts * pod / scale).tolist() for name, counts in ready.items()}
    up = linear([largest / scale], from_zero=True)
    points = {name: _line(values, up) for name, values in carried.items()}
    load = _line(demand.tolist(), up)
    runs = [load[first:last] for first, last in runs_of(np.isfinite(demand))]
    silent = [load[first : last + 1] for first, last in runs_of(np.isnan(demand))]
    gaps = [Area(_at(span, 1.0), _at(span, 0.0), "gap") for span in silent]
    pods = [(f"{titles[name]}, ready pods", counts.tolist()) for name, counts in ready.items()]
    drawn = list(zip(points.values(), (style_of(HPA.name), OWN_STYLE), strict=False))
    return Plot(
        title=f"Demand and capacity of {compared.workload.id}",
        across=time_ticks(begin, len(compared.demand) * MINUTE),
        up=up.ticks(),
        up_name=f"{compared.setup.capacity.signal}, {unit}: demand, and what ready pods carried",
        across_name="time, UTC",
        lines=[Line(path, style, stepped=True) for path, style in (*drawn, *((run, "demand") for run in runs))],
        areas=[*gaps, Area(load, points[shown[-1]], "shortage")],
        hover={
            "begin": (begin + MINUTE).timestamp(),
            "step": len(compared.demand) / max(1, len(minutes)) * 60,
            "count": len(minutes),
            "series": [(f"demand, {unit}", hovered(demand)), *pods],
        },
    ).html()


def runs_of(true: NDArray[np.bool_]) -> list[list[int]]:
    """First place and the place after the last of every stretch in which something holds."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], true.astype(int), [0]])))
    runs: list[list[int]] = edges.reshape(-1, 2).tolist()
    return runs


def hovered(values: NDArray[np.float64]) -> list[float | None]:
    """Four digits of each value; None in a gap."""
    return [None if np.isnan(value) else float(f"{value:.4g}") for value in values.tolist()]


def _at(points: Sequence[tuple[float, float]], height: float) -> list[tuple[float, float]]:
    return [(x, height) for x, _ in points]


def _line(values: Sequence[float], up: Axis) -> list[tuple[float, float]]:
    last = max(1, len(values) - 1)
    return [(i / last, up.place(value)) for i, value in enumerate(values)]


def _places(demand: NDArray[np.float64]) -> NDArray[np.intp]:
    """The minutes that are drawn."""
    width = -(-len(demand) // PLACES) or 1
    if width == 1:
        return np.arange(len(demand))
    known = np.nan_to_num(demand, nan=-1.0)
    return np.array([first + int(np.argmax(known[first : first + width])) for first in range(0, len(demand), width)])


def time_ticks(begin: datetime, length: timedelta) -> list[Tick]:
    """Marks at full hours; midnights say the day, and stay where there is little room."""
    step = next((hours * HOUR for hours in HOURS if length / (hours * HOUR) <= MAX_LABELS + 1), 7 * DAY)
    midnight = begin.replace(hour=0, minute=0, second=0, microsecond=0)
    instants = [midnight + i * step for i in range(int((length + DAY) / step) + 2)]
    within = [at for at in instants if begin < at < begin + length]
    return [_tick(at, i, begin, length) for i, at in enumerate(within)]


def _tick(at: datetime, number: int, begin: datetime, length: timedelta) -> Tick:
    midnight = (at.hour, at.minute) == (0, 0)
    return Tick((at - begin) / length, f"{at:%a %d %b}" if midnight else f"{at:%H:%M}", minor=bool(number % 2))


def swatch(strategies: Sequence[tuple[str, str]]) -> str:
    """Return the legend of a plot over time."""
    lines = "".join(f'<li><i class="{style}"></i>{title}</li>' for style, title in strategies)
    shades = '<li><i class="shortage"></i>short with forecaster</li><li><i class="gap"></i>not measured</li>'
    return f'<ul class="key">{lines}{shades}</ul>'
