"""A past span, usually a week: the benefit of our policy over the HPA alone and seasonal naive.

Counts come from the comparison that `replay` makes, decisions as they were made from the ledger (`realised`), sizes
from the replay of requests and limits. Beside them stands what was expected of each forecast when its gate let it act.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from datetime import datetime
from functools import reduce
from operator import add
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from forecaster.domain.policies import Policies
from forecaster.domain.signal import CPU, MEMORY, PODS
from forecaster.domain.vertical_policy import VerticalPolicy
from forecaster.domain.window import FIVE_MINUTES, HOUR, MINUTE, MINUTES_A_POINT
from forecaster.domain.workload import GIB, ContainerLosses, WorkloadId
from forecaster.replay.comparison import Comparison, WorkloadComparison
from forecaster.replay.gated import GateSince
from forecaster.replay.realised import SpareCost
from forecaster.replay.size_replay import MAX_WARM_UP, STEPS_A_DAY, Load, Resource, SizeAccount, replay_sizes
from forecaster.replay.sizers import LoadForecasts, Ours, Stated
from forecaster.replay.traces import Traces

SERVICE_STRATEGY = "gated"
"""Name of the strategy that the service follows."""


class Adoption(NamedTuple):
    """A forecast that its gate let act: shares of the demand short for the HPA's pod-hours, expected and as it came."""

    workload: WorkloadId
    at: datetime
    expected_reactive: float
    expected: float
    reactive: float
    realised: float | None
    """None where our policy spends more, or less, at all targets."""


@dataclass(frozen=True, slots=True)
class SizeFigures:
    """Result of the requests and limits of one pod."""

    oom_kills: int
    """Points of five minutes at which it wanted more memory than its limit."""
    throttled_core_hours: float
    """Wanted above the limit."""
    idle_core_hours: float
    """Requested and not used."""
    idle_gib_hours: float


NO_FIGURES = SizeFigures(0, 0.0, 0.0, 0.0)


class SizedWorkload(NamedTuple):
    """One workload with the sizes that it states, and with ours."""

    workload: WorkloadId
    stated: SizeFigures
    ours: SizeFigures


@dataclass(frozen=True, slots=True, eq=False)
class WeekOutcome:
    """Outcome of a week: the comparison, sizes, losses, adoptions and spare pods."""

    comparison: Comparison
    adoptions: Sequence[Adoption]
    sizes: Sequence[SizedWorkload]
    losses: Mapping[WorkloadId, ContainerLosses] | None = None
    """OOM kills and throttling as they happened; None where the source does not report them."""
    decided: Comparison | None = None
    """The decisions of the ledger as they were made, where there is one."""
    spare: Sequence[SpareCost] = ()
    """Cost of spare pods by the ledger, for workloads with `survive`."""


def adoptions_of(comparison: Comparison) -> list[Adoption]:
    """Return, for each forecast that began to act within the span or before it, the expected and the actual result."""
    gates = comparison.gates
    adopted = ((compared, _adopted(gates.get(compared.workload.id, ()))) for compared in comparison.workloads)
    return [_adoption(compared, since, comparison.begin) for compared, since in adopted if since is not None]


def _adopted(stood: Sequence[GateSince]) -> GateSince | None:
    adopted = (state for state in stood if state.acting and state.evidence and not np.isnan(state.evidence.short))
    return next(adopted, None)


def _adoption(compared: WorkloadComparison, since: GateSince, begin: datetime) -> Adoption:
    if since.evidence is None:
        raise TypeError(f"{compared.workload.id} was adopted without evidence")
    at_cost = compared.at_cost_of_hpa(SERVICE_STRATEGY)
    return Adoption(
        compared.workload.id,
        begin + since.minute * MINUTE,
        since.evidence.reactive,
        since.evidence.short,
        compared.curves["hpa"].own.missing_share or 0.0,
        None if at_cost is None else at_cost.missing_share,
    )


