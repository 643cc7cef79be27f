"""Memory of many containers: the level at which an OOM kill and unused bytes together cost least."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from forecaster.domain.vertical_policy import VerticalPolicy
from forecaster.domain.window import DAY, HOUR
from forecaster.vertical.sizing.panel import ContainerPanel, PastDays, SizeColumns, days_of, in_ratio, resembling
from forecaster.vertical.sizing.risk import MishapPrices, Peaks, chance_above, cheapest, evaluated, peaks_of, shares_of

Doubles = NDArray[np.float64]
Flags = NDArray[np.bool_]

OOM_RAISE = 1.5
"""Above the limit of the kill. Of recorded containers that pass a limit, half pass it by more than a fifth."""
OOM_WINDOW = timedelta(days=7)
"""Time for which an OOM kill counts; after it that weekday has been observed again."""
_LEVELS = 40
_LOWEST, _HIGHEST = 0.7, 3.0
"""The levels looked at lie between these multiples of the lowest and the highest past peak."""
YEAR_DAYS = 365.0
_HALVINGS = 12
"""Times that the span of levels is halved; it finds a level to a thousandth."""
RISK_STATED = 1.0
"""Expected OOM kills a year above which the owner has stated a risk; up to it no observed peak may kill again."""
PEAK_MARGIN = 1.1
"""Room of a new size above the highest peak of the whole history, as a factor."""
AIMED_AT = 0.25
"""Share of the expected OOM kills that a new size aims at, so that it does for more than a day."""
UNCHANGED_WITHIN = 0.2
"""A request below its limit stays while it is as close as this to where usage mostly is."""


def oom_floor(limit: float | None) -> float:
    """Return the least limit in bytes after a kill at this limit; 0 without a kill.

    It follows from the limit of the kill and from nothing else. It is no sample, no margin is put on it, and a second
    kill at the same limit asks for the same floor again: it cannot feed on itself.
    """
    return 0.0 if limit is None else limit * OOM_RAISE


def memory_sizes(panel: ContainerPanel, policy: VerticalPolicy) -> SizeColumns:
    """Requests, limits and their risks until the next change (`policy.horizon`)."""
    days = days_of(panel.memory, panel.points, panel.ahead(policy.horizon))
    coming, mechanism = coming_peaks(panel, days, policy.horizon)
    count = max(policy.horizon / DAY, 1.0)
    shares = shares_of(days)
    peak, unchanged = _peak_to_cover(panel, coming, count, policy)
    request, limit = request_and_limit(panel, peak, shares.quantile(policy.memory_share), policy)
    cache, goes = mechanism == Mechanism.CACHE, limit_goes(panel, policy)
    stays = cache | (unchanged & ~goes & ~np.isnan(panel.memory_request))
    return evaluated(
        np.where(stays, panel.memory_request, request),
        np.where(stays, panel.memory_limit, limit),
        lambda level: chance_above(coming, level, count),
        shares,
        days=days.known,
        unchanged=(unchanged | cache) & ~goes,
        mechanism=mechanism,
    )


def coming_peaks(panel: ContainerPanel, days: PastDays, horizon: timedelta) -> tuple[Peaks, NDArray[np.intp]]:
    """The peaks of the coming days as the past ones suggest them, and by which mechanism."""
    past, leaks = days.peaks(), leaks_of(days)
    ago = np.arange(past.shape[1])
    cpu = days_of(panel.cpu, panel.points, panel.ahead(horizon))
    load = load_share(past, cpu.peaks()[:, : past.shape[1]], days.weights)
    since = ago[None, :] <= leaks.days[:, None]
    grown = past + (leaks.slope[:, None] * (ago + horizon / DAY))
    weighed = resembling(days, panel.likeness).weights
    with_load = past + (load.bytes_per_core * (panel.growth - 1))[:, None] * cpu.peaks()[:, : past.shape[1]]
    peaks = np.where(leaks.leaks[:, None], grown, np.where(load.follows[:, None], with_load, past))
    usual = np.where(load.follows[:, None], weighed, days.weights)
    weights = np.where(leaks.leaks[:, None], np.where(since, days.weights, 0.0), usual)
    total = weights.sum(axis=1, keepdims=True)
    cache = fills_limit(past, days.weights, panel.memory_limit, panel.oom_floor)
    mechanism = np.select(
        [cache, leaks.leaks, load.follows], [Mechanism.CACHE, Mechanism.LEAK, Mechanism.LOAD], Mechanism.STEADY
    )
    return peaks_of(peaks, weights / np.where(total > 0, total, 1.0)), mechanism


def _peak_to_cover(
    panel: ContainerPanel, coming: Peaks, days: float, policy: VerticalPolicy
) -> tuple[Doubles, NDArray[np.bool_]]:
    """[row] the level that no peak should pass, and whether it is today's limit.

    No level is below the floor of OOM kills, below the highest peak of the whole history, or expects more kills a year
    than the policy allows; a new one keeps some distance from both. No more room than a kill would bring is paid in
    advance: where that does not do, as on the first days, the size says how many kills a year it expects.
    """
    floor = np.maximum(panel.oom_floor, policy.min_memory)
    peak = np.nan_to_num(np.fmax.reduce(panel.memory, axis=1).astype(np.float64))
    if policy.oom_kills_a_year > RISK_STATED:
        peak = np.zeros_like(peak)
    most = OOM_RAISE * np.exp(np.fmax.reduce(np.where(coming.weights > 0, coming.logs, np.nan), axis=1))
    aimed = np.minimum(_safe_level(coming, AIMED_AT * policy.oom_kills_a_year), most)
    safe = np.maximum.reduce([floor, PEAK_MARGIN * peak, aimed])
    levels = np.maximum(_levels(coming), safe[:, None])
    today = limit_today(panel, policy)
    few = chance_above(coming, today, 1.0) <= policy.oom_kills_a_year / YEAR_DAYS
    today = np.where((today >= np.maximum(floor, peak)) & (few | (today >= most)), today, np.nan)
    chosen = cheapest(
        levels,
        coming.chance_above(levels, days),
        coming.scale(),
        MishapPrices(policy.oom_price, policy.change_price),
        policy.horizon / HOUR,
        np.column_stack([today, chance_above(coming, today, days)]),
    )
    return chosen.level, chosen.unchanged


def _safe_level(coming: Peaks, kills_a_year: float) -> Doubles:
    """[row] lowest level with at most `kills_a_year` expected OOM kills; a container is killed at most once a day."""
    low, high = _bounds(coming)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        enough = chance_above(coming, np.exp(middle), 1.0) <= kills_a_year / YEAR_DAYS
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return np.asarray(np.exp(high))


def _levels(coming: Peaks) -> Doubles:
    """[row, level] in equal ratios between somewhat below the lowest and well above the highest peak."""
    low, high = _bounds(coming)
    return np.asarray(np.exp(low[:, None] + (high - low)[:, None] * np.linspace(0.0, 1.0, _LEVELS)))


def _bounds(coming: Peaks) -> tuple[Doubles, Doubles]:
    """[row] logarithms of the lowest and the highest level that is looked at."""
    logs = np.where(coming.weights > 0, coming.logs, np.nan)
    return np.fmin.reduce(logs, axis=1) + np.log(_LOWEST), np.fmax.reduce(logs, axis=1) + np.log(_HIGHEST)


def limit_today(panel: ContainerPanel, policy: VerticalPolicy) -> Doubles:
    """Return the level that a peak may reach today: the limit, or the request where a limit is never set."""
    return np.where(
        np.isnan(panel.memory_limit) | (policy.memory_limit == "none"), panel.memory_request, panel.memory_limit
    )


def limit_goes(panel: ContainerPanel, policy: VerticalPolicy) -> NDArray[np.bool_]:
    """[row] whether there is a limit although the policy excludes one."""
    return np.asarray(~np.isnan(panel.memory_limit) & (policy.memory_limit == "none"))


def request_and_limit(
    panel: ContainerPanel, peak: Doubles, usual: Doubles, policy: VerticalPolicy
) -> tuple[Doubles, Doubles]:
    """The peak as request and limit; with `peak`, only the limit, and the request where usage mostly is."""
    request = peak
    if policy.memory_limit == "peak":
        close = np.abs(panel.memory_request - usual) <= UNCHANGED_WITHIN * usual
        request = np.minimum(np.maximum(np.where(close, panel.memory_request, usual), policy.min_memory), peak)
    if policy.heap_bounded:
        request = np.fmax(request, panel.memory_request)
    match policy.memory_limit:
        case "none":
            return request, np.full(len(request), np.nan)
        case "keep-ratio":
            return request, in_ratio(request, panel.memory_request, panel.memory_limit)
        case _:
            return request, np.maximum(peak, request)


MIN_DAYS_RISING = 3
MIN_GROWTH_A_DAY = 0.005
MIN_GROWTH = 0.05
"""Three days of lows that rise by half a percent each, and five percent in all: noise of flat series stays below."""
FULL, BEYOND = 0.95, 1.02
"""Full is from 95 % of the limit on. Peaks beyond the limit are no cache's: the limit was another then."""
DAYS_OF_LOAD = 5
MIN_CORRELATION = 0.8


