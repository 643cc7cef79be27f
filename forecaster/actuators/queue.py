"""WriteQueue: the intended writes of one actuator, carried out one after the other. All actuators use it.

Keyed by object, so that one object harms itself only: a webhook of its namespace may refuse its writes or answer late,
each time. Namespaces take turns, those with failing objects come last, and of the objects that failed before a few are
tried in each cycle, all of them as soon as one succeeds. Limits are charged for completed writes. Each change is logged
before it is sent, right after the last check whether this replica may still write.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, TypeVar

from forecaster.actuators.headroom import ReserveQuota, fitting, unbounded
from forecaster.actuators.limits import CycleLimits, Move, mass_fall
from forecaster.actuators.writes import LASTING, Change, ClusterWrite, RefusalReason, WorkloadObject, WriteRefusal
from forecaster.domain.amounts import counted
from forecaster.domain.report import Effected
from forecaster.domain.window import DAY
from forecaster.errors import unexpected
from forecaster.kube.client import ApiError, UnreachableError

if TYPE_CHECKING:
    from forecaster.actuators.settings import ActingSettings
    from forecaster.actuators.writes import AuditLog, Fence, WrittenCluster
    from forecaster.domain.workload import WorkloadId

BUDGET_SECONDS = 20.0
"""Seconds of a cycle for the reads of one actuator, and for its writes; the rest waits for the next cycle."""
SHOWN = 5
"""Refusals of a cycle that are written out in the log; a gauge counts all."""
MAX_TROUBLE = 5
"""Unanswered writes in a row after which the API server gets no more until the next cycle."""
MAX_FAILED_AGAIN = 20
"""Writes that fail once more in a cycle after which the rest of those that failed before waits for the next one."""
LONG_WAIT = timedelta(minutes=10)
"""Time after which a namespace that waits for its turn is named, and without a write counts as not written to."""
RESUME_DURATION = timedelta(hours=1)
"""Time for which a person's command lifts the brake: a fleet shrinks over several cycles."""
FIRST, RAISES, LOWERS = range(3)
"""Order of changes: unlimited ones and those of workloads that are worse off, rises, reductions."""

W = TypeVar("W", bound=ClusterWrite)
K = TypeVar("K")
S = TypeVar("S")


@dataclass(slots=True)
class WriteBatch:
    """Writes of one cycle, or of one release: their limits, and the writes held back."""

    now: datetime
    limits: CycleLimits | None = None
    """None: a person's command has no limits."""
    reserve: ReserveQuota = unbounded
    """Reserves what quotas leave for more pods."""
    meanwhile: Mapping[tuple[str, ...], Any] = field(default_factory=dict)
    """Changes that keep an object as it is while its own one waits, by key."""
    refused: list[WriteRefusal] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    """A line for each write that failed, and for those not tried."""


