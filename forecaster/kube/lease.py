"""Election of the replica that may write, by a Lease (coordination.k8s.io/v1).

The rules are those of client-go's leaderelection. Instants written by other replicas are shown to people and never
compared: a Lease has expired when this replica, by its own monotonic clock, saw no renewal for the Lease's duration. A
leader may write until `WRITE_SECONDS` after the beginning of its last successful renewal, well before another replica
may take over; each writer checks `valid` right before each write.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus
from typing import NamedTuple, Protocol

import msgspec

from forecaster.kube.client import ApiClient, ApiError, suppress_conflict
from forecaster.kube.objects import ObjectMeta, Wire

PAUSE_ANNOTATION = "forecaster.dev/pause"
"""Annotation of the Lease that stops all writes while it is present and not `false`."""
RESUMED_ANNOTATION = "forecaster.dev/resumed-at"
"""Annotation of the Lease: instant of the last `forecaster resume`."""
ADDRESS_ANNOTATION = "forecaster.dev/leader-address"
"""Annotation of the Lease: where the other replicas ask its holder, `HOST:PORT`."""
VALID_SECONDS = 15
"""Duration of a Lease after its last renewal."""
WRITE_SECONDS = 7.0
"""Time after a renewal in which its holder begins writes. A write takes up to `REQUEST_SECONDS` to connect and as long
for its answer, and twice that where a kept connection had ended: it is over before another replica may write."""
REQUEST_SECONDS = 2.0
"""Timeout of the client that renews the Lease and writes under it."""
HOLD_SECONDS = 12.0
"""Time after a renewal in which its holder publishes: a table begun then is complete before `VALID_SECONDS`."""
RETRY_SECONDS = 2.0
JITTER = 0.2
"""Share by which a pause is longer at random, so that replicas do not ask in step."""


class LeaseSpec(msgspec.Struct, frozen=True, rename="camel"):
    """Every field is written, a None as null: a merge patch then takes the field away."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class Lease(Wire, frozen=True):
    """coordination.k8s.io/v1."""

    metadata: ObjectMeta = ObjectMeta()
    spec: LeaseSpec = LeaseSpec()

    @property
    def paused(self) -> bool:
        """Whether a person has stopped all writes by the annotation."""
        return self.metadata.annotations.get(PAUSE_ANNOTATION, "false") != "false"

    @property
    def resumed_at(self) -> datetime | None:
        """Instant of the last `forecaster resume`; None where the annotation is no instant."""
        try:
            at = datetime.fromisoformat(self.metadata.annotations.get(RESUMED_ANNOTATION, ""))
            return at.astimezone(UTC) if at.tzinfo else None
        except (ValueError, OverflowError):
            return None


def is_paused(leases: ApiClient, path: str) -> bool:
    """Whether all writes are stopped by the annotation of the Lease; not so where there is no Lease.

    Raises:
        ApiError: the Lease cannot be read, so it is not known.
    """
    try:
        return leases.get(path, Lease).paused
    except ApiError as error:
        if error.status == HTTPStatus.NOT_FOUND:
            return False
        raise


class LeaseAnnotations(Wire, frozen=True):
    """Merge patch of the annotations of a Lease."""

    metadata: ObjectMeta


def resume_falling(leases: ApiClient, path: str, now: datetime) -> Lease:
    """Write the annotation that lets a braked fleet go down; return the Lease.

    Raises:
        ApiError: the Lease cannot be read or written.
    """
    version = leases.get(path, Lease).metadata.resource_version
    meta = ObjectMeta(resource_version=version, annotations={RESUMED_ANNOTATION: now.isoformat(timespec="seconds")})
    return leases.patch(path, LeaseAnnotations(meta), Lease)


class PauseNews(Protocol):
    """Port of the actuators that a pause stops."""

    def __call__(self, *, paused: bool) -> None:
        """Pause writes, or resume them."""


class Leader(NamedTuple):
    """A replica that holds the Lease."""

    identity: str
    address: str
    """`HOST:PORT` of its secure listener; empty where it does not say."""