class Mechanism(IntEnum):
    """Cause of a container's memory usage."""

    STEADY = 0
    LEAK = 1
    """The lows rise day by day since the last restart."""
    CACHE = 2
    """The container fills its limit and is not killed for it: usage says nothing about need."""
    LOAD = 3
    """The daily peaks follow those of the CPU."""


@dataclass(frozen=True, slots=True, eq=False)
class Leaks:
    """[row] whether the memory leaks, by how much a day, and for how many days it has been."""

    leaks: Flags
    slope: Doubles
    days: Doubles


@dataclass(frozen=True, slots=True, eq=False)
class LoadShare:
    """[row] whether memory peaks follow CPU peaks, and bytes per core."""

    follows: Flags
    bytes_per_core: Doubles


def leaks_of(memory: PastDays) -> Leaks:
    """Detect leaks from the daily lows, back from the latest day to the last that was not below its successor."""
    lows = memory.troughs()
    newer, older = lows[:, :-1], lows[:, 1:]
    rising = newer > older * (1 + MIN_GROWTH_A_DAY)
    run = np.argmin(np.column_stack([rising, np.zeros(len(lows), bool)]), axis=1)
    first = np.take_along_axis(lows, run[:, None], axis=1)[:, 0]
    grown = lows[:, 0] - first
    leaks = (run >= MIN_DAYS_RISING) & (grown >= MIN_GROWTH * first)
    return Leaks(leaks, np.where(leaks, grown / np.maximum(run, 1), 0.0), run.astype(np.float64))


