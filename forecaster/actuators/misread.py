"""HpaWarnings: an Event beside each HPA that reads our demand in a way that has no answer, hourly while it does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from forecaster.actuators import marks
from forecaster.domain.report import Effected
from forecaster.kube.client import ApiClient, ApiError, UnreachableError

if TYPE_CHECKING:
    from forecaster.actuators.settings import ActingSettings
    from forecaster.actuators.writes import Fence
    from forecaster.publish.publisher import OfferedCycle
    from forecaster.sources.live_objects import Misread

MISREAD = marks.EventKind("MetricMisread", warns=True)
EVENT_INTERVAL = timedelta(hours=1)
"""Time between two Events about the same fault: as long as the API server keeps an Event by default."""
MAX_WARNINGS = 20
"""Events of a cycle; the others follow in the next ones."""


@dataclass(slots=True)
class HpaWarnings:
    """Tells the owner where `kubectl describe hpa` is looked at; writes no object."""

    client: ApiClient
    misread: Callable[[], Sequence[Misread]]
    fence: Fence
    acting: ActingSettings
    warned_at: dict[tuple[str, str], datetime] = field(default_factory=dict)
    """Instant from which the hour to the next Event counts, by (uid of the HPA, fault)."""

    def receive(self, cycle: OfferedCycle) -> None:
        """Receive a cycle; offers are not needed."""

    def act(self, now: datetime) -> Effected:
        """Send one Event for each fault that is new or was sent an hour ago; a refused one is tried again in an hour.

        Raises:
            UnreachableError: the API server does not answer; the other Events are sent in the next cycle.
        """
        wrong = {(misread.hpa.uid, misread.why): misread for misread in self.misread()}
        self.warned_at = {key: at for key, at in self.warned_at.items() if key in wrong}
        may = self.fence.valid() and not (self.fence.paused or self.acting.paused or self.acting.dry_run)
        failures = [self._warn(key, misread, now) for key, misread in self._due(wrong, now)] if may else []
        return Effected(self.fence.leading(), Counter(), Counter(), tuple(filter(None, failures)))

    def _due(self, wrong: Mapping[tuple[str, str], Misread], now: datetime) -> list[tuple[tuple[str, str], Misread]]:
        """Return the faults to be sent now, those sent longest ago first."""
        due = [key for key in wrong if abs(now - self.warned_at.get(key, marks.LONG_AGO)) >= EVENT_INTERVAL]
        longest_ago = sorted(due, key=lambda key: self.warned_at.get(key, marks.LONG_AGO))
        return [(key, wrong[key]) for key in longest_ago[:MAX_WARNINGS]]

    def _warn(self, key: tuple[str, str], misread: Misread, now: datetime) -> str:
        """Send one Event; return the failure. Its namespace may be terminating, or have a full quota."""
        self.warned_at[key] = now
        hpa, hour = misread.hpa, now.timestamp() // EVENT_INTERVAL.total_seconds()
        involved = marks.InvolvedObject(hpa.namespace, hpa.name, hpa.uid, "autoscaling/v2", "HorizontalPodAutoscaler")
        identity = f"{hpa.uid} {misread.why} {hour:.0f}"  # two replicas send the same Event
        try:
            event = marks.event(involved, identity, MISREAD, misread.why[: marks.MESSAGE_MAX], now)
            marks.create_event(self.client, event)
        except UnreachableError:
            self.warned_at[key] = now - EVENT_INTERVAL  # in the next cycle again, after those that have waited longer
            raise
        except ApiError as error:
            return f"Event beside HPA {misread.hpa.namespace}/{misread.hpa.name} not written: {error}"
        return ""
