"""Dated files in benchmarks/results/: figures with their time, command, commit and machine."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path

RESULTS = Path(__file__).parent / "results"


def result_path(topic: str, suffix: str = ".md") -> Path:
    """The file of today's measurement of `topic`. A second run of one day replaces the first."""
    return RESULTS / f"{datetime.now(UTC):%Y-%m-%d}-{topic}{suffix}"


def record(topic: str, title: str, command: str, text: str) -> Path:
    """Write `text` under a head that says how to repeat it; README.md of the folder has to list a new topic."""
    path = result_path(topic)
    path.write_text(f"# {title}\n\n{provenance(command)}\n\n{text.strip()}\n", encoding="utf-8")
    return path


def provenance(command: str) -> str:
    """When, on which commit and machine, with which command."""
    return f"{measured()}\n\n    {command}"


def measured() -> str:
    """A sentence that says when, on which commit and on which machine."""
    commit = said_by_git("describe", "--always")
    changed = "-dirty" if said_by_git("status", "--porcelain", "--untracked-files=no") else ""
    machine = f"{os.cpu_count()} cores of {platform.machine()}, Python {platform.python_version()}"
    return f"Measured on {datetime.now(UTC):%Y-%m-%d}, commit {commit}{changed}, {machine}."


def said_by_git(*arguments: str) -> str:
    """The output of one git command."""
    return subprocess.run(["git", *arguments], capture_output=True, text=True, check=True).stdout.strip()
