"""One report of the reports of all shards."""

from __future__ import annotations

from collections import Counter
from itertools import chain
from typing import TYPE_CHECKING, Any

from forecaster.domain.report import CycleReport

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from forecaster.domain.signal import Signal

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


def _summed(counts: Sequence[Mapping[Any, int]]) -> Counter[Any]:
    """By key; what is counted as none stays."""
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
