"""Answers triggers from the newest table. Ignorance is an error that KEDA counts towards its fallback, never a 0."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forecaster.serving.abstain import HOLD, NEUTRAL
from forecaster.serving.asked import NotThere, answer, moment_at
from forecaster.serving.values import NotKnown, Value

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime, timedelta

    from forecaster.serving.keda.trigger import Trigger
    from forecaster.serving.reader import TableReader
    from forecaster.serving.values import Answer

KEEPING = frozenset({NEUTRAL, HOLD})
"""Values that stand for a present count, not for demand."""


class Scaler:
    """The trigger's number and whether there is anything to do."""

    def __init__(self, reader: TableReader, clock: Callable[[], datetime], stale_after: timedelta | None) -> None:
        self._reader = reader
        self._clock = clock
        self._stale_after = stale_after

    def value(self, trigger: Trigger) -> Answer | NotThere:
        """The number now, or why there is none."""
        table = self._reader.table
        if table is None:
            return NotKnown(self._reader.fault)
        return answer(table, trigger.asked, moment_at(table, self._clock(), self._stale_after))


def active(trigger: Trigger, value: Value) -> bool:
    """Does the workload have, or soon have, more to do than the trigger's activation?

    Demand is that at the lead time, so a workload at zero is woken before its load arrives. A count that is kept for
    want of knowledge stays active whatever the activation: ignorance scales nothing to zero.
    """
    return value.value > (0.0 if value.source in KEEPING else trigger.activation)
