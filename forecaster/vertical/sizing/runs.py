"""Sizes of containers that run to completion: the next run is like the recorded ones.

If the next peak of memory is exchangeable with n recorded ones, each of the n + 1 is as likely to be the largest, so it
passes the largest of n with a chance of at most 1 / (n + 1). That is the first of Wilks' bounds without a distribution
(S. S. Wilks, Determination of Sample Sizes for Setting Tolerance Limits, 1941). `PEAK_MARGIN` lies on top, for growth
from run to run and for what a scrape missed; it is in no chance that is stated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forecaster.domain.amounts import memory as memory_text
from forecaster.domain.window import HOUR
from forecaster.vertical.sizing.containers import ContainerSizing, chosen_rows, panel_of
from forecaster.vertical.sizing.cpu import cpu_sizes_of
from forecaster.vertical.sizing.memory import PEAK_MARGIN, Mechanism, limit_goes, limit_today, request_and_limit
from forecaster.vertical.sizing.panel import ContainerPanel, PastDays, SizeColumns
from forecaster.vertical.sizing.pod import share_text
from forecaster.vertical.sizing.risk import MishapPrices, Shares, cheapest, shares_of

if TYPE_CHECKING:
    from forecaster.domain.vertical_policy import VerticalPolicy
    from forecaster.vertical.sizing.containers import ChosenSize, ContainerSpec, PodSizing
    from forecaster.vertical.sizing.panel import Floats

MIN_RUNS = 5
"""Completed runs from which on sizes are made. With fewer, a run in five may pass the largest; five are a working week
of a nightly run, and as many weeks of a weekly one."""


class Runs(NamedTuple):
    """Completed runs of a container: mean cores and largest bytes of each, by its name."""

    cpu: Mapping[str, float]
    memory: Mapping[str, float]

    @property
    def chance_above(self) -> float:
        """Largest chance that the next run has a higher memory peak than all of these."""
        return 1 / (len(self.memory) + 1)


NO_RUNS = Runs({}, {})
"""Runs of a container of which none is known."""


def run_sizes(runs: Sequence[Runs], specs: Sequence[ContainerSpec], policy: VerticalPolicy) -> PodSizing:
    """Sizes of each container from its runs."""
    enough = [container if len(container.memory) >= MIN_RUNS else NO_RUNS for container in runs]
    cpu_by_run, memory_by_run = [container.cpu for container in enough], [container.memory for container in enough]
    panel = panel_of(_by_run(cpu_by_run), _by_run(memory_by_run), 1, specs)
    cpu, memory = _as_one_day(panel.cpu), _as_one_day(panel.memory)
    of_cpu = chosen_rows(cpu_sizes_of(panel, cpu, shares_of(cpu), policy))
    chance = np.array([container.chance_above for container in enough])
    of_memory = chosen_rows(_memory(panel, shares_of(memory), chance, policy))
    return tuple(_sizing(*row) for row in zip(specs, runs, of_cpu, of_memory, strict=True))


def _by_run(amounts: Sequence[Mapping[str, float]]) -> Floats:
    """Return the amounts by run as [row, run], NaN beyond the last run of a row."""
    padded = np.full((len(amounts), max((len(by_run) for by_run in amounts), default=0)), np.nan)
    for row, by_run in enumerate(amounts):
        padded[row, : len(by_run)] = list(by_run.values())
    return padded


def _as_one_day(amounts: Floats) -> PastDays:
    """Return all runs as points of one day, so that shares are shares of runs."""
    return PastDays(amounts[:, None, :], np.any(~np.isnan(amounts), axis=1)[:, None].astype(np.float64))


def _memory(panel: ContainerPanel, peaks: Shares, chance: NDArray[np.float64], policy: VerticalPolicy) -> SizeColumns:
    """The largest peak and its margin, at least the floor of an OOM kill; today's limit where it is about that."""
    largest = np.fmax.reduce(panel.memory, axis=1)
    floor = np.maximum(panel.oom_floor, policy.min_memory)
    today = limit_today(panel, policy)
    chosen = cheapest(
        np.maximum(floor, PEAK_MARGIN * largest)[:, None],
        chance[:, None],
        largest,
        MishapPrices(policy.oom_price, policy.change_price),
        policy.horizon / HOUR,
        np.column_stack([np.where(today >= np.maximum(floor, largest), today, np.nan), chance]),
    )
    request, limit = request_and_limit(panel, chosen.level, peaks.quantile(policy.memory_share), policy)
    stays = chosen.unchanged & ~limit_goes(panel, policy) & ~np.isnan(panel.memory_request)
    request, limit = np.where(stays, panel.memory_request, request), np.where(stays, panel.memory_limit, limit)
    return SizeColumns(
        request=np.where(np.isnan(largest), np.nan, request),
        limit=limit,
        over_request=np.where(request < chosen.level, np.nan, chance),
        over_limit=chance,
        slack=peaks.slack(request),
        unchanged=chosen.unchanged & ~limit_goes(panel, policy),
        mechanism=np.full(len(chance), Mechanism.STEADY),
    )


def _sizing(spec: ContainerSpec, runs: Runs, cpu: ChosenSize | None, memory: ChosenSize | None) -> ContainerSizing:
    if memory is None:
        few = f"{len(runs.memory)} completed runs are known, it takes {MIN_RUNS}; unchanged"
        return ContainerSizing(spec.name, spec.resources, note=few)
    largest, run = max((peak, run) for run, peak in runs.memory.items())
    count = len(runs.memory)
    chance = f"by {count} completed runs the next passes it with a chance of at most 1 in {count + 1}"
    explained = {"memory": f"the largest peak is {memory_text(largest)}, of run {run}; {chance}"}
    if spec.oom_floor:
        explained["memory"] += ", raised after an OOM kill"
    if cpu is not None:
        explained["cpu"] = f"{share_text(cpu.over_request)} of its runs use more"
    return ContainerSizing(spec.name, spec.resources, cpu, memory, explained=explained)
