"""The forms in which advice is printed; by itself, so that the command line can name them without loading any."""

from __future__ import annotations

from enum import StrEnum


class AdviceOutput(StrEnum):
    """How advice is printed."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    PATCHES = "patches"
    """YAML documents, one strategic-merge patch for each workload."""
    KUSTOMIZE = "kustomize"
    """An overlay in a folder."""