@dataclass(slots=True)
class WriteTurns:
    """Failed writes of one actuator: the namespace of each object, in the order in which they were tried last."""

    failed: dict[tuple[str, ...], str] = field(default_factory=dict)
    written: dict[str, datetime] = field(default_factory=dict)
    """Instant of the last write that succeeded, by namespace; those of a day."""
    marks: dict[tuple[str, ...], tuple[datetime, str, dict[str, Any]]] = field(default_factory=dict)
    """Marks that the last write of an object left, with its instant and the object's uid; those of a day."""

    def ordered(self, writes: Sequence[W]) -> list[W]:
        """One write of each namespace in turn, namespaces with failing objects last, what failed longest ago first."""
        due = {write.subject.key for write in writes}
        self.failed = {key: namespace for key, namespace in self.failed.items() if key in due}
        places = {key: place for place, key in enumerate(self.failed)}
        failing = set(self.failed.values())
        ranks: Counter[str] = Counter()
        turns: list[tuple[bool, bool, bool, int, int, W]] = []
        for write in sorted(writes, key=lambda write: (places.get(write.subject.key, -1), *_urgency(write))):
            namespace, lowers = namespace_of(write), _class(write) == LOWERS
            order = (write.subject.key in self.failed, namespace in failing, lowers, ranks[namespace], len(turns))
            turns.append((*order, write))
            ranks[namespace] += 1
        return [write for *_, write in sorted(turns, key=lambda turn: turn[:5])]

    def note(self, write: ClusterWrite, now: datetime, *, failed: bool) -> None:
        """Remember what became of a write; a conflict is a failure, too: webhooks choose what they answer."""
        self.failed.pop(write.subject.key, None)
        if failed:
            self.failed[write.subject.key] = namespace_of(write)
        else:
            self.written[namespace_of(write)] = now
            if write.marks:
                self.marks[write.subject.key] = now, write.subject.uid, write.marks

    def blocked(self, now: datetime) -> int:
        """Return in how many namespaces writes fail and none succeeds, where they are more than those written to.

        A single one is compared with all that were written to within a day: it may be its owner's doing.
        """
        self.written = {namespace: at for namespace, at in self.written.items() if abs(now - at) <= DAY}
        self.marks = {key: left for key, left in self.marks.items() if abs(now - left[0]) <= DAY}
        lately = {namespace for namespace, at in self.written.items() if abs(now - at) <= LONG_WAIT}
        failing = set(self.failed.values()) - lately
        others = lately if len(failing) > 1 else self.written.keys() - failing
        return len(failing) if len(failing) > len(others) else 0


