"""What fills one pod, where that was learned and not stated."""

from __future__ import annotations

from typing import NamedTuple


class Filled(NamedTuple):
    """An amount in the signal's unit, and where it comes from."""

    amount: float
    why: str
