"""Where forecasts stand on each workload: a few are judged anew in each cycle, each in its turn."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from forecaster.decisions.gate import Gate, judged
from forecaster.decisions.lead_time import lead_time
from forecaster.decisions.quantile import stated_quantile
from forecaster.decisions.rehearsal import Days, Rule, evidence_of
from forecaster.decisions.targets import Unusable, full_pod, targets_of
from forecaster.domain.window import FIVE_MINUTES, MINUTE
from forecaster.forecasting.peaks import LEVELS
from forecaster.forecasting.rehearsal import look_back

if TYPE_CHECKING:
    from datetime import datetime

    from forecaster.decisions.gate import Evidence
    from forecaster.domain.policies import Policies
    from forecaster.domain.policy import HorizontalPolicy
    from forecaster.domain.workload import Workload, WorkloadId
    from forecaster.ports import Histories
    from forecaster.steps.targets import Targets

AT_ONCE = 2
"""Workloads judged in one cycle: a quarter of a second each. A thousand have their turn in eight hours."""
REHEARSED_DAYS = 3
SMALLEST = 1e-9


@dataclass(slots=True)
class Gates:
    """The gates of the workloads whose policy asks for one; a workload that is new stands at the beginning."""

    at_once: int = AT_ONCE
    known: dict[WorkloadId, Gate] = field(default_factory=dict)
    turns: deque[WorkloadId] = field(default_factory=deque)

    def of(self, id_: WorkloadId) -> Gate:
        """Where the forecast stands on this workload."""
        return self.known.get(id_, Gate())

    def renew(self, history: Histories, policies: Policies, targets: Targets, now: datetime) -> list[str]:
        """Judge those whose turn it is; one sentence for each gate that moved."""
        here = {one.id: one for one in targets.inventory.workloads if policies.of(one.id).horizontal.gate}
        if targets.down or not here:
            return []
        self._line_up(here)
        moved: list[str] = []
        for _ in range(min(self.at_once, len(self.turns))):
            id_ = self.turns.popleft()
            self.turns.append(id_)
            moved += self._judge(here[id_], history, policies.of(id_).horizontal, now)
        return moved

    def _line_up(self, here: dict[WorkloadId, Workload]) -> None:
        waiting = set(self.turns)
        if waiting != here.keys():
            new = [id_ for id_ in here if id_ not in waiting]
            self.turns = deque([*new, *(id_ for id_ in self.turns if id_ in here)])
            self.known = {id_: gate for id_, gate in self.known.items() if id_ in here}

    def _judge(self, workload: Workload, history: Histories, policy: HorizontalPolicy, now: datetime) -> list[str]:
        before = gate = self.of(workload.id)
        for evidence in rehearsed(workload, history, policy):
            gate = judged(gate, evidence, now)
        self.known[workload.id] = gate
        if gate.standing is before.standing and gate.voice is before.voice:
            return []
        return [f"{workload.id}: {before.standing} to {gate.standing}, {gate.why}"]


def rehearsed(workload: Workload, history: Histories, policy: HorizontalPolicy) -> list[Evidence]:
    """What this policy would have left short on the workload's newest days, by its first target that is known."""
    target = next((one for one in targets_of(workload, policy) if not isinstance(one, Unusable)), None)
    if target is None:
        return []
    weeks = history.window(target.signal, FIVE_MINUTES)
    if workload.id not in weeks.keys:
        return []
    values = np.asarray(weeks.values[weeks.keys.index(workload.id)], np.float64)
    lead = lead_time(policy).value
    reach = (lead + policy.window) // MINUTE
    looked = look_back(
        values[_first_known(values) :], FIVE_MINUTES // MINUTE, to_come=0, reach=reach, days=REHEARSED_DAYS
    )
    if looked is None:
        return []
    pod = max(full_pod(target, policy.peak_target), SMALLEST)
    rule = Rule(policy.sizing, stated_quantile(policy), policy.scale_down_stabilization // MINUTE + 1)
    return evidence_of(Days(*(part / pod for part in looked)), LEVELS, lead // MINUTE - 1, rule)


def _first_known(values: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> int:
    known = np.flatnonzero(~np.isnan(values))
    return int(known[0]) if len(known) else len(values)
