"""Specifications read in rotation: they are most of what describes a cluster, and seldom change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forecaster.sources.discovery import Specifications, specifications_of
from forecaster.sources.facts import SPECIFICATIONS, Facts

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from datetime import datetime, timedelta

    from forecaster.domain.workload import WorkloadId
    from forecaster.sources.facts import Row


class Rotation:
    """The last answer to each query about specifications, none older than `every` when it is used.

    All are asked at first and whenever a workload appears, which has an HPA and requests from its first cycle on. From
    then on they fall due one after the other, so that no cycle carries all of them.
    """

    def __init__(self, every: timedelta) -> None:
        self._every = every
        self._due_at: dict[str, datetime] = {}
        self._familiar: frozenset[WorkloadId] = frozenset()
        self._facts = Facts()
        self._made = Specifications()

    def specifications(
        self, at: datetime, ids: Collection[WorkloadId], ask: Callable[[str], Sequence[Row]]
    ) -> Specifications:
        """Those of `ids` at `at`, after asking what is due by its name."""
        due = self._due(at, ids)
        for i, name in enumerate(due, 1):
            self._facts = self._facts.renewed(name, ask(name))
            self._due_at[name] = at + self._every * i / len(due)
        if due:
            self._made = specifications_of(self._facts)
        self._familiar = frozenset(ids)
        return self._made

    def _due(self, at: datetime, ids: Collection[WorkloadId]) -> list[str]:
        if not self._due_at or not self._familiar.issuperset(ids):
            return list(SPECIFICATIONS)
        return [name for name in SPECIFICATIONS if not at < self._due_at[name] <= at + self._every]