@dataclass(slots=True)
class WriteQueue:
    """Writes of one actuator, `name`, while this replica leads and nothing is paused."""

    name: str
    fence: Fence
    acting: ActingSettings
    log: AuditLog
    seconds: Callable[[], float] = time.monotonic
    """Monotonic clock, for durations."""
    conflict: Callable[[WorkloadId], str] = lambda _: ""
    """Names the controllers that act on a workload since the cycle began; a write is refused if there are any."""
    budget_seconds: float = BUDGET_SECONDS
    max_trouble: int = MAX_TROUBLE
    refused: Mapping[tuple[str, ...], str] = field(default_factory=dict)
    """Refusals of the last cycle, by object: logged when they change."""
    lasting: Mapping[WorkloadId, WriteRefusal] = field(default_factory=dict)
    """Refusals that last, by workload."""
    turns: WriteTurns = field(default_factory=WriteTurns)
    """Failed writes, which wait for their next turn."""
    starving: Mapping[str, datetime] = field(default_factory=dict)
    """Instants since when changes of a namespace wait while those of others are tried."""
    braked_at: datetime | None = None
    """Since when the brake holds what would go down; None: it is off."""

    def effected(
        self,
        cluster: WrittenCluster[W],
        writes: Sequence[W],
        refusals: Sequence[WriteRefusal],
        now: datetime,
        not_read: Collection[WorkloadId] = (),
        *,
        limits: CycleLimits | None = None,
        reserve: ReserveQuota = unbounded,
        meanwhile: Mapping[tuple[str, ...], W] | None = None,
        **marked: int,
    ) -> Effected:
        """Log the refusals, carry out the writes, and return what became of them; `marked` counts objects by our marks.

        Lasting refusals of workloads that were `not_read` in this cycle stay.
        """
        batch = WriteBatch(now, limits, reserve, meanwhile or {}, list(refusals))
        unread = [refusal.message for refusal in refusals if isinstance(refusal.subject, UnreadObject)]
        batch.failures += unread[:SHOWN]
        outcomes: Counter[tuple[str, str]] = Counter()
        done: Counter[tuple[str, str]] = Counter()
        tried, due = set[tuple[str, ...]](), self._braked(writes, batch)
        for write, error in self.carried_out(cluster, due, batch):
            tried.add(write.subject.key)
            outcome = self._outcome(error)
            outcomes[write.change, outcome] += 1
            done[outcome, _reason(error) or str(write.change)] += 1
            if error is not None:
                batch.failures.append(f"{write} not written: {error_text(error)}")
        longest_wait = self._waited(due, tried, batch)
        self._say(batch.refused, not_read)
        codes = Counter(str(refusal.code) for refusal in batch.refused)
        reasons = done + Counter({("refused", code): count for code, count in codes.items()})
        states = Counter({**marked, "failing": len(self.turns.failed)}) + codes
        failures, braked = tuple(batch.failures), self.braked_at is not None
        further = braked, longest_wait, frozenset(tried), self.turns.blocked(now)
        return Effected(self.fence.leading(), outcomes, states, failures, reasons, *further)

    def read_each(
        self, read: Callable[[K], S | None], subjects: Sequence[tuple[WorkloadId, str, K]]
    ) -> tuple[list[S], list[WriteRefusal]]:
        """Read objects one after the other while there is time; one that may not be read is refused.

        Raises:
            ApiError: the API server has not answered, or throttles, several times in a row.
        """
        objects, refused, silent, until = list[S](), list[WriteRefusal](), 0, self.seconds() + self.budget_seconds
        for place, (workload, name, key) in enumerate(subjects):
            unread, label = UnreadObject(workload, name), f"{workload}: {name}"
            if self.seconds() > until:
                why = f"{label} and {len(subjects) - place - 1} more are not read in this cycle"
                refused.append(WriteRefusal(unread, RefusalReason.RATE_LIMIT, f"{why}, the API server is slow"))
                break
            try:
                live = read(key)
            except Exception as error:
                silent = silent + 1 if _reason(error) in {"unreachable", "429"} else 0
                if silent == MAX_TROUBLE:
                    raise
                refused.append(WriteRefusal(unread, RefusalReason.UNREADABLE, f"{label}: {error_text(error)}"))
            else:
                silent = 0
                objects += [] if live is None else [live]
        return objects, refused

    def remembered(self, subject: Any) -> Any:
        """Return an object with the marks of our last write where another writer took them off (`kubectl replace`)."""
        _, uid, marks = self.turns.marks.get(subject.key, (None, "", {}))
        unchanged = uid != subject.uid or subject.marked or not subject.other_writers
        return subject if unchanged or self.acting.dry_run else replace(subject, **marks)

    def carried_out(
        self, cluster: WrittenCluster[W], writes: Sequence[W], batch: WriteBatch
    ) -> Iterator[tuple[W, Exception | None]]:
        """Yield each write with its error until all is written, time is over, or the API server does not answer."""
        until, troubles, failed_again = self.seconds() + self.budget_seconds, 0, 0
        queue, hurt = deque(self.turns.ordered(writes if self._may_write(batch) else ())), set[str]()
        late: deque[W] = deque()
        """Writes in namespaces where one has failed in this cycle: every other namespace comes first."""
        while queue or late:
            write = queue.popleft() if queue else late.popleft()
            if queue and namespace_of(write) in hurt:
                late.append(write)
                continue
            if self.seconds() > until or not self.fence.valid():
                batch.failures.extend(self._left([write, *queue, *late]))
                return
            admitted = self._admitted(write, batch)
            if admitted is None:
                continue
            again, error = write.subject.key in self.turns.failed, self._tried(cluster, admitted, batch)
            yield admitted, error
            if error is None:
                troubles = 0
                continue
            hurt.add(namespace_of(write))
            troubles += _overloaded(error)
            failed_again += again
            if troubles >= self.max_trouble or failed_again >= MAX_FAILED_AGAIN:
                batch.failures.extend(self._left([*queue, *late], leads=True))
                return

    def _waited(self, writes: Sequence[W], tried: Collection[tuple[str, ...]], batch: WriteBatch) -> timedelta:
        """Return how long a namespace has waited at most while others had their turn, and say which ones wait long."""
        served = {namespace_of(write) for write in writes if write.subject.key in tried}
        held = {refusal.subject.key for refusal in batch.refused if refusal.code != RefusalReason.RATE_LIMIT}
        waiting = {namespace_of(write) for write in writes if write.subject.key not in held} - served
        if not served:  # none had a turn, so none is starved by others
            waiting &= self.starving.keys() if self.fence.valid() and not self.acting.paused else set()
        self.starving = {namespace: self.starving.get(namespace, batch.now) for namespace in sorted(waiting)}
        long = [(namespace, at) for namespace, at in self.starving.items() if batch.now - at >= LONG_WAIT]
        for name, at in long[:SHOWN]:
            batch.failures.append(f"{self.name}: changes in {name} wait since {at:%H:%M} UTC while others are tried")
        return max((batch.now - at for at in self.starving.values()), default=timedelta())

    def _may_write(self, batch: WriteBatch) -> bool:
        """Whether this replica may write in this cycle; a line where nothing is known of its Lease."""
        if self.acting.paused or self.fence.paused:
            return False
        if self.fence.fault:
            batch.failures.append(f"{self.name}: {self.fence.fault}")
        return not self.fence.fault

    def _braked(self, writes: Sequence[W], batch: WriteBatch) -> Sequence[W]:
        """Return the writes without those that take pods away, while the brake is on."""
        if batch.limits is None or not self.fence.leading():
            return writes
        fleet = batch.limits.fleet
        falling = mass_fall([write.move for write in writes if write.move], fleet, self.acting.most_falling)
        self.braked_at = self._brake_since(falling, batch.now)
        if self.braked_at is None:
            return writes
        held = [write for write in writes if write.move and write.move.lowers]
        why = f"{len(held)} of {counted(fleet, 'workload')} would go down in one cycle"
        since = f"braked since {self.braked_at:%H:%M} UTC"
        batch.failures.append(f"{self.name}: {since}, {why}; find out why, then `forecaster resume` lets them")
        batch.refused += [
            WriteRefusal(write.subject, RefusalReason.BRAKED, f"{write} waits, {since}: {why}") for write in held
        ]
        others = [write for write in writes if not (write.move and write.move.lowers)]
        return [*others, *(batch.meanwhile[key] for write in held if (key := write.subject.key) in batch.meanwhile)]

    def _brake_since(self, falling: int, now: datetime) -> datetime | None:
        """Return since when the brake is on. A person's word lifts it for a while; it stays on until then."""
        resumed = self.fence.resumed_at
        if resumed is not None and now - RESUME_DURATION < resumed <= now + RESUME_DURATION:
            return None
        return self.braked_at or (now if falling else None)

    def _admitted(self, write: W, batch: WriteBatch) -> W | None:
        """Return the change as far as limits and quotas let it, or what keeps its object while it waits."""
        admitted = _within(write, batch.limits, batch.reserve)
        if not isinstance(admitted, WriteRefusal):
            return admitted
        batch.refused.append(admitted)
        return batch.meanwhile.get(write.subject.key)

    def _tried(self, cluster: WrittenCluster[W], write: W, batch: WriteBatch) -> Exception | None:
        """Write one object, and charge the limits with the write."""
        error = self._written(cluster, write, batch.now)
        self.turns.note(write, batch.now, failed=error is not None)
        if batch.limits and write.move and error is None:
            batch.limits.charge(write.move)
        return error

    def _say(self, refusals: Sequence[WriteRefusal], not_read: Collection[WorkloadId]) -> None:
        """Report new refusals in one line, with the first of them in words."""
        before = {id_: refusal for id_, refusal in self.lasting.items() if id_ in not_read}
        self.lasting = before | {refusal.subject.workload: refusal for refusal in refusals if refusal.code in LASTING}
        new = [refusal for refusal in refusals if self.refused.get(refusal.subject.key) != refusal.code]
        if new:
            codes, first = dict(Counter(str(refusal.code) for refusal in new)), [refusal.message for refusal in new]
            self.log.info("writes_refused", by=self.name, codes=codes, first=first[:SHOWN])
        self.refused = {refusal.subject.key: str(refusal.code) for refusal in refusals}

    def _written(self, cluster: WrittenCluster[W], write: W, now: datetime) -> Exception | None:
        """Carry out one change, noted before it is sent; return what went wrong."""
        identity = {"by": self.name, "object": str(write.subject), "change": str(write.change)}
        self.log.info(
            "cluster_write",
            **identity,
            **write.facts(),
            reason=write.reason,
            version=write.subject.version,
            dry_run=self.acting.dry_run,
        )
        try:
            self._sent(cluster, write)
        except Exception as error:  # noqa: BLE001  a boundary by object: the others go on
            self.log.warning("cluster_write_failed", **identity, error=error_text(error))
            return error
        try:
            cluster.record(write, now)
        except Exception as error:  # noqa: BLE001  the value is written; its Event is told by the line above, too
            self.log.warning("cluster_event_lost", **identity, error=error_text(error))
        return None

    def _sent(self, cluster: WrittenCluster[W], write: W) -> None:
        """Send a write, again where only fields of the object's own controller have changed, as they often do."""
        if new := self.conflict(write.subject.workload):
            raise ApiError(f"since this cycle began, {new}; the next cycle decides anew", HTTPStatus.CONFLICT)
        try:
            cluster.write(write)
        except ApiError as error:
            if error.status != HTTPStatus.CONFLICT:
                raise
            again = write.on(cluster.again(write.subject))
            if again is None or not self.fence.valid():
                raise
            cluster.write(again)

    def _left(self, writes: Sequence[ClusterWrite], *, leads: bool | None = None) -> list[str]:
        """A line for writes that wait; none where another replica leads and carries them out."""
        leads = self.fence.leading() if leads is None else leads
        return [f"{self.name}: {counted(len(writes), 'change')} left for the next cycle"] if writes and leads else []

    def _outcome(self, error: Exception | None) -> str:
        if error is None:
            return "dry-run" if self.acting.dry_run else "written"
        return "conflict" if isinstance(error, ApiError) and error.status == HTTPStatus.CONFLICT else "failed"


