"""Which quantile of the peak replicas are sized for: as stated, corrected by what was covered before."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    from forecaster.domain.workload import WorkloadId

LOWEST, HIGHEST = 0.5, 0.99
FULL_WEIGHT_SCORES = 200
"""Matured forecasts behind which an observed coverage counts in full: its standard error is then 2 % at p90."""


def corrected(quantile: float, coverage: float, matured: int) -> float:
    """The level to ask a model for, so that `quantile` of the peaks stay below the answer.

    `coverage` is the share of `matured` forecasts of this level that held. Odds are scaled by the miss: a p90 that
    covered 80 % is asked for as what lies beyond. Few forecasts correct little.
    """
    if not matured:
        return quantile
    trust = min(1.0, matured / FULL_WEIGHT_SCORES)
    seen = min(max(coverage, 0.5 / (matured + 1)), 1 - 0.5 / (matured + 1))
    odds = _odds(quantile) * math.pow(_odds(quantile) / _odds(seen), trust)
    return min(max(odds / (1 + odds), LOWEST), HIGHEST)


def _odds(share: float) -> float:
    return share / (1 - share)


MIN_SCORES = 60
"""Matured forecasts of a workload before which nothing is corrected: ten hours, with one in ten scored."""
FADES = 1.0 - 1.0 / 400
"""What is left of a forecast after one more: four hundred are remembered, three days."""
POOLED = 100
"""Forecasts of its own that weigh as much in a workload's coverage as that of all workloads."""
FURTHEST = 3.0
"""A p90 is asked for as p75 at least and p96 at most."""
NEGLIGIBLE = 0.005
"""A level that moves by less is asked for as it is."""


class Held(NamedTuple):
    """Forecasts of one level that have matured, and those that held; both fade."""

    level: float
    matured: float = 0.0
    covered: float = 0.0

    def after(self, *, covered: bool) -> Held:
        """One more has matured."""
        return Held(self.level, FADES * self.matured + 1.0, FADES * self.covered + covered)

    @property
    def share(self) -> float:
        """Share of the forecasts that held."""
        return self.covered / self.matured if self.matured else self.level


class Level(NamedTuple):
    """What to ask a forecast for in place of a stated quantile, and why; "" where it is the same."""

    value: float
    why: str = ""


@dataclass(slots=True)
class Coverage:
    """What is remembered of all workloads, and its sums by signal and level."""

    held: dict[tuple[WorkloadId, str], Held] = field(default_factory=dict)
    pooled: dict[tuple[str, float], Held] = field(default_factory=dict)

    @classmethod
    def of(cls, held: Mapping[tuple[WorkloadId, str], Held]) -> Coverage:
        """Return the coverage with the sums of what is stored."""
        made = cls(dict(held))
        for (_, signal), one in held.items():
            made._pool(signal, one, 1.0)
        return made

    def matured(self, id_: WorkloadId, signal: str, level: float, *, covered: bool) -> None:
        """One forecast of this level has matured. Another level than before begins anew."""
        before = self.held.get((id_, signal), Held(level))
        after = (before if before.level == level else Held(level)).after(covered=covered)
        self.held[id_, signal] = after
        self._pool(signal, before, -1.0)
        self._pool(signal, after, 1.0)

    def level(self, id_: WorkloadId, signal: str, quantile: float) -> Level:
        """The level to ask for, so that `quantile` of the peaks stay below the answer."""
        own = self.held.get((id_, signal))
        if own is None or own.level != quantile or own.matured < MIN_SCORES:
            return Level(quantile)
        pool = self.pooled[signal, quantile].share
        share = (own.covered + POOLED * pool) / (own.matured + POOLED)
        value = _bounded(corrected(quantile, share, round(own.matured)), quantile)
        if abs(value - quantile) < NEGLIGIBLE:
            return Level(quantile)
        seen = f"{own.share:.0%} of {own.matured:.0f} peaks were covered, {pool:.0%} of those of all workloads"
        return Level(value, f"p{quantile * 100:.3g} asked as p{value * 100:.3g}: {seen}")

    def forget_others(self, here: Container[WorkloadId]) -> None:
        """Keep these workloads only."""
        kept = Coverage.of({key: one for key, one in self.held.items() if key[0] in here})
        self.held, self.pooled = kept.held, kept.pooled

    def _pool(self, signal: str, one: Held, sign: float) -> None:
        _, matured, covered = self.pooled.get((signal, one.level), Held(one.level))
        total = Held(one.level, matured + sign * one.matured, covered + sign * one.covered)
        self.pooled[signal, one.level] = total


def _bounded(level: float, quantile: float) -> float:
    """No further from the stated quantile than a factor of the odds."""
    odds = quantile / (1 - quantile)
    low, high = odds / FURTHEST, odds * FURTHEST
    return min(max(level, low / (1 + low)), high / (1 + high), HIGHEST)
