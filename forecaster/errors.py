"""The errors that callers may meet.

    ForecasterError
    ├── ConfigError        the configuration is wrong; `faults` names every one of them
    ├── SourceError        history could not be read
    │   ├── SourceUnavailable   no answer: worth asking again
    │   │   └── SourceTimeout       there is a server, and no answer in time: one question may be too much for it
    │   └── SourceRefused       an answer that says no, or that is no answer: a person must look
    └── StoreError         something could not be kept; computing goes on

What is expected to happen (no data, stale, too short) is a value with a reason, never one of these.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


class ForecasterError(Exception):
    """Root of everything raised on purpose here; its text is fit for a user."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong with a configuration."""

    path: str
    value: object
    allowed: str

    def __str__(self) -> str:
        return f"{self.path}: {self.value!r} is not allowed; {self.allowed}"


class ConfigError(ForecasterError):
    """Every fault of a configuration at once."""

    def __init__(self, origin: str, faults: Sequence[Fault]) -> None:
        self.origin = origin
        self.faults = tuple(faults)
        lines = "\n".join(f"  {fault}" for fault in self.faults)
        super().__init__(f"{origin}: {len(self.faults)} fault(s)\n{lines}")


class SourceError(ForecasterError):
    """History could not be read."""


class SourceUnavailable(SourceError):
    """No answer, or not in time."""


class SourceTimeout(SourceUnavailable):
    """There was no answer in time, of a server that accepts connections."""


class SourceRefused(SourceError):
    """The answer was a refusal or not what the protocol promises."""


class StoreError(ForecasterError):
    """Something could not be written or read back."""
