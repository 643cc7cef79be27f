"""The plots of a replay: cost against shortage, and one workload's demand against what its pods carried."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from forecaster.domain.window import DAY, HOUR, MINUTE
from forecaster.replay.strategies import DECIDED, HPA, NAIVE, PERFECT, Strategy, ours_of
from forecaster.report.plot import Area, Axis, Line, Mark, Plot, Tick, linear, logarithmic, scale_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime, timedelta

    from numpy.typing import NDArray

    from forecaster.replay.account import Account
    from forecaster.replay.comparison import WorkloadComparison

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
    found: dict[str, str] = {}
    seen: dict[tuple[tuple[float, float], ...], str] = {}
    for name, by_share in curves.items():
        points = tuple((round(one.pod_hours, 6), round(one.missing, 9)) for one in by_share.values())
        if points in seen:
            found[name] = seen[points]
        seen.setdefault(points, name)
    return found


def key(strategies: Iterable[Strategy], same: Mapping[str, str]) -> str:
    """The colour of each strategy; one that coincides with another has its colour, and says so."""
    titles = {one.name: one.title for one in strategies}
    entries = []
    for name, title in titles.items():
        twin = same.get(name)
        said = f"{title}: the same as {titles[twin]}" if twin else title
        entries.append(f'<li><i class="{style_of(twin or name)}"></i>{said}</li>')
    return f'<ul class="key">{"".join(entries)}</ul>'


def frontier(curves: Mapping[str, Mapping[float, Account]], titles: Mapping[str, str], named: str) -> str:
    """Each curve by the share of the targets, on a logarithmic axis of shortage; the owner's own point is marked."""
    same = coinciding(curves)
    drawn = {name: by_share for name, by_share in curves.items() if name not in same}
    accounts = [account for by_share in drawn.values() for account in by_share.values()]
    across, up = linear([one.pod_hours for one in accounts]), logarithmic([_percent(one) for one in accounts])
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
        Mark(across.place(one.pod_hours), up.place(_percent(one)), _says(title, share, one), own=share == 1.0)
        for share, one in sorted(by_share.items(), key=lambda each: each[1].pod_hours)
    ]
    return Line([(mark.x, mark.y) for mark in marks], style_of(name), marks=marks)


def _percent(account: Account) -> float:
    return 100.0 * (account.missing_share or 0.0)


def _says(title: str, share: float, account: Account) -> str:
    targets = "targets as the owner set them" if share == 1.0 else f"targets × {share:g}"
    return f"{title}, {targets}: {account.pod_hours:.1f} pod-hours, {_percent(account):.3f} % short"


def trajectory(one: WorkloadComparison, begin: datetime, titles: Mapping[str, str]) -> str:
    """Demand, and what the ready pods carried under the HPA alone and under our policy; what was short is shaded.

    Where there are more minutes than places, each place is the minute of the largest demand in it.
    """
    shown = [name for name in (HPA.name, ours_of(one.curves)) if name in one.curves]
    minutes, pod = _places(one.demand), one.setup.capacity.amount
    ready = {name: one.curves[name].track.ready[minutes] for name in shown}
    known = one.demand[minutes]
    largest = max(float(np.nanmax(known, initial=0.0)), *(float(some.max()) * pod for some in ready.values()))
    scale, unit = scale_of(one.setup.capacity.signal.unit, largest)
    demand = known / scale
    carried = {name: (some * pod / scale).tolist() for name, some in ready.items()}
    up = linear([largest / scale], from_zero=True)
    points = {name: _line(some, up) for name, some in carried.items()}
    load = _line(demand.tolist(), up)
    runs = [load[first:last] for first, last in runs_of(np.isfinite(demand))]
    silent = [load[first : last + 1] for first, last in runs_of(np.isnan(demand))]
    gaps = [Area(_at(some, 1.0), _at(some, 0.0), "gap") for some in silent]
    pods = [(f"{titles[name]}, ready pods", some.tolist()) for name, some in ready.items()]
    drawn = list(zip(points.values(), (style_of(HPA.name), OWN_STYLE), strict=False))
    return Plot(
        title=f"Demand and capacity of {one.workload.id}",
        across=time_ticks(begin, len(one.demand) * MINUTE),
        up=up.ticks(),
        up_name=f"{one.setup.capacity.signal}, {unit}: demand, and what ready pods carried",
        across_name="time, UTC",
        lines=[Line(some, style, stepped=True) for some, style in (*drawn, *((run, "demand") for run in runs))],
        areas=[*gaps, Area(load, points[shown[-1]], "shortage")],
        hover={
            "begin": (begin + MINUTE).timestamp(),
            "step": len(one.demand) / max(1, len(minutes)) * 60,
            "count": len(minutes),
            "series": [(f"demand, {unit}", hovered(demand)), *pods],
        },
    ).html()


def runs_of(true: NDArray[np.bool_]) -> list[list[int]]:
    """First place and the place after the last of every stretch in which something holds."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], true.astype(int), [0]])))
    found: list[list[int]] = edges.reshape(-1, 2).tolist()
    return found


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
    step = next((one * HOUR for one in HOURS if length / (one * HOUR) <= MAX_LABELS + 1), 7 * DAY)
    midnight = begin.replace(hour=0, minute=0, second=0, microsecond=0)
    instants = [midnight + i * step for i in range(int((length + DAY) / step) + 2)]
    within = [at for at in instants if begin < at < begin + length]
    return [_tick(at, i, begin, length) for i, at in enumerate(within)]


def _tick(at: datetime, number: int, begin: datetime, length: timedelta) -> Tick:
    midnight = (at.hour, at.minute) == (0, 0)
    return Tick((at - begin) / length, f"{at:%a %d %b}" if midnight else f"{at:%H:%M}", minor=bool(number % 2))


def swatch(strategies: Sequence[tuple[str, str]]) -> str:
    """What the colours of a plot over time mean."""
    lines = "".join(f'<li><i class="{style}"></i>{title}</li>' for style, title in strategies)
    shades = '<li><i class="shortage"></i>short with forecaster</li><li><i class="gap"></i>not measured</li>'
    return f'<ul class="key">{lines}{shades}</ul>'
