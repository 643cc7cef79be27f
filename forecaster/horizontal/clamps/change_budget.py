"""The budget of changes: where the hour's changes are used up nothing is lowered; rises are never held."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forecaster.domain.window import HOUR
from forecaster.horizontal.lazy_numpy import np

if TYPE_CHECKING:
    from forecaster.horizontal.clamps.clamp import ClampContext, Step
    from forecaster.horizontal.numbers import Counts


def limited(count: Counts, at: ClampContext) -> Counts:
    """The current replicas [row] where the next change would lower them and was one too many."""
    policy, current = at.seen.policy, at.seen.current
    if not policy.counts_changes:
        return count
    rows = np.flatnonzero((count < current) & (policy.changes_per_hour > 0))
    used = np.zeros(len(rows), np.int64)
    for changed in at.state.changes.after(at.now - HOUR.total_seconds()):
        used += changed[rows]
    spent = rows[used >= policy.changes_per_hour[rows]]
    if not spent.size:
        return count
    held = count.copy()
    held[spent] = current[spent]
    return held


def sentence(step: Step) -> str:
    """The budget."""
    return f"{step.words.rules.changes_per_hour} changes in the last hour"
