"""When containers of a workload were throttled: hours, as far back as models learn from."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from forecaster.demand.censored import throttled

if TYPE_CHECKING:
    from datetime import datetime

    from forecaster.domain.workload import ContainerFacts, WorkloadId

SPAN = timedelta(hours=1)
"""What a reading tells about."""
KEPT = timedelta(days=14)


class Hours(NamedTuple):
    """Time in which a workload was throttled: after `begin`, up to `end`."""

    begin: datetime
    end: datetime


@dataclass(slots=True)
class Throttling:
    """The throttled hours of the workloads that had any, in their order; forgotten at a restart."""

    hours: dict[WorkloadId, list[Hours]] = field(default_factory=dict)
    told: datetime | None = None

    def follow(self, facts: ContainerFacts, at: datetime | None) -> None:
        """Take in what was told about the hour before `at`, once; None when nothing was told."""
        if at is None or at == self.told:
            return
        self.told = at
        for workload in {id_.workload for id_, share in facts.held_back.items() if throttled(share)}:
            before = self.hours.setdefault(workload, [])
            if before and before[-1].end >= at - SPAN:
                before[-1] = Hours(before[-1].begin, at)
            else:
                before.append(Hours(at - SPAN, at))
        kept = {id_: [one for one in hours if one.end > at - KEPT] for id_, hours in self.hours.items()}
        self.hours = {id_: hours for id_, hours in kept.items() if hours}
