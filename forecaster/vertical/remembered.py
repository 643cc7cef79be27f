"""Sizes that stand: they are chosen by the hour and said in every cycle."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from forecaster.vertical.sizing import size

if TYPE_CHECKING:
    from collections.abc import Container

    from forecaster.domain.decision import Hold, Resize
    from forecaster.domain.policy import VerticalPolicy
    from forecaster.domain.workload import Autoscaler, Workload, WorkloadId
    from forecaster.vertical.sizing import PodSizing


class _Said(NamedTuple):
    autoscaler: Autoscaler | None
    sizing: PodSizing
    policy: VerticalPolicy
    answer: Resize | Hold


@dataclass(slots=True)
class RememberedSizes:
    """`size`, worked out again only for a workload of which something changed that it follows from."""

    said: dict[WorkloadId, _Said] = field(default_factory=dict)

    def size(self, workload: Workload, sizing: PodSizing, policy: VerticalPolicy) -> Resize | Hold:
        """What `size` says of the same."""
        before = self.said.get(workload.id)
        if (
            before is not None
            and before.sizing is sizing
            and before.policy is policy
            and before.autoscaler == workload.autoscaler
        ):
            return before.answer
        answer = size(workload, sizing, policy)
        self.said[workload.id] = _Said(workload.autoscaler, sizing, policy, answer)
        return answer

    def forget_others(self, here: Container[WorkloadId]) -> None:
        """Keep only what was said of these."""
        self.said = {id_: said for id_, said in self.said.items() if id_ in here}
