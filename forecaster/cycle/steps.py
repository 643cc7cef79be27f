"""The steps of one cycle: each is timed and has a boundary of its own, and the garbage collector looks seldom."""

from __future__ import annotations

import gc
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TypeVar

from forecaster.errors import unexpected
from forecaster.ports import StageWatch

MIN_ALLOCATIONS = 100_000
STEP_SHARES = (0.0, 0.05, 0.6)
"""That lie behind when the first steps of a cycle begin: in one that begins anew reading the history is long."""
OPTIONAL_STEPS = 10
"""Optional steps share the time of a cycle: the first may use it all, the later ones divide the rest evenly."""
PER_WORKLOAD = 50
"""Records of a workload that are new in a cycle, with room to spare: a cycle that replaces them all starts no look."""


def expect_records(workloads: int) -> None:
    """Look once so many more records are there than at the last look.

    A cycle makes some hundred thousand small records that refer to each other in no circle and go when the next one
    replaces them. Looking for circles among them took a quarter of the CPU of a cycle over 10,000 workloads with the
    collector's own thresholds. What does lie in circles waits longer where there are more workloads, which have more
    memory, too.
    """
    gc.set_threshold(max(MIN_ALLOCATIONS, PER_WORKLOAD * workloads), 20, 50)


def _share(step: int) -> float:
    """That lies behind when a step begins, 0-1."""
    if step < len(STEP_SHARES):
        return STEP_SHARES[step]
    return min(
        STEP_SHARES[-1] + (1.0 - STEP_SHARES[-1]) * (step - len(STEP_SHARES) + 1) / (OPTIONAL_STEPS - len(STEP_SHARES)),
        1.0,
    )


T = TypeVar("T")
PATIENCE = 5
"""Cycles in a row that an optional step may find no time; then its least portion is done all the same."""


@dataclass(frozen=True, slots=True)
class TimeShare:
    """Whether there is time left: `clock` has not reached `until`."""

    clock: Callable[[], float]
    until: float

    def __call__(self) -> bool:
        """Return whether more work may be begun."""
        return self.clock() < self.until

    def part(self, share: float) -> TimeShare:
        """Return the first part of the time that is left now; `share` is 0–1."""
        now = self.clock()
        return TimeShare(self.clock, now + share * max(0.0, self.until - now))


@dataclass(slots=True)
class Steps:
    """Durations and failures of the steps of one cycle; `clock` returns seconds and measures durations only.

    `budget` is the time after the start of the cycle at which no further optional work begins.
    """

    clock: Callable[[], float]
    budget: timedelta
    seconds: dict[str, float] = field(default_factory=dict)
    """Duration by step."""
    failures: list[str] = field(default_factory=list)
    late: list[str] = field(default_factory=list)
    """Optional steps that found no time and wait for the next cycle."""
    watch: StageWatch | None = None
    waited: dict[str, int] = field(default_factory=dict)
    """Cycles in a row in which an optional step found no time, by step; kept from cycle to cycle."""
    ends: Callable[[], bool] = lambda: False
    """Whether the process ends: then no more optional work is begun."""
    began: float = field(init=False)

    def __post_init__(self) -> None:
        self.began = self.clock()

    def run(self, name: str, step: Callable[[], T], otherwise: T) -> T:
        """The result of a step, or `otherwise` and one line in the report where it fails: the later steps go on."""
        began = self.clock()
        if self.watch:
            self.watch.began(name, _share(len(self.seconds)))
        try:
            return step()
        except KeyboardInterrupt:
            if not (self.seconds and self.watch and self.watch.interrupted(name)):  # of the first step nothing is known
                raise
            self.failures.append(f"interrupted in {name}: it has only the results until then")
            self.budget = timedelta(0)
            return otherwise
        except Exception as error:  # noqa: BLE001  the boundary of a step: what comes after it must not be lost
            self.failures.append(f"{name}: {unexpected(error)}")
            return otherwise
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + self.clock() - began

    def within(self, name: str) -> Callable[[str, float], None]:
        """Return a callback for the progress of a long step: the present part, and the share that is done, 0-1."""
        begun = len(self.seconds)

        def at(part: str, share: float) -> None:
            if self.watch:
                self.watch.began(f"{name}: {part}", _share(begun) + share * (_share(begun + 1) - _share(begun)))

        return at

    def optional(self, name: str, step: Callable[[], T], otherwise: T) -> T:
        """Run work that may wait, within a boundary: begun while there is time, and once it has waited too long."""
        if self.has_time() or (self.waited.get(name, 0) >= PATIENCE and not self.ends()):
            self.waited[name] = 0
            return self.run(name, step, otherwise)
        self.late.append(name)
        self.waited[name] = self.waited.get(name, 0) + 1
        return otherwise

    def part(self, share: float) -> TimeShare:
        """Return the first part of the time that is left for optional work; `share` is 0–1."""
        until = self.began + self.budget.total_seconds()
        return TimeShare(lambda: math.inf if self.ends() else self.clock(), until).part(share)

    def has_time(self) -> bool:
        """Whether optional work may be begun."""
        return self.part(1.0)()
