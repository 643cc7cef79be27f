"""Step 4: what one pod used. Renewed in rotation, since it changes by the day and not by the minute."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from forecaster.demand.per_pod import days_known, demanding_day, per_pod
from forecaster.domain.signal import Signal
from forecaster.domain.window import FIVE_MINUTES
from forecaster.vertical.sizing import NO_USAGE, PodUsage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from forecaster.demand.per_pod import Floats
    from forecaster.domain.policies import Policies
    from forecaster.domain.policy import VerticalPolicy
    from forecaster.domain.window import Window
    from forecaster.domain.workload import WorkloadId
    from forecaster.ports import Histories

ROUNDS = 60
"""A workload's usage is renewed once in so many cycles: hourly, with a cycle a minute."""
SIGNALS = (Signal.CPU, Signal.MEMORY, Signal.PODS)
CHUNK = 512
"""Workloads looked at together; a week of three signals is 12 MiB for so many."""


@dataclass(slots=True)
class Sizes:
    """Usage of one pod by workload."""

    known: dict[WorkloadId, PodUsage] = field(default_factory=dict)
    turn: int = 0

    def renew(self, history: Histories, policies: Policies, ids: Sequence[WorkloadId]) -> None:
        """Look at the workloads whose turn it is, and at those never seen."""
        self.turn = (self.turn + 1) % ROUNDS
        due = [id_ for i, id_ in enumerate(ids) if i % ROUNDS == self.turn or id_ not in self.known]
        if not due:
            return
        fresh = usages(history, {id_: policies.of(id_).vertical for id_ in due})
        self.known = {id_: fresh.get(id_) or self.known[id_] for id_ in ids}

    def of(self, id_: WorkloadId) -> PodUsage:
        """Usage of one pod; nothing known for a workload that was never looked at."""
        return self.known.get(id_, NO_USAGE)


def usages(history: Histories, wanted: Mapping[WorkloadId, VerticalPolicy]) -> dict[WorkloadId, PodUsage]:
    """What one pod of each of these workloads used, under its policy."""
    rows = {signal: Rows.of(history.window(signal, FIVE_MINUTES)) for signal in SIGNALS}
    alike: dict[tuple[float, float], list[WorkloadId]] = defaultdict(list)
    for id_, policy in wanted.items():
        alike[policy.cpu_quantile, policy.memory_quantile].append(id_)
    return {
        id_: usage
        for quantiles, ids in alike.items()
        for part in (ids[i : i + CHUNK] for i in range(0, len(ids), CHUNK))
        for id_, usage in zip(part, _usages(rows, part, *quantiles), strict=True)
    }


def _usages(
    rows: Mapping[Signal, Rows], ids: Sequence[WorkloadId], cpu_quantile: float, memory_quantile: float
) -> list[PodUsage]:
    pods = rows[Signal.PODS].values(ids)
    cpu, memory = (per_pod(rows[signal].values(ids), pods) for signal in (Signal.CPU, Signal.MEMORY))
    days = np.maximum(days_known(cpu, FIVE_MINUTES), days_known(memory, FIVE_MINUTES))
    return [
        PodUsage(_if_known(of_cpu), _if_known(of_memory), known)
        for of_cpu, of_memory, known in zip(
            demanding_day(cpu, cpu_quantile, FIVE_MINUTES).tolist(),
            demanding_day(memory, memory_quantile, FIVE_MINUTES).tolist(),
            days.tolist(),
            strict=True,
        )
    ]


def _if_known(amount: float) -> float | None:
    return None if math.isnan(amount) else amount


@dataclass(frozen=True, slots=True)
class Rows:
    """Weeks of one signal, to be read by workload."""

    window: Window
    row: Mapping[WorkloadId, int]

    @classmethod
    def of(cls, window: Window) -> Rows:
        """Look up where each workload is."""
        return cls(window, {id_: i for i, id_ in enumerate(window.keys)})

    def values(self, ids: Sequence[WorkloadId]) -> Floats:
        """[workload, time], gaps for those that have no row; a copy."""
        at = np.array([self.row.get(id_, -1) for id_ in ids], np.intp)
        found = np.full((len(ids), self.window.values.shape[1]), np.nan, np.float32)
        found[at >= 0] = self.window.values[at[at >= 0]]
        return found
