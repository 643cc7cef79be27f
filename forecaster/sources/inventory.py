"""Inventory: what kube-state-metrics says about workloads and their HPAs; specifications are read in rotation."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from forecaster.domain.amounts import counted, listed
from forecaster.domain.window import Inventory
from forecaster.domain.workload import Autoscaler, NamedContainer, Resources, Workload, WorkloadId
from forecaster.errors import SourceError
from forecaster.sources.facts import SPECIFICATIONS, WITH_TARGETS, Facts, HpaName, Identity, InstantRow
from forecaster.sources.live_targets import MAX_TARGETS, read_in_part
from forecaster.sources.pacing import BackOff

HPA_COUNT = "hpa_count"
"""Name of the query for the number of HPAs, a cheap way to notice that one was created or deleted."""
MAX_FAILED = 2
"""Queries about specifications that may fail in one cycle; the others wait for the next, each failure may be a
time-out."""
WHOLE_WITHIN = timedelta(minutes=10)
"""Time for which an HPA with missing series is queried in every cycle: its series appear with the next scrape."""
_DEFAULT_MIN_REPLICAS = 1
"""`spec.minReplicas` of autoscaling/v2 when it is absent."""


@dataclass(frozen=True, slots=True)
class Specifications:
    """Requested replicas, resources and HPAs by workload; `faults` names the objects that were not understood."""

    resources: Mapping[WorkloadId, Resources] = field(default_factory=dict)
    autoscalers: Mapping[WorkloadId, Autoscaler] = field(default_factory=dict)
    containers: Mapping[WorkloadId, tuple[NamedContainer, ...]] = field(default_factory=dict)
    """Containers that HPAs name."""
    faults: tuple[str, ...] = ()
    partly: Mapping[WorkloadId, str] = field(default_factory=dict)
    """Reason why the HPA of a workload is known in part only."""
    unknown: str = ""
    """Reason why the HPAs of all workloads are not known; empty where they are."""


def specifications_of(facts: Facts) -> Specifications:
    """Requests and limits of each workload, and its HPA."""
    faults: list[str] = []
    partly: dict[WorkloadId, str] = {}
    autoscalers = _autoscalers(facts, faults, partly)
    faults += _foreign(facts.identity)
    partly |= dict.fromkeys(facts.identity.several, SEVERAL_OBJECTS)
    return Specifications(_resources(facts), autoscalers, facts.hpa_containers or {}, tuple(faults), partly)


SEVERAL_OBJECTS = "its series come from several objects, of more than one cluster: select one in queries.labels"

NOTHING_LISTED = "no workload is listed: no series has the replicas of any "

NOT_HONOURED = "those of kube-state-metrics itself (label exported_pod): scrape it with honor_labels: true"


def of_series(inventory: Inventory) -> tuple[tuple[str, ...], dict[WorkloadId, str]]:
    """Return the faults and incomplete parts of usage: they hold whatever source provides counts and HPAs."""
    faults = tuple(
        fault
        for fault in inventory.faults
        if fault.endswith((SEVERAL_OBJECTS, NOT_HONOURED)) or fault.startswith(NOTHING_LISTED)
    )
    return faults, {id_: why for id_, why in inventory.partly.items() if why == SEVERAL_OBJECTS}


def _foreign(identity: Identity) -> Iterator[str]:
    """Yield the reasons for which these series belong to something else."""
    if identity.several:
        first = min(identity.several)
        yield f"{counted(len(identity.several), 'workload')} held, {first.kind} {first} among them: {SEVERAL_OBJECTS}"
    if identity.exported:
        yield f"{identity.exported} pods are reported as {NOT_HONOURED}"


def inventory_of(
    at: datetime,
    replicas: Mapping[WorkloadId, float],
    ready: Mapping[WorkloadId, float],
    specified: Specifications,
    kinds: Collection[str],
    *,
    narrowed: bool = False,
) -> Inventory:
    """Return every workload of these kinds, with its requested and its ready pods.

    An empty result is a fault, unless the queries were `narrowed` to some names.
    """
    known = [id_ for id_ in sorted(replicas) if id_.kind in kinds]
    workloads = tuple(
        Workload(
            id=id_,
            replicas=_count(replicas[id_]),
            ready_replicas=_count(ready[id_]),
            resources=specified.resources.get(id_, Resources()),
            autoscaler=specified.autoscalers.get(id_),
            containers=specified.containers.get(id_, ()),
        )
        for id_ in known
        if id_ in ready
    )
    partly = {workload.id: specified.unknown or specified.partly.get(workload.id, "") for workload in workloads}
    silent = [f"{id_.kind} {id_}: no series has its ready replicas; left out" for id_ in known if id_ not in ready]
    remedy = "see whether kube-state-metrics is scraped, and which namespaces and labels queries.* select"
    nothing = () if known or narrowed else (f"{NOTHING_LISTED}{', '.join(sorted(kinds))}; {remedy}",)
    faults = (*nothing, *specified.faults, *silent, *_pointless(specified.autoscalers, replicas, kinds))
    return Inventory(at, workloads, faults, {id_: why for id_, why in partly.items() if why})


IMPOSSIBLE_COUNT = 2.0**31
"""More pods than Kubernetes can count, so refused where it is used: any target may export a series of counts."""


def _count(pods: float) -> int:
    return round(min(pods, IMPOSSIBLE_COUNT))


def _resources(facts: Facts) -> dict[WorkloadId, Resources]:
    nothing: Mapping[str, float] = {}
    return {
        id_: Resources(
            cpu_request=(requests := facts.pod_requests.get(id_, nothing)).get("cpu"),
            cpu_limit=(limits := facts.pod_limits.get(id_, nothing)).get("cpu"),
            memory_request=requests.get("memory"),
            memory_limit=limits.get("memory"),
        )
        for id_ in facts.pod_requests.keys() | facts.pod_limits.keys()
    }


def _autoscalers(facts: Facts, faults: list[str], partly: dict[WorkloadId, str]) -> dict[WorkloadId, Autoscaler]:
    """Return the HPA of each workload. One that is not understood is named in `faults` and left out.

    An HPA reported in part is named in `partly`: it is used whole or not at all, and its workload is held meanwhile.
    The API server ensures that an HPA has a maximum and at least one metric.
    """
    autoscalers: dict[WorkloadId, Autoscaler] = {}
    for workload, names in facts.hpa_scale_targets.items():
        hpa = names[0]
        if len(names) > 1:
            several = listed([hpa.name for hpa in names])
            faults.append(f"{workload.kind} {workload}: scaled by more than one HPA ({several}); none is used")
        elif missing := _missing(hpa, facts):
            faults.append(f"HPA {hpa}: no series has its {missing}; {workload.kind} {workload} is held")
            partly[workload] = f"no series has the {missing} of its HPA {hpa.name}"
        else:
            lowest = _count(facts.hpa_min_replicas.get(hpa, _DEFAULT_MIN_REPLICAS))
            stated = facts.hpa_metric_targets.get(hpa, ())
            if len(stated) > MAX_TARGETS:
                faults.append(read_in_part(str(hpa), len(stated)))
            targets = tuple(stated[:MAX_TARGETS])
            autoscalers[workload] = Autoscaler(hpa.name, lowest, _count(facts.hpa_max_replicas[hpa]), targets)
    return autoscalers


WITH_FRACTIONS = (2, 5)
"""First version of kube-state-metrics that exports targets such as 500m; older ones leave them out."""


def _missing(hpa: HpaName, facts: Facts) -> str:
    """Name the missing series of an HPA."""
    if hpa not in facts.hpa_max_replicas:
        return "maxReplicas"
    targets = facts.hpa_metric_targets.get(hpa, ())
    if not targets:
        return "metrics"
    if facts.hpa_containers is None and any(target.container for target in targets):
        return "requests of the containers"
    versions = facts.state_metrics  # any pod may tell one more: a newer one leaves nothing out
    old = versions and all(older(version, WITH_FRACTIONS) for version in versions)
    return f"fractional targets (kube-state-metrics {versions[0]} leaves them out, 2.5 does not)" if old else ""


def older(version: str, than: tuple[int, int]) -> bool:
    """Whether a version such as v2.4.2 is older; False where it cannot be read."""
    match = re.match(r"v?(\d+)\.(\d+)", version)
    return match is not None and (int(match[1]), int(match[2])) < than


def _pointless(
    autoscalers: Mapping[WorkloadId, Autoscaler], replicas: Mapping[WorkloadId, float], kinds: Collection[str]
) -> list[str]:
    missing = [id_ for id_ in autoscalers if id_.kind in kinds and id_ not in replicas]
    return [
        f"HPA {id_.namespace}/{autoscalers[id_].name}: scales {id_.kind} {id_.name}, which no series describes"
        for id_ in sorted(missing)
    ]


class Rotation:
    """The last answer to each query about specifications, none older than `every` when it is used.

    All queries are sent at first and whenever a workload appears, so that its HPA and requests are known in its first
    cycle. Those about HPAs are also sent whenever the number of HPAs changes, and for some minutes while an HPA is
    reported in part. Otherwise they fall due one after the other, so that no cycle carries all of them. A query that
    fails keeps its last answer, is named, and is sent again after a pause.
    """

    def __init__(self, every: timedelta) -> None:
        self._every = every
        self._due_at: dict[str, datetime] = {}
        self._answered_at: dict[str, datetime] = {}
        self._back_off = BackOff()
        self._hpas: float | None = None
        self._late: Callable[[], bool] = lambda: False
        self._familiar: frozenset[WorkloadId] = frozenset()
        self._facts = Facts()
        self._made = Specifications()
        self._in_part: dict[WorkloadId, datetime] = {}
        """Instants since when workloads have an HPA that is reported in part."""

    @property
    def named(self) -> frozenset[str]:
        """The containers that HPAs name, as of the last answer."""
        return self._facts.named

    def specifications(
        self,
        at: datetime,
        ids: Collection[WorkloadId],
        ask: Callable[[str], Sequence[InstantRow]],
        late: Callable[[], bool] = lambda: False,
    ) -> Specifications:
        """Return the specifications of `ids` at `at`, after sending the queries that are due.

        Once it is `late` in a cycle, what else is due waits for the next one.
        """
        self._late = late
        due = [name for name in self._due(at, ids, ask) if not self._back_off.waits(name, at)]
        renewed = self._renewed(due, at, ask)
        if self._answered_at.get("hpa_metric_targets") == at:
            with_targets = [name for name in WITH_TARGETS if name != "hpa_containers" or self.named]
            renewed |= self._renewed([name for name in with_targets if not self._back_off.waits(name, at)], at, ask)
        if renewed:
            self._made = specifications_of(self._facts)
            self._in_part = {id_: self._in_part.get(id_, at) for id_ in self._made.partly}
        self._familiar = frozenset(ids)
        return replace(self._made, faults=(*self._made.faults, *self._old(at)), unknown=self._unknown())

    def _renewed(self, due: Sequence[str], at: datetime, ask: Callable[[str], Sequence[InstantRow]]) -> bool:
        """Send the queries that are due; return whether any was answered."""
        renewed, failed = False, 0
        for i, name in enumerate(due, 1):
            self._due_at[name] = at + self._every * i / len(due)
            if failed >= MAX_FAILED or (i > 1 and self._late()):
                self._due_at[name] = at
                continue
            rows = self._answer(name, at, ask)
            if rows is None:
                failed += 1
            else:
                self._facts, renewed = self._facts.renewed(name, rows), True
        return renewed

    def _answer(
        self, name: str, at: datetime, ask: Callable[[str], Sequence[InstantRow]]
    ) -> Sequence[InstantRow] | None:
        """Return the answer to one query; None if it failed."""
        try:
            rows = ask(name)
        except SourceError as error:
            self._back_off.failed(name, str(error), at)
            return None
        self._back_off.answered(name)
        self._answered_at[name] = at
        return rows

    def _due(self, at: datetime, ids: Collection[WorkloadId], ask: Callable[[str], Sequence[InstantRow]]) -> list[str]:
        if not self._due_at or not self._familiar.issuperset(ids):
            self._hpas = self._counted(at, ask)
            return list(SPECIFICATIONS)
        before, self._hpas = self._hpas, self._counted(at, ask)
        changed = self._hpas is not None and self._hpas != before
        changed |= any(timedelta() <= at - since < WHOLE_WITHIN for since in self._in_part.values())
        return [
            name
            for name in SPECIFICATIONS
            if not at < self._due_at[name] <= at + self._every
            or name in self._back_off.failures
            or (name == "hpa_metric_targets" and any(query in self._back_off.failures for query in WITH_TARGETS))
            or (changed and name.startswith("hpa_"))
        ]

    def _counted(self, at: datetime, ask: Callable[[str], Sequence[InstantRow]]) -> float | None:
        """Return the number of HPAs; None where it is not known."""
        rows = None if self._late() or self._back_off.waits(HPA_COUNT, at) else self._answer(HPA_COUNT, at, ask)
        return None if rows is None else sum(row.value for row in rows)

    def _old(self, at: datetime) -> Iterator[str]:
        """Yield one sentence for each query without an answer."""
        for name in (*SPECIFICATIONS, *WITH_TARGETS):
            why, latest = self._back_off.waiting(name, at) or self._back_off.why(name), self._answered_at.get(name)
            if why:
                yield f"{why}; {f'that of {latest:%H:%M} UTC is used' if latest else 'nothing is known of it yet'}"

    def _unknown(self) -> str:
        """Say what is not known yet of any workload; empty where everything is."""
        facts = {"hpa_scale_targets": "whether an HPA scales it is", "pod_requests": "what its pods request is"}
        return next((f"{fact} not known yet" for name, fact in facts.items() if name not in self._answered_at), "")
