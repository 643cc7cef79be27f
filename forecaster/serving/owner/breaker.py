"""Breaker: after some failures in a row a server is left alone for a while, then one request tries it."""

from __future__ import annotations

from dataclasses import dataclass

FAILURES = 5
PAUSE_SECONDS = 10.0


@dataclass(slots=True)
class Breaker:
    """Time goes in as seconds of any clock that only goes forward."""

    failures: int = 0
    until: float = 0.0

    def open(self, now: float) -> bool:
        """Whether to leave it alone. The first one after the pause may pass, and no other before it has answered."""
        if self.failures < FAILURES:
            return False
        if now < self.until:
            return True
        self.until = now + PAUSE_SECONDS
        return False

    def answered(self) -> None:
        """It works."""
        self.failures = 0

    def failed(self, now: float) -> None:
        """It did not answer."""
        self.failures += 1
        if self.failures >= FAILURES:
            self.until = now + PAUSE_SECONDS
