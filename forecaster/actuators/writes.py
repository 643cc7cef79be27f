"""Values shared by all actuators: changes of objects, refusals, and the ports through which changes are carried out."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple, Protocol, Self, TypeVar

from forecaster.actuators.limits import Move
from forecaster.domain.workload import WorkloadId

MANAGER = "forecaster"
"""The field manager of everything that is written."""
OWNING = {
    "argocd-controller": "Argo CD",
    "argocd-application-controller": "Argo CD",
    "kustomize-controller": "Flux",
    "helm-controller": "Flux",
    "keda": "KEDA",
}
"""Field managers that write a count again and again, by the tool that they belong to."""


class Change(StrEnum):
    """Kind of a write. There are few values, because they are labels of metrics."""

    RAISE = "raise"
    LOWER = "lower"
    RENEW = "renew"
    """Keep the floor until a later expiry."""
    RESTORE = "restore"
    """The owner's value again, and nothing of ours left."""
    YIELD = "yield"
    """Another writer's value stays; ours is forgotten."""
    FORGET = "forget"
    """Marks of ours without a value of ours are removed."""
    RESIZE = "resize"
    EVICT = "evict"
    """Evict a pod whose node cannot grant its size."""
    SETTLE = "settle"
    """A resized pod has proven itself and is no longer watched."""
    ROLL_BACK = "roll-back"
    """The value before ours again, because pods are worse off since."""


class RefusalReason(StrEnum):
    """Reason for leaving an object unchanged. There are few values, because they are labels of metrics."""

    SECOND_WRITER = "second-writer"
    OWNED = "owned"
    AMBIGUOUS = "ambiguous"
    UNREADABLE = "unreadable"
    RATE_LIMIT = "rate-limit"
    STOPPED = "stopped"
    """Scaled to zero, which only its owner undoes."""
    ROLLED_BACK = "rolled-back"
    DEFERRED = "deferred"
    """The node has no room for the size yet."""
    IN_PROGRESS = "in-progress"
    INADMISSIBLE = "inadmissible"
    HELD = "held"
    """The mode was left; the count stays until the measured demand allows the owner's."""
    QUOTA = "quota"
    """The requested pods do not fit into a quota of their namespace."""
    RESTARTS = "restarts"
    OUTSIDE_WINDOW = "outside-window"
    """Sizes change at other times, as the policy says."""
    BRAKED = "braked"
    """Too many workloads would go down in one cycle; a person has to say that they may."""


LASTING = frozenset(
    {
        RefusalReason.SECOND_WRITER,
        RefusalReason.OWNED,
        RefusalReason.AMBIGUOUS,
        RefusalReason.UNREADABLE,
        RefusalReason.STOPPED,
        RefusalReason.ROLLED_BACK,
        RefusalReason.QUOTA,
        RefusalReason.OUTSIDE_WINDOW,
    }
)
"""Reasons that an owner should see: a person has to end them, or they last an hour or more."""


class WrittenObject(Protocol):
    """An object of the cluster; as text KIND NAMESPACE/NAME."""

    @property
    def key(self) -> tuple[str, ...]:
        """Key among the objects of the same actuator."""

    @property
    def version(self) -> str:
        """`resourceVersion`."""

    @property
    def workload(self) -> WorkloadId:
        """The workload that the object is about."""


@dataclass(frozen=True, slots=True)
class WorkloadObject:
    """An object of which only the name is known."""

    workload: WorkloadId
    name: str
    version: str = ""

    @property
    def key(self) -> tuple[str, ...]:
        """Return the identity of the object."""
        return self.workload.namespace, self.name


class WriteRefusal(NamedTuple):
    """One object that is left as it is although its policy would have it changed."""

    subject: WrittenObject
    code: RefusalReason
    message: str


class ClusterWrite(Protocol):
    """One change of one object; its text is the object and the value."""

    @property
    def subject(self) -> Any:
        """The object, of the version that the change was decided on."""

    @property
    def change(self) -> Change:
        """Kind of the change."""

    @property
    def reason(self) -> str:
        """Reason for the change."""

    @property
    def move(self) -> Move | None:
        """The count that is changed; None for a change to which no limit applies."""

    @property
    def marks(self) -> dict[str, Any]:
        """The marks that it leaves, by attribute of the object; none where it does not matter that they are lost."""

    def facts(self) -> dict[str, object]:
        """Return the fields of the audit line."""

    def on(self, fresh: Any) -> Self | None:
        """Return this change for the object as it is now; None if the facts of the decision have changed."""

    def bounded(self, count: int, reason: str, /) -> Self:
        """Return this change with the count that limits and quotas let through."""


class Fence(Protocol):
    """Whether this replica may write."""

    fault: str
    paused: bool
    resumed_at: datetime | None
    """Instant of the last `forecaster resume`, which lets a braked fleet go down."""

    def valid(self) -> bool:
        """Whether this replica may write now."""

    def leading(self) -> bool:
        """Whether it leads, paused or not."""


class AuditLog(Protocol):
    """Log of writes."""

    def info(self, event: str, **facts: object) -> object:
        """One line."""

    def warning(self, event: str, **facts: object) -> object:
        """One line that a person should see."""


W = TypeVar("W", bound=ClusterWrite)
W_contra = TypeVar("W_contra", bound=ClusterWrite, contravariant=True)


class WrittenCluster(Protocol[W_contra]):
    """The objects of one actuator. Each method raises ApiError."""

    def again(self, subject: Any) -> Any:
        """Read the object again from the API server."""

    def write(self, write: W_contra) -> None:
        """Carry out one change of the version that it was decided on."""

    def record(self, write: W_contra, at: datetime) -> None:
        """The Event of a change."""
