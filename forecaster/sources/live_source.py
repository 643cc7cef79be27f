"""LiveSource: the inventory of the API server over that of Prometheus; histories come from Prometheus."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from forecaster.domain.amounts import duration_text
from forecaster.errors import SourceError
from forecaster.sources.inventory import of_series
from forecaster.sources.live import PAST_SECONDS, LiveCluster

if TYPE_CHECKING:
    from forecaster.domain.window import Inventory
    from forecaster.domain.workload import Workload, WorkloadId
    from forecaster.sources.live_objects import Misread
    from forecaster.sources.prometheus import PrometheusSource


class RelistedSource:
    """Another source without its inventory, which subclasses provide."""

    def __init__(self, source: PrometheusSource) -> None:
        self.source = source
        self.latest, self.history = source.latest, source.history
        self.containers, self.container_usage = source.containers, source.container_usage


class LiveSource(RelistedSource):
    """A source with live facts over the inventory of another one, which has histories and unwatched kinds.

    While no live facts are available, the other source's inventory is used, with a fault if `tells` is set.
    """

    def __init__(
        self,
        source: PrometheusSource,
        live: LiveCluster,
        clock: Callable[[], float] = time.time,
        *,
        tells: bool = False,
        signals: Sequence[str] = (),
    ) -> None:
        super().__init__(source)
        self.live, self._tells = live, tells
        self._signals = signals
        self.listed: tuple[datetime, frozenset[str]] | None = None
        """Instant of the last inventory, and the kinds that were live in it."""
        self.misread: list[Misread] = []
        """HPAs of the last inventory that read our demand in a way that has no answer; a sentence each."""
        self._clock = clock
        self._namespaces = re.compile(source.queries.namespaces)
        self._others: tuple[Workload, ...] = ()
        self._pods: Counter[WorkloadId] = Counter()  # counted when origins are first told after an inventory

    def inventory(self, at: datetime) -> Inventory:
        """Return every workload at `at`; an instant in the past is read from Prometheus alone. Raises SourceError."""
        past = self._clock() - at.timestamp() > PAST_SECONDS
        kinds = frozenset() if past else self.live.kinds() & set(self.source.queries.kinds)
        self.listed, self._pods = (at, kinds), Counter()
        policies = None if past else self.live.policies(self._namespaces)
        if kinds:
            live = self._with_others(self.live.inventory(at, kinds, self._namespaces))
            inventory = replace(live, policies=policies, started=self.live.started())
            self.listed = (at, inventory.whole)
            self.source.follow(inventory)
        else:
            inventory = replace(self.source.inventory(at), policies=policies)
        self.misread = self.live.misread(self._signals, self._namespaces) if kinds else []
        stated = policies.faults if policies else ()
        away = self.live.faults() if self._tells and not past else ()
        faults = (*map(str, self.misread), *stated, *away, *(() if past else self.live.left_out()))
        return replace(inventory, faults=(*inventory.faults, *faults)) if faults else inventory

    def live_kinds(self, at: datetime) -> frozenset[str]:
        """Kinds that were live in the inventory of that instant."""
        return self.listed[1] if self.listed is not None and self.listed[0] == at else frozenset()

    def _with_others(self, live: Inventory) -> Inventory:
        """Add workloads of other kinds; while these cannot be listed, they are held unchanged.

        The source is queried in any case, because its other queries need the containers that HPAs name.
        """
        try:
            inventory = self.source.inventory(live.at)
        except SourceError as error:
            partly = {other.id: f"not listed: {error}" for other in self._others}
            workloads, faults = _ordered(live, self._others), (*live.faults, str(error))
            return replace(live, workloads=workloads, faults=faults, partly=partly)
        live, foreign = _without_foreign(live, inventory)
        self._others = tuple(workload for workload in inventory.workloads if workload.id.kind not in live.whole)
        ids = {workload.id for workload in self._others}
        faults, mixed = of_series(inventory)
        partly = mixed | {id_: why for id_, why in inventory.partly.items() if id_ in ids}
        live = replace(live, faults=(*live.faults, *foreign, *faults), partial=inventory.partial)
        return replace(live, workloads=_ordered(live, self._others), partly=partly)

    def origins(self, id_: WorkloadId) -> list[str]:
        """Return sentences: the source of each fact of a workload, and the labels by which it is found."""
        queries = self.source.queries
        watch = self.live.workloads.get(id_.kind) if self.listed and id_.kind in self.listed[1] else None
        workload = watch.objects.get((id_.namespace, id_.name)) if watch else None
        if workload is None:
            every = duration_text(queries.specifications_every)
            return [f"Count, HPA and requests are those of kube-state-metrics in Prometheus, up to {every} old."]
        hpas = (f"HPA {key[1]} (version {hpa.meta.resource_version})" for key, hpa in self.live.scalers(id_))
        scalers = ", ".join(hpas) or "no HPA"
        self._pods = self._pods or self.live.pods_counted()
        pods = self._pods[id_]
        requests = f"requests of its pods ({pods})" if pods else "requests of the template, since no pods are known"
        live = f"Count, {scalers} and {requests} are those of the API server ({id_.kind} version {workload.version})"
        named = ", ".join(f"{key}={text}" for key, text in sorted(workload.labels.items()))
        labels = f"Its pods carry {workload.selector or 'no labels'}"
        return [
            f"{live}; usage and other histories are those of Prometheus.",
            f"{labels}; series are its own by namespace={id_.namespace} and pod, through the owners of its pods.",
            f"It has labels {named}, by which selectors of policies find it."
            if named
            else "It has no labels by which selectors of policies could find it.",
        ]

    def close(self) -> None:
        """Give the connections of the source back."""
        self.source.close()


MIN_FOREIGN = 3
"""Smallest number of workloads of a kind that only Prometheus reports; fewer may have been deleted just now."""


def _ordered(live: Inventory, others: Sequence[Workload]) -> tuple[Workload, ...]:
    return tuple(sorted((*live.workloads, *others), key=lambda workload: workload.id))


def _without_foreign(live: Inventory, recorded: Inventory) -> tuple[Inventory, list[str]]:
    """Remove kinds of which live facts lack a workload that Prometheus has; add a sentence for each.

    Then the API server is that of another cluster, or has lost its store, and its silence is no deletion: where it is
    silent of enough workloads of one kind, that of the few of another kind is none either.
    """
    counts = Counter(workload.id.kind for workload in recorded.workloads)
    shared = {id_.kind for id_ in set(live.ids) & set(recorded.ids)}
    foreign = {kind for kind in live.whole if counts[kind] and kind not in shared}
    if not any(counts[kind] >= MIN_FOREIGN for kind in foreign):
        return live, []
    own = tuple(workload for workload in live.workloads if workload.id.kind not in foreign)
    why = "none is at the API server; does kubernetes.kubeconfig, or queries.labels, name another cluster?"
    faults = [f"live facts: of {counts[kind]} workloads of kind {kind} in Prometheus {why}" for kind in sorted(foreign)]
    return replace(live, workloads=own, whole=live.whole - foreign), faults
