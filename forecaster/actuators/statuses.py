"""Statuses of PredictiveAutoscalers as the offer has them, of PredictivePolicies, and Events, while this replica leads.

What has to be written is found in the cycle, by columns; it is sent by a thread of its own, so that no decision waits.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from http import HTTPStatus
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeAlias, TypeVar

import msgspec

from forecaster.actuators.limits import namespaces_in_turn
from forecaster.actuators.marks import EventKind, EventObject, InvolvedObject, create_event, event, instant_text
from forecaster.actuators.queue import error_text
from forecaster.actuators.writes import MANAGER, AuditLog, Fence
from forecaster.domain.layers import leaf_origins
from forecaster.kube.client import ApiClient, ApiError, decoder_of
from forecaster.kube.objects import NOT_READ, Wire
from forecaster.resources.objects import (
    API_VERSION,
    AUTOSCALER,
    AUTOSCALERS,
    DEFAULT_POLICIES,
    DEFAULTS,
    AutoscalerResource,
    PolicyResource,
    path_of_all,
)
from forecaster.resources.policy_status import PolicyStatus, Selected, policy_status
from forecaster.resources.status import AutoscalerStatus, Condition, Decided, is_news, news, status_of

if TYPE_CHECKING:
    from forecaster.domain.policies import Policies
    from forecaster.domain.workload import WorkloadId
    from forecaster.publish.publisher import OfferedCycle

MAKING_SECONDS = 0.5
"""Seconds of a cycle for making statuses; the rest waits for the next cycle."""
MAX_WRITES = 500
"""Writes of statuses in a cycle; the rest waits for the next cycle."""
REFRESH_SECONDS = 600.0
"""Time after which texts and amounts are written although no other field has changed."""
GONE = frozenset({HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT})
"""The object has gone, or another one has its name: nothing is to be written."""
UNDECLARED = "failed to create typed patch object"
"""Prefix of the API server's error when a definition does not declare an applied field."""


class StatusPatch(Wire, frozen=True):
    """Fields applied to the status subresource."""

    api_version: str
    kind: str
    metadata: dict[str, str]
    status: AutoscalerStatus | PolicyStatus


class StatusMerge(Wire, frozen=True):
    """Fields merged into the status; None removes a field."""

    metadata: dict[str, str]
    status: dict[str, Any]


R = TypeVar("R", AutoscalerResource, PolicyResource)
S = TypeVar("S", AutoscalerStatus, PolicyStatus)


class StatusWrite(NamedTuple, Generic[R, S]):
    """One status, and its conditions that are new."""

    resource: R
    status: S
    news: Sequence[Condition]
    at: datetime


AutoscalerWrite: TypeAlias = StatusWrite[AutoscalerResource, AutoscalerStatus]
W = TypeVar("W", bound=StatusWrite[Any, Any])


@dataclass(slots=True)
class StatusSender(Generic[W]):
    """Sends statuses from a thread of its own, while this replica may write."""

    write: Callable[[W], None]
    """Raises ApiError."""
    lost: Callable[[W], None]
    """Called with each status that was not written, so that the next cycle makes it again."""
    fence: Fence
    log: AuditLog
    outcomes: Counter[str] = field(default_factory=Counter)
    """Writes by what became of them."""
    _made: Callable[[], Sequence[W]] = tuple
    _wake: threading.Event = field(default_factory=threading.Event)
    _closed: bool = False

    @property
    def sending(self) -> bool:
        """Whether the statuses of an earlier cycle are still being sent."""
        return self._wake.is_set()

    def begin(self, made: Callable[[], Sequence[W]]) -> None:
        """Have the thread make statuses and send them."""
        self._made = made
        self._wake.set()

    def step(self) -> None:
        """Send the waiting statuses."""
        try:
            self.send(self._made())
        except Exception as error:  # noqa: BLE001  the boundary of a thread: the next cycle's are sent
            self.log.warning("statuses_not_written", count=0, first=f"{error!r}")
        self._wake.clear()

    def send(self, writes: Sequence[W]) -> None:
        """Send statuses while this replica may write."""
        failed: list[str] = []
        for write in writes:
            if self._closed or not self.fence.valid():
                self.lost(write)
                continue
            try:
                self.write(write)
                self.outcomes["written"] += 1
            except Exception as error:  # noqa: BLE001  a boundary by object: the others are written
                still = isinstance(error, ApiError) and error.status in GONE
                self.outcomes["gone" if still else "failed"] += 1
                self.lost(write)
                failed += [] if still else [f"{write.resource.layer.origin}: {error_text(error)}"]
        if failed:
            self.log.warning("statuses_not_written", count=len(failed), first=failed[0])

    def run(self) -> None:
        """Send statuses as they come until closed."""
        while not self._closed:
            self._wake.wait()  # `close` sets it, too, and a step that ends may take that back
            if not self._closed:
                self.step()

    def close(self) -> None:
        """Send nothing more."""
        self._closed = True
        self._wake.set()


