"""HpaWarnings: an Event beside each HPA that reads our demand in a way that has no answer, hourly while it does."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from forecaster.actuators.marks import (
    LONG_AGO,
    MESSAGE_MAX,
    EventKind,
    EventObject,
    InvolvedObject,
    create_event,
    event,
)
from forecaster.domain.report import Effected
from forecaster.kube.client import ApiClient, ApiError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from forecaster.actuators.settings import ActingSettings
    from forecaster.actuators.writes import Fence
    from forecaster.publish.publisher import OfferedCycle
    from forecaster.sources.live_objects import Misread

MISREAD = EventKind("MetricMisread", warns=True)
AGAIN = timedelta(hours=1)
"""Time between two Events about the same fault: as long as the API server keeps an Event by default."""
MOST = 20
"""Events of a cycle; the others follow in the next ones."""


@dataclass(slots=True)
class HpaWarnings:
    """Tells the owner where `kubectl describe hpa` is looked at; writes no object."""

    client: ApiClient
    misread: Callable[[], Sequence[Misread]]
    fence: Fence
    acting: ActingSettings
    told: dict[tuple[str, str], datetime] = field(default_factory=dict)
    """Instant from which the hour to the next Event counts, by (uid of the HPA, fault)."""

    def receive(self, cycle: OfferedCycle) -> None:
        """Offers have no part in it."""

    def act(self, now: datetime) -> Effected:
        """One Event for each that is new or was told an hour ago; one that is refused is tried again in an hour.

        Raises:
            UnreachableError: the API server does not answer; the rest is told in the next cycle.
        """
        wrong = {(one.hpa.uid, one.why): one for one in self.misread()}
        self.told = {key: at for key, at in self.told.items() if key in wrong}
        failures: list[str] = []
        if self.fence.valid() and not (self.fence.paused or self.acting.paused or self.acting.dry_run):
            failures = [*filter(None, (self._warn(key, one, now) for key, one in self._due(wrong, now)))]
        return Effected(self.fence.leading(), Counter(), Counter(), tuple(failures))

    def _due(self, wrong: Mapping[tuple[str, str], Misread], now: datetime) -> list[tuple[tuple[str, str], Misread]]:
        """Return those to be told now, what was told longest ago first."""
        due = [each for each in wrong.items() if abs(now - self.told.get(each[0], LONG_AGO)) >= AGAIN]
        return sorted(due, key=lambda each: self.told.get(each[0], LONG_AGO))[:MOST]

    def _warn(self, key: tuple[str, str], one: Misread, now: datetime) -> str:
        """What went wrong with one Event; its namespace may be going, or have a full quota."""
        self.told[key] = now
        try:
            create_event(self.client, warning_of(one, now))
        except UnreachableError:
            self.told[key] = now - AGAIN  # in the next cycle again, after those that have waited longer
            raise
        except ApiError as error:
            return f"Event beside HPA {one.hpa.namespace}/{one.hpa.name} not written: {error}"
        return ""


def warning_of(one: Misread, at: datetime) -> EventObject:
    """Return the Event about an HPA, a fault and an hour: two replicas make one Event of it."""
    hpa, hour = one.hpa, at.timestamp() // AGAIN.total_seconds()
    involved = InvolvedObject(hpa.namespace, hpa.name, hpa.uid, "autoscaling/v2", "HorizontalPodAutoscaler")
    return event(involved, f"{hpa.uid} {one.why} {hour:.0f}", MISREAD, one.why[:MESSAGE_MAX], at)
