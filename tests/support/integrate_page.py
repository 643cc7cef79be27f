"""The blocks of docs/integrate.md, by the word behind their language: it says how each is tried."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "integrate.md"
BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def blocks() -> list[tuple[str, str, str]]:
    """Language, kind and text of each."""
    return BLOCK.findall(PAGE.read_text(encoding="utf-8"))


def of_kind(kind: str) -> list[str]:
    """The texts of one kind."""
    return [text for _, block_kind, text in blocks() if block_kind == kind]