class LiveStatuses:
    """Statuses of workload policies, written through an API server."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client
        self._older = False
        """Whether the definition is of a release that does not know every field."""

    def write(self, write: AutoscalerWrite) -> None:
        """Write it to the object that was seen; another one of its name is a conflict."""
        try:
            self._apply(write)
        except ApiError as error:
            if UNDECLARED not in str(error):
                raise
            self._older = True
            self._apply(write)
        for condition in write.news:
            create_event(self._client, condition_event(write.resource, condition, write.at))

    def _apply(self, write: AutoscalerWrite) -> None:
        """Server-side apply refuses a field that the definition does not know; of a merge it is left out."""
        resource, query = write.resource, f"fieldManager={MANAGER}"
        path = f"/apis/{API_VERSION}/namespaces/{resource.namespace}/{AUTOSCALERS}/{resource.name}/status?{query}"
        metadata = {"name": resource.name, "namespace": resource.namespace, "uid": resource.uid}
        if self._older:
            absent = dict.fromkeys(AutoscalerStatus.__struct_encode_fields__)
            self._client.patch(path, StatusMerge(metadata, absent | msgspec.to_builtins(write.status)), dict[str, Any])
        else:
            patch = StatusPatch(API_VERSION, AUTOSCALER, metadata, write.status)
            self._client.apply(f"{path}&force=true", patch, dict[str, Any])


@dataclass(slots=True)
class StatusWriter:
    """Writes the status of each PredictiveAutoscaler from the offers of a cycle, and its Events."""

    write: Callable[[AutoscalerWrite], None]
    """Writes one status, then its Events. Raises ApiError."""
    fence: Fence
    policies: Policies
    resources: Callable[[], Iterable[AutoscalerResource]]
    log: AuditLog
    disabled: Collection[str]
    """Modes that write to the cluster and are not enabled."""
    refusal: Callable[[WorkloadId], tuple[str, str] | None] = lambda _: None
    """Why the last cycle left a workload unchanged although its policy asks for a change: a word and a sentence."""
    seconds: Callable[[], float] = time.monotonic
    """Monotonic clock, for durations."""
    sender: StatusSender[AutoscalerWrite] = field(init=False)
    _known: dict[str, tuple[object, float]] = field(default_factory=dict)
    """Content and instant of each object's last status, by uid; the one checked longest ago comes first."""

    def __post_init__(self) -> None:
        self.sender = StatusSender(self.write, self._forget, self.fence, self.log)

    def receive(self, cycle: OfferedCycle) -> None:
        """Find the statuses that have to be written; none while another replica leads, or while the last are sent."""
        if not self.sender.sending and self.fence.valid():
            writes = self.due(cycle)
            self.sender.begin(lambda: writes)

    def due(self, cycle: OfferedCycle) -> list[AutoscalerWrite]:
        """The writes of one cycle: statuses that have changed, then amounts that are old, the longest unknown first.

        Namespaces take turns: one with thousands of statuses that always change keeps no other waiting.
        """
        places = {uid: place for place, uid in enumerate(self._known)}
        longest_ago = sorted(self.resources(), key=lambda resource: places.get(resource.uid, -1))
        resources = namespaces_in_turn(longest_ago, attrgetter("namespace"))
        for uid in places.keys() - {resource.uid for resource in resources}:
            del self._known[uid]
        begun, writes, aged = self.seconds(), list[AutoscalerWrite](), list[tuple[float, str, AutoscalerResource]]()
        for resource in resources:
            if len(writes) == MAX_WRITES or self.seconds() - begun > MAKING_SECONDS / 2:
                break
            facts, layers = self._facts(cycle, resource.target), self.policies.layers(resource.target)
            made_of = (resource.generation, resource.fault, facts, layers)
            before, at = self._known.pop(resource.uid, (None, 0.0))
            self._known[resource.uid] = (made_of, at)  # behind all that were not looked at
            if before != made_of:
                writes += self._made(resource, cycle, new=before is None)
            elif self.seconds() - at >= REFRESH_SECONDS:
                aged.append((at, resource.uid, resource))
        for _, _, resource in sorted(aged, key=lambda refresh: refresh[:2]):
            if len(writes) < MAX_WRITES and self.seconds() - begun <= MAKING_SECONDS:
                writes += self._made(resource, cycle)
        return writes

    def _facts(self, cycle: OfferedCycle, id_: WorkloadId) -> tuple[object, ...]:
        """Return the columns, and the refusal, that decide whether a status may differ from the last one."""
        row, refusal = cycle.rows.get(id_), self.refusal(id_)
        if row is None:
            return (refusal,)
        decided = cycle.decided
        facts = (decided.current[row], decided.recommended[row], decided.reason[row], decided.mode[row])
        return (refusal, *map(int, facts), *decided.texts_of(row))

    def _made(self, resource: AutoscalerResource, cycle: OfferedCycle, *, new: bool = False) -> list[AutoscalerWrite]:
        """The status, unless the object has it already; of an object that is `new` here amounts are no difference."""
        self._known[resource.uid] = (self._known[resource.uid][0], self.seconds())
        row = cycle.rows.get(resource.target)
        decided = Decided(
            cycle.recommendations[row] if row is not None else None,
            self.policies.stated(resource.target),
            self.policies.refused(resource.target),
            leaf_origins(self.policies.effective_layers(resource.target)),
            disabled=self.disabled,
            refusal=self.refusal(resource.target),
        )
        before = status_there(resource.status, AutoscalerStatus)
        status = status_of(resource, decided, before, cycle.at)
        same = status == before or (status.material() == before.material() and new)
        return [] if same else [StatusWrite(resource, status, news(before, status), cycle.at)]

    def _forget(self, write: AutoscalerWrite) -> None:
        self._known.pop(write.resource.uid, None)


