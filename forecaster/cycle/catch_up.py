"""Step 2: ask for every instant that is not answered yet, latest minutes first, and again for what was incomplete."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from forecaster.cycle.completeness import Completeness
from forecaster.demand.latest import SPARE_ROWS
from forecaster.domain.signal import OF_CONTAINER, PODS, Signal
from forecaster.domain.window import FIVE_MINUTES, MINUTE, Block, Gap
from forecaster.errors import SourceError, SourceTimeout, SourceUnavailable, StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime

    from forecaster.cycle.targets import Targets
    from forecaster.domain.workload import WorkloadId
    from forecaster.ports import Histories, Source

MOST_SLOW = 2
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
    """Bring the history up to `now`; returns one sentence for each thing that could not be had, or is incomplete.

    `reached` hears which signal is read, and the share of all missing instants that lies behind, 0-1.

    A source that does not answer is asked once, not once per gap. What stays missing is a gap of the next cycle, so no
    point is lost to an outage that the source itself recorded.
    """
    completeness = completeness or Completeness()
    completeness.begin(now)
    if targets.down:
        return [targets.down]
    named = containers_named(targets)
    for signal, mine in named.items():
        _follow(history, completeness.containers.setdefault(signal, {}), signal, mine)
    try:
        gaps = history.gaps(now)
        history.write(pods_block(targets, now))
    except StoreError as error:
        return [str(error)]
    asked = [gap for gap in gaps if gap.signal != PODS or gap.start != now]
    asked = [gap for gap in asked if named.get(gap.signal, True)]
    asked = completeness.looked_back(asked, now)
    failures = _ask(_pods_first(asked), history, source, targets, now, completeness, reached)
    if not failures:
        again = completeness.asked_again(history.signals, now)
        failures = _ask(again, history, source, targets, now, completeness)
    history.forget()
    return [*failures, *completeness.sentences]


def containers_named(targets: Targets) -> dict[Signal, dict[WorkloadId, str]]:
    """The container that the HPA of a workload looks at, by signal; a signal of containers without any is not asked."""
    scaled = [one for one in targets.inventory.workloads if one.autoscaler]
    return {
        signal: {one.id: container for one in scaled if (container := one.measured_container(resource))}
        for resource, signal in OF_CONTAINER.items()
    }


def _follow(history: Histories, before: dict[WorkloadId, str], signal: Signal, named: Mapping[WorkloadId, str]) -> None:
    """Have the past of containers read that HPAs have come to name; that of another one is not theirs."""
    here = history.window(signal, MINUTE).row if named.keys() - before.keys() else {}
    changed = [id_ for id_, container in named.items() if before.get(id_, container) != container]
    if changed or any(id_ not in before and id_ not in here for id_ in named):
        history.ask_again(signal, changed)
    before.update(named)
    if len(before) > 2 * len(named) + SPARE_ROWS:
        kept = named.keys() | history.window(signal, FIVE_MINUTES).row.keys()
        for id_ in before.keys() - kept:
            del before[id_]


def _pods_first(gaps: Sequence[Gap]) -> list[Gap]:
    """Minutes before five minutes, ready pods before what is held against them, and what is missing longest first."""
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
    """Ask for these gaps; return a sentence for each that failed, and stop when the source does not answer at all.

    A signal with a query that takes too long is missing: the others are asked for, but not many more time-outs.
    """
    workloads = {one.id: one for one in targets.inventory.workloads}
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
            if len(slow) >= MOST_SLOW:
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
    workloads = [one for one in targets.inventory.workloads if one.id not in targets.lost]
    ready = np.array([[float(workload.ready_replicas)] for workload in workloads]).reshape(len(workloads), 1)
    return Block(PODS, tuple(workload.id for workload in workloads), now, MINUTE, ready)
