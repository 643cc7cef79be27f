"""A model that breaks the contract of all models: it fails when it is asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from models.fitted import FittedRule


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
