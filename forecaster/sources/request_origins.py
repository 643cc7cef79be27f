"""Origins of each workload's request rate: detected by queries, remembered, and changed only after silence.

A mesh sees every request of a workload, an ingress controller those from outside: with another origin the same name
would mean another amount. So a workload keeps its origin through restarts and later installations. After `SILENT`
without data, while another origin has data, it moves there, and a sentence reports the move.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta

import msgspec
import numpy as np

from forecaster.domain.window import HOUR, Block
from forecaster.domain.workload import WorkloadId
from forecaster.sources.presets import PREFERRED

CHECK_INTERVAL = timedelta(minutes=15)
"""Time between two checks of which origins have data."""
SILENT = HOUR
"""After so long without data a workload takes another origin: a restart of a mesh takes minutes."""
SETTLES = 2 * CHECK_INTERVAL
"""Time in which a new workload may still change to a preferred origin whose first counter came later."""
FORGOTTEN = timedelta(days=14)
"""A workload without any data for so long chooses anew, by the days of all processes together."""


class PersistedOrigins(msgspec.Struct, frozen=True):
    """Workloads by the name of their origin, and for each the day on which it last had data, where that is known."""

    origins: dict[str, tuple[tuple[str, str, str], ...]]
    days: dict[str, tuple[date | None, ...]] = {}


@dataclass(slots=True)
class Origins:
    """The origin of each workload, when it last had data, and the moves that were not reported yet."""

    chosen: dict[WorkloadId, str] = field(default_factory=dict)
    data_at: dict[WorkloadId, datetime] = field(default_factory=dict)
    checked_at: datetime | None = None
    since: dict[WorkloadId, datetime] = field(default_factory=dict)
    """Instant of a new workload's first choice."""
    before: dict[WorkloadId, datetime] = field(default_factory=dict)
    """Last data in an earlier process, of workloads without data since; a restart must not keep them forever."""
    moved: dict[WorkloadId, str] = field(default_factory=dict)

    def due(self, at: datetime, *, past: bool) -> bool:
        """Whether to check which origins have data: at once while none has, then now and then, the past not again."""
        if not self.chosen or self.checked_at is None:
            return True
        return at - self.checked_at >= CHECK_INTERVAL or (at < self.checked_at and not past)

    @property
    def active(self) -> tuple[str, ...]:
        """The origins that any workload has, the preferred ones first."""
        used = set(self.chosen.values())
        return tuple(name for name in PREFERRED if name in used)

    def choose(self, ids_by_origin: Mapping[str, Collection[WorkloadId]], at: datetime) -> None:
        """Choose origins for new workloads, and for those silent at theirs, by the data of each origin.

        What was seen while the clock was ahead was seen now: nothing waits for that time to come.
        """
        for times in (self.data_at, self.since, self.before) if self.checked_at and at < self.checked_at else ():
            times.update((id_, min(time, at)) for id_, time in times.items())
        self.checked_at = at
        having: dict[WorkloadId, list[str]] = defaultdict(list)
        for name in PREFERRED:
            for id_ in ids_by_origin.get(name, ()):
                having[id_].append(name)
        for id_, names in having.items():
            before = self.chosen.get(id_)
            if before in names and (names[0] == before or not self._settles(id_, at)):
                self._note_data(id_, at)
            elif before is None or self._settles(id_, at) or at - self.data_at.setdefault(id_, at) >= SILENT:
                self._choose(id_, names[0], at)
        gone = [id_ for id_ in self.chosen if at - self.before.get(id_, self.data_at.setdefault(id_, at)) >= FORGOTTEN]
        for id_ in gone:
            del self.chosen[id_], self.data_at[id_]
            self.before.pop(id_, None)
        self.since = {id_: since for id_, since in self.since.items() if at - since <= SETTLES}

    def _note_data(self, id_: WorkloadId, at: datetime) -> None:
        self.data_at[id_] = at
        self.before.pop(id_, None)

    def _choose(self, id_: WorkloadId, name: str, at: datetime) -> None:
        before = self.chosen.get(id_)
        if before is not None:
            why = "had data first" if self._settles(id_, at) else f"is silent since {self.data_at[id_]:%H:%M} UTC"
            self.moved[id_] = f"requests come from {name} now, {before} {why}"
        else:
            self.since[id_] = at
        self.chosen[id_] = name
        self._note_data(id_, at)

    def _settles(self, id_: WorkloadId, at: datetime) -> bool:
        """Whether a workload is so new that its first origin may still change."""
        return id_ in self.since and at - self.since[id_] <= SETTLES

    def merged(self, blocks: Mapping[str, Block], at: datetime) -> Block:
        """Merge the blocks of several origins, each workload from its own; a new one takes the first with data."""
        parts = []
        for name, block in blocks.items():
            for id_ in block.ids:
                if id_ not in self.chosen:
                    self._choose(id_, name, at)
            parts.append(self._chosen_rows(name, block, at))
        first = next(iter(blocks.values()))
        moved, self.moved = self.moved, {}
        return replace(
            first,
            ids=tuple(id_ for part in parts for id_ in part.ids),
            values=np.concatenate([part.values for part in parts]),
            warnings=tuple(dict.fromkeys(warning for part in parts for warning in part.warnings)),
            partial=next((part.partial for part in parts if part.partial), ""),
            rated=True,
            moved=moved,
        )

    def _chosen_rows(self, name: str, block: Block, at: datetime) -> Block:
        rows = [row for row, id_ in enumerate(block.ids) if self.chosen.get(id_) == name]
        last = at - timedelta(minutes=1)
        for row in rows if block.end >= last else ():
            if not np.isnan(block.values[row, -1]):
                self._note_data(block.ids[row], at)
        return replace(block, ids=tuple(block.ids[row] for row in rows), values=block.values[rows])

    def encoded(self) -> bytes:
        """Encode the origins as JSON for the snapshot."""
        origins: dict[str, list[WorkloadId]] = defaultdict(list)
        for id_, name in sorted(self.chosen.items()):
            origins[name].append(id_)
        last_days = {id_: at.date() for id_, at in (self.data_at | self.before).items()}
        days = {name: tuple(map(last_days.get, ids)) for name, ids in origins.items()}
        named = {name: tuple((id_.namespace, id_.kind, id_.name) for id_ in ids) for name, ids in origins.items()}
        return msgspec.json.encode(PersistedOrigins(named, days))

    def restore(self, persisted: bytes) -> None:
        """Restore the choices of an earlier process; unknown origins are left out.

        Raises:
            msgspec.MsgspecError: it is no such JSON; nothing was restored.
        """
        known = msgspec.json.decode(persisted, type=PersistedOrigins)
        origins = known.origins.items()
        self.chosen = {WorkloadId(*id_): name for name, ids in origins if name in PREFERRED for id_ in ids}
        days = (pair for name, ids in origins for pair in zip(ids, known.days.get(name, ()), strict=False))
        self.before = {WorkloadId(*id_): datetime.combine(day, time(), UTC) for id_, day in days if day}


def repartitioned(persisted: Iterable[bytes], place: Callable[[str], int]) -> dict[int, bytes]:
    """Distribute encoded origins of several shards to new shards; `place` maps namespaces to shards.

    Raises:
        msgspec.MsgspecError: one of them is no such JSON.
    """
    by_shard: defaultdict[int, Origins] = defaultdict(Origins)
    for text in persisted:
        known = Origins()
        known.restore(text)
        for id_, name in known.chosen.items():
            of_shard = by_shard[place(id_.namespace)]
            of_shard.chosen[id_] = name
            if id_ in known.before:
                of_shard.before[id_] = known.before[id_]
    return {shard: origins.encoded() for shard, origins in by_shard.items()}
