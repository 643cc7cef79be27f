"""What floors are made of: settings, HPAs as they are, offers, writes and refusals."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

from pydantic import Field

from forecaster.domain.settings import Duration, Section

if TYPE_CHECKING:
    from forecaster.domain.policy import Mode
    from forecaster.domain.workload import WorkloadId

Positive = Annotated[Duration, Field(gt=timedelta(0), le=timedelta(days=1))]
Ratio = Annotated[float, Field(gt=0, le=1)]
MANAGER = "forecaster"
"""The field manager of server-side apply."""


class FloorSettings(Section):
    """What is written for workloads in mode floor, and how fast."""

    enabled: bool = Field(
        default=False,
        description="Whether HPAs are looked at and written. Needs the rights of deploy/components/floor.",
    )
    dry_run: bool = Field(
        default=False, description="Send every write with dryRun=All: the API server judges it and keeps nothing of it."
    )
    paused: bool = Field(
        default=False,
        description="Write nothing; floors that are on end by themselves. At run time: the annotation "
        "forecaster.dev/pause of the Lease.",
    )
    lease: str = Field(
        "forecaster/forecaster",
        pattern=r"^[^/]+/[^/]+$",
        description="NAMESPACE/NAME of the Lease by which one replica writes, and with `replicas.enabled` computes. "
        "It has to be there.",
    )
    kubeconfig: Path | None = Field(
        None, description="Client configuration for the API server; default: the pod's own service account."
    )
    expires_after: Positive = Field(
        timedelta(minutes=15),
        description="How long a floor lasts that is not renewed; then `forecaster release --expired` puts the owner's "
        "value back. It is renewed at half of it, which is also how far clocks may differ.",
    )
    held_for: Positive = Field(
        timedelta(hours=1), description="How long a floor is renewed while nothing is known of its workload."
    )
    lower_after: Positive = Field(
        timedelta(minutes=5), description="A floor goes down to the highest that was asked for within this time."
    )
    back_off: Positive = Field(
        timedelta(hours=1), description="How long an HPA is left alone whose minReplicas another writer changed."
    )
    most_workloads: Ratio = Field(
        0.2,
        description="Share of the workloads in mode floor that one cycle may change, 5 at least, 500 at most; ratio.",
    )
    most_pods: Ratio = Field(
        0.2, description="Pods that one cycle may add, as a share of those there are, and ten at least; ratio."
    )
    most_growth: Annotated[float, Field(gt=0, le=10)] = Field(
        1.0,
        description="How far above its pods a floor may be raised in one cycle, as a share, and four at least; ratio.",
    )


class FloorChange(StrEnum):
    """What a write does. Few values: they are labels of metrics."""

    RAISE = "raise"
    LOWER = "lower"
    RENEW = "renew"
    """The same floor until a later expiry."""
    RESTORE = "restore"
    """The owner's value again, and nothing of ours left."""
    YIELD = "yield"
    """Another writer's value stays; ours is forgotten."""
    FORGET = "forget"
    """Marks of ours without a floor are removed."""


class RefusalReason(StrEnum):
    """Why a floor is not moved. Few values: they are labels of metrics."""

    SECOND_WRITER = "second-writer"
    OWNED = "owned"
    AMBIGUOUS = "ambiguous"
    UNREADABLE = "unreadable"
    RATE_LIMIT = "rate-limit"


class WrittenFloor(NamedTuple):
    """A floor that is on, as its annotations say."""

    before: int
    """The owner's `minReplicas`."""
    expires: datetime


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
    deleted: bool = False
    mode: Mode | None = None
    """By its annotation."""
    misread: str = ""
    """Why that is not a mode."""
    floor: WrittenFloor | None = None
    backed_off_until: datetime | None = None
    marked: bool = False
    """Whether it has a label of ours."""
    fault: str = ""
    """Why the owner's value is not known."""

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name."""
        return self.namespace, self.name

    @property
    def other_writers(self) -> str:
        """Field managers beside ours that own `spec.minReplicas`, in words."""
        return ", ".join(sorted(self.writers - {MANAGER}))

    def __str__(self) -> str:
        return f"HPA {self.namespace}/{self.name}"


class FloorOffer(NamedTuple):
    """What the offer says of one workload."""

    floor: int | None
    """None: not known, hold. 0: the forecast asks for nothing of its own."""
    may_lower: bool = True
    """False while what is measured is a lower bound."""


@dataclass(frozen=True, slots=True)
class Write:
    """One change of one HPA."""

    autoscaler: LiveAutoscaler
    change: FloorChange
    min_replicas: int
    """After the change."""
    reason: str
    floor: WrittenFloor | None = None
    """The floor that is on afterwards."""
    backed_off_until: datetime | None = None


class FloorRefusal(NamedTuple):
    """One HPA that is left as it is although it is in mode floor."""

    autoscaler: LiveAutoscaler
    code: RefusalReason
    message: str
