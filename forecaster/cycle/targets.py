"""Steps 1 and 2: the workloads of the cycle, and the history of each up to now.

A fleet that collapses from one cycle to the next means that the source is down: a restart of kube-state-metrics answers
with success and lists nothing, and a missing shard lists half. Workloads that vanish together are held, with the
reason, until they are back or the patience is over. A workload that vanishes alone is gone, as are those of a kind that
the API server lists as a whole. Where the source says that its list is partial, one that vanishes alone is held, too.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from types import MappingProxyType

import numpy as np

from forecaster.cycle.completeness import Completeness
from forecaster.demand.latest import SPARE_ROWS
from forecaster.domain.signal import OF_CONTAINER, PODS, Signal
from forecaster.domain.window import FIVE_MINUTES, MINUTE, Block, Gap, Inventory
from forecaster.domain.workload import Workload, WorkloadId
from forecaster.errors import SourceError, SourceTimeout, SourceUnavailable, StoreError
from forecaster.ports import Histories, Source

COLLAPSE_PATIENCE = timedelta(minutes=15)
"""Time for which workloads that vanished together are held: a rollout of kube-state-metrics takes minutes, and a
deleted namespace shows its last answers a quarter of an hour longer."""
EMPTY_PATIENCE = timedelta(days=1)
"""Time for which they are held while the source lists nothing, or says that its list is partial: such an outage may be
long, and a clock that is hours ahead makes every answer empty. As long as learned state is stored."""
COLLAPSED = 0.5
"""Share of a namespace or a kind whose disappearance at once means an incomplete source."""
COLLAPSED_FLEET = 1 / 3
"""Share of the whole fleet that means an incomplete source: one shard of three of kube-state-metrics is away."""
MIN_COLLAPSE = 3
"""Workloads of a namespace or kind whose loss is no single deletion."""
NOTHING_LOST: Mapping[WorkloadId, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Targets:
    """Workloads of this cycle. `down` says why they come from an earlier cycle; empty when they do not."""

    inventory: Inventory
    down: str = ""
    lost: Mapping[WorkloadId, str] = field(default_factory=lambda: NOTHING_LOST)
    """Reasons for holding workloads of the inventory that the source no longer lists, or lists in part."""


@dataclass(slots=True)
class WorkloadTracker:
    """Last listing of every workload, with its time, including workloads held as lost."""

    listed: dict[WorkloadId, tuple[Workload, datetime]] = field(default_factory=dict)

    def find(self, source: Source, now: datetime) -> Targets:
        """Ask the source; when it cannot say, keep the workloads that were known, so that each gets its hold."""
        try:
            inventory = source.inventory(now)
        except SourceError as error:
            return self.known(now, str(error))
        lost = self._lost(inventory)
        partly = dict(inventory.partly)
        held = [self.listed[id_][0] for id_ in lost]
        still_held = {id_: self.listed[id_] for id_ in lost}
        self.listed = {workload.id: (workload, inventory.at) for workload in inventory.workloads} | still_held
        if not lost:
            return Targets(inventory, lost=partly or NOTHING_LOST)
        faults = (*inventory.faults, *_sentences(lost))
        whole = replace(inventory, workloads=(*inventory.workloads, *held), faults=faults)
        return Targets(whole, lost={**lost, **partly})

    def known(self, now: datetime, down: str) -> Targets:
        """The workloads that were listed last, for a cycle that could not ask."""
        return Targets(Inventory(now, tuple(workload for workload, _ in self.listed.values())), down)

    def _lost(self, inventory: Inventory) -> dict[WorkloadId, str]:
        """The workloads that vanished together with others within our patience, and which others."""
        listed = set(inventory.ids)
        patience = COLLAPSE_PATIENCE if listed and not inventory.partial else EMPTY_PATIENCE
        missing = [
            id_
            for id_, (_, at) in self.listed.items()
            if id_ not in listed and id_.kind not in inventory.whole and inventory.at - at <= patience
        ]
        if not missing:
            return {}
        if inventory.partial:
            why = f"the answer that lists workloads is partial: {inventory.partial}"
            return {id_: f"{why}; held until {_until(self.listed[id_][1] + patience)}" for id_ in missing}
        known, gone, alone = _sizes(self.listed), _sizes(missing), _alone(self.listed, missing)
        lost: dict[WorkloadId, str] = {}
        for id_ in missing:
            for group in _groups(id_) if alone in {"", id_.namespace} else _groups(id_)[1:2]:
                if _collapsed(group, gone[group], known[group]):
                    missed = f"{known[group] - gone[group]} of {known[group]} workloads {group} are listed"
                    lost[id_] = f"{missed}; held until {_until(self.listed[id_][1] + patience)}"
                    break
        return lost


def _until(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M} UTC"


def _groups(id_: WorkloadId) -> tuple[str, ...]:
    return ("in all", f"of namespace {id_.namespace}", f"of kind {id_.kind}")


def _sizes(ids: Iterable[WorkloadId]) -> Counter[str]:
    return Counter(group for id_ in ids for group in _groups(id_))


def _alone(known: Iterable[WorkloadId], missing: Iterable[WorkloadId]) -> str:
    """Return the namespace that alone is being emptied: it lost the most, and of the others hardly any is missing."""
    listed, gone = (Counter(id_.namespace for id_ in ids) for ids in (known, missing))
    namespace, most = gone.most_common(1)[0]
    others, others_gone = listed.total() - listed[namespace], gone.total() - most
    return namespace if others_gone < COLLAPSED_FLEET / 2 * others else ""


def _collapsed(group: str, gone: int, known: int) -> bool:
    """Whether missing workloads mean a collapse: all of any fleet, or several of a namespace or kind at once."""
    if group == "in all":
        return gone == known or (gone >= MIN_COLLAPSE and gone >= COLLAPSED_FLEET * known)
    return gone >= MIN_COLLAPSE and gone >= COLLAPSED * known


def _sentences(lost: Mapping[WorkloadId, str]) -> Iterator[str]:
    """Yield one sentence for each cause of lost workloads."""
    ids_by_loss: dict[str, list[WorkloadId]] = defaultdict(list)
    for id_, why in lost.items():
        ids_by_loss[why.partition(";")[0]].append(id_)
    for why, ids in ids_by_loss.items():
        yield f"the list of workloads is incomplete: {why}; {len(ids)} are held as they were, {ids[0]} among them"


MAX_SLOW_SIGNALS = 2
"""Signals that may take too long in one cycle."""


def unwatched(part: str, share: float) -> None:
    """Ignore progress."""


def catch_up(
    history: Histories,
    source: Source,
    targets: Targets,
    now: datetime,
    completeness: Completeness | None = None,
    reached: Callable[[str, float], None] = unwatched,
) -> list[str]:
    """Bring history up to `now`; return one sentence for each signal that is missing or incomplete.

    `reached` is called with the signal that is being read, and the share of missing instants that is done, 0-1. A
    source that does not answer is queried once, not once per gap. Instants still missing are a gap of the next cycle,
    so an outage loses no point that the source itself recorded.
    """
    completeness = completeness or Completeness()
    completeness.begin(now)
    if targets.down:
        return [targets.down]
    named = containers_named(targets)
    for signal, containers in named.items():
        _follow(history, completeness.containers.setdefault(signal, {}), signal, containers)
    try:
        gaps = history.gaps(now)
        history.write(pods_block(targets, now))
    except StoreError as error:
        return [str(error)]
    needed = [gap for gap in gaps if (gap.signal != PODS or gap.start != now) and named.get(gap.signal, True)]
    failures = _ask(
        _pods_first(completeness.with_lookback(needed, now)), history, source, targets, now, completeness, reached
    )
    if not failures:
        again = completeness.due_again(history.signals, now)
        failures = _ask(again, history, source, targets, now, completeness)
    history.forget(Counter(workload.id.namespace for workload in targets.inventory.workloads))
    return list(dict.fromkeys([*failures, *completeness.sentences]))


def containers_named(targets: Targets) -> dict[Signal, dict[WorkloadId, str]]:
    """The container that the HPA of a workload looks at, by signal; a signal of containers without any is not asked."""
    scaled = [workload for workload in targets.inventory.workloads if workload.autoscaler]
    return {
        signal: {workload.id: container for workload in scaled if (container := workload.measured_container(resource))}
        for resource, signal in OF_CONTAINER.items()
    }


def _follow(history: Histories, before: dict[WorkloadId, str], signal: Signal, named: Mapping[WorkloadId, str]) -> None:
    """Have the past of containers read that HPAs have come to name; that of another one is not theirs."""
    in_history = history.window(signal, MINUTE).row if named.keys() - before.keys() else {}
    changed = [id_ for id_, container in named.items() if before.get(id_, container) != container]
    if changed or any(id_ not in before and id_ not in in_history for id_ in named):
        history.ask_again(signal, changed)
    before.update(named)
    if len(before) > 2 * len(named) + SPARE_ROWS:
        remaining = named.keys() | history.window(signal, FIVE_MINUTES).row.keys()
        for id_ in before.keys() - remaining:
            del before[id_]


def _pods_first(gaps: Sequence[Gap]) -> list[Gap]:
    """Order gaps: minutes before five minutes, ready pods before the demand that they divide, oldest first."""
    return sorted(gaps, key=lambda gap: (gap.step, gap.signal != PODS, gap.start))


def _ask(
    gaps: Sequence[Gap],
    history: Histories,
    source: Source,
    targets: Targets,
    now: datetime,
    completeness: Completeness,
    reached: Callable[[str, float], None] = unwatched,
) -> list[str]:
    """Query these gaps; return a sentence for each failure, and stop when the source does not answer at all.

    A signal with a query that takes too long is missing: other signals are queried, but not after many more time-outs.
    """
    workloads = {workload.id: workload for workload in targets.inventory.workloads}
    failures: list[str] = []
    slow: set[str] = set()
    behind, whole = 0, sum(gap.columns for gap in gaps)
    for gap in gaps:
        if gap.signal in slow:
            continue
        reached(gap.signal, min(behind / whole, 1.0))
        try:
            for block in _answers(source, gap, now):
                completeness.write(block, history, workloads, now)
                behind += block.values.shape[1]
                reached(gap.signal, min(behind / whole, 1.0))
        except SourceTimeout as error:
            failures.append(str(error))
            slow.add(gap.signal)
            if len(slow) >= MAX_SLOW_SIGNALS:
                return failures
        except SourceUnavailable as error:
            return [*failures, str(error)]
        except SourceError as error:
            failures.append(str(error))
    return failures


def _answers(source: Source, gap: Gap, now: datetime) -> Iterator[Block]:
    if gap.start == gap.end == now:
        yield source.latest(gap.signal, now)
    else:
        yield from source.history(gap.signal, gap.start, gap.end, gap.step)


def pods_block(targets: Targets, now: datetime) -> Block:
    """Ready pods of every workload at `now`: the inventory has them."""
    workloads = [workload for workload in targets.inventory.workloads if workload.id not in targets.lost]
    ready = np.array([[float(workload.ready_replicas)] for workload in workloads]).reshape(len(workloads), 1)
    return Block(PODS, tuple(workload.id for workload in workloads), now, MINUTE, ready)