class UnreadObject(WorkloadObject):
    """An object that could not be read."""


def _within(write: W, limits: CycleLimits | None, reserve: ReserveQuota) -> W | WriteRefusal:
    """Return a change as far as the limits of the cycle and the quotas of its namespace let it."""
    move = write.move
    if move is None or limits is None:
        return write
    count = limits.count(move)
    if count is None:
        message = f"{write} waits for the next cycle, this one has changed enough"
        return WriteRefusal(write.subject, RefusalReason.RATE_LIMIT, message)
    reason = write.reason if count == move.desired else f"{write.reason}; {count} in this cycle, by its rate limits"
    if count > move.written:
        try:
            fits = fitting(reserve, write.subject, count=count, written=move.written, pods=move.pods)
        except Exception as error:  # noqa: BLE001  a boundary by object: owners state the template of a custom resource
            message = f"{write} waits, its quotas: {error_text(error)}"
            return WriteRefusal(write.subject, RefusalReason.UNREADABLE, message)
        if isinstance(fits, WriteRefusal):
            return fits
        count, reason = fits[0], f"{reason}; {fits[1]}" if fits[1] else reason
    return write if reason == write.reason else write.bounded(count, reason)


def namespace_of(write: ClusterWrite) -> str:
    """Return the namespace of the object that is written."""
    return str(write.subject.workload.namespace)


def _urgency(write: ClusterWrite) -> tuple[int, float, tuple[str, ...]]:
    """Return the place of a change among others: raises before lowerings, what multiplies the most pods first."""
    return _class(write), -(write.move or Move()).multiplies, write.subject.key


def _class(write: ClusterWrite) -> int:
    if write.move is None or write.change == Change.ROLL_BACK:
        return FIRST
    return LOWERS if write.move.lowers else RAISES


def error_text(error: Exception) -> str:
    """Say what went wrong; an error that is no answer of the API server with its kind."""
    return str(error) if isinstance(error, ApiError) else unexpected(error)


def _reason(error: Exception | None) -> str:
    """Return why a write failed, as a label of a metric: the status that it was answered, or what came instead."""
    if error is None or isinstance(error, UnreachableError):
        return "unreachable" if error else ""
    return str(int(error.status)) if isinstance(error, ApiError) else "unexpected"


def _overloaded(error: Exception) -> bool:
    """Whether an error may be a sign of an API server in trouble."""
    if not isinstance(error, ApiError):
        return False
    busy = error.status == HTTPStatus.TOO_MANY_REQUESTS or error.status >= HTTPStatus.INTERNAL_SERVER_ERROR
    return busy or isinstance(error, UnreachableError)
