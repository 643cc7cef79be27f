"""Recommended sizes of each container, renewed in rotation, because they change by the day and not by the minute.

CronJobs are workloads without pods between their runs, sized by these runs; their count is not ours to decide.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING

from forecaster.demand.capacity import per_pod
from forecaster.demand.fresh import values_of
from forecaster.domain.decision import Hold, Reason, Recommendation
from forecaster.domain.signal import CPU, MEMORY, PODS
from forecaster.domain.window import FIVE_MINUTES
from forecaster.domain.workload import ContainerFacts, ContainerId, Resources, Workload, WorkloadId, total
from forecaster.errors import SourceError
from forecaster.forecasting.cold_start import family
from forecaster.sources.cron_jobs import MAX_CRON_JOBS, runs_of
from forecaster.vertical.sizing.cold_start import with_donors
from forecaster.vertical.sizing.containers import NO_SIZING, ContainerSizing, ContainerSpec, PodSizing, choose
from forecaster.vertical.sizing.load_forecast import UNFORECAST, PodLoad
from forecaster.vertical.sizing.memory import oom_floor
from forecaster.vertical.sizing.pod import size
from forecaster.vertical.sizing.runs import NO_RUNS, Runs, run_sizes

if TYPE_CHECKING:
    from forecaster.cycle.containers import Containers
    from forecaster.cycle.load_forecast import PodLoads
    from forecaster.cycle.run import Outcome
    from forecaster.domain.policies import Policies
    from forecaster.domain.vertical_policy import VerticalPolicy
    from forecaster.ports import Histories
    from forecaster.sources.prometheus import PrometheusSource

SIZING_ROUNDS = 60
"""Cycles between two sizings of a workload: an hour, with a cycle a minute."""
_SIGNALS = (CPU, MEMORY, PODS)
MAX_NEW_SIZES = 256
"""Workloads without a size that get one together, and more of them while there is time: no peak of memory."""
_CHUNK = 128
"""Number of workloads sized in one batch; inputs and results take about 0.9 MiB for each."""


@dataclass(slots=True)
class PodSizes:
    """Chosen sizes by workload."""

    known: dict[WorkloadId, PodSizing] = field(default_factory=dict)
    turn: int = 0
    first: int = MAX_NEW_SIZES
    """Workloads without a size that get one together, at most."""

    def renew(
        self,
        history: Histories,
        containers: Containers,
        policies: Policies,
        workloads: Sequence[Workload],
        loads: PodLoads | None = None,
        has_time: Callable[[], bool] = lambda: False,
    ) -> None:
        """Size some workloads without a size, those that are due, and further ones without a size while there is time.

        Neighbouring workloads are due together: they share a model, so that a cycle uses few models.
        """
        self.turn = (self.turn + 1) % SIZING_ROUNDS
        due = self._unsized(workloads) + self._in_turn(workloads)
        while due:
            self.known |= self._sized(history, containers, policies, due, loads)
            due = self._unsized(workloads) if has_time() else []
        if len(self.known) > 2 * len(workloads):
            self.known = {workload.id: self.known[workload.id] for workload in workloads if workload.id in self.known}

    def _sized(
        self,
        history: Histories,
        containers: Containers,
        policies: Policies,
        due: Sequence[Workload],
        loads: PodLoads | None,
    ) -> dict[WorkloadId, PodSizing]:
        divided = [workload for workload in due if containers.of_workload.get(workload.id)]
        whole = [workload for workload in due if not containers.of_workload.get(workload.id)]
        sized = sizings_of_containers(containers, policies, divided, loads)
        sized = with_donors(sized, self.known, containers.facts, policies, lambda id_: "/".join(family(id_)))
        return sized | sizings_of_pods(history, policies, whole, loads)

    def _unsized(self, workloads: Sequence[Workload]) -> list[Workload]:
        """Return the first workloads without a size."""
        return list(islice((workload for workload in workloads if workload.id not in self.known), self.first))

    def _in_turn(self, workloads: Sequence[Workload]) -> list[Workload]:
        """Return the workloads with a size that are due in this cycle."""
        sized = ((i, workload) for i, workload in enumerate(workloads) if workload.id in self.known)
        return [workload for i, workload in sized if i * SIZING_ROUNDS // len(workloads) == self.turn]

    def of(self, id_: WorkloadId) -> PodSizing:
        """Return the chosen sizes of a workload; empty if it was never sized."""
        return self.known.get(id_, NO_SIZING)


def sizings_of_pods(
    history: Histories, policies: Policies, workloads: Sequence[Workload], loads: PodLoads | None = None
) -> dict[WorkloadId, PodSizing]:
    """Size one pod of each of these workloads as a whole, from total demand divided by ready pods."""
    if not workloads:
        return {}
    weeks = {signal: history.window(signal, FIVE_MINUTES) for signal in _SIGNALS}
    sizings: dict[WorkloadId, PodSizing] = {}
    for policy, part in _alike(workloads, policies):
        ids = [workload.id for workload in part]
        pods = values_of(weeks[PODS], ids)
        cpu, memory = (per_pod(values_of(weeks[signal], ids), pods) for signal in (CPU, MEMORY))
        load_by_id = loads.of(part, policy) if loads else {}
        specs = [ContainerSpec(workload.resources, load=load_by_id.get(workload.id, UNFORECAST)) for workload in part]
        sized = choose(cpu, memory, FIVE_MINUTES, specs, policy)
        sizings |= {id_: (sizing,) for id_, sizing in zip(ids, sized, strict=True)}
    return sizings


def sizings_of_containers(
    containers: Containers, policies: Policies, workloads: Sequence[Workload], loads: PodLoads | None = None
) -> dict[WorkloadId, PodSizing]:
    """Size each container of these workloads for their hottest pods."""
    sizings: dict[WorkloadId, PodSizing] = {}
    for policy, part in _alike(workloads, policies):
        ids = [id_ for workload in part for id_ in containers.of_workload[workload.id]]
        cpu, memory = (containers.usage(ids, signal) for signal in (CPU, MEMORY))
        load_by_id = loads.of(part, policy) if loads else {}
        specs = [spec_of(id_, containers.facts, load_by_id.get(id_.workload, UNFORECAST)) for id_ in ids]
        sized = choose(cpu, memory, FIVE_MINUTES, specs, policy)
        by_id = dict(zip(ids, sized, strict=True))
        for workload in part:
            pod = containers.of_workload[workload.id]
            sizings[workload.id] = tuple(_explained(id_, by_id[id_], containers.facts) for id_ in pod)
    return sizings


def _alike(workloads: Sequence[Workload], policies: Policies) -> Iterator[tuple[VerticalPolicy, Sequence[Workload]]]:
    """Workloads of one policy together, in parts that fit in memory."""
    alike: dict[VerticalPolicy, list[Workload]] = defaultdict(list)
    for workload in workloads:
        alike[policies.of(workload.id).vertical].append(workload)
    for policy, same in alike.items():
        for begin in range(0, len(same), _CHUNK):
            yield policy, same[begin : begin + _CHUNK]


def spec_of(id_: ContainerId, facts: ContainerFacts, load: PodLoad = UNFORECAST) -> ContainerSpec:
    """Return the present size of a container and its recent events."""
    return ContainerSpec(
        facts.resources.get(id_, Resources()),
        oom_floor=oom_floor(facts.oom_limits.get(id_)),
        throttled=facts.held_back.get(id_, 0.0),
        load=load,
        name=id_.name,
    )


def _explained(id_: ContainerId, sizing: ContainerSizing, facts: ContainerFacts) -> ContainerSizing:
    """A container's size, or why it has none."""
    if id_ in facts.init:
        note = "an init container, which ends before the load comes; unchanged"
    elif id_ not in facts.images:
        note = "in no pod's specification: ephemeral, or gone; left out"
    else:
        return sizing
    return ContainerSizing(id_.name, sizing.now, note=note, runs=False)


