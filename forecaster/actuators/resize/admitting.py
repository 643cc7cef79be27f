"""InitialActuator: what new pods of workloads in vertical mode initial are given, written to a file in every cycle.

The serving process answers the API server by it; nothing is sent to the cluster here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from forecaster.actuators.resize.actuator import chosen_sizes, decided_sizes
from forecaster.actuators.resize.learned_boost import StartBoosts
from forecaster.actuators.resize.pods import Resizes, resources_block
from forecaster.actuators.rollback import lasts
from forecaster.actuators.writes import Fence, RefusalReason, WorkloadObject, WriteRefusal
from forecaster.domain.decision import Hold, Reason, Recommendation
from forecaster.domain.report import Effected
from forecaster.errors import StoreError
from forecaster.publish.new_pods import NewPods, NewPodsFile, NewPodSize, write_new_pods
from forecaster.resources.neighbours import Neighbours
from forecaster.vertical.admission.cluster import requirements_of as in_milli
from forecaster.vertical.cluster_rules.manifest import node_of, requirements_of
from forecaster.vertical.cluster_rules.node import HOSTNAME, Node, Occupancy
from forecaster.vertical.cluster_rules.resource_list import MILLI, added, texts

if TYPE_CHECKING:
    from forecaster.actuators.neighbours import NeighboursAt
    from forecaster.actuators.resize.sized_pod import Sizes
    from forecaster.actuators.settings import ActingSettings
    from forecaster.domain.policies import Policies
    from forecaster.domain.workload import Resources, WorkloadId
    from forecaster.publish.publisher import OfferedCycle

Document = dict[str, Any]
AT_ONCE = 2
"""Times its pods that a workload may make before the quotas are read again, unless its maximum says more."""
NEAR = 0.25
"""Largest ratio between a running pod's size and one that new pods keep getting while no other is worth its cost."""


@dataclass(slots=True)
class InitialActuator:
    """Receives the recommendations of a cycle, and writes what new pods are given: `OfferReceiver` and `Actuator`."""

    cluster: Resizes
    path: Path
    interval: timedelta
    fence: Fence
    acting: ActingSettings
    policies: Policies
    neighbours: NeighboursAt
    """Reads other autoscalers in the cluster; a workload that a VPA sizes gets no size from us."""
    daemons: Callable[[], Mapping[str, Sequence[Resources]]]
    """Requests of DaemonSets' pods, by node."""
    starts: StartBoosts = field(default_factory=StartBoosts)
    offered: OfferedCycle | None = None
    given: dict[WorkloadId, NewPodSize] | None = None
    """Sizes given last; one is reused while the pods have it, unless another one is worth its cost."""
    lasting: Mapping[WorkloadId, WriteRefusal] = field(default_factory=dict)
    """Workloads sized by a VPA, by the rule of mode in-place."""

    def receive(self, cycle: OfferedCycle) -> None:
        """The recommendations that are acted on."""
        self.offered = cycle

    def act(self, now: datetime) -> Effected:
        """Replace the file; while writing is paused or tried out, by one that gives no size.

        Raises:
            ApiError: pods, nodes, LimitRanges or ResourceQuotas cannot be read; the file before is answered by until it
                ends.
        """
        stopped = self.acting.paused or self.acting.dry_run or self.fence.paused
        sizes = {} if stopped else self._sizes(now)
        away = {pod.workload for pod in self.cluster.marked() if lasts(pod.backed_off_until, now)} if sizes else set()
        neighbours = self.neighbours(now) if sizes else Neighbours()
        whys = {id_: why for id_ in sizes if (why := neighbours.writes_sizes(id_))}
        owned = {
            id_: WriteRefusal(WorkloadObject(id_, id_.name), RefusalReason.OWNED, why) for id_, why in whys.items()
        }
        self.lasting = owned
        offered = {id_: size for id_, size in sizes.items() if id_ not in away | owned.keys()}
        states = Counter({"offered": len(offered), "owned": len(owned), "rolled-back": len(away & sizes.keys())})
        try:
            write_new_pods(self.path, self._new_pods(now, offered))
        except StoreError as error:
            return Effected(self.fence.leading(), Counter(), Counter(), (str(error),))
        unread = self.starts.renew(self._learning(), offered, now, self.interval)
        return Effected(self.fence.leading(), Counter(), states, (unread,) if unread else ())

    def _learning(self) -> dict[WorkloadId, float]:
        """The largest boost of each workload that has a learned boost."""
        stated = [(id_, self.policies.stated(id_).vertical) for id_ in (self.offered.ids if self.offered else ())]
        return {id_: policy.startup_boost for id_, policy in stated if policy.startup_learned and policy.startup_boost}

    def _sizes(self, now: datetime) -> dict[WorkloadId, NewPodSize]:
        """Return the sizes decided now, and those given before where they fit."""
        if self.offered is None or self.offered.at != now:
            return {}
        decided = decided_sizes(self.offered, now, self._initial).items()
        fresh = {id_: self._size(id_, chosen_sizes(containers)) for id_, containers in decided}
        fitting = [id_ for id_ in self.offered.ids if self._initial(id_) and self._fits(id_)]
        if fitting and self.given is None:
            self.given = given_before(self.path, self.cluster)
        before = self.given or {}
        unchanged = {
            id_: before[id_] for id_ in fitting if id_ in before and near(self._decided(id_).resources_now, before[id_])
        }
        self.given = {id_: size for id_, size in (before | fresh).items() if id_ in self.offered.rows}
        return self._boosted(unchanged | fresh)

    def _boosted(self, sizes: dict[WorkloadId, NewPodSize]) -> dict[WorkloadId, NewPodSize]:
        """The sizes with more CPU for the start, and of workloads without a size of ours that alone."""
        boosted = dict(sizes)
        for id_ in self.offered.ids if self.offered else ():
            stated = self.policies.stated(id_).vertical
            if stated.startup_boost is not None and stated.mode != "observe":
                own = boosted.get(id_) or NewPodSize({}, self._replicas(id_), "Its own size.")
                seconds = stated.startup_for.total_seconds()
                boosts, why = self.starts.of(id_) if stated.startup_learned else ({}, "")
                boost = 1.0 if stated.startup_learned else stated.startup_boost
                boosted[id_] = msgspec.structs.replace(
                    own, boost=boost, boost_seconds=seconds, boosts=boosts, boost_why=why
                )
        return boosted

    def _fits(self, id_: WorkloadId) -> bool:
        decided = self._decided(id_).resources
        return isinstance(decided, Hold) and decided.reason is Reason.FITS

    def _decided(self, id_: WorkloadId) -> Recommendation:
        assert self.offered is not None  # noqa: S101  its ids are of it
        return self.offered.recommendations[self.offered.rows[id_]]

    def _initial(self, id_: WorkloadId) -> bool:
        stated = self.policies.stated(id_).vertical
        return stated.mode == "initial" or stated.evict

    def _new_pods(self, now: datetime, sizes: Mapping[WorkloadId, NewPodSize]) -> NewPods:
        seconds = self.interval.total_seconds()
        if not sizes:
            return NewPods(now, seconds, "")
        rules, namespaces = self.cluster.rules(), {id_.namespace for id_ in sizes}
        by_name: dict[str, dict[str, dict[str, NewPodSize]]] = {}
        for id_, size in sizes.items():
            by_name.setdefault(id_.namespace, {}).setdefault(id_.kind, {})[id_.name] = size
        ranges, quotas = (
            {namespace: documents for namespace, documents in by_namespace.items() if namespace in namespaces}
            for by_namespace in (rules.limit_ranges, rules.quotas)
        )
        nodes = nodes_with_free_capacity(self.cluster.nodes(), self.daemons())
        return NewPods(now, seconds, f"{rules.server.major}.{rules.server.minor}", by_name, ranges, quotas, nodes)

    def _size(self, id_: WorkloadId, sizes: Sizes) -> NewPodSize:
        return NewPodSize(_blocks(sizes), self._replicas(id_), self._decided(id_).resources.message)

    def _replicas(self, id_: WorkloadId) -> int:
        """Number of pods that must fit at once."""
        replicas = int(self.offered.offers.most[self.offered.rows[id_]]) if self.offered else 0
        return max(replicas, AT_ONCE * self._decided(id_).replicas_now, 1)


