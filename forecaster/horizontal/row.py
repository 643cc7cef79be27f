"""One row of a decision as plain numbers and small texts: all that its sentences are made of. No numpy.

`publish.record` reads it from the columns of a cycle or of a published table.
"""

from __future__ import annotations

from datetime import datetime
from math import nan
from typing import NamedTuple

from forecaster.domain.decision import LeadTime, Reason
from forecaster.domain.signal import PeakForecast
from forecaster.domain.window import EPOCH
from forecaster.hpa.numbers import MIN_INT32

UNKNOWN = MIN_INT32
"""Count that is not known: below every count, so that a maximum passes it over."""
LARGEST = float(2**53)
"""Amounts above this have no milli-units in 64 bits."""
KEEP = 0.4
"""A present pod is kept until it is worth this share of its price: it is ready now and would take a start-up to come
back, and every change has its own cost. On recorded load 0.5 to 0.25 were alike, 1 left a tenth more short and changed
the count twice as often."""

REASONS = tuple(Reason)
"""Meanings of the codes of a reason. The first four come with a count; with the others the count is held."""
SCALED = frozenset(REASONS[:4])
"""Reasons with which a count is given."""

CHECKED = (
    "",
    "the target of a pod",
    "replicas",
    "ready replicas",
    "the floor of an event",
    "the policy or the targets",
)
"""Meanings of the codes of `Decisions.failed`; the codes after these are the numbers of a policy, in their order."""
TARGET, REPLICAS, READY, EVENT, UNREADABLE, FIRST_NUMBER = range(1, len(CHECKED) + 1)

KNOWN, NO_SAMPLE, STALE, NOT_READ, IMPOSSIBLE, INCOMPLETE = range(6)
"""Codes of a missing measurement: no sample, a sample too old, a signal that is not read, an impossible value.

`INCOMPLETE` is not missing: it is part of a sum, and so a lower bound. It may raise a count and never lowers one.
"""
SAMPLED = frozenset({KNOWN, INCOMPLETE})
"""Codes with which there is a measurement."""

NONE, SILENCE, GONE, BACK = range(4)
"""Codes of an outage floor: no outage, samples are missing, load is gone, load is back."""


class RuleNumbers(NamedTuple):
    """Numbers of a policy that sentences mention."""

    lowest: int
    """Replicas, in force."""
    highest: int
    max_sample_age: float
    """Seconds."""
    newsvendor: bool = False
    """Whether each pod is sized by its price."""
    may_sleep: bool = False
    """Whether the policy states a lowest count of 0."""
    comes_back: bool = False
    """Whether anything is measured without pods that can bring the first one back."""
    survive: str = "none"
    """Loss that must leave enough pods: node, zone or none."""
    numbers: tuple[tuple[str, float], ...] = ()
    """Numbers above zero that the policy alone decides, by the names of the settings; durations in seconds."""

    def number(self, name: str) -> float:
        """Return a number that the policy alone decides; 0 where it is not stated."""
        return dict(self.numbers).get(name, 0.0)


NO_RULES = RuleNumbers(0, 0, nan)
"""Rules of a row about which nothing was decided."""


class ForecastDetails(NamedTuple):
    """Description of the forecast of one target beside its numbers."""

    unforeseen: str = ""
    """Reason why there is no forecast."""
    model: str = ""
    """Model of the forecast; empty where there is none."""
    begin: float = 0.0
    """Seconds from the decision until the window of the forecast begins."""
    until: float = 0.0
    """Seconds until it ends."""
    remark: str = ""
    """Remark of the forecast about itself."""


class DecidedTarget(NamedTuple):
    """One target of a row. Amounts are totals over all pods, in the signal's unit."""

    signal: str
    target: str = ""
    """Target in words; empty for one that cannot be computed."""
    note: str = ""
    """Reason why the target cannot be computed."""
    unit: str = ""
    pod: float = 0.0
    """The demand of a pod at its target."""
    unseen: int = KNOWN
    """Code of the reason for a missing measurement."""
    unmeasured: str = ""
    """Reason for a missing or incomplete measurement; empty where the code says it."""
    measured: float = nan
    """NaN where it is not known."""
    age: float = nan
    """Seconds since the latest sample; NaN where there is none."""
    reactive: int = UNKNOWN
    """Replicas by the measured demand; `UNKNOWN` without an answer."""
    forecast: int = UNKNOWN
    """Replicas by the forecast; `UNKNOWN` without an answer."""
    ahead: PeakForecast | None = None
    unforeseen: str = ""
    """Reason why there is no forecast."""

    @property
    def usable(self) -> bool:
        """Whether the count is decided by it."""
        return bool(self.target)


class DecidedRow(NamedTuple):
    """The decision about one workload. Counts are replicas.

    Policy and HPA state the first three fields; without a decision all others have their defaults.
    """

    rules: RuleNumbers
    targets: tuple[DecidedTarget, ...] = ()
    """Targets in the order of the HPA, those that cannot be computed among them."""
    autoscaler: str = ""
    """Name of the HPA that owns the count; empty if none does."""
    at: datetime = EPOCH
    current: int = 0
    replicas: int = 0
    """Recommended."""
    reason: Reason = Reason.NO_DATA
    withheld: bool = False
    """Whether the row is held with the text of `hold`, whatever its numbers are."""
    reactive: int = UNKNOWN
    """Replicas by measured demand, before any clamp."""
    forecast: int = UNKNOWN
    """Replicas by the forecast, before any clamp; `UNKNOWN` where it did not act."""
    counts: tuple[int, ...] = ()
    """Count after each of `clamps.CLAMPS`."""
    outage_until: float = 0.0
    """Epoch seconds until when the floor of an outage holds."""
    lead_time: LeadTime | None = None
    shut: str = ""
    """Reason why the gate does not let the forecast act."""
    hold: str = ""
    """Reason for holding the row where no code says it: an impossible value, or the maintenance window in force."""
    event: str = ""
    """Event that raises the count, and its end."""
    event_most: str = ""
    """Event that limits the replicas, the limit, and its end."""
    outage: str = ""
    """Signals missing in the outage whose floor holds."""

    @property
    def usable(self) -> list[DecidedTarget]:
        """Targets by which the count is decided, in their order."""
        return [target for target in self.targets if target.usable]
