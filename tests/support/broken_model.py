"""Models that fail: one at every forecast, so that it breaks the contract, and one in the service alone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from models.fitted import FittedRule, held


@dataclass(frozen=True)
class Broken:
    """Takes a place of a list that is not there."""

    name: str = "broken"

    def fit(self, panel: Any) -> FittedRule[None]:
        """Learn nothing."""
        return FittedRule(self, panel, None)  # type: ignore[arg-type]  # so it is broken

    def paths(self, *_asked: Any) -> Any:
        """Fail."""
        return list[float]()[3]


@dataclass(frozen=True)
class BrokenLater(Broken):
    """Holds the last value, and fails on bins of five minutes, which the contract is not checked on."""

    name: str = "broken-later"

    def paths(self, history: Any, learned: Any, steps: int, levels: Any) -> Any:
        """Fail on bins of five minutes."""
        if history.step == timedelta(minutes=5):
            raise RuntimeError("bins of five minutes")
        return held(history.values, steps, levels)
