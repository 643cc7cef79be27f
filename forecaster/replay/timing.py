"""When an HPA looks, how old what it sees is, and from when on a decision counts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from forecaster.domain.window import MINUTE
from forecaster.hpa.spec import SHIPPED


@dataclass(frozen=True, slots=True)
class Timing:
    """The clocks of a replay.

    Raises:
        ValueError: syncs do not divide a minute, or a delay is negative or too long.
    """

    sync: timedelta = SHIPPED.sync_period
    """From one pass of the HPA to the next; divides a minute."""
    metrics_delay: timedelta = timedelta()
    """From the end of a minute until its demand can be seen: scrape and aggregation; below a minute."""
    decision_delay: timedelta = timedelta(seconds=5)
    """From the evaluation time until the floor that follows from it is in force; a minute at most.

    Never earlier than the next sync after the evaluation time.
    """

    def __post_init__(self) -> None:
        if self.sync <= timedelta() or MINUTE % self.sync:
            raise ValueError(f"sync {self.sync} does not divide a minute; use 15s, 30s or 1m")
        if not timedelta() <= self.metrics_delay < MINUTE:
            raise ValueError(f"metrics_delay {self.metrics_delay} must be 0s or more and below a minute")
        if not timedelta() <= self.decision_delay <= MINUTE:
            raise ValueError(f"decision_delay {self.decision_delay} must be between 0s and a minute")

    @property
    def syncs(self) -> int:
        """Passes in a minute."""
        return MINUTE // self.sync

    @property
    def first_fresh(self) -> int:
        """The first sync of a minute that sees the minute before."""
        return -(-self.metrics_delay // self.sync)

    @property
    def first_floored(self) -> int:
        """The first sync of a minute at which a floor from its beginning is in force."""
        return max(1, -(-self.decision_delay // self.sync))


USUAL = Timing()