def fills_limit(peaks: Doubles, weights: Doubles, limit: Doubles, oom_floor: Doubles) -> Flags:
    """Whether most days reach the limit, without an OOM kill."""
    with np.errstate(invalid="ignore"):
        full = (peaks >= FULL * limit[:, None]) & (peaks <= BEYOND * limit[:, None]) & (weights > 0)
    share = np.where(full, weights, 0.0).sum(axis=1)
    return np.asarray((share > 1 / 2) & (oom_floor == 0))


def load_share(memory: Doubles, cpu: Doubles, weights: Doubles) -> LoadShare:
    """Fit memory to load by daily peaks of both [row, day] and the days' weights."""
    known = (weights > 0) & ~np.isnan(memory) & ~np.isnan(cpu)
    count = known.sum(axis=1)
    of_cpu, of_memory = (_centred(values, known, count) for values in (cpu, memory))
    both, own = (of_cpu * of_memory).sum(axis=1), (of_cpu**2).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        correlation = both / np.sqrt(own * (of_memory**2).sum(axis=1))
        slope = both / own
    follows = (count >= DAYS_OF_LOAD) & (correlation >= MIN_CORRELATION)
    return LoadShare(follows, np.where(follows, slope, 0.0))


def _centred(values: Doubles, known: Flags, count: NDArray[np.intp]) -> Doubles:
    zeroed = np.where(known, values, 0.0)
    mean = zeroed.sum(axis=1) / np.maximum(count, 1)
    return np.where(known, zeroed - mean[:, None], 0.0)
