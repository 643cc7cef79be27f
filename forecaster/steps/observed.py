"""What the service has seen of its workloads beside their demand: in one place, and in a form that is kept."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from forecaster.steps.lead_times import KeptWatch, LeadTimes


class Kept(msgspec.Struct, frozen=True, omit_defaults=True):
    """What outlives the process."""

    lead_times: tuple[KeptWatch, ...] = ()


@dataclass(slots=True)
class Observed:
    """What is carried from cycle to cycle."""

    lead_times: LeadTimes = field(default_factory=LeadTimes)

    def kept(self) -> bytes:
        """As JSON."""
        return msgspec.json.encode(Kept(self.lead_times.kept()))

    def restore(self, kept: bytes) -> None:
        """Take over what an earlier process has seen.

        Raises:
            msgspec.MsgspecError: it is no such JSON.
        """
        known = msgspec.json.decode(kept, type=Kept)
        self.lead_times.restore(known.lead_times)
