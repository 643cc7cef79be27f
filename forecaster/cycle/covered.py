"""What is remembered of the coverage of forecasts, in a form that is kept."""

from __future__ import annotations

import msgspec

from forecaster.domain.workload import WorkloadId
from forecaster.horizontal.coverage import Coverage, Held


class KeptHeld(msgspec.Struct, frozen=True):
    """How often the forecasts of one level of one signal held."""

    id: tuple[str, str, str]
    signal: str
    level: float
    matured: float
    covered: float


def kept(coverage: Coverage) -> tuple[KeptHeld, ...]:
    """As it is kept."""
    return tuple(KeptHeld(id_, str(signal), *one) for (id_, signal), one in coverage.held.items())


def restored(kept: tuple[KeptHeld, ...]) -> Coverage:
    """As it was."""
    return Coverage.of({(WorkloadId(*one.id), one.signal): Held(one.level, one.matured, one.covered) for one in kept})