def given_before(path: Path, cluster: Resizes) -> dict[WorkloadId, NewPodSize]:
    """Return the sizes that the previous process gave, from its file or the pods. Raises ApiError."""
    known = NewPodsFile(path).latest()
    if known is not None and known.sizes:
        given = known.by_workload().items()
        return {id_: NewPodSize(size.containers, size.replicas, size.why) for id_, size in given if size.containers}
    given_sizes = {}
    for pod in cluster.marked(settled=True):
        if pod.resized is not None and pod.resized.new:
            sizes = {**pod.sizes, **pod.resized.started}
            given_sizes[pod.workload] = NewPodSize(_blocks(sizes), 1, "as its other pods")
    return given_sizes


def _blocks(sizes: Sizes) -> dict[str, Document]:
    return {name: resources_block(size) for name, size in sizes.items()}


def near(now: Resources, size: NewPodSize) -> bool:
    """Whether running pods have about that size."""
    requested = added(*(requirements_of(block).requests for block in size.containers.values()))
    has = in_milli(now).requests
    return all(abs(has.get(name, 0) - milli) <= NEAR * milli for name, milli in requested.items())


MAX_NODE_KINDS = 200
"""Number of kinds of nodes in memory, those with most free capacity: each answer of the webhook checks all of them."""


def nodes_with_free_capacity(nodes: Iterable[Document], daemons: Mapping[str, Sequence[Resources]]) -> list[Document]:
    """Nodes as the API server has them, with allocatable less what DaemonSets request there. Raises ManifestError."""
    known = (node_of(document) for document in nodes)
    left = [_left(node, daemons.get(node.name, ())) for node in known if not node.unschedulable]
    kinds = sorted(Occupancy(left).kinds, key=lambda node: sorted(node.allocatable.items()), reverse=True)
    return [_document(node) for node in kinds[:MAX_NODE_KINDS]]


def _left(node: Node, daemons: Sequence[Resources]) -> Node:
    taken = added(*(in_milli(daemon).requests for daemon in daemons), {"pods": MILLI * len(daemons)})
    left = {name: max(0, milli - taken.get(name, 0)) for name, milli in node.allocatable.items()}
    return replace(node, allocatable=left)


def _document(node: Node) -> Document:
    taints = [{"key": taint.key, "value": taint.value, "effect": taint.effect} for taint in node.taints]
    labels = {name: value for name, value in node.labels.items() if name != HOSTNAME}
    meta = {"name": node.name, "labels": {**labels, HOSTNAME: node.labels.get(HOSTNAME, node.name)}}
    return {"metadata": meta, "spec": {"taints": taints}, "status": {"allocatable": texts(node.allocatable)}}
