"""Live facts: watched counts, HPAs and requests of the API server, and the inventory made of them.

Histories, other kinds, and whatever the API server refuses to say come from Prometheus, and a sentence says so.
"""

from __future__ import annotations

import re
import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from forecaster.domain.amounts import listed
from forecaster.domain.window import Inventory, StartedPod
from forecaster.domain.workload import KIND_GROUPS, Autoscaler, Resources, Spread, Target, Workload, WorkloadId
from forecaster.horizontal.lead_time import MAX_SCALE_UPS
from forecaster.kube.collection import Collection, Key
from forecaster.kube.objects import HorizontalPodAutoscaler, LabelledOnly, MetadataOnly, PodObject, Scalable
from forecaster.kube.watch import Watch
from forecaster.resources.neighbours import HPAS
from forecaster.sources.live_objects import (
    BUILT_IN_KINDS,
    NODES_PATH,
    PODS_PATH,
    REPLICA_SETS,
    Misread,
    NodePlace,
    hpa_of_object,
    mean_resources,
    named_containers,
    owner_of_object,
    place_of_object,
    pod_of_object,
    start_up,
    workload_id,
    workload_of_object,
)
from forecaster.sources.live_targets import MAX_TARGETS, misread, read_in_part
from forecaster.sources.stated import AnnotatedObject, StatedBefore, StatedObjects, StatedPolicies, cluster_policies
from forecaster.vertical.cluster_rules.node import POOL_LABELS

if TYPE_CHECKING:
    from forecaster.domain.layers import ClusterPolicies
    from forecaster.kube.client import ApiClient
    from forecaster.sources.live_objects import LiveHpa, LivePod, LiveWorkload
    from forecaster.sources.settings import ScalableKind


class Present(NamedTuple):
    """The count of a workload and the targets of its HPA, as they are now."""

    replicas: int
    targets: tuple[Target, ...]


EVERY_NAMESPACE = re.compile(".*")
NOWHERE = NodePlace()
"""Place of an unknown node."""
PAST_SECONDS = 300.0
"""Age from which on an inventory is read from Prometheus instead."""
MAX_STARTED = 20_000
"""Starts of pods that wait for a cycle. A replica that does not lead, or may not list HPAs, asks for none of them."""


