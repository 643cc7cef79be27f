"""What `forecaster doctor` finds about one thing that is needed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Check:
    """One thing tried: whether it works, what was seen, and what to do if it does not."""

    name: str
    ok: bool
    detail: str
    remedy: str = ""
