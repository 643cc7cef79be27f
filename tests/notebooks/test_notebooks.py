"""The notebooks run from top to bottom, show what is beside them, and end with settings that are valid."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import jupytext
import nbformat
import pytest
import yaml

from forecaster.config.settings import parse
from notebooks.render import HERE, NAMES, executed

if TYPE_CHECKING:
    from nbformat import NotebookNode

LONGEST_CELL = 25


@pytest.fixture(scope="module", params=NAMES)
def notebook(request: pytest.FixtureRequest) -> NotebookNode:
    return executed(HERE / f"{request.param}.py")


@pytest.mark.slow
def test_it_runs_and_ends_with_valid_settings(notebook: NotebookNode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(HERE)
    printed = notebook.cells[-1].outputs[-1].text
    parse(yaml.safe_load(printed), "the last cell")


@pytest.mark.slow
def test_nothing_is_written_to_standard_error(notebook: NotebookNode) -> None:
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    assert [output.text for output in outputs if output.get("name") == "stderr"] == []


@pytest.mark.parametrize("name", NAMES)
def test_what_is_shown_beside_it_came_from_this_source(name: str) -> None:
    source, shown = jupytext.read(HERE / f"{name}.py"), nbformat.read(HERE / f"{name}.ipynb", 4)
    assert [cell.source for cell in shown.cells] == [cell.source for cell in source.cells]
    assert all(cell.outputs for cell in shown.cells[-1:])


@pytest.mark.parametrize("name", NAMES)
def test_no_cell_is_longer_than_a_screen_and_one_line_changes_the_source(name: str) -> None:
    text = Path(HERE / f"{name}.py").read_text(encoding="utf-8")
    cells = [cell.source for cell in jupytext.read(HERE / f"{name}.py").cells if cell.cell_type == "code"]
    assert max(len(cell.splitlines()) for cell in cells) <= LONGEST_CELL
    assert (
        text.count('panel = recorded("cpu")') == text.count('# panel = measured("http://localhost:9090", "cpu")') == 1
    )
