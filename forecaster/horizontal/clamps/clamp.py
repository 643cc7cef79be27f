"""The parts of a clamp: a rule on arrays, and its sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from forecaster.horizontal.checked import Checked
    from forecaster.horizontal.decide import Desired
    from forecaster.horizontal.numbers import Counts
    from forecaster.horizontal.row import DecidedRow
    from forecaster.horizontal.state import State


class ClampContext(NamedTuple):
    """Inputs of a clamp: the rows of this cycle, their proposals, and the state of earlier cycles."""

    checked: Checked
    desired: Desired
    state: State
    """State with this cycle's outages and an empty slot for this cycle."""
    now: float


class Step(NamedTuple):
    """One row in which a clamp changed the count, with the facts for its sentence."""

    before: int
    after: int
    row: DecidedRow

    def policy(self, name: str) -> float:
        """Return a number of the row's policy, by the name of its setting; 0 where it is not stated."""
        return self.row.rules.number(name)


class ClampRule(NamedTuple):
    """One rule that may change a count."""

    name: str
    """Name of the clamp in records."""
    limited: Callable[[Counts, ClampContext], Counts]
    """The count [row] after it, of the count before it."""
    sentence: Callable[[Step], str]
    """Say why the clamp changed the count of a row."""
    of_hpa: bool = False
    """Whether an HPA does it itself to the count that it reads; done twice, it would delay twice."""
