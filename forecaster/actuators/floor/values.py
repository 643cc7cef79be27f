"""Values of floors: HPAs as they are, offers and writes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple

from forecaster.actuators.limits import Move
from forecaster.actuators.rollback import UNKNOWN_HEALTH, Health, Watch
from forecaster.actuators.writes import MANAGER, OWNING, Change
from forecaster.domain.policy import Mode
from forecaster.domain.workload import WorkloadId


class WrittenFloor(NamedTuple):
    """A floor that is on, as its annotations say."""

    before: int
    """The owner's `minReplicas`."""
    expires: datetime
    target: str = ""
    """Path of the workload that it was raised for; empty of a floor of an older version."""


@dataclass(frozen=True, slots=True)
class LiveAutoscaler:
    """One HorizontalPodAutoscaler as the API server has it."""

    namespace: str
    name: str
    uid: str
    version: str
    """`resourceVersion`."""
    target: WorkloadId
    min_replicas: int
    max_replicas: int
    replicas: int
    """`status.currentReplicas`."""
    writers: frozenset[str]
    """Field managers that own `spec.minReplicas`."""
    controller: str = ""
    """KIND NAME of the object that this HPA is made from; empty where it has none."""
    scaler: str = ""
    """Other controllers that scale the target, in words, read in this cycle; empty where there are none."""
    scale_up_disabled: bool = False
    """Whether its `behavior` has `selectPolicy: Disabled` for scaling up, which `minReplicas` would get past."""
    deleted: bool = False
    mode: Mode | None = None
    """Mode stated by its annotation."""
    misread: str = ""
    """Reason why that is not a mode."""
    floor: WrittenFloor | None = None
    backed_off_until: datetime | None = None
    marked: bool = False
    """Whether it has a label of ours."""
    fault: str = ""
    """Reason why the owner's value is not known."""
    watch: Watch = None
    """Last change of the object, or its rollback."""
    health: Health = UNKNOWN_HEALTH
    """Health of its target, as read for this cycle."""

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name."""
        return self.namespace, self.name

    @property
    def workload(self) -> WorkloadId:
        """The scaled workload."""
        return self.target

    @property
    def field_value(self) -> str:
        """The field that is written, and its value."""
        return f"minReplicas {self.min_replicas}"

    @property
    def other_writers(self) -> str:
        """Field managers beside ours that own `spec.minReplicas`, in words.

        Argo CD applies the live value of each field that it ignores, and so shares ours.
        """
        sharing = {name for name in self.writers if OWNING.get(name) == "Argo CD" and MANAGER in self.writers}
        return ", ".join(sorted(self.writers - {MANAGER} - sharing))

    def __str__(self) -> str:
        return f"HPA {self.namespace}/{self.name}"


class FloorOffer(NamedTuple):
    """The offer for one workload."""

    floor: int | None
    """None: not known, hold. 0: the forecast asks for nothing of its own."""
    may_lower: bool = True
    """False while what is measured is a lower bound."""


@dataclass(frozen=True, slots=True)
class Write:
    """One change of one HPA."""

    subject: LiveAutoscaler
    change: Change
    min_replicas: int
    """After the change."""
    reason: str
    floor: WrittenFloor | None = None
    """The floor that is on afterwards."""
    backed_off_until: datetime | None = None
    watch: Watch = None
    """Observation to store with the count: what is watched, or held, afterwards."""

    @property
    def move(self) -> Move | None:
        """Change of `minReplicas`; None for marks and expiries alone."""
        if self.change in {Change.RENEW, Change.YIELD, Change.FORGET}:
            return None
        return Move(self.min_replicas, self.subject.min_replicas, self.subject.replicas)

    @property
    def marks(self) -> dict[str, Any]:
        """The marks that it leaves on the HPA."""
        return {"floor": self.floor, "backed_off_until": self.backed_off_until, "watch": self.watch}

    def __str__(self) -> str:
        return f"{self.subject}: minReplicas {self.min_replicas}"

    def facts(self) -> dict[str, object]:
        """Return the fields of the audit line."""
        return {
            "count": self.min_replicas,
            "was": self.subject.min_replicas,
            "before": self.floor.before if self.floor else None,
            "expires": self.floor.expires if self.floor else None,
        }

    def on(self, fresh: LiveAutoscaler) -> Write | None:
        """Return this change for the object as it is now; None if what it was decided by has changed."""
        decided = self.subject
        subject = replace(fresh, scaler=decided.scaler, health=decided.health)
        alike = replace(subject, version=decided.version, replicas=decided.replicas)
        return replace(self, subject=subject) if alike == decided else None

    def bounded(self, count: int, reason: str) -> Write:
        """Return this change with another count. Part of an undo is no undo: marks of ours stay."""
        if self.change not in {Change.RESTORE, Change.ROLL_BACK}:
            return replace(self, min_replicas=count, reason=reason)
        hpa = self.subject
        change = Change.RAISE if count > hpa.min_replicas else Change.LOWER
        return replace(self, change=change, min_replicas=count, reason=reason, floor=hpa.floor, watch=hpa.watch)
