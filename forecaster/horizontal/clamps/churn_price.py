"""What a change costs: fewer pods only when that much would have been saved already.

k pods fewer must have been wanted for `churn_price` / k minutes: waiting until a change would have paid for itself
never costs more than twice what it had to (Karlin, Manasse, Rudolph, Sleator 1988, for renting and buying skis). A row
whose recommendations are not known for so long, after an outage or a restart, waits anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from forecaster.horizontal.numbers import UNKNOWN

if TYPE_CHECKING:
    from forecaster.horizontal.clamps.clamp import Cycle, Step
    from forecaster.horizontal.numbers import Counts, Floats
    from forecaster.horizontal.ring import Ring


def limited(count: Counts, at: Cycle) -> Counts:
    """The lowest count [row] not above the current one whose saving has been forgone for the price of a change."""
    policy, current = at.seen.policy, at.seen.current
    if not policy.prices_churn:
        return count
    rows = np.flatnonzero((count < current) & (policy.churn_price > 0.0))
    if not rows.size:
        return count
    before, lowest, price = current[rows], count[rows], policy.churn_price[rows] * 60.0
    paid = count.copy()
    paid[rows] = before - saved(at.state.recommendations.take(rows), before, lowest, price, at.now)
    return paid


def saved(recommendations: Ring, current: Counts, lowest: Counts, price: Floats, now: float) -> Counts:
    """How many pods [row] have been wanted less for `price` / that many seconds: up to `current` - `lowest`, or 0.

    By slots, the latest first: k pods wait for price / k seconds. Of the k whose wait ends within a slot, before
    the next older one, the largest is looked at: fewer pods wait longer.
    """
    ages = now - np.array(recommendations.times)[::-1, None]
    entries = np.array(recommendations.values)[::-1].astype(np.int64)
    highest = np.maximum.accumulate(entries, axis=0)
    known_for = np.where(entries == UNKNOWN, -1.0, ages).max(axis=0)
    most = np.minimum(current - lowest, current - highest).astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        fewer = np.minimum(most, np.floor(price / ages))
        wait = price / fewer
    older = np.vstack([ages[1:], [[np.inf]]])
    paid = (fewer >= 1.0) & (wait < older) & (wait <= known_for)
    most_paid: Floats = np.where(paid, fewer, 0.0).max(axis=0)
    return most_paid.astype(np.int64)


def sentence(step: Step) -> str:
    """The price."""
    return f"a change costs {step.policy.churn_price:g} min of a pod, which fewer pods have not saved yet"
