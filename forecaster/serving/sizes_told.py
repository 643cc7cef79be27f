"""Sizes in their public form: decided by the hour, told in every cycle."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from forecaster.serving.wire import resources_view

if TYPE_CHECKING:
    from collections.abc import Container

    from forecaster.domain.decision import Hold, Recommendation, Resize
    from forecaster.domain.workload import Resources, WorkloadId
    from forecaster.serving.wire import ResourcesView


class _Said(NamedTuple):
    decided: Resize | Hold
    now: Resources
    view: ResourcesView


@dataclass(slots=True)
class SizesTold:
    """`resources_view`, made again only for a decision that is another object than in the cycle before."""

    said: dict[WorkloadId, _Said] = field(default_factory=dict)

    def of(self, one: Recommendation) -> ResourcesView:
        """What `resources_view` makes of it."""
        before = self.said.get(one.id)
        if before is not None and before.decided is one.resources and before.now is one.resources_now:
            return before.view
        view = resources_view(one)
        self.said[one.id] = _Said(one.resources, one.resources_now, view)
        return view

    def forget_others(self, here: Container[WorkloadId]) -> None:
        """Keep only what was said of these."""
        if any(id_ not in here for id_ in self.said):
            self.said = {id_: said for id_, said in self.said.items() if id_ in here}
