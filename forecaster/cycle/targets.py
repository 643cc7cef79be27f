"""Step 1: which workloads there are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from forecaster.domain.window import Inventory
from forecaster.errors import SourceError

if TYPE_CHECKING:
    from datetime import datetime

    from forecaster.ports import Source


@dataclass(frozen=True, slots=True)
class Targets:
    """The workloads of this cycle. `down` says why they are those of an earlier cycle; empty when they are not."""

    inventory: Inventory
    down: str = ""


def find_targets(source: Source, before: Inventory | None, now: datetime) -> Targets:
    """Ask the source; when it cannot say, keep the workloads that were known, so that each gets its hold."""
    try:
        return Targets(source.inventory(now))
    except SourceError as error:
        return Targets(before or Inventory(now, ()), str(error))
