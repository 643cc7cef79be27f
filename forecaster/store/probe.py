"""Whether what outlives the process can be kept: tried for `forecaster doctor`."""

from __future__ import annotations

import shutil
import tempfile
from typing import TYPE_CHECKING

from forecaster.domain.amounts import memory
from forecaster.domain.report import Check

if TYPE_CHECKING:
    from pathlib import Path

ROOM = 2 * 2**30
"""A snapshot of 10,000 workloads and its successor, and a month of decisions."""


def probe_state(directory: Path) -> list[Check]:
    """Try to write where snapshot, table and database lie; a directory that is not there yet is not left behind."""
    try:
        free = _room(directory)
    except OSError as error:
        remedy = "make it writable for this user, or name another directory in state.directory"
        return [Check("state directory", ok=False, detail=f"{directory}: {error.strerror}", remedy=remedy)]
    return [
        Check("state directory", ok=True, detail=f"{directory} is writable"),
        Check(
            "free space",
            ok=free >= ROOM,
            detail=f"{memory(free)} are free, {memory(ROOM)} are enough",
            remedy="free some space, or name another directory in state.directory",
        ),
    ]


def _room(directory: Path) -> int:
    """Free bytes, after something could be written."""
    missing = not directory.exists()
    directory.mkdir(parents=True, exist_ok=True)
    try:
        with tempfile.TemporaryFile(dir=directory) as file:
            file.write(b"forecaster")
        return shutil.disk_usage(directory).free
    finally:
        if missing:
            directory.rmdir()
