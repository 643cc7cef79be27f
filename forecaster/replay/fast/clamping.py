"""`decisions.clamps` on arrays: stabilization, price and budget of changes, floors, bounds, in this order."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from forecaster.domain.window import MINUTE
from forecaster.replay.fast.churn import Budget, Paid
from forecaster.replay.fast.windows import Sliding

if TYPE_CHECKING:
    from forecaster.domain.policy import HorizontalPolicy
    from forecaster.replay.fast.numbers import Counts, Flags
    from forecaster.replay.fast.outages import Outages


@dataclass(slots=True, eq=False)
class Clamps:
    """The clamps of lanes whose policies differ in the bounds and the lead time only."""

    policy: HorizontalPolicy
    least: Counts
    most: Counts
    outages: Outages | None = None
    events: Counts | None = None
    """[minute, lane] floors of known events."""
    highest: Sliding = field(init=False)
    paid: Paid | None = field(init=False, default=None)
    budget: Budget | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        window, lanes = self.policy.scale_down_stabilization, len(self.least)
        self.highest = Sliding(np.maximum, window // MINUTE + 1, lanes)
        if self.policy.churn_price:
            self.paid = Paid(self.policy.churn_price, lanes, window)
        if self.policy.changes_per_hour is not None:
            self.budget = Budget(self.policy.changes_per_hour, lanes)

    def clamped(self, wanted: Counts, scales: Flags, current: Counts, minute: int) -> Counts:
        """The counts to recommend where something is wanted; what they are elsewhere means nothing."""
        entry = np.where(scales, wanted, 0)
        found = self.highest.push(np.maximum(entry, current) if minute == 0 else entry)
        if self.paid:
            found = self.paid.lowest(wanted, found, scales, current, minute)
        if self.budget:
            found = self.budget.within(found, current, minute)
        if self.outages:
            found = np.maximum(found, self.outages.floor)
        if self.events is not None:
            found = np.maximum(found, self.events[minute])
        bounded = np.minimum(np.maximum(found, self.least), self.most)
        if self.budget:
            self.budget.record(scales & (bounded != current), minute)
        return bounded