@dataclass(slots=True)
class Election:
    """Leader election of one replica; call `step` every few seconds in one thread, `valid` from any.

    `seconds` is monotonic; `clock` is written into the Lease.
    """

    leases: ApiClient
    path: str
    identity: str
    seconds: Callable[[], float]
    clock: Callable[[], datetime]
    address: str = ""
    """Written beside our name: where other replicas find what this one has published."""
    fault: str = ""
    """Reason why the Lease could not be read or written at the last step."""
    paused: bool = False
    resumed_at: datetime | None = None
    """Instant of the last `forecaster resume`, which lets a braked fleet go down."""
    tell_pause: PauseNews | None = None
    """Told at each reading of the Lease whether writes are paused; None where only writers ask for it."""
    leader: Leader | None = None
    """The other replica that holds the Lease, as read last; None where this one holds it, or none does."""
    _answered: float = float("-inf")
    _renewed: float = float("-inf")
    _lease: Lease | None = None
    _changed_at: float = 0.0
    _ended: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def valid(self) -> bool:
        """Whether this replica may write at this moment."""
        return self.leading() and not self.paused

    def leading(self) -> bool:
        """Whether this replica holds the Lease and may write, if that is not paused."""
        return self.seconds() < self._renewed + WRITE_SECONDS and not self._ended

    def holds(self) -> bool:
        """Whether no other replica can hold the Lease yet: what this one computes is published."""
        return self.seconds() < self._renewed + HOLD_SECONDS and not self._ended

    def answered_at(self) -> float:
        """Return when the API server was last asked and answered, in seconds since 1970; long ago if it never did."""
        return self.clock().timestamp() - (self.seconds() - self._answered)

    def step(self) -> None:
        """Renew the Lease, take it if it has expired, or read it. Raises nothing: `fault` has the failure."""
        with self._lock:
            if self._ended:
                return
            try:
                self._step()
                if self.tell_pause is not None:
                    self.tell_pause(paused=self.paused)
                self.fault = ""
            except ApiError as error:
                self.fault = "" if error.status == HTTPStatus.CONFLICT else _remedy(self.path, error)
            except Exception as error:  # noqa: BLE001  the boundary of a thread: without it nothing would lead again
                self.fault = f"{self.path}: {type(error).__name__}: {error}"

    def release(self) -> None:
        """Write nothing more and let another replica take over at once; for good."""
        with self._lock:
            held, self._ended = self._lease if self.holds() else None, True
            if held is not None:
                try:
                    self._write(held, LeaseSpec(None, 1, None, None, held.spec.lease_transitions))
                except ApiError as error:
                    self.fault = str(error)

    def _step(self) -> None:
        if self._lease is not None and self.leading():
            with suppress_conflict():  # of any other write, so also of a pause
                self._renew(self._lease, self.seconds())
                return
        began = self.seconds()
        lease = self._observed(self.leases.get(self.path, Lease), began)
        self.paused, self.resumed_at = lease.paused, lease.resumed_at
        if lease.spec.holder_identity == self.identity or self._has_run_out(lease, began):
            self._renew(lease, began)
        else:
            address = lease.metadata.annotations.get(ADDRESS_ANNOTATION, "")
            self._renewed, self.leader = float("-inf"), Leader(lease.spec.holder_identity or "", address)

    def _renew(self, lease: Lease, began: float) -> None:
        """Write the Lease over its last known version: while no other replica writes it, it need not be read again."""
        self._observed(self._write(lease, self._taken(lease)), began)
        self._renewed, self.leader = began, None

    def _observed(self, lease: Lease, at: float) -> Lease:
        """The Lease, with the moment at which this replica first saw it as it is now."""
        self._answered = at
        if self._lease is None or lease.spec != self._lease.spec:
            self._changed_at = at
        self._lease = lease
        return lease

    def _has_run_out(self, lease: Lease, at: float) -> bool:
        """Whether the Lease has no holder, or was not renewed within its validity."""
        lasts = lease.spec.lease_duration_seconds or VALID_SECONDS
        return not lease.spec.holder_identity or at >= self._changed_at + lasts

    def _taken(self, lease: Lease) -> LeaseSpec:
        """Return the Lease as held by this replica."""
        is_ours, now = lease.spec.holder_identity == self.identity, self.clock().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        changes = (lease.spec.lease_transitions or 0) + (not is_ours)
        since = lease.spec.acquire_time if is_ours and lease.spec.acquire_time else now
        return LeaseSpec(self.identity, VALID_SECONDS, since, now, changes)

    def _write(self, lease: Lease, spec: LeaseSpec) -> Lease:
        """Write the Lease over the version that was read: of two replicas one gets a conflict."""
        annotations = {ADDRESS_ANNOTATION: self.address} if self.address and spec.holder_identity else {}
        meta = ObjectMeta(resource_version=lease.metadata.resource_version, annotations=annotations)
        return self.leases.patch(self.path, Lease(meta, spec), Lease)


class ElectionThread:
    """Takes part in an election until it is closed; then the Lease is given back."""

    def __init__(self, election: Election) -> None:
        self._election = election
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="election", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Give the Lease back."""
        self._stopped.set()
        self._thread.join()
        self._election.release()

    def _run(self) -> None:
        while True:
            self._election.step()
            if self._stopped.wait(RETRY_SECONDS * random.uniform(1.0, 1.0 + JITTER)):  # noqa: S311  no secret
                return


def lease_path(namespace: str, name: str) -> str:
    """The path of a Lease."""
    return f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}"


def _remedy(path: str, error: ApiError) -> str:
    if error.status == HTTPStatus.NOT_FOUND:
        return f"{path}: there is no such Lease; apply deploy/base, which has it"
    if error.status == HTTPStatus.FORBIDDEN:
        return f"{error}; bind the rights of deploy/components/floor or replicas to this account"
    return str(error)
