"""Blocks of code in documents, fenced or indented, with the marker above them."""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
PAGES = sorted([*(ROOT / "docs").glob("*.md"), *(ROOT / name for name in ("README.md", "CONTRIBUTING.md"))])
MARKER = re.compile(r"<!-- (run by|not run:) (.+?) -->")


class Snippet(NamedTuple):
    """One block: where it stands, its language (empty where it is indented), its text, and what its marker says."""

    page: Path
    line: int
    language: str
    text: str
    marker: tuple[str, str] | None

    @property
    def name(self) -> str:
        return f"{self.page.name}:{self.line}"


def snippets() -> Iterator[Snippet]:
    for page in PAGES:
        yield from _of(page, page.read_text(encoding="utf-8").splitlines())


def _of(page: Path, lines: list[str]) -> Iterator[Snippet]:
    at = 0
    while at < len(lines):
        fence = re.match(r"```(\w*)", lines[at])
        begins = lines[at].startswith("    ") and lines[at].strip() and (not at or _ends_prose(lines[at - 1]))
        if not fence and not begins:
            at += 1
            continue
        last = _fenced_until(lines, at) if fence else _indented_until(lines, at)
        text = dedent("\n".join(lines[at + 1 : last] if fence else lines[at:last])).rstrip() + "\n"
        yield Snippet(page, at + 1, fence[1] if fence else "", text, _marker(lines[at - 1] if at else ""))
        at = last + 1 if fence else last


def _ends_prose(line: str) -> bool:
    return not line.strip() or MARKER.fullmatch(line.strip()) is not None


def _fenced_until(lines: list[str], at: int) -> int:
    return next(i for i in range(at + 1, len(lines)) if lines[i].startswith("```"))


def _indented_until(lines: list[str], at: int) -> int:
    end = at
    while end < len(lines) and (lines[end].startswith("    ") or not lines[end].strip()):
        end += 1
    return end


def _marker(line: str) -> tuple[str, str] | None:
    match = MARKER.fullmatch(line.strip())
    return (match[1], match[2]) if match else None
