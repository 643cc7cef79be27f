"""Examples in docstrings say what happens."""

import doctest
from importlib import import_module
from pathlib import Path

import pytest

import models

NAMES = sorted(path.stem for path in Path(models.__file__).parent.glob("*.py") if ">>> " in path.read_text("utf-8"))


@pytest.mark.parametrize("name", NAMES)
def test_examples_are_true(name: str) -> None:
    results = doctest.testmod(import_module(f"models.{name}"))
    assert results.attempted > 0
    assert results.failed == 0
