"""After an outage of input or of load the count before stays the floor for a while: callers come back all at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from forecaster.domain.outlook import Measured, PeakForecast

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime, timedelta

    from forecaster.domain.outlook import SignalForecast

GONE = 0.1
"""Load below this share of what was expected at the very least (its 10 % quantile) has not fallen, it has gone."""
BACK = 0.5
"""It is back when it reaches this share again."""


class Outage(NamedTuple):
    """A floor, why and until when; `expected` is the load that went, None when only the samples did."""

    floor: int
    until: datetime
    why: str
    expected: tuple[str, float] | None = None


Expected = tuple[tuple[str, float], ...]
"""The least that the newest forecasts expect, by signal."""


def expected_of(outlooks: Iterable[tuple[SignalForecast, float]]) -> Expected:
    """What to compare the next measurement with, where it is at least what fills one pod: less is no outage to fear."""
    return tuple(
        (one.signal, one.ahead.low)
        for one, pod in outlooks
        if isinstance(one.ahead, PeakForecast) and one.ahead.low >= pod
    )


def after_silence(replicas: int, now: datetime, hold: timedelta, why: str) -> Outage | None:
    """The floor of a workload whose samples are missing; it begins to run out when they are back."""
    return Outage(replicas, now + hold, f"samples were missing: {why}") if hold else None


def observed(
    outage: Outage | None,
    outlooks: Iterable[SignalForecast],
    expected: Expected,
    replicas: int,
    now: datetime,
    hold: timedelta,
) -> Outage | None:
    """The outage after a look at the load: a new one, one that goes on, one whose load has come back, or none."""
    seen = {one.signal: one.measured.value for one in outlooks if isinstance(one.measured, Measured)}
    if not hold:
        return None
    for signal, least in expected:
        if signal in seen and least > 0 and seen[signal] <= GONE * least:
            floor = max(replicas, outage.floor if outage else 0)
            return Outage(floor, now + hold, f"{signal} load has gone", (signal, least))
    if outage is None or outage.until < now:
        return None
    if outage.expected and seen.get(outage.expected[0], 0.0) >= BACK * outage.expected[1]:
        return Outage(outage.floor, now + hold, f"{outage.expected[0]} load is back after an outage")
    return outage
