"""PolicyStatusWriter: the status of every PredictivePolicy, and Events, while this replica leads.

What each selects is found by a thread of its own, once the fleet or what is stated has changed: no decision waits.
"""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgspec

from forecaster.actuators.events import EventKind, InvolvedObject, create_event, event, instant_text
from forecaster.actuators.statuses import STILL
from forecaster.actuators.writes import MANAGER
from forecaster.kube.client import ApiError
from forecaster.kube.objects import Wire
from forecaster.resources.objects import API_VERSION, DEFAULT_POLICIES, DEFAULTS, path_of_all
from forecaster.resources.policy_status import PolicyStatus, Selected, SelectingLayer, policy_status
from forecaster.resources.status import is_news

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import datetime

    from forecaster.actuators.events import EventObject
    from forecaster.actuators.writes import AuditLog, Fence
    from forecaster.domain.policies import Policies
    from forecaster.domain.workload import WorkloadId
    from forecaster.kube.client import ApiClient
    from forecaster.publish.rows import OfferedCycle
    from forecaster.resources.objects import PolicyResource
    from forecaster.resources.status import Condition


class PolicyStatusPatch(Wire, frozen=True):
    """What is applied to the status subresource."""

    api_version: str
    kind: str
    metadata: dict[str, str]
    status: PolicyStatus


class PolicyStatusWrite(NamedTuple):
    """One status, and the conditions that are news."""

    resource: PolicyResource
    status: PolicyStatus
    news: Sequence[Condition]
    at: datetime


class PolicyStatuses(Protocol):
    """The status subresource of PredictivePolicies. Raises ApiError."""

    def write(self, write: PolicyStatusWrite) -> None:
        """One status, then its Events."""


class LivePolicyStatuses:
    """Statuses of policies, written through an API server."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client

    def write(self, write: PolicyStatusWrite) -> None:
        """Server-side apply of the object that was seen; another one of its name is a conflict."""
        one = write.resource
        path = f"{path_of_all(DEFAULT_POLICIES)}/{one.name}/status?fieldManager={MANAGER}&force=true"
        patch = PolicyStatusPatch(API_VERSION, DEFAULTS, {"name": one.name, "uid": one.uid}, write.status)
        self._client.apply(path, patch, dict[str, Any])
        for condition in write.news:
            create_event(self._client, policy_event(one, condition, write.at))


class SeenFleet(NamedTuple):
    """What statuses were made of last."""

    ids: Sequence[WorkloadId]
    stated: tuple[object, ...]


@dataclass(slots=True)
class PolicyStatusWriter:
    """Receives the offers of a cycle."""

    statuses: PolicyStatuses
    fence: Fence
    policies: Policies
    resources: Callable[[], Iterable[PolicyResource]]
    log: AuditLog
    outcomes: Counter[str] = field(default_factory=Counter)
    """Writes by what became of them."""
    _seen: SeenFleet | None = None
    _at: datetime | None = None
    _wake: threading.Event = field(default_factory=threading.Event)
    _closed: bool = False

    def receive(self, cycle: OfferedCycle) -> None:
        """Have statuses looked at where anything that they are made of has changed."""
        if self.sending or not self.fence.valid():
            return
        generations = tuple((one.uid, one.generation) for one in self.resources())
        cluster = self.policies.cluster
        seen = SeenFleet(cycle.ids, (generations, cluster.defaults, cluster.labels, self.policies.overrides))
        if seen != self._seen:
            self._seen, self._at = seen, cycle.at
            self._wake.set()

    @property
    def sending(self) -> bool:
        """Whether the statuses of an earlier cycle are still being sent."""
        return self._wake.is_set()

    def due(self, ids: Sequence[WorkloadId], now: datetime) -> list[PolicyStatusWrite]:
        """The statuses that are other ones than the objects have."""
        found = []
        fleet = self._fleet(ids)
        for one in self.resources():
            before = status_there(one)
            status = policy_status(one, fleet, before, now)
            if status != before:
                news = [each for each in status.conditions if is_news(before.condition(each.type), each)]
                found.append(PolicyStatusWrite(one, status, news, now))
        return found

    def send(self, writes: Sequence[PolicyStatusWrite]) -> None:
        """Send statuses while this replica may write; where one fails, all are looked at again in the next cycle."""
        failed: list[str] = []
        for write in writes:
            if self._closed or not self.fence.valid():
                self._seen = None
                return
            try:
                self.statuses.write(write)
                self.outcomes["written"] += 1
            except ApiError as error:
                self.outcomes["gone" if error.status in STILL else "failed"] += 1
                failed += [] if error.status in STILL else [f"{write.resource.layer.origin}: {error}"]
        if failed:
            self._seen = None
            self.log.warning("statuses_not_written", count=len(failed), first=failed[0])

    def run(self) -> None:
        """Send what is found until closed."""
        while self._wake.wait() and not self._closed:
            try:
                if self._seen is not None and self._at is not None:
                    self.send(self.due(self._seen.ids, self._at))
            except Exception as error:  # noqa: BLE001  the boundary of a thread: the next change is looked at
                self.log.warning("statuses_not_written", count=0, first=f"{error!r}")
            self._wake.clear()

    def close(self) -> None:
        """Send nothing more."""
        self._closed = True
        self._wake.set()

    def _fleet(self, ids: Sequence[WorkloadId]) -> Selected:
        layers = [SelectingLayer(*one) for one in self.policies.selecting()]
        combined = ((id_, self.policies.chosen.get(id_)) for id_ in ids)
        refused = {
            id_: {self.policies.layers(id_)[position].origin: why for position, why in one.refused}
            for id_, one in combined
            if one is not None and one.refused
        }
        return Selected(ids, self.policies.cluster.labels, layers, refused)


def status_there(one: PolicyResource) -> PolicyStatus:
    """The status that an object has; an empty one where it has none, or one of another version."""
    try:
        return msgspec.json.decode(one.status, type=PolicyStatus)
    except msgspec.DecodeError:
        return PolicyStatus()


def policy_event(one: PolicyResource, condition: Condition, at: datetime) -> EventObject:
    """What `kubectl describe predictivepolicy` shows of a change."""
    change = f"{one.uid} {one.generation} {condition.type} {condition.status} {condition.reason} {instant_text(at)}"
    involved = InvolvedObject("", one.name, one.uid, API_VERSION, DEFAULTS)
    kind = EventKind(condition.reason, warns=condition.status == "False")
    return event(involved, change, kind, f"{condition.type} is {condition.status}: {condition.message}", at)