_SCHEDULED = Hold(Reason.NO_TARGET, "its schedule decides when there are pods")


def with_cron_jobs(outcome: Outcome, source: PrometheusSource, policies: Policies) -> Outcome:
    """Return the outcome with every CronJob that had a pod within a week; without an answer they are left out."""
    at, facts = outcome.report.at, ContainerFacts()
    try:
        facts = source.containers(at)
        cron_jobs = sized_cron_jobs(facts, runs_of(source, at), policies, at)
    except SourceError as error:
        cron_jobs, failures = {}, [f"CronJobs are left out: {error}"]
    else:
        counts = Counter(workload.id.namespace for workload in cron_jobs)
        full = [name for name, count in counts.items() if count >= MAX_CRON_JOBS]
        failures = [f"CronJobs of {name}: no more than the {MAX_CRON_JOBS} oldest are read" for name in full]
    report = replace(outcome.report, failures=(*outcome.report.failures, *facts.unread, *failures))
    inventory = replace(outcome.inventory, workloads=(*outcome.inventory.workloads, *cron_jobs))
    return type(outcome)(inventory, [*outcome.recommendations, *cron_jobs.values()], report)


def sized_cron_jobs(
    facts: ContainerFacts, runs: Mapping[ContainerId, Runs], policies: Policies, at: datetime
) -> dict[Workload, Recommendation]:
    """Every CronJob with containers that are known, and the size of its runs."""
    alike: dict[VerticalPolicy, list[ContainerId]] = defaultdict(list)
    for container in sorted(facts.images):
        alike[policies.of(container.workload).vertical].append(container)
    sizings: dict[WorkloadId, PodSizing] = defaultdict(tuple)
    for policy, ids in alike.items():
        sized = run_sizes([runs.get(id_, NO_RUNS) for id_ in ids], [spec_of(id_, facts) for id_ in ids], policy)
        for id_, sizing in zip(ids, sized, strict=True):
            sizings[id_.workload] += (sizing,)
    return dict(_recommended(id_, sizings[id_], policies, at) for id_ in sorted(sizings))


def _recommended(
    id_: WorkloadId, sizing: PodSizing, policies: Policies, at: datetime
) -> tuple[Workload, Recommendation]:
    workload = Workload(id_, 0, 0, total(container.now for container in sizing))
    decided = size(workload, sizing, policies.of(id_).vertical)
    if isinstance(decided, Hold) and decided.reason is Reason.NO_DATA:
        decided = replace(decided, reason=Reason.SHORT_HISTORY)
    return workload, Recommendation(id_, at, 0, _SCHEDULED, workload.resources, decided)
