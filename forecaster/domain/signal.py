"""What is measured of a workload."""

from __future__ import annotations

from enum import StrEnum


class Signal(StrEnum):
    """A kind of demand, always the total over all pods of a workload."""

    CPU = "cpu"
    MEMORY = "memory"
    REQUESTS = "requests"

    @property
    def unit(self) -> str:
        """The unit of every value of this signal inside the program."""
        return _UNITS[self]


_UNITS = {Signal.CPU: "cores", Signal.MEMORY: "bytes", Signal.REQUESTS: "requests/s"}
