"""Step 5: one decision per workload, behind a boundary: a workload that fails is held, and the others go on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from forecaster.cycle.observed import Observed
from forecaster.decisions.decide import decide
from forecaster.decisions.gate import Voice
from forecaster.decisions.state import ScalingState
from forecaster.domain.decision import Hold, Reason, Recommendation
from forecaster.vertical.sizing.pod import SizeCache

if TYPE_CHECKING:
    from datetime import datetime

    from forecaster.cycle.outlook import Sight
    from forecaster.cycle.sizes import PodSizes
    from forecaster.cycle.targets import Targets
    from forecaster.domain.policies import Policies
    from forecaster.domain.workload import Workload, WorkloadId


@dataclass(slots=True)
class Judge:
    """Carries scaling state, sizes and what was seen of every workload from cycle to cycle."""

    states: dict[WorkloadId, ScalingState] = field(default_factory=dict)
    observed: Observed = field(default_factory=Observed)
    sizes: SizeCache = field(default_factory=SizeCache)

    def decide_all(
        self, targets: Targets, sight: Sight, sizes: PodSizes, policies: Policies, now: datetime
    ) -> tuple[list[Recommendation], list[str]]:
        """Recommendations in the order of the inventory, and one sentence for each workload that failed."""
        workloads, failures = targets.inventory.workloads, []
        if targets.down:
            return [held(workload, Reason.SOURCE_DOWN, targets.down, now) for workload in workloads], []
        recommendations = []
        for workload in workloads:
            try:
                recommendations.append(self._decide(workload, sight, sizes, policies, now))
            except Exception as error:  # noqa: BLE001  the boundary: nothing that one workload does may stop the others
                message = f"{type(error).__name__}: {error}"
                failures.append(f"{workload.id}: {message}")
                recommendations.append(held(workload, Reason.FAILED, message, now))
        self._forget_others(workloads)
        return recommendations, failures

    def _decide(
        self, workload: Workload, sight: Sight, sizes: PodSizes, policies: Policies, now: datetime
    ) -> Recommendation:
        policy = policies.of(workload.id)
        state = self.states.get(workload.id) or ScalingState.beginning(workload.replicas, now)
        gate = self.observed.gates.of(workload.id) if policy.horizontal.gate else None
        outlooks = sight.of(workload.id, policy, gate.voice if gate else Voice.MODEL)
        recommendation, self.states[workload.id] = decide(
            workload,
            outlooks,
            policy,
            state,
            now,
            sizing=sizes.of(workload.id),
            sized=self.sizes.size,
            gate=gate,
            lead=self.observed.lead_times.of(workload.id, policies.stated(workload.id).horizontal),
        )
        return recommendation

    def _forget_others(self, workloads: tuple[Workload, ...]) -> None:
        if len(self.states) > len(workloads):
            here = {workload.id for workload in workloads}
            self.states = {id_: state for id_, state in self.states.items() if id_ in here}
            self.sizes.forget_others(here)
            self.observed.forget_others(here)


def held(workload: Workload, reason: Reason, message: str, now: datetime) -> Recommendation:
    """Leave everything as it is."""
    hold = Hold(reason, message)
    hpa = workload.autoscaler
    return Recommendation(
        id=workload.id,
        at=now,
        replicas_now=workload.replicas,
        replicas=hold,
        resources_now=workload.resources,
        resources=hold,
        autoscaler=hpa.name if hpa else "",
        targets=hpa.targets if hpa else (),
    )
