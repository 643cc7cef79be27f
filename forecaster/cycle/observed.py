"""What the service has seen of its workloads beside their demand: in one place, and in a form that is kept."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from forecaster.cycle.capacities import Capacities, KeptCapacity
from forecaster.cycle.covered import KeptHeld, kept, restored
from forecaster.cycle.gates import Gates
from forecaster.cycle.in_force import InForce, Made
from forecaster.cycle.lead_times import KeptWatch, LeadTimes
from forecaster.cycle.places import KeptPlace  # noqa: TC001  msgspec resolves the annotations
from forecaster.horizontal.coverage import Coverage

if TYPE_CHECKING:
    from forecaster.domain.policies import Policies
    from forecaster.domain.workload import WorkloadId

VERSION = 1


class Kept(msgspec.Struct, frozen=True, omit_defaults=True):
    """What outlives the process."""

    version: int = VERSION
    lead_times: tuple[KeptWatch, ...] = ()
    gates: tuple[KeptPlace, ...] = ()
    coverage: tuple[KeptHeld, ...] = ()
    capacities: tuple[KeptCapacity, ...] = ()


@dataclass(slots=True)
class Observed:
    """What is carried from cycle to cycle."""

    lead_times: LeadTimes = field(default_factory=LeadTimes)
    gates: Gates = field(default_factory=Gates)
    coverage: Coverage = field(default_factory=Coverage)
    capacities: Capacities = field(default_factory=Capacities)
    policies: dict[WorkloadId, Made] = field(default_factory=dict)
    """Policies with learned capacities, which change by the hour."""

    def in_force(self, stated: Policies) -> Policies:
        """The policies of this cycle."""
        rungs, filled = self.lead_times.rungs(), {id_: one for id_, one in self.capacities.filled.items() if one}
        if not (rungs or filled):
            return stated
        if len(self.policies) > len(filled):
            self.policies = {id_: made for id_, made in self.policies.items() if id_ in filled}
        return InForce(
            stated.defaults,
            stated.overrides,
            stated.built,
            stated.chosen,
            rungs,
            filled,
            self.policies,
            signals=stated.signals,
        )

    def forget_others(self, here: set[WorkloadId]) -> None:
        """Keep what was seen of these workloads only."""
        self.coverage.forget_others(here)
        self.capacities.forget_others(here)

    def kept(self) -> bytes:
        """As JSON."""
        told = Kept(
            lead_times=self.lead_times.kept(),
            gates=self.gates.kept(),
            coverage=kept(self.coverage),
            capacities=self.capacities.kept(),
        )
        return msgspec.json.encode(told)

    def restore(self, kept: bytes) -> None:
        """Take over what an earlier process has seen.

        Raises:
            msgspec.MsgspecError: it is no such JSON, or that of another version; nothing was taken over.
        """
        known = msgspec.json.decode(kept, type=Kept)
        if known.version != VERSION:
            raise msgspec.ValidationError(f"version {known.version}, and not {VERSION}")
        self.lead_times.restore(known.lead_times)
        self.gates.restore(known.gates)
        self.coverage = restored(known.coverage)
        self.capacities.restore(known.capacities)
