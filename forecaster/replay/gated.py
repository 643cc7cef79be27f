"""What a gate would have done: judged by the service's own functions, on the days before each replayed one.

The evidence is load and forecasts alone, whatever the pods did: so where a forecast stands is known before a lane is
played. The service judges newcomers at once and everybody once a day; here that is when a day of the replay begins.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from forecaster.cycle.gates import Gates
from forecaster.cycle.targets import Targets
from forecaster.decisions.gate import Gate, Standing, Voice
from forecaster.demand.latest import DayAgo
from forecaster.domain.policies import Policies
from forecaster.domain.window import MINUTE, Inventory
from forecaster.replay.contestants import with_horizontal
from forecaster.replay.foresee import History
from forecaster.replay.refusal import lead_time_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from numpy.typing import NDArray

    from forecaster.domain.policy import Policy
    from forecaster.domain.signal import Signal
    from forecaster.domain.window import Block, Gap, Window
    from forecaster.replay.foresight import Foresight
    from forecaster.replay.sight import Sight
    from forecaster.replay.terms import Terms

DAY = timedelta(days=1)


class Stood(NamedTuple):
    """Where the forecast of one workload stood from a minute of the replay on."""

    minute: int
    gate: Gate

    @property
    def acting(self) -> bool:
        """Whether it had its say."""
        return self.gate.standing is Standing.ACTING


@dataclass(slots=True)
class Course:
    """The gates of a replay: judged anew with every day of it, each workload by what it had until then."""

    sight: Sight
    terms: Terms
    histories: dict[Signal, History] = field(default_factory=dict)

    def of(self, row: int, policy: Policy) -> tuple[Stood, ...]:
        """How the gate of one workload stood, day by day."""
        workload, gates, stood = self.sight.traces.workloads[row], Gates(), []
        lead = lead_time_of(policy.horizontal, self.terms)
        signals = policy.horizontal.signals
        policies = Policies(with_horizontal(policy, {"gate": True, "lead_time": lead}), signals=signals)
        for minute in range(0, self.sight.minutes, DAY // MINUTE):
            now = self.sight.instant(minute)
            gates.renew(Over(self, now), policies, Targets(Inventory(now, (workload,))), now)
            stood.append(Stood(minute, gates.of(workload.id)))
        return tuple(stood)

    def history(self, signal: Signal) -> History:
        """One signal as the service keeps it."""
        if signal not in self.histories:
            self.histories[signal] = History.of(self.sight, signal)
        return self.histories[signal]


@dataclass(frozen=True, slots=True)
class Over:
    """History as it was at one instant: nothing is missing in it, and nothing is added."""

    course: Course
    now: datetime

    @property
    def signals(self) -> tuple[Signal, ...]:
        """The kinds of demand that are replayed."""
        return self.course.sight.traces.signals

    def gaps(self, now: datetime) -> list[Gap]:
        """None: nothing can be asked."""
        del now
        return []

    def write(self, block: Block) -> None:
        """Nothing is kept."""

    def window(self, signal: Signal, step: timedelta) -> Window:
        """The newest hours, or the newest weeks."""
        kept = self.course.history(signal)
        return kept.minutes(self.now) if step == MINUTE else kept.weeks(self.now)

    def forget(self) -> int:
        """Nobody."""
        return 0


def acting_of(stood: Sequence[Stood], minutes: int) -> NDArray[np.bool_]:
    """[minute] whether the forecast had its say."""
    acting = np.zeros(minutes, np.bool_)
    for one in stood:
        acting[one.minute :] = one.acting
    return acting


def spoken(foresight: Foresight, courses: Mapping[int, Sequence[Stood]], course: Course) -> Foresight:
    """The foresight in which yesterday's load speaks where a gate gives it the word."""
    values = {signal: found.copy() for signal, found in foresight.values.items()}
    sight = course.sight
    said: dict[tuple[Signal, int], DayAgo] = {}
    for row, stood in courses.items():
        for minute in naive_minutes(stood, sight.minutes):
            now = sight.instant(minute)
            begin = now + foresight.span.lead_time
            for signal, found in values.items():
                if (signal, minute) not in said:
                    said[signal, minute] = DayAgo(course.history(signal).weeks(now))
                id_ = sight.traces.workloads[row].id
                peak = said[signal, minute].peak(id_, begin, begin + foresight.span.length)
                found[minute, row] = np.nan if peak is None else peak
    return replace(foresight, values=values)


def naive_minutes(stood: Sequence[Stood], minutes: int) -> list[int]:
    """The minutes in which yesterday's load has the word."""
    ends = [*(one.minute for one in stood[1:]), minutes]
    return [
        minute
        for one, end in zip(stood, ends, strict=True)
        if one.gate.voice is Voice.SEASONAL
        for minute in range(one.minute, end)
    ]
