"""Writer: changes of the cluster one after the other, fenced, noted before they are sent, each with its Event.

What every actuator shares; what a change is made of, and how it is sent, is its own.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from dataclasses import dataclass, field
from enum import StrEnum
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self, TypeVar

from forecaster.actuators.turns import MAX_FAILED_AGAIN, WriteTurns, namespace_of
from forecaster.domain.amounts import counted
from forecaster.domain.report import Effected
from forecaster.errors import unexpected
from forecaster.kube.client import ApiError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from datetime import datetime

    from forecaster.actuators.settings import ActingSettings
    from forecaster.domain.workload import WorkloadId

MANAGER = "forecaster"
"""The field manager of everything that is written."""
BUDGET_SECONDS = 20.0
"""Seconds of a cycle for the writes of one actuator; what is left waits for the next cycle."""
SHOWN = 5
"""Refusals of a cycle that are written out in the log; a gauge counts all."""
MAX_TROUBLE = 5
"""Writes of a cycle that the API server may fail to answer before it is left alone until the next one."""


class Change(StrEnum):
    """What a write does. Few values: they are labels of metrics."""

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
    """What was resized has kept well and is no longer watched."""
    ROLL_BACK = "roll-back"
    """The value before ours again, because pods are worse off since."""


class RefusalReason(StrEnum):
    """Why an object is left as it is. Few values: they are labels of metrics."""

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
    """The pods that are asked for do not fit into a quota of their namespace."""
    RESTARTS = "restarts"


LASTING = frozenset(
    {
        RefusalReason.SECOND_WRITER,
        RefusalReason.OWNED,
        RefusalReason.AMBIGUOUS,
        RefusalReason.UNREADABLE,
        RefusalReason.STOPPED,
        RefusalReason.ROLLED_BACK,
        RefusalReason.QUOTA,
    }
)
"""Reasons that an owner should see: they end by what one does, or in an hour or more."""


class WrittenObject(Protocol):
    """An object of the cluster; as text KIND NAMESPACE/NAME."""

    @property
    def key(self) -> tuple[str, ...]:
        """What tells it from others of the same actuator."""

    @property
    def version(self) -> str:
        """`resourceVersion`."""

    @property
    def workload(self) -> WorkloadId:
        """The workload that the object is about."""


class WriteRefusal(NamedTuple):
    """One object that is left as it is although its policy would have it changed."""

    subject: WrittenObject
    code: RefusalReason
    message: str


class LeftAlone(NamedTuple):
    """Why a workload is left alone, for its status."""

    code: RefusalReason
    message: str


class ClusterWrite(Protocol):
    """One change of one object; as text the object and what is written."""

    @property
    def subject(self) -> Any:
        """The object, of the version that the change was decided on."""

    @property
    def change(self) -> Change:
        """What it does."""

    @property
    def reason(self) -> str:
        """Why."""

    def facts(self) -> dict[str, object]:
        """Return the fields of the audit line."""

    def on(self, fresh: Any) -> Self | None:
        """Return this change for the object as it is now; None if what it was decided by has changed."""


class Fence(Protocol):
    """Whether this replica may write."""

    fault: str
    paused: bool

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


class CarriedOut(NamedTuple):
    """What became of the writes of a cycle."""

    outcomes: Counter[tuple[str, str]]
    """Writes by (change, outcome)."""
    failures: list[str]


def _nothing(_: WorkloadId) -> str:
    return ""


@dataclass(slots=True)
class Writer:
    """Writes of one actuator, `name`, while this replica leads and nothing is paused."""

    name: str
    fence: Fence
    acting: ActingSettings
    log: AuditLog
    seconds: Callable[[], float] = time.monotonic
    """Monotonic clock, for durations."""
    beside: Callable[[WorkloadId], str] = _nothing
    """What scales or sizes a workload since this cycle looked, in words; nothing is written then."""
    refused: Mapping[tuple[str, ...], str] = field(default_factory=dict)
    """What was refused at the last look, by object: said when it changes."""
    lasting: Mapping[WorkloadId, WriteRefusal] = field(default_factory=dict)
    """Refusals that last, by workload."""
    turns: WriteTurns = field(default_factory=WriteTurns)
    """Failed writes, which wait for their next turn."""

    def effected(
        self,
        cluster: WrittenCluster[W],
        writes: Sequence[W],
        refusals: Sequence[WriteRefusal],
        now: datetime,
        unseen: Collection[WorkloadId] = (),
        **ours: int,
    ) -> Effected:
        """What a look at the cluster comes to: refusals are said, the rest is written; `ours` is what bears a mark.

        Of `unseen` workloads, which were not looked at this time, what lasted at their last look still does.
        """
        self._say(refusals, unseen)
        done = self._carry_out(cluster, writes, now)
        states = Counter(ours) + Counter(str(one.code) for one in refusals)
        return Effected(self.fence.leading(), done.outcomes, states, tuple(done.failures))

    def _carry_out(self, cluster: WrittenCluster[W], writes: Sequence[W], now: datetime) -> CarriedOut:
        """Write one after the other while this replica may; a line for each that failed."""
        done = CarriedOut(Counter(), [])
        if self.acting.paused or self.fence.paused:
            return done
        if self.fence.fault:
            done.failures.append(f"{self.name}: {self.fence.fault}")
            return done
        self._work_off(done, cluster, writes, now)
        return done

    def _work_off(self, done: CarriedOut, cluster: WrittenCluster[W], writes: Sequence[W], now: datetime) -> None:
        """Write in turns until all is written, time is over, or the API server does not answer."""
        until, troubles, failed_again = self.seconds() + BUDGET_SECONDS, 0, 0
        queue, hurt = deque(self.turns.ordered(writes)), set[str]()
        late: deque[W] = deque()
        """Writes in namespaces where one has failed in this cycle: every other namespace comes first."""
        while queue or late:
            write = queue.popleft() if queue else late.popleft()
            if self.seconds() > until or not self.fence.valid():
                done.failures.extend(self._left([write, *queue, *late]))
                return
            if queue and namespace_of(write) in hurt:
                late.append(write)
                continue
            again = self.turns.failed_before(write)
            error = self._tried(done, cluster, write, now)
            if error is None:
                continue
            hurt.add(namespace_of(write))
            troubles += _overloaded(error)
            failed_again += again
            if troubles >= MAX_TROUBLE or failed_again >= MAX_FAILED_AGAIN:
                done.failures.extend(self._left([*queue, *late], leads=True))
                return

    def _tried(self, done: CarriedOut, cluster: WrittenCluster[W], write: W, now: datetime) -> Exception | None:
        """Write one object and note in `done` what became of it."""
        error = self._written(cluster, write, now)
        outcome = self._outcome(error)
        done.outcomes[write.change, outcome] += 1
        self.turns.note(write, failed=outcome == "failed")
        if error is not None:
            done.failures.append(f"{write} not written: {_text(error)}")
        return error

    def _say(self, refusals: Sequence[WriteRefusal], unseen: Collection[WorkloadId]) -> None:
        """One line for all that are new, with the first of them in words."""
        unchanged = {id_: one for id_, one in self.lasting.items() if id_ in unseen}
        self.lasting = unchanged | {one.subject.workload: one for one in refusals if one.code in LASTING}
        new = [one for one in refusals if self.refused.get(one.subject.key) != one.code]
        if new:
            codes = dict(Counter(str(one.code) for one in new))
            self.log.info("writes_refused", by=self.name, codes=codes, first=[one.message for one in new[:SHOWN]])
        self.refused = {one.subject.key: str(one.code) for one in refusals}

    def _written(self, cluster: WrittenCluster[W], write: W, now: datetime) -> Exception | None:
        """Carry out one change, noted before it is sent; return what went wrong."""
        told = {"by": self.name, "object": str(write.subject), "change": str(write.change)}
        self.log.info(
            "cluster_write",
            **told,
            **write.facts(),
            reason=write.reason,
            version=write.subject.version,
            dry_run=self.acting.dry_run,
        )
        try:
            self._sent(cluster, write)
        except Exception as error:  # noqa: BLE001  a boundary by object: the others go on
            self.log.warning("cluster_write_failed", **told, error=_text(error))
            return error
        try:
            cluster.record(write, now)
        except ApiError as error:
            self.log.warning("cluster_event_lost", **told, error=str(error))
        return None

    def _sent(self, cluster: WrittenCluster[W], write: W) -> None:
        """Sent again where only what the object's own controller writes has changed meanwhile, which it does often."""
        self._check_beside(write)
        try:
            cluster.write(write)
        except ApiError as error:
            if error.status != HTTPStatus.CONFLICT:
                raise
            again = write.on(cluster.again(write.subject))
            if again is None or not self.fence.valid():
                raise
            cluster.write(again)

    def _check_beside(self, write: ClusterWrite) -> None:
        """Raises ApiError, 409, where something else has come that the write was not decided by."""
        if new := self.beside(write.subject.workload):
            raise ApiError(f"since this cycle looked, {new}; decided anew in the next one", HTTPStatus.CONFLICT)

    def _left(self, writes: Sequence[ClusterWrite], *, leads: bool | None = None) -> list[str]:
        """A line for writes that wait; none where another replica leads and carries them out."""
        leads = self.fence.leading() if leads is None else leads
        return [f"{self.name}: {counted(len(writes), 'change')} left for the next cycle"] if writes and leads else []

    def _outcome(self, error: Exception | None) -> str:
        if error is None:
            return "dry-run" if self.acting.dry_run else "written"
        return "conflict" if isinstance(error, ApiError) and error.status == HTTPStatus.CONFLICT else "failed"


def _text(error: Exception) -> str:
    return str(error) if isinstance(error, ApiError) else unexpected(error)


def _overloaded(error: Exception) -> bool:
    """Whether an error may be a sign of an API server in trouble."""
    if not isinstance(error, ApiError):
        return False
    busy = error.status == HTTPStatus.TOO_MANY_REQUESTS or error.status >= HTTPStatus.INTERNAL_SERVER_ERROR
    return busy or isinstance(error, UnreachableError)
