"""StartBoosts: the CPU limit that each container starts with, learned from starts that its limit throttles.

A throttled start shows that it wants more than its limit and not how much more, so the factor rises step by step, and
falls a step after many starts that nothing held back. A start counts once, while its pod is not ready: no request
reaches the pod then, so its CPU goes into the start alone.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import starmap

from forecaster.domain.workload import WorkloadId
from forecaster.errors import SourceError
from forecaster.publish.new_pods import LearnedBoost

StartShares = Mapping[WorkloadId, Mapping[str, Sequence[float]]]
"""Throttled share of CPU periods of each new start, by workload and container."""
MeasuredStarts = Callable[[datetime, timedelta], StartShares]
"""Reads the starts up to an instant that came into view within so long before. Raises SourceError."""
BOOST_STEP = 1.5
HELD_BACK = 0.1
"""Share of throttled CPU periods from which on a start counts as held back."""
MIN_MEASURED_STARTS = 5
CALM_STARTS = 20
"""Starts without any that is held back, after which a smaller factor is tried."""
BOOST_SETTLED_AFTER = timedelta(minutes=5)
"""Time after a change of the factor: pods that start within it may have been made before."""
MAX_LOOKBACK = timedelta(minutes=5)


def learned(before: LearnedBoost, shares: Sequence[float], now: datetime, limit: float) -> LearnedBoost:
    """Return the boost after more starts, with a factor between 1 and `limit`."""
    if before.since is not None and abs(now - before.since) < BOOST_SETTLED_AFTER:
        return before
    starts = before.starts + len(shares)
    throttled = before.throttled + sum(share >= HELD_BACK for share in shares)
    factor = min(before.factor, limit)
    if starts >= MIN_MEASURED_STARTS and 2 * throttled >= starts:
        factor = min(limit, factor * BOOST_STEP)
    elif starts >= CALM_STARTS and not throttled:
        factor = max(1.0, factor / BOOST_STEP)
    if factor != before.factor:
        return LearnedBoost(factor, now)
    if starts >= 2 * CALM_STARTS:  # later starts count as much as all before
        starts, throttled = starts // 2, throttled // 2
    return LearnedBoost(factor, before.since, starts, throttled)


def words(container: str, boost: LearnedBoost) -> str:
    """Say which factor a container has, and the starts behind it."""
    if boost.factor == 1.0 and boost.starts < MIN_MEASURED_STARTS:
        return f"{container} 1 ({boost.starts} of at least {MIN_MEASURED_STARTS} starts of more than 30 s measured)"
    held_back = f"the CPU limit held back {boost.throttled} of {boost.starts} starts with it"
    return f"{container} {boost.factor:.3g} ({held_back if boost.starts else 'learned; no start with it measured yet'})"


@dataclass(slots=True)
class StartBoosts:
    """Start-up usage of each container, from cycle to cycle."""

    measured: MeasuredStarts = lambda _now, _since: {}
    known: dict[WorkloadId, dict[str, LearnedBoost]] = field(default_factory=dict)
    """Learned boosts, by workload and container."""
    read_at: datetime | None = None

    def renew(
        self, limits: Mapping[WorkloadId, float], boosted: Container[WorkloadId], now: datetime, interval: timedelta
    ) -> str:
        """Learn from the starts of the workloads that are boosted now; why starts could not be read.

        `limits` has the largest factor of each workload that has a learned boost; what is known of others is dropped.
        """
        if not any(id_ in boosted for id_ in limits):
            return ""
        since = min(max(now - self.read_at, interval), MAX_LOOKBACK) if self.read_at else interval
        try:
            starts = self.measured(now, since)
        except SourceError as error:
            return f"CPU boosts stay as they were learned: {error}"
        self.read_at, self.known = now, {id_: dict(self.known.get(id_, {})) for id_ in limits}
        for id_ in (id_ for id_ in limits if id_ in boosted):
            for name, shares in starts.get(id_, {}).items():
                self.known[id_][name] = learned(self.known[id_].get(name, LearnedBoost()), shares, now, limits[id_])
        return ""

    def of(self, id_: WorkloadId) -> tuple[dict[str, LearnedBoost], str]:
        """Return the learned boost of each container of a workload, and a sentence about them."""
        known = self.known.get(id_, {})
        text = ", ".join(starmap(words, known.items())) or "1 (no start of more than 30 s was measured yet)"
        return known, f" CPU limits until it has started, times: {text}."
