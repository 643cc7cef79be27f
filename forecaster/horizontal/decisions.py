"""What was decided about a group of rows: numbers and codes. `record` turns one row into sentences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from forecaster.horizontal.codes import REASONS

if TYPE_CHECKING:
    from forecaster.horizontal.inputs import Inputs
    from forecaster.horizontal.numbers import Codes, Counts, Flags
    from forecaster.horizontal.propose import Proposals
    from forecaster.horizontal.state import State

REACTIVE, FORECAST, GATED, FALLBACK, NO_DATA, STALE_DATA, NO_PODS, NO_TARGET, FROZEN, NO_REPLICAS, FAILED, DOWN = (
    np.int8(code) for code in range(len(REASONS))
)


@dataclass(frozen=True, slots=True, eq=False)
class Decisions:
    """One group of rows, decided. Counts are replicas; `UNKNOWN` where a side has no answer."""

    inputs: Inputs
    now: float
    """Epoch seconds."""
    replicas: Counts
    """[row] the recommended count; the current one where it is held."""
    reason: Codes
    """[row] a position in `codes.REASONS`."""
    failed: Codes
    """[row] a position in `codes.CHECKED`."""
    unseen: Codes
    """[target, row] why there is no measurement; `codes.KNOWN` where there is one."""
    proposals: Proposals
    """[target][row]."""
    reactive: Counts
    """[row] by measured demand, before any clamp."""
    forecast: Counts
    """[row] by the forecast, before any clamp; `UNKNOWN` where it had no say."""
    counts: tuple[Counts, ...]
    """[clamp][row] after each of `clamps.CLAMPS`; without meaning where the count is held."""
    offered: Counts
    """[row] after every clamp but those that an HPA applies itself; without meaning where the count is held."""
    state: State
    """What is remembered."""

    @property
    def scales(self) -> Flags:
        """[row] whether a count is given."""
        return np.asarray(self.reason <= FALLBACK)
