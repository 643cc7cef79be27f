"""Step 4: what one pod used. Renewed in rotation, since it changes by the day and not by the minute."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from forecaster.demand.per_pod import days_known, demanding_day, per_pod
from forecaster.domain.signal import Signal
from forecaster.domain.window import FIVE_MINUTES
from forecaster.vertical.sizing import NO_USAGE, PodUsage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forecaster.demand.per_pod import Floats
    from forecaster.domain.policies import Policies
    from forecaster.domain.policy import VerticalPolicy
    from forecaster.domain.window import Window
    from forecaster.domain.workload import WorkloadId
    from forecaster.ports import Histories

ROUNDS = 60
"""A workload's usage is renewed once in so many cycles: hourly, with a cycle a minute."""


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
        rows = _Rows.of(history)
        fresh = {id_: rows.usage(id_, policies.of(id_).vertical) for id_ in due}
        self.known = {id_: fresh.get(id_) or self.known[id_] for id_ in ids}

    def of(self, id_: WorkloadId) -> PodUsage:
        """Usage of one pod; nothing known for a workload that was never looked at."""
        return self.known.get(id_, NO_USAGE)


@dataclass(frozen=True, slots=True)
class _Rows:
    """Weeks of history by signal and workload."""

    windows: dict[Signal, Window]
    row: dict[Signal, dict[WorkloadId, int]]

    @classmethod
    def of(cls, history: Histories) -> _Rows:
        windows = {signal: history.window(signal, FIVE_MINUTES) for signal in (Signal.CPU, Signal.MEMORY, Signal.PODS)}
        return cls(windows, {signal: {id_: i for i, id_ in enumerate(w.keys)} for signal, w in windows.items()})

    def usage(self, id_: WorkloadId, policy: VerticalPolicy) -> PodUsage:
        cpu, memory = self._per_pod(Signal.CPU, id_), self._per_pod(Signal.MEMORY, id_)
        return PodUsage(
            cpu=demanding_day(cpu, policy.cpu_quantile, FIVE_MINUTES),
            memory=demanding_day(memory, policy.memory_quantile, FIVE_MINUTES),
            days=max(days_known(cpu, FIVE_MINUTES), days_known(memory, FIVE_MINUTES)),
        )

    def _per_pod(self, signal: Signal, id_: WorkloadId) -> Floats:
        return per_pod(self._values(signal, id_), self._values(Signal.PODS, id_))

    def _values(self, signal: Signal, id_: WorkloadId) -> Floats:
        row = self.row[signal].get(id_)
        values = self.windows[signal].values
        return values[row] if row is not None else values[:0].reshape(-1)
