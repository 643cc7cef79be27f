"""Memory of a process as the kernel counts it."""

from __future__ import annotations

from pathlib import Path


def rss_mib(pid: int | str = "self") -> float:
    return _status(pid, "VmRSS")


def peak_mib(pid: int | str = "self") -> float:
    return _status(pid, "VmHWM")


def _status(pid: int | str, field: str) -> float:
    for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) / 1024
    raise ValueError(f"process {pid} has no {field}")
