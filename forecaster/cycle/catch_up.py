"""Step 2: ask for every instant that nobody has answered yet, newest minutes first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from forecaster.domain.signal import PODS
from forecaster.domain.window import MINUTE, Block, Gap
from forecaster.errors import SourceError, SourceUnavailable, StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from forecaster.cycle.targets import Targets
    from forecaster.ports import Histories, Source


def catch_up(history: Histories, source: Source, targets: Targets, now: datetime) -> list[str]:
    """Bring the history up to `now`; returns one sentence for each thing that could not be had.

    A source that does not answer is asked once, not once per gap. What stays missing is a gap of the next cycle, so no
    point is lost to an outage that the source itself recorded.
    """
    if targets.down:
        return [targets.down]
    failures: list[str] = []
    try:
        gaps = history.gaps(now)
        history.write(pods_block(targets, now))
    except StoreError as error:
        return [str(error)]
    for gap in gaps:
        if gap.signal == PODS and gap.start == now:
            continue
        try:
            for block in _answers(source, gap, now):
                history.write(block)
        except SourceUnavailable as error:
            return [*failures, str(error)]
        except SourceError as error:
            failures.append(str(error))
    history.forget()
    return failures


def _answers(source: Source, gap: Gap, now: datetime) -> Iterator[Block]:
    if gap.start == gap.end == now:
        yield source.latest(gap.signal, now)
    else:
        yield from source.history(gap.signal, gap.start, gap.end, gap.step)


def pods_block(targets: Targets, now: datetime) -> Block:
    """Ready pods of every workload at `now`: the inventory knows them, so nobody is asked again."""
    workloads = [one for one in targets.inventory.workloads if one.id not in targets.lost]
    ready = np.array([[float(workload.ready_replicas)] for workload in workloads]).reshape(len(workloads), 1)
    return Block(PODS, tuple(workload.id for workload in workloads), now, MINUTE, ready)
