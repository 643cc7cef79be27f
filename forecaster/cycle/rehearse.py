"""What the gates judge by: the newest days of workloads, decided again by each forecast, many workloads at once."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np

from forecaster.cycle.outlook import span_of
from forecaster.decisions.quantile import stated_quantile
from forecaster.decisions.rehearsal import Days, Rule, evidence_of_all
from forecaster.decisions.targets import Unusable, full_pod, targets_of
from forecaster.domain.amounts import duration_text
from forecaster.domain.window import FIVE_MINUTES, MINUTE
from forecaster.forecasting.backtest import BEFORE, backtests
from forecaster.forecasting.peaks import LEVELS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from forecaster.decisions.gate import Evidence
    from forecaster.domain.policy import HorizontalPolicy, Policy
    from forecaster.domain.signal import Signal
    from forecaster.domain.window import Window
    from forecaster.domain.workload import Workload, WorkloadId
    from forecaster.forecasting.forecaster import PeakSpan
    from forecaster.ports import Histories

    Floats = NDArray[np.float64]

REHEARSED_DAYS = 3
FARTHEST = timedelta(days=1)
"""What is forecast at all."""
LEAST_HISTORY = BEFORE + 1
"""Days: one to rehearse on, one to look back on, and one for a rhythm."""
AT_A_TIME = 8
"""Targets rehearsed in one go: their counts are some tens of megabytes."""
SMALLEST = 1e-9

Rounds = list[tuple["Evidence", ...]]
"""Evidence on each target of a workload: of all its rehearsed days, and again of the newer half of them."""


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """One target of a workload: its demand [bin] since it is known, what fills a pod, and how counts are made."""

    id: WorkloadId
    signal: Signal
    bins: Floats
    pod: float
    span: PeakSpan
    rule: Rule


class Past:
    """The history of this cycle, looked up by workload."""

    def __init__(self, history: Histories) -> None:
        self._history = history
        self._weeks: dict[Signal, Window] = {}

    def bins(self, signal: Signal, id_: WorkloadId) -> Floats:
        """Demand by five minutes since it is known."""
        if signal not in self._weeks:
            self._weeks[signal] = self._history.window(signal, FIVE_MINUTES)
        weeks = self._weeks[signal]
        if id_ not in weeks.row:
            return np.empty(0)
        values = weeks.values[weeks.row[id_]]
        known = np.isfinite(values)
        return np.asarray(values[known.argmax() if known.any() else len(values) :], np.float64)


def cases_of(workload: Workload, policy: Policy, past: Past) -> list[Case] | str:
    """The targets that a forecast could move, or why nothing can be said of them yet.

    A signal that was never measured is not forecast, either.
    """
    span = span_of(policy)
    if span.lead_time + span.length > FARTHEST:
        return f"it looks further ahead than {duration_text(FARTHEST)}"
    found = [
        Case(workload.id, signal, bins, pod, span, rule_of(policy.horizontal))
        for signal, pod in pods_of(workload, policy.horizontal).items()
        if len(bins := past.bins(signal, workload.id))
    ]
    return _too_short(found) or found


def _too_short(cases: Sequence[Case]) -> str:
    """Why these cannot be judged; empty when they can."""
    if not cases:
        return f"no history yet; {LEAST_HISTORY} days are the least"
    shortest = min(cases, key=lambda case: len(case.bins))
    days = math.floor(len(shortest.bins) * FIVE_MINUTES / timedelta(days=0.1)) / 10
    return "" if days >= LEAST_HISTORY else f"{days} days of {shortest.signal} history; {LEAST_HISTORY} are the least"


def pods_of(workload: Workload, policy: HorizontalPolicy) -> dict[Signal, float]:
    """What fills a pod, by signal; of two targets on one signal the tighter one always asks for more."""
    found: dict[Signal, float] = {}
    for target in targets_of(workload, policy):
        if not isinstance(target, Unusable):
            pod = max(full_pod(target, policy.peak_target), SMALLEST)
            found[target.signal] = min(pod, found.get(target.signal, pod))
    return found


def rule_of(policy: HorizontalPolicy) -> Rule:
    """How this policy turns a forecast into pods."""
    return Rule(policy.sizing, stated_quantile(policy), policy.scale_down_stabilization // MINUTE + 1)


def rehearsed(cases: Iterable[Case]) -> dict[WorkloadId, Rounds]:
    """What each forecast's decisions would have left short; workloads with the same rule and days go together."""
    found: dict[WorkloadId, list[list[Evidence]]] = defaultdict(list)
    for together in _alike(cases):
        for case, evidence in zip(together, _evidence(together), strict=True):
            found[case.id].append([one._replace(target=str(case.signal)) for one in evidence])
    return {id_: list(zip(*targets, strict=True)) for id_, targets in found.items()}


def _alike(cases: Iterable[Case]) -> Iterator[Sequence[Case]]:
    groups: dict[tuple[object, ...], list[Case]] = defaultdict(list)
    for case in cases:
        groups[case.span, case.rule, len(case.bins)].append(case)
    for group in groups.values():
        for first in range(0, len(group), AT_A_TIME):
            yield group[first : first + AT_A_TIME]


def _evidence(together: Sequence[Case]) -> list[list[Evidence]]:
    span, rule = together[0].span, together[0].rule
    bins = np.stack([case.bins / case.pod for case in together])
    reach = (span.lead_time + span.length) // MINUTE
    days = backtests(bins, FIVE_MINUTES // MINUTE, to_come=0, reach=reach, days=REHEARSED_DAYS)
    if days is None:
        return [[] for _ in together]
    return evidence_of_all(Days(*days), LEVELS, span.lead_time // MINUTE - 1, rule)
