"""One row of a decision as plain numbers and small texts: all that its sentences are made of. No numpy.

Numbers change with every minute; texts stand for days. `record` takes both from arrays and objects, the serving process
from a published table.
"""

from __future__ import annotations

from math import nan
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from datetime import datetime

    from forecaster.domain.decision import Reason
    from forecaster.domain.outlook import PeakForecast


class RuleNumbers(NamedTuple):
    """What a policy says in numbers, as far as a sentence names it."""

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
    """What may be lost without fewer pods than are needed: node, zone or none."""
    numbers: tuple[tuple[str, float], ...] = ()
    """Numbers above zero that the policy alone decides, by the names of the settings; durations in seconds."""

    def number(self, name: str) -> float:
        """Return a number that the policy alone decides; 0 where it is not stated."""
        return dict(self.numbers).get(name, 0.0)


NO_RULES = RuleNumbers(0, 0, nan)
"""Rules of a row about which nothing was decided."""


class TargetWords(NamedTuple):
    """What is said of one target beside its numbers."""

    signal: str
    target: str = ""
    """Target in words; empty for one that cannot be computed."""
    note: str = ""
    """Why it cannot be computed."""
    unit: str = ""
    """Unit of the signal."""
    pod: float = 0.0
    """The demand of a pod at its target, in that unit."""
    unmeasured: str = ""
    """Why there is no measurement, or a part of one, empty where its code says it."""
    unforeseen: str = ""
    """Why there is no forecast."""
    model: str = ""
    """Model of the forecast; empty where there is none."""
    begin: float = 0.0
    """Seconds from the decision until the window of the forecast begins."""
    until: float = 0.0
    """Seconds until it ends."""
    remark: str = ""
    """What the forecast says of itself."""

    @property
    def usable(self) -> bool:
        """Whether the count is decided by it."""
        return bool(self.target)


class Outlook(NamedTuple):
    """What is said of the forecast of one target: the fields of the same names in `TargetWords`."""

    unforeseen: str = ""
    model: str = ""
    begin: float = 0.0
    until: float = 0.0
    remark: str = ""


class RowWords(NamedTuple):
    """What is said of one row beside its numbers."""

    rules: RuleNumbers
    targets: tuple[TargetWords, ...] = ()
    """Targets in the order of the HPA, those that cannot be computed among them."""
    autoscaler: str = ""
    """Name of the HPA that owns the count; empty if none does."""
    shut: str = ""
    """Why the gate keeps the forecast from having its say."""
    hold: str = ""
    """Why the row is held, where no code says it: what is impossible, or which maintenance window is on."""
    event: str = ""
    """Which event raises the count, and until when."""
    event_most: str = ""
    """Which event allows how many replicas, and until when."""
    outage: str = ""
    """What was missing in the outage whose floor holds."""
    lead_seconds: float | None = None
    """The lead time in force."""
    lead_origin: str = ""
    """Origin of the lead time."""
    nothing_decided: str = ""
    """A `Reason` for which the row is held whatever its numbers are, as `hold` says; empty where it was decided."""


class TargetNumbers(NamedTuple):
    """The numbers of one target that is usable. Amounts are totals over all pods, in the signal's unit."""

    unseen: int
    """Why there is no measurement, a code."""
    measured: float
    """NaN where it is not known."""
    age: float
    """Seconds since the latest sample; NaN where there is none."""
    reactive: int
    """Replicas by the measured demand; `codes.UNKNOWN` without an answer."""
    forecast: int
    """Replicas by the forecast; `codes.UNKNOWN` without an answer."""
    ahead: PeakForecast | None
    """The forecast."""


class RowNumbers(NamedTuple):
    """The numbers of one row. Counts are replicas."""

    at: datetime
    current: int
    replicas: int
    """Recommended."""
    reason: Reason
    reactive: int
    """Replicas by measured demand, before any clamp."""
    forecast: int
    """Replicas by the forecast, before any clamp; `codes.UNKNOWN` where it did not act."""
    counts: tuple[int, ...]
    """After each of `clamps.CLAMPS`."""
    outage_until: float
    """Epoch seconds until when the floor of an outage holds."""
    targets: tuple[TargetNumbers, ...]
    """Usable targets, in their order."""