class LiveCluster:
    """Watches of HPAs, workloads, ReplicaSets and pods, and their combined state.

    `changed` is called for each workload with a changed count or HPA, in the thread of a watch. It may be set
    before the start.
    """

    def __init__(
        self,
        kinds: Sequence[ScalableKind] = BUILT_IN_KINDS,
        changed: Callable[[WorkloadId], None] = lambda _: None,
        clock: Callable[[], float] = time.time,
        *,
        resources: bool = False,
        pool_labels: Sequence[str] = POOL_LABELS,
    ) -> None:
        """Prepare the watches; with `resources` also those of policies; `pool_labels` identify node pools."""
        self._clock, self.changed = clock, changed
        self.scaling: dict[WorkloadId, set[Key]] = {}
        """The HPAs of each workload, changed by the thread of their watch alone; others go through a copy."""
        self.hpas = Watch(Collection(HPAS, HorizontalPodAutoscaler), self._reduced, self._hpa_changed, clock=clock)
        self.workloads = {
            kind.kind: Watch(
                Collection(kind.path, Scalable, spares=True), workload_of_object, self._counted(kind.kind), clock=clock
            )
            for kind in kinds
        }
        self.replica_sets = Watch(
            Collection(REPLICA_SETS, MetadataOnly, metadata_only=True), owner_of_object, clock=clock
        )
        self.pods = Watch(Collection(PODS_PATH, PodObject, spares=True), self._pod, self._pod_changed, clock=clock)
        self.nodes = Watch(
            Collection(NODES_PATH, LabelledOnly, metadata_only=True),
            partial(place_of_object, labels=pool_labels),
            clock=clock,
        )
        self._started: deque[tuple[WorkloadId, StartedPod]] = deque(maxlen=MAX_STARTED)
        self.stated = StatedPolicies(clock) if resources else None
        self.before = StatedBefore()
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []

    @property
    def watches(self) -> tuple[Watch[Any, Any], ...]:
        """All watches; those without which there are no live facts come first."""
        stated = self.stated.watches if self.stated else ()
        return (self.hpas, *self.workloads.values(), self.replica_sets, self.nodes, self.pods, *stated)

    def start(self, client: ApiClient) -> None:
        """Start the watches, one thread for each collection."""
        for watch in self.watches:
            thread = threading.Thread(
                target=watch.run, args=(client, self._stop), name=f"watch {watch.path}", daemon=True
            )
            thread.start()
            self._threads.append(thread)

    def stop(self, client: ApiClient, timeout: float = 5.0) -> None:
        """End all watches."""
        self._stop.set()
        client.close()
        for thread in self._threads:
            thread.join(timeout)

    def wait(self, seconds: float) -> bool:
        """Wait until every collection is listed or refused; return whether all are."""
        until = time.monotonic() + seconds
        return all(watch.listed_or_refused(until) for watch in self.watches)

    def confirmed(self) -> float:
        """The instant up to which counts and HPAs are known, seconds since 1970; 0 where that is never.

        A kind that is refused, and has been for so long that no table has its facts, is left out.
        """
        lost = self._clock() - PAST_SECONDS
        watches = (watch for watch in self.workloads.values() if not watch.health.refused or watch.confirmed() > lost)
        instants = [watch.confirmed() for watch in watches]
        return min([self.hpas.confirmed(), *instants]) if instants else 0.0

    def kinds(self) -> frozenset[str]:
        """Kinds of which the whole list is known, and is young enough; none while HPAs are not."""
        if not self.hpas.fresh:
            return frozenset()
        return frozenset(kind for kind, watch in self.workloads.items() if watch.fresh)

    def present(self, id_: WorkloadId) -> Present | None:
        """Return the present state of a workload, None if it is absent; of several HPAs no target counts."""
        watch = self.workloads.get(id_.kind)
        workload = watch.objects.get((id_.namespace, id_.name)) if watch else None
        if workload is None:
            return None
        scalers = self.scalers(id_)
        return Present(workload.replicas, scalers[0][1].targets if len(scalers) == 1 else ())

    def scalers(self, id_: WorkloadId) -> list[tuple[Key, LiveHpa]]:
        """The HPAs that scale a workload, by name."""
        return [(key, hpa) for key in sorted(self.scaling.get(id_, ())) if (hpa := self.hpas.objects.get(key))]

    def faults(self) -> list[str]:
        """Collections that are not followed, and why; one sentence each."""
        return [
            f"live facts: {watch.path} is not known: {watch.health.fault or 'it is still being listed'}"
            for watch in self.watches
            if not watch.fresh
        ]

    def left_out(self) -> list[str]:
        """Return a sentence for each collection of which objects are not understood."""
        misread = {watch.path: objects for watch in self.watches if (objects := dict(watch.progress.misread))}
        return [f"live facts: {path}: {_left_out(objects)}" for path, objects in misread.items()]

    def started(self) -> dict[WorkloadId, tuple[StartedPod, ...]]:
        """Return the pods that became ready since the last call, by workload."""
        started: dict[WorkloadId, deque[StartedPod]] = defaultdict(lambda: deque(maxlen=MAX_SCALE_UPS))
        while self._started:
            owner, pod = self._started.popleft()
            started[self.above(owner)].append(pod)
        return {id_: tuple(pods) for id_, pods in started.items()}

    def _pod(self, pod: PodObject) -> LivePod | None:
        return pod_of_object(pod, self.pods.objects.get((pod.metadata.namespace, pod.metadata.name)))

    def _pod_changed(self, _key: Key, before: LivePod | None, after: LivePod | None) -> None:
        """Record the start of a pod that was seen before it was ready; the first readiness of other pods is unknown."""
        if before is None or after is None or before.ready or not (after.ready and after.created == before.created):
            return
        self._started.append((after.owner, StartedPod(start_up(after), self._place(after.node).pool)))

    def _place(self, node: str) -> NodePlace:
        return self.nodes.objects.get(("", node), NOWHERE)

    def pods_counted(self) -> Counter[WorkloadId]:
        """Number of running pods by workload; empty where it is not known."""
        return Counter(self.above(pod.owner) for pod in (list(self.pods.objects.values()) if self._owned() else ()))

    def running(self, workloads: Container[WorkloadId]) -> Iterator[tuple[WorkloadId, str, str, Resources]] | None:
        """Yield ready pods of these workloads: workload, namespace, name and size; None while they are not known."""
        if not self._owned():
            return None
        ready = ((key, pod) for key, pod in list(self.pods.objects.items()) if pod.ready and not pod.unready)
        return ((id_, *key, pod.resources) for key, pod in ready if (id_ := self.above(pod.owner)) in workloads)

    def living(self, workloads: Container[WorkloadId]) -> dict[WorkloadId, list[LivePod]] | None:
        """Return the pods of these workloads, ready or not; None while they are not known."""
        if not self._owned():
            return None
        pods: dict[WorkloadId, list[LivePod]] = defaultdict(list)
        for pod in list(self.pods.objects.values()):
            if (id_ := self.above(pod.owner)) in workloads:
                pods[id_].append(pod)
        return pods

    def workload(self, id_: WorkloadId) -> LiveWorkload | None:
        """Return the present state of a workload; None if it is absent or unknown."""
        watch = self.workloads.get(id_.kind)
        return watch.objects.get((id_.namespace, id_.name)) if watch and watch.fresh else None

    def daemons(self) -> dict[str, list[Resources]]:
        """Requests of each DaemonSet's pod, by node."""
        requests: dict[str, list[Resources]] = defaultdict(list)
        for pod in list(self.pods.objects.values()):
            if pod.owner.kind == "DaemonSet" and pod.node:
                requests[pod.node].append(pod.resources)
        return requests

    def inventory(self, at: datetime, kinds: Iterable[str], namespaces: re.Pattern[str]) -> Inventory:
        """Return every workload of these kinds and namespaces."""
        faults: list[str] = []
        by_pods, spreads = self._pod_means(), self._spreads()
        workloads, images = [], {}
        for kind in kinds:
            for (namespace, name), workload in list(self.workloads[kind].objects.items()):
                if namespaces.fullmatch(namespace):
                    id_ = workload_id(namespace, kind, name)
                    scaler = self._autoscaler(id_, faults)
                    resources = by_pods.get(id_, workload.resources)
                    named = named_containers(workload, scaler)
                    spread = spreads.get(id_, Spread())
                    workloads.append(Workload(id_, workload.replicas, workload.ready, resources, scaler, named, spread))
                    images[id_] = workload.image
        workloads.sort(key=lambda workload: workload.id)
        faults += self._pointless(namespaces)
        return Inventory(at, tuple(workloads), tuple(faults), whole=frozenset(kinds), images=images)

    def policies(self, namespaces: re.Pattern[str] = EVERY_NAMESPACE) -> ClusterPolicies:
        """Return the policies of annotations and custom resources; the last known ones while the API server is away.

        A collection that was not listed yet has the policies known to an earlier process. What owners state counts in
        the `namespaces` that are read.
        """
        self.before.objects = stated = self._stated(self.before.objects)
        labels = dict(stated.labels)
        autoscalers = [each for each in stated.autoscalers if namespaces.fullmatch(each.namespace)]
        workloads, hpas = (
            [each for each in annotated if namespaces.fullmatch(each.workload.namespace)]
            for annotated in (stated.workloads, stated.hpas)
        )
        return cluster_policies(stated.defaults, autoscalers, workloads, hpas, labels)

    def _stated(self, before: StatedObjects) -> StatedObjects:
        workloads, labels = self._annotations_and_labels(before)
        annotated = (
            AnnotatedObject(f"HPA {namespace}/{name}", hpa.scaled, hpa.meta.annotations)
            for (namespace, name), hpa in list(self.hpas.objects.items())
            if hpa.meta.annotations
        )
        hpas = tuple(sorted(annotated)) if self.hpas.known else before.hpas
        if self.stated is None:
            return StatedObjects(hpas, workloads, labels=labels)
        own, defaults = self.stated.autoscalers, self.stated.policies
        return StatedObjects(
            hpas,
            workloads,
            tuple(own.objects.values()) if own.known else before.autoscalers,
            tuple(defaults.objects.values()) if defaults.known else before.defaults,
            labels,
        )

    def _annotations_and_labels(
        self, before: StatedObjects
    ) -> tuple[tuple[AnnotatedObject, ...], tuple[tuple[WorkloadId, Mapping[str, str]], ...]]:
        """Workloads with annotations of ours, and the labels of all."""
        annotated: list[AnnotatedObject] = []
        labels: list[tuple[WorkloadId, Mapping[str, str]]] = []
        for kind, watch in self.workloads.items():
            if not watch.known:
                annotated += (stated for stated in before.workloads if stated.workload.kind == kind)
                labels += ((id_, texts) for id_, texts in before.labels if id_.kind == kind)
                continue
            for (namespace, name), workload in list(watch.objects.items()):
                id_ = workload_id(namespace, kind, name)
                if workload.annotations:
                    annotated.append(AnnotatedObject(f"{kind} {namespace}/{name}", id_, workload.annotations))
                if workload.labels:
                    labels.append((id_, workload.labels))
        return tuple(annotated), tuple(labels)

    def misread(self, signals: Sequence[str], namespaces: re.Pattern[str]) -> list[Misread]:
        """HPAs that read our demand in a way that has no answer; `signals` are those there are."""
        hpas = [hpa for (namespace, _), hpa in list(self.hpas.objects.items()) if namespaces.fullmatch(namespace)]
        return [Misread(hpa.meta, why) for hpa in hpas if (why := misread(hpa.targets, signals))]

    def _autoscaler(self, id_: WorkloadId, faults: list[str]) -> Autoscaler | None:
        """The HPA of a workload with its owner's bounds; several are named in `faults`, and none is used."""
        scalers = self.scalers(id_)
        if len(scalers) > 1:
            several = listed([name for (_, name), _ in scalers])
            faults.append(f"{id_.kind} {id_}: scaled by more than one HPA ({several}); none is used")
        if len(scalers) != 1:
            return None
        hpa = scalers[0][1]
        if len(hpa.spec.metrics) > MAX_TARGETS:
            faults.append(read_in_part(f"{id_.namespace}/{hpa.spec.name}", len(hpa.spec.metrics)))
        least = hpa.meta.owners_minimum(hpa.spec.bounds.min_replicas)
        return Autoscaler(hpa.spec.name, least, hpa.spec.bounds.max_replicas, hpa.targets)

    def _pointless(self, namespaces: re.Pattern[str]) -> Iterator[str]:
        for id_, keys in list(self.scaling.items()):
            watch = self.workloads.get(id_.kind)
            kind, dot, group = id_.kind.partition(".")
            if watch is not None and watch.fresh and (id_.namespace, id_.name) not in watch.objects:
                why = f"scales {id_.kind} {id_.name}, which is not there"
            elif dot and kind in KIND_GROUPS:
                named = f"{kind} of API group {group}" if group else f"{kind} of no API group"
                why = f"its scaleTargetRef names {named}, not of {KIND_GROUPS[kind]}; it scales none"
            else:
                continue
            if namespaces.fullmatch(id_.namespace):
                yield from (f"HPA {namespace}/{name}: {why}" for namespace, name in sorted(keys))

    def _pod_means(self) -> dict[WorkloadId, Resources]:
        """Mean resources of the pods of each workload that state them; nothing while pods cannot be listed.

        The mean, because the HPA divides the usage of all pods by the requests of all pods.
        """
        if not self._owned():
            return {}
        counts: dict[WorkloadId, dict[Resources, int]] = defaultdict(lambda: defaultdict(int))
        for pod in list(self.pods.objects.values()):
            counts[pod.owner][pod.resources] += 1
        by_workload: dict[WorkloadId, list[tuple[Resources, int]]] = defaultdict(list)
        for owner, each in counts.items():
            by_workload[self.above(owner)] += each.items()
        return {id_: mean_resources(each) for id_, each in by_workload.items()}

    def _spreads(self) -> dict[WorkloadId, Spread]:
        """Return the spread of each workload's ready pods; empty while pods cannot be listed."""
        if not self._owned():
            return {}
        counts: dict[WorkloadId, Counter[str]] = defaultdict(Counter)
        for pod in list(self.pods.objects.values()):
            if pod.ready and not pod.unready and pod.node:
                counts[pod.owner][pod.node] += 1
        by_workload: dict[WorkloadId, Counter[str]] = defaultdict(Counter)
        for owner, nodes in counts.items():
            by_workload[self.above(owner)] += nodes
        return {id_: self._spread(nodes) for id_, nodes in by_workload.items()}

    def _spread(self, nodes: Counter[str]) -> Spread:
        """Return the fullest node and zone, from pods counted by node; no zone where a node lacks a zone label."""
        zones: Counter[str] = Counter()
        for node, pods in nodes.items():
            zones[self._place(node).zone] += pods
        total = nodes.total()
        return Spread(max(nodes.values()) / total, None if "" in zones else max(zones.values()) / total)

    def above(self, owner: WorkloadId) -> WorkloadId:
        """The workload of a pod's controller: the owner of a ReplicaSet, any other controller itself."""
        if owner.kind != "ReplicaSet":
            return owner
        return self.replica_sets.objects.get((owner.namespace, owner.name), owner)

    def autoscalers(self) -> list[LiveHpa] | None:
        """All HPAs as they are now; None while that is not known."""
        return list(self.hpas.objects.values()) if self.hpas.fresh else None

    def _reduced(self, hpa: HorizontalPodAutoscaler) -> LiveHpa:
        return hpa_of_object(hpa, self.hpas.objects.get((hpa.metadata.namespace, hpa.metadata.name)))

    def _hpa_changed(self, key: Key, before: LiveHpa | None, after: LiveHpa | None) -> None:
        if before is not None and after is not None and before.spec == after.spec:
            return
        if before is not None:
            self.scaling[before.scaled].discard(key)
        if after is not None:
            self.scaling.setdefault(after.scaled, set()).add(key)
        for id_ in {hpa.scaled for hpa in (before, after) if hpa is not None}:
            if not self.scaling[id_]:
                del self.scaling[id_]
            self.changed(id_)

    def _counted(self, kind: str) -> Callable[[Key, LiveWorkload | None, LiveWorkload | None], None]:
        def heard(key: Key, before: LiveWorkload | None, after: LiveWorkload | None) -> None:
            if before is None or after is None or before.replicas != after.replicas:
                self.changed(workload_id(key[0], kind, key[1]))

        return heard

    def _owned(self) -> bool:
        """Whether pods and their owners were confirmed lately."""
        return self.pods.fresh and self.replica_sets.fresh


def _left_out(misread: Mapping[Key, str]) -> str:
    """Return a sentence with the first object that is not understood, and their number."""
    (namespace, name), why = next(iter(misread.items()))
    others = f", and so are {len(misread) - 1} more" if len(misread) > 1 else ""
    return f"{namespace}/{name} is left out, it is not understood ({why}){others}"