def status_there(status: msgspec.Raw, kind: type[S]) -> S:
    """The status that an object has; an empty one where it has none, or one of another version."""
    try:
        return decoder_of(kind).decode(status)
    except NOT_READ:
        return kind()


def condition_event(resource: AutoscalerResource | PolicyResource, condition: Condition, at: datetime) -> EventObject:
    """Return the Event that `kubectl describe` shows for a condition that is news."""
    namespace, kind = (resource.namespace, AUTOSCALER) if isinstance(resource, AutoscalerResource) else ("", DEFAULTS)
    involved = InvolvedObject(namespace, resource.name, resource.uid, API_VERSION, kind)
    warns = condition.status == "False" and (condition.type == "Ready" or kind == DEFAULTS)
    about = f"{resource.uid} {resource.generation} {condition.type} {condition.status} {condition.reason}"
    message = f"{condition.type} is {condition.status}: {condition.message}"
    return event(involved, f"{about} {instant_text(at)}", EventKind(condition.reason, warns), message, at)


PolicyStatusWrite: TypeAlias = StatusWrite[PolicyResource, PolicyStatus]


def write_policy_status(client: ApiClient, write: PolicyStatusWrite) -> None:
    """Apply a status to the object that was seen, then its Events; another one of its name is a conflict."""
    policy = write.resource
    path = f"{path_of_all(DEFAULT_POLICIES)}/{policy.name}/status?fieldManager={MANAGER}&force=true"
    patch = StatusPatch(API_VERSION, DEFAULTS, {"name": policy.name, "uid": policy.uid}, write.status)
    client.apply(path, patch, dict[str, Any])
    for condition in write.news:
        create_event(client, condition_event(policy, condition, write.at))


@dataclass(slots=True)
class PolicyStatusWriter:
    """Writes the status of each PredictivePolicy where its selection has changed; a thread computes it."""

    write: Callable[[PolicyStatusWrite], None]
    """Writes one status, then its Events. Raises ApiError."""
    fence: Fence
    policies: Policies
    resources: Callable[[], Iterable[PolicyResource]]
    log: AuditLog
    sender: StatusSender[PolicyStatusWrite] = field(init=False)
    _inputs: tuple[object, ...] = ()
    """Inputs of the last statuses."""

    def __post_init__(self) -> None:
        self.sender = StatusSender(self.write, self._lost, self.fence, self.log)

    def receive(self, cycle: OfferedCycle) -> None:
        """Have statuses looked at where anything that they are made of has changed."""
        if self.sender.sending or not self.fence.valid():
            return
        generations = tuple((policy.uid, policy.generation) for policy in self.resources())
        cluster = self.policies.cluster
        inputs = (cycle.ids, generations, cluster.defaults, cluster.labels, self.policies.overrides)
        if inputs != self._inputs:
            self._inputs = inputs
            self.sender.begin(partial(self.due, cycle.ids, cycle.at))

    def due(self, ids: Sequence[WorkloadId], now: datetime) -> list[PolicyStatusWrite]:
        """The statuses that are other ones than the objects have."""
        writes, fleet = [], self._fleet(ids)
        for policy in self.resources():
            before = status_there(policy.status, PolicyStatus)
            status = policy_status(policy, fleet, before, now)
            if status != before:
                news = [new for new in status.conditions if is_news(before.condition(new.type), new)]
                writes.append(PolicyStatusWrite(policy, status, news, now))
        return writes

    def _lost(self, _: PolicyStatusWrite) -> None:
        """Look at all of them again in the next cycle."""
        self._inputs = ()

    def _fleet(self, ids: Sequence[WorkloadId]) -> Selected:
        combined = ((id_, self.policies.chosen.get(id_)) for id_ in ids)
        refused = {
            id_: {self.policies.layers(id_)[position].origin: why for position, why in chosen.refused}
            for id_, chosen in combined
            if chosen is not None and chosen.refused
        }
        return Selected(ids, self.policies.cluster.labels, [*self.policies.selecting()], refused)
