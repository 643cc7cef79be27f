"""PolicyStatusWriter: the status of every PredictivePolicy, and Events, while this replica leads.

A thread of its own computes each selection once the fleet or the stated policies have changed: no decision waits.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from forecaster.actuators.marks import EventObject, InvolvedObject, create_event
from forecaster.actuators.statuses import StatusPatch, StatusSender, StatusWrite, condition_event, status_there
from forecaster.actuators.writes import MANAGER, AuditLog, Fence
from forecaster.resources.objects import API_VERSION, DEFAULT_POLICIES, DEFAULTS, PolicyResource, path_of_all
from forecaster.resources.policy_status import PolicyStatus, Selected, policy_status
from forecaster.resources.status import Condition, is_news

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import datetime

    from forecaster.domain.policies import Policies
    from forecaster.domain.workload import WorkloadId
    from forecaster.kube.client import ApiClient
    from forecaster.publish.publisher import OfferedCycle


PolicyStatusWrite: TypeAlias = StatusWrite[PolicyResource, PolicyStatus]


def write_policy_status(client: ApiClient, write: PolicyStatusWrite) -> None:
    """Apply a status to the object that was seen, then its Events; another one of its name is a conflict."""
    policy = write.resource
    path = f"{path_of_all(DEFAULT_POLICIES)}/{policy.name}/status?fieldManager={MANAGER}&force=true"
    patch = StatusPatch(API_VERSION, DEFAULTS, {"name": policy.name, "uid": policy.uid}, write.status)
    client.apply(path, patch, dict[str, Any])
    for condition in write.news:
        create_event(client, policy_event(policy, condition, write.at))


@dataclass(slots=True)
class PolicyStatusWriter:
    """Receives the offers of a cycle."""

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
        writes = []
        fleet = self._fleet(ids)
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


def policy_event(policy: PolicyResource, condition: Condition, at: datetime) -> EventObject:
    """Return the Event that `kubectl describe predictivepolicy` shows for a change."""
    involved = InvolvedObject("", policy.name, policy.uid, API_VERSION, DEFAULTS)
    return condition_event(involved, policy.generation, condition, at, warns=condition.status == "False")
