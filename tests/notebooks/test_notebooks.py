"""The notebooks run from top to bottom, show what is beside them, and end with settings that are valid."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import jupytext
import nbformat
import numpy as np
import pytest
import yaml

from forecaster.app.notebook import recorded
from forecaster.config.settings import parse
from notebooks.render import HERE, NAMES, executed

if TYPE_CHECKING:
    from nbformat import NotebookNode

LONGEST_CELL = 25
YOURS = re.compile(r"^# \S.* = .*(load\w*|Path)\(.*  # ", re.MULTILINE)
"""The lines to use in place of the one before, with data of one's own."""


@pytest.fixture(scope="module", params=NAMES)
def notebook(request: pytest.FixtureRequest) -> NotebookNode:
    return executed(HERE / f"{request.param}.py")


def printed(notebook: NotebookNode) -> str:
    return notebook.cells[-1].outputs[-1].text


@pytest.mark.slow
def test_it_runs_and_ends_with_valid_settings(notebook: NotebookNode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(HERE)
    fragment = yaml.safe_load(printed(notebook))
    assert fragment
    parse(fragment, "the last cell")


@pytest.mark.parametrize("minutes", [5, 15, 60])
def test_samples_of_ones_own_may_be_further_apart_and_an_hour_stays_an_hour(
    minutes: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = tmp_path / "own.csv"
    rows = (f"{1772366400 + 60 * minute},{minute / 60}" for minute in range(0, 4 * 24 * 60, minutes))
    own.write_text("\n".join(["timestamp,value", *rows]))
    text = (HERE / "2_look.py").read_text(encoding="utf-8").replace('load("cpu")', f'load("cpu", "{own}")')
    exec(text, {})  # noqa: S102  one of our own notebooks
    assert "within an hour it moves by 1.00 cores" in capsys.readouterr().out


@pytest.mark.slow
def test_nothing_is_written_to_standard_error(notebook: NotebookNode) -> None:
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    assert [output.text for output in outputs if output.get("name") == "stderr"] == []


@pytest.mark.parametrize("name", NAMES)
def test_what_is_shown_beside_it_came_from_this_source(name: str) -> None:
    source, shown = jupytext.read(HERE / f"{name}.py"), nbformat.read(HERE / f"{name}.ipynb", 4)
    assert [cell.source for cell in shown.cells] == [cell.source for cell in source.cells], "run notebooks/render.py"
    assert all(cell.outputs for cell in shown.cells[-1:])


@pytest.mark.parametrize("name", NAMES)
def test_no_cell_is_longer_than_a_screen_and_one_line_takes_your_own_data(name: str) -> None:
    text = Path(HERE / f"{name}.py").read_text(encoding="utf-8")
    cells = [cell.source for cell in jupytext.read(HERE / f"{name}.py").cells if cell.cell_type == "code"]
    assert max(len(cell.splitlines()) for cell in cells) <= LONGEST_CELL
    assert YOURS.search(text)


def test_every_notebook_is_in_the_readme() -> None:
    readme = (HERE / "README.md").read_text(encoding="utf-8")
    assert [name for name in NAMES if f"({name}.ipynb)" not in readme] == []


def test_weights_that_are_shipped_are_those_that_the_notebook_trains(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.syspath_prepend(HERE)
    from pooled_ridge import trained  # noqa: PLC0415  beside the notebooks

    panel = recorded("cpu")
    trained(panel.until(panel.start + (panel.end - panel.start) / 2), tmp_path / "weights.npz")
    with np.load(tmp_path / "weights.npz") as trained_weights, np.load(HERE / "pooled_ridge.npz") as shipped:
        for name in ("coefficients", "errors"):
            np.testing.assert_allclose(trained_weights[name], shipped[name], rtol=1e-5)
