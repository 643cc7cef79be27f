"""What requested resources cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from forecaster.domain.workload import Resources

GIB = 2**30
HOURS_A_MONTH = 730


@dataclass(frozen=True, slots=True)
class Prices:
    """Price of a requested core and of a requested GiB, each for an hour; in any currency."""

    core_hour: float
    gib_hour: float

    def a_month(self, resources: Resources, replicas: int) -> float | None:
        """What so many pods cost in 730 hours by their requests; None where a request is not known."""
        if resources.cpu_request is None or resources.memory_request is None:
            return None
        hour = resources.cpu_request * self.core_hour + resources.memory_request / GIB * self.gib_hour
        return hour * replicas * HOURS_A_MONTH