def sizes_of(traces: Traces, policies: Policies, begin: datetime, until: datetime) -> list[SizedWorkload]:
    """Compare stated and our sizes, for workloads with half a day of usage before and in the span.

    Demand above the limits of that time is in no history, so kills and throttling of then are not counted.
    """
    sizes: dict[WorkloadId, list[SizedWorkload]] = defaultdict(list)
    for resource, signal in (("cpu", CPU), ("memory", MEMORY)):
        for size in _sized(traces, policies, _load(traces, resource, signal, begin, until)):  # type: ignore[arg-type]
            sizes[size.workload].append(size)
    return [
        SizedWorkload(id_, total_figures(size.stated for size in parts), total_figures(size.ours for size in parts))
        for id_, parts in sizes.items()
    ]


class _RowLoad(NamedTuple):
    """Rows of the traces, and their load in the same order."""

    rows: NDArray[np.intp]
    load: Load

    def taken(self, places: Sequence[int]) -> _RowLoad:
        """Some of them."""
        names = tuple(self.load.names[place] for place in places)
        return _RowLoad(self.rows[places], replace(self.load, names=names, demand=self.load.demand[places]))


def _load(traces: Traces, resource: Resource, signal: str, begin: datetime, until: datetime) -> _RowLoad:
    """The usage of one pod every five minutes, for at most so long before `begin` as sizes look back."""
    usage = traces.of(signal) / np.where(traces.of(PODS) > 0, traces.of(PODS), np.nan)
    every = MINUTES_A_POINT
    before, last = ((traces.column(at) + 1) // every for at in (begin, until))
    first = max(0, before - MAX_WARM_UP)
    points = usage[:, every - 1 :: every][:, first:last]
    warm = before - first
    known = ~np.isnan(points)
    enough = (known[:, :warm].sum(axis=1) >= STEPS_A_DAY // 2) & (known[:, warm:].sum(axis=1) >= STEPS_A_DAY // 2)
    stated = np.array([bool(workload.resources.request(resource)) for workload in traces.workloads], bool)
    rows = np.flatnonzero(enough & stated)
    names = tuple(str(traces.workloads[row].id) for row in rows.tolist())
    return _RowLoad(rows, Load(resource, names, points[rows], warm))


def _sized(traces: Traces, policies: Policies, given: _RowLoad) -> list[SizedWorkload]:
    """Workloads with one policy are sized together."""
    groups: dict[str, tuple[VerticalPolicy, list[int]]] = {}
    for place, row in enumerate(given.rows.tolist()):
        policy = policies.of(traces.workloads[row].id).vertical
        groups.setdefault(policy.model_dump_json(), (policy, []))[1].append(place)
    return [size for policy, places in groups.values() for size in _sized_alike(traces, policy, given.taken(places))]


def _sized_alike(traces: Traces, policy: VerticalPolicy, given: _RowLoad) -> list[SizedWorkload]:
    load, workloads = given.load, [traces.workloads[row] for row in given.rows.tolist()]
    requests = np.array([workload.resources.request(load.resource) for workload in workloads], float)
    limits = np.array([workload.resources.limit(load.resource) or np.inf for workload in workloads], float)
    sizer = Ours(load.resource, len(workloads), policy, foreseen=LoadForecasts(load))
    accounts = replay_sizes(load, Stated(requests, limits)), replay_sizes(load, sizer)
    return [
        SizedWorkload(workload.id, *(_figures(load.resource, account, row) for account in accounts))
        for row, workload in enumerate(workloads)
    ]


def _figures(resource: Resource, account: SizeAccount, row: int) -> SizeFigures:
    hours = FIVE_MINUTES / HOUR
    idle = float(account.idle[row]) * hours
    if resource == "memory":
        return SizeFigures(int(account.over_limit[row]), 0.0, 0.0, idle / GIB)
    return SizeFigures(0, float(account.cut[row]) * hours, idle, 0.0)


def total_figures(figures: Iterable[SizeFigures]) -> SizeFigures:
    """The sum over workloads."""
    return reduce(lambda total, other: SizeFigures(*map(add, astuple(total), astuple(other))), figures, NO_FIGURES)
