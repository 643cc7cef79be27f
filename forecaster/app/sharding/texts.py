"""What is said of workloads beside their numbers: a worker tells what has changed, and the service keeps it."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from forecaster.cycle.told_decisions import OTHERS, ToldTexts
from forecaster.horizontal.columns import taken
from forecaster.publish.decided import TextVersions

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from numpy.typing import NDArray

    from forecaster.domain.decision import Hold, Resize
    from forecaster.domain.workload import WorkloadId
    from forecaster.horizontal.row import RowWords
    from forecaster.publish.decided import DecidedRows

NEVER_TOLD = -np.inf


class ShardTexts(NamedTuple):
    """What is said of some rows of a shard."""

    rows: list[int]
    words: list[RowWords]
    resources: list[Resize | Hold]


@dataclass(slots=True)
class TextTimes:
    """Instants at which the texts of each row of a shard changed, in the process that computes it."""

    versions: TextVersions = field(default_factory=TextVersions)
    changed: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    """[row] epoch seconds."""

    def follow(self, fleet: DecidedRows) -> None:
        """Take over what was decided at another evaluation time."""
        self.versions, news = self.versions.then(fleet)
        changed = taken(self.changed, news.before, NEVER_TOLD)
        self.changed = np.where(news.worded | news.sized, fleet.at.timestamp(), changed)

    def since(self, told: datetime | None, fleet: DecidedRows, rows: int) -> ShardTexts:
        """What has changed of the first so many rows since that evaluation time; all where there was none."""
        news = np.flatnonzero(self.changed[:rows] > (told.timestamp() if told else NEVER_TOLD)).tolist()
        texts = [fleet.texts(row) for row in news]
        return ShardTexts(news, [one.words for one in texts], [one.resources for one in texts])


@dataclass(slots=True)
class KeptTexts:
    """What was said last of every workload, in the service."""

    ids: tuple[WorkloadId, ...] = ()
    told: list[ToldTexts | None] = field(default_factory=list)
    """Texts of these workloads as last sent; None where none was sent."""
    numbers: Iterator[int] = field(default_factory=lambda: count(OTHERS))

    def follow(self, ids: tuple[WorkloadId, ...]) -> None:
        """Take other workloads, or another order of them; what was said of those that stay is kept."""
        if ids != self.ids:
            before = dict(zip(self.ids, self.told, strict=True))
            self.ids, self.told = ids, [before.get(id_) for id_ in ids]

    def take(self, rows: Sequence[int], texts: ShardTexts) -> None:
        """Take over what a shard said of its workloads, which are in these rows."""
        for place, words, resources in zip(*texts, strict=True):
            before = self.told[rows[place]]
            worded = before.worded if before and before.words == words else next(self.numbers)
            sized = before.sized if before and before.resources == resources else next(self.numbers)
            self.told[rows[place]] = ToldTexts(words, resources, worded, sized)
