"""What the service has seen of its workloads beside their demand: in one place, and in a form that is kept."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from forecaster.decisions.coverage import Coverage
from forecaster.steps.covered import KeptHeld, kept, restored
from forecaster.steps.gates import Gates
from forecaster.steps.lead_times import KeptWatch, LeadTimes
from forecaster.steps.places import KeptPlace  # noqa: TC001  msgspec resolves the annotations

VERSION = 1


class Kept(msgspec.Struct, frozen=True, omit_defaults=True):
    """What outlives the process."""

    version: int = VERSION
    lead_times: tuple[KeptWatch, ...] = ()
    gates: tuple[KeptPlace, ...] = ()
    coverage: tuple[KeptHeld, ...] = ()


@dataclass(slots=True)
class Observed:
    """What is carried from cycle to cycle."""

    lead_times: LeadTimes = field(default_factory=LeadTimes)
    gates: Gates = field(default_factory=Gates)
    coverage: Coverage = field(default_factory=Coverage)

    def kept(self) -> bytes:
        """As JSON."""
        told = Kept(lead_times=self.lead_times.kept(), gates=self.gates.kept(), coverage=kept(self.coverage))
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
