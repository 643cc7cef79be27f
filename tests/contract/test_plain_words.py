"""A stranger reads the code: variables are named after what they hold, docstrings need no neighbours."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
VAGUE = {
    "one",
    "found",
    "some",
    "said",
    "told",
    "kept",
    "asked",
    "what",
    "ours",
    "theirs",
    "of",
    "here",
    "seen",
    "wanted",
}
UNFINISHED = (
    "What ",
    "Those ",
    "The one ",
    "The ones ",
    "The same",
    "Of ",
    "As ",
    "It ",
    "So ",
    "Whose ",
    "Which ",
    "How ",
)
"""Beginnings of a docstring that only its neighbours explain."""
FOLDERS = ("benchmarks", "deploy", "forecaster", "models", "notebooks", "tests")
"""Folders that are written in plain words."""


@pytest.fixture(scope="module")
def trees() -> dict[Path, ast.Module]:
    """Every module of the folders, parsed."""
    paths = (path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
    return {path.relative_to(ROOT): ast.parse(path.read_text(encoding="utf-8")) for path in paths}


def variables(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and name of every variable and parameter; fields of classes are named after their documents."""
    classes = (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    fields = {id(part.target) for node in classes for part in node.body if isinstance(part, ast.AnnAssign)}
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and id(node) not in fields:
            yield node.lineno, node.id


def docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and text of every docstring, those of attributes included."""
    for node in ast.walk(tree):
        for statement in node.body if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) else ():
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                yield statement.lineno, str(statement.value.value).strip()


def test_a_variable_is_named_after_what_it_holds(trees: dict[Path, ast.Module]) -> None:
    named = [(path, *variable) for path, tree in trees.items() for variable in variables(tree)]
    assert [f"{path}:{line}: {name}" for path, line, name in named if name in VAGUE] == []


def test_a_docstring_is_understood_without_its_neighbours(trees: dict[Path, ast.Module]) -> None:
    texts = [(path, *docstring) for path, tree in trees.items() for docstring in docstrings(tree)]
    assert [f"{path}:{line}: {text[:60]}" for path, line, text in texts if text.startswith(UNFINISHED)] == []
