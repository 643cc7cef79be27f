"""Rooms have budgets of lines and files (pyproject.toml): a full room makes place before it takes something new."""

from __future__ import annotations

import tomllib
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
BUDGETS: dict[str, dict[str, int]] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
    "forecaster"
]["budgets"]
WHOLE = "whole"


class Size(NamedTuple):
    """Lines and files of a room."""

    lines: int
    files: int


def room_of(path: Path) -> str:
    """`models`, a folder of forecaster, or forecaster itself for the modules at its root."""
    parts = path.relative_to(ROOT).parts
    return "/".join(parts[:2]) if parts[0] == "forecaster" and len(parts) > 2 else parts[0]


def sizes() -> dict[str, Size]:
    """Size of each room, and of all of them as `whole`."""
    lines: Counter[str] = Counter()
    files: Counter[str] = Counter()
    for path in (path for top in ("forecaster", "models") for path in (ROOT / top).rglob("*.py")):
        count = len(path.read_text(encoding="utf-8").splitlines())
        for room in (room_of(path), WHOLE):
            lines[room] += count
            files[room] += 1
    return {room: Size(lines[room], files[room]) for room in lines}


def test_every_room_has_a_budget() -> None:
    assert sizes().keys() == BUDGETS.keys()


@pytest.mark.parametrize("room", BUDGETS)
def test_a_room_keeps_to_its_budget(room: str) -> None:
    size, budget = sizes()[room], BUDGETS[room]
    left = f"{room}: {budget['lines'] - size.lines} lines and {budget['files'] - size.files} files are left"
    print(left)  # noqa: T201  shown with -rP, to plan by
    assert size.lines <= budget["lines"], left
    assert size.files <= budget["files"], left
