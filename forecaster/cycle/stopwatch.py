"""How long each step took."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@dataclass(slots=True)
class Stopwatch:
    """Seconds by step, read from a clock that is given."""

    seconds: Callable[[], float]
    steps: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Measure the block, also when it fails."""
        began = self.seconds()
        try:
            yield
        finally:
            self.steps[name] = self.steps.get(name, 0.0) + self.seconds() - began
