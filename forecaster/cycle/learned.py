"""The service's judge with learned policies: where a policy names one, it hears the forecast and speaks for it."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from forecaster.cycle.judge import Judge
from forecaster.cycle.outlook import Sight
from forecaster.decisions.gate import Voice
from forecaster.decisions.targets import Unusable, stated_pod, targets_of
from forecaster.domain.outlook import Measured, PeakForecast, SignalForecast
from forecaster.horizontal.learned import load
from forecaster.replay.advice import DAY, LATEST, Situation

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from forecaster.cycle.outlook import Outlooks
    from forecaster.cycle.sizes import PodSizes
    from forecaster.cycle.targets import Targets
    from forecaster.domain.decision import Recommendation
    from forecaster.domain.policies import Policies
    from forecaster.domain.policy import Policy
    from forecaster.domain.signal import Signal
    from forecaster.domain.workload import Workload, WorkloadId
    from forecaster.horizontal.learned import LearnedPolicy


@dataclass(slots=True)
class LearnedJudge(Judge):
    """Remembers what was expected of each advised workload in the last minutes."""

    said: dict[WorkloadId, deque[float]] = field(default_factory=dict)
    policies: dict[str, LearnedPolicy] = field(default_factory=dict)

    def decide_all(
        self, targets: Targets, sight: Sight, sizes: PodSizes, policies: Policies, now: datetime
    ) -> tuple[list[Recommendation], list[str]]:
        """As the plain judge, with another opinion of what comes where a policy asks for it."""
        if all(policies.of(one.id).horizontal.learned == "off" for one in targets.inventory.workloads):
            return Judge.decide_all(self, targets, sight, sizes, policies, now)
        here = {one.id: one for one in targets.inventory.workloads}
        self.said = {id_: medians for id_, medians in self.said.items() if id_ in here}
        seen = (sight.newest, sight.peaks, sight.failures, sight.yesterday, sight.coverage)
        heard = AdvisedSight(*seen, self, here, now)
        return Judge.decide_all(self, targets, heard, sizes, policies, now)

    def advised(
        self, outlooks: Mapping[Signal, SignalForecast], workload: Workload, policy: Policy, now: datetime
    ) -> Mapping[Signal, SignalForecast]:
        """With the learned policy's demand in place of one forecast; without one it stays silent, too."""
        target = next(iter(targets_of(workload, policy.horizontal)), None)
        if target is None or isinstance(target, Unusable):
            return outlooks
        outlook = outlooks[target.signal]
        measured, ahead, pod = outlook.measured, outlook.ahead, stated_pod(target)
        if not isinstance(measured, Measured) or not isinstance(ahead, PeakForecast):
            return outlooks
        situation = _situation(measured, ahead, self._before(workload.id, ahead.median), pod, workload, now)
        kind = policy.horizontal.learned
        wanted = float(self._policy(kind).counts(situation)[0])
        demand = max(wanted - 0.5, 0.0) * pod
        note = f"learned ({kind}): {wanted:g} pods, having heard {ahead.model}"
        said = replace(ahead, peak=demand, model=f"learned-{kind}", note=note, levels=(), peaks=())
        return {**outlooks, target.signal: replace(outlook, ahead=said)}

    def _before(self, id_: WorkloadId, median: float) -> float:
        """What was expected some minutes ago; this minute's expectation is kept for later."""
        medians = self.said.setdefault(id_, deque(maxlen=LATEST + 1))
        medians.append(median)
        return medians[0] if len(medians) > LATEST else np.nan

    def _policy(self, kind: str) -> LearnedPolicy:
        if kind not in self.policies:
            self.policies[kind] = load("tabular" if kind == "tabular" else "fitted")
        return self.policies[kind]


@dataclass(frozen=True, slots=True)
class AdvisedSight(Sight):
    """What the cycle knows, and what a learned policy makes of it."""

    judge: LearnedJudge = field(default_factory=LearnedJudge)
    workloads: Mapping[WorkloadId, Workload] = field(default_factory=dict)
    now: datetime | None = None

    def of(self, id_: WorkloadId, policy: Policy, voice: Voice = Voice.MODEL) -> Outlooks:
        """The outlooks of one workload."""
        plain = Sight.of(self, id_, policy, voice)
        if policy.horizontal.learned == "off" or self.now is None:
            return plain
        return self.judge.advised(dict(plain), self.workloads[id_], policy, self.now)  # type: ignore[return-value]


def _situation(
    measured: Measured, ahead: PeakForecast, before: float, pod: float, workload: Workload, now: datetime
) -> Situation:
    upper = float(np.interp(0.9, ahead.levels, ahead.peaks)) if ahead.levels else ahead.peak
    return Situation(
        measured=np.array([measured.value / pod]),
        median=np.array([ahead.median / pod]),
        upper=np.array([upper / pod]),
        before=np.array([before / pod]),
        asked=np.array([float(workload.replicas)]),
        ready=np.array([float(workload.ready_replicas)]),
        minute_of_day=(now.hour * 60 + now.minute) % DAY,
    )
