"""What is measured of a workload."""

from __future__ import annotations

from enum import StrEnum


class Signal(StrEnum):
    """A measured kind; the first three are demand, always the total over all pods of a workload."""

    CPU = "cpu"
    MEMORY = "memory"
    REQUESTS = "requests"
    PODS = "pods"
    """Ready pods: not demand, but what turns totals into shares of one pod."""

    @property
    def unit(self) -> str:
        """The unit of every value of this signal inside the program."""
        return _UNITS[self]


_UNITS = {Signal.CPU: "cores", Signal.MEMORY: "bytes", Signal.REQUESTS: "requests/s", Signal.PODS: "pods"}
DEMAND = (Signal.CPU, Signal.MEMORY, Signal.REQUESTS)
