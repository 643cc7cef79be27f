"""The policies of one cycle: as their owners state them, with what was learned in place of what they leave open.

How far ahead to look and what fills a pod is asked of the policy, and the answer is the same for forecasts,
decisions, gates and scores.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from forecaster.domain.policies import Policies

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import timedelta

    from forecaster.domain.policy import PodCapacity, Policy
    from forecaster.domain.workload import WorkloadId


class ObservedPolicy(NamedTuple):
    """A policy of one workload, and what it was made of."""

    stated: Policy
    rung: timedelta | None
    filled: Mapping[str, PodCapacity]
    policy: Policy


@dataclass(slots=True)
class PoliciesInForce(Policies):
    """Workloads of one policy and one lead time share the result; those whose capacity was learned have their own."""

    rungs: Mapping[WorkloadId, timedelta] = field(default_factory=dict)
    filled: Mapping[WorkloadId, Mapping[str, PodCapacity]] = field(default_factory=dict)
    own: dict[WorkloadId, ObservedPolicy] = field(default_factory=dict)
    """Kept from cycle to cycle."""
    shared: dict[tuple[int, timedelta], ObservedPolicy] = field(default_factory=dict)
    """Kept from cycle to cycle, too: by the policy as it is stated, of which there are few, and the lead time."""

    def of(self, id_: WorkloadId) -> Policy:
        """The policy of one workload."""
        policy, rung, filled = self.stated(id_), self.rungs.get(id_), self.filled.get(id_)
        if filled and policy.horizontal.peak_target is None:
            return self._own(id_, policy, rung, filled)
        if rung is None or policy.horizontal.lead_time is not None:
            return policy
        key = (id(policy), rung)
        made = self.shared.get(key)
        if made is None or made.stated is not policy:
            made = self.shared[key] = ObservedPolicy(policy, rung, {}, with_observed(policy, rung, {}))
        return made.policy

    def _own(
        self, id_: WorkloadId, policy: Policy, rung: timedelta | None, filled: Mapping[str, PodCapacity]
    ) -> Policy:
        made = self.own.get(id_)
        if made is None or made.stated is not policy or made.rung != rung or made.filled is not filled:
            made = self.own[id_] = ObservedPolicy(policy, rung, filled, with_observed(policy, rung, filled))
        return made.policy


def with_observed(policy: Policy, rung: timedelta | None, filled: Mapping[str, PodCapacity]) -> Policy:
    """One policy with a measured lead time and learned capacities."""
    return policy.model_copy(update={"horizontal": policy.horizontal.with_observed(rung, filled)})
