"""Memory and time of a process as the kernel counts them."""

from __future__ import annotations

import os
from pathlib import Path


def rss_mib(pid: int | str = "self") -> float:
    return _status(pid, "VmRSS")


def peak_mib(pid: int | str = "self") -> float:
    return _status(pid, "VmHWM")


def cpu_seconds(pid: int | str = "self") -> float:
    """User and system time so far, in the kernel's ticks of 10 ms."""
    after_name = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(after_name[11]) + int(after_name[12])) / os.sysconf("SC_CLK_TCK")


def _status(pid: int | str, field: str) -> float:
    for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) / 1024
    raise ValueError(f"process {pid} has no {field}")
