"""Standard output, for people and for machines."""

from __future__ import annotations

import sys

import msgspec
from rich.console import Console

PIPE_WIDTH = 240


def output_console() -> Console:
    """As wide as the terminal. A pipe has no width: nothing is cut there."""
    return Console(width=None if sys.stdout.isatty() else PIPE_WIDTH)


def print_json(view: object) -> None:
    """One JSON document; `view` is anything that msgspec encodes."""
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(view), indent=2).decode() + "\n")
