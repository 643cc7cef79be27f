"""What all shards decided and found, as one cycle would hand it over."""

from __future__ import annotations

from collections import Counter
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from forecaster.cycle.told_decisions import ToldDecisions, held_size
from forecaster.domain.decision import Reason
from forecaster.domain.report import CycleReport
from forecaster.publish.numbers import held_numbers
from forecaster.publish.offer import DecidedColumns

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from numpy.typing import NDArray

    from forecaster.cycle.told_decisions import ToldSize
    from forecaster.domain.signal import Signal
    from forecaster.domain.workload import Workload

SUMMED = ("series", "incomplete", "standings")
CHAINED = ("scores", "masked", "gates", "moved")
EACH_ONCE = ("failures", "late_steps")
"""What is wrong with the source is so for all shards."""


def merged(at: datetime, reports: Sequence[CycleReport]) -> CycleReport:
    """What shards found, as one cycle would tell it; without what is counted of the fleet, and its steps."""
    found: dict[str, Any] = {name: _summed([getattr(one, name) for one in reports]) for name in SUMMED}
    found |= {name: _chained(reports, name) for name in CHAINED}
    found |= {name: tuple(dict.fromkeys(_chained(reports, name))) for name in EACH_ONCE}
    ages = _youngest([one.newest_sample_age for one in reports])
    return CycleReport(at, newest_sample_age=ages, at_maximum=sum(one.at_maximum for one in reports), **found)


def merged_decisions(
    at: datetime,
    workloads: Sequence[Workload],
    parts: Sequence[tuple[NDArray[np.intp], DecidedColumns]],
    sizes: Sequence[ToldSize | None],
    unsaid: Callable[[Workload], str],
) -> ToldDecisions:
    """One decision about each workload: a part has those in its rows, all others are held with what `unsaid` says."""
    said = np.zeros(len(workloads), np.bool_)
    for rows, _ in parts:
        said[rows] = True
    said[[row for row, size in enumerate(sizes) if size is None]] = False
    told: list[Any] = [*sizes]
    others = np.flatnonzero(~said).tolist()
    for row in others:
        told[row] = held_size(Reason.FAILED, unsaid(workloads[row]))
    held = held_numbers([workloads[row] for row in others], Reason.FAILED, unsaid)
    rest = (np.array(others, np.intp), held)
    numbers = DecidedColumns.side_by_side(len(workloads), [*parts, rest])
    return ToldDecisions(at, workloads, numbers, told)


def _summed(counts: Sequence[Mapping[Any, int]]) -> Counter[Any]:
    """Sum counts by key; keys that were counted 0 stay."""
    found: Counter[Any] = Counter()
    for one in counts:
        found.update(one)
    return found


def _chained(reports: Sequence[CycleReport], name: str) -> tuple[Any, ...]:
    return tuple(chain.from_iterable(getattr(one, name) for one in reports))


def _youngest(ages: Sequence[Mapping[Signal, float]]) -> dict[Signal, float]:
    found: dict[Signal, float] = {}
    for one in ages:
        for signal, age in one.items():
            found[signal] = min(age, found.get(signal, age))
    return found
