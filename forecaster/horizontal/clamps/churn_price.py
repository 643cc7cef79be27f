"""What a change costs: fewer pods only when that much would have been saved already.

k pods fewer must have been wanted for `churn_price` / k minutes without a break: waiting until a change would have
paid for itself never costs more than twice what it had to (Karlin, Manasse, Rudolph, Sleator 1988, for renting and
buying skis). A row without recommendations for so long, after an outage or a restart, waits anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from forecaster.horizontal.codes import UNKNOWN
from forecaster.horizontal.lazy_numpy import np

if TYPE_CHECKING:
    from forecaster.horizontal.clamps.clamp import ClampContext, Step
    from forecaster.horizontal.numbers import Counts, Floats
    from forecaster.horizontal.ring import Ring


def limited(count: Counts, at: ClampContext) -> Counts:
    """Return the lowest count [row] not above the current one that saves more than the price of a change."""
    policy, current = at.seen.policy, at.seen.current
    if "churn_price" not in policy.in_use:
        return count
    rows = np.flatnonzero((count < current) & (policy["churn_price"] > 0.0))
    if not rows.size:
        return count
    before, lowest, price = current[rows], count[rows], policy["churn_price"][rows] * 60.0
    paid = count.copy()
    paid[rows] = before - saved(at.state.recommendations.take(rows), before, lowest, price, at.now)
    return paid


def saved(recommendations: Ring, current: Counts, lowest: Counts, price: Floats, now: float) -> Counts:
    """How many pods fewer [row] have been wanted for `price` / that many seconds: `current` - `lowest` at most, or 0.

    A recommendation holds until the next one, so a number has been wanted since the oldest recommendation of an
    unbroken run of such as low. Cycles are looked at as far back as the price of a single pod reaches, and no further,
    whatever is kept for other rows.
    """
    ages = now - np.array(recommendations.times)[::-1, None]
    reached = np.vstack([[[-np.inf]], ages[:-1]]) < price
    entries = np.array(recommendations.values)[::-1].astype(np.int64)
    highest = np.maximum.accumulate(entries, axis=0)
    fewer = np.minimum(current - lowest, current - highest)
    paid = reached & (entries != UNKNOWN) & (fewer > 0) & (price <= ages * fewer)
    saving: Counts = np.where(paid, fewer, 0).max(axis=0)
    return saving


def sentence(step: Step) -> str:
    """The price."""
    return f"a change costs {step.policy('churn_price'):g} min of a pod, which fewer pods have not saved yet"
