"""A forecast step by step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True)
class Path:
    """Quantiles of one signal of one workload for each of the coming steps, in the signal's unit.

    `values[k]` has one quantile a level for the mean demand from `begin + k * step` to `begin + (k + 1) * step`.
    """

    made_at: datetime
    begin: datetime
    step: timedelta
    levels: tuple[float, ...]
    values: tuple[tuple[float, ...], ...]
    model: str
