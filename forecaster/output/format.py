"""The forms of output; by itself, so that the command line can name them without loading any."""

from __future__ import annotations

from enum import StrEnum


class Output(StrEnum):
    """How recommendations are printed."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"
    CSV = "csv"
