"""Run the notebooks from top to bottom and write what they show beside them: python notebooks/render.py [NAME...]."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import jupytext
import nbformat
from nbclient import NotebookClient

if TYPE_CHECKING:
    from nbformat import NotebookNode

HERE = Path(__file__).parent
NAMES = tuple(sorted(path.stem for path in HERE.glob("[0-9]_*.py")))
SECONDS = 300


def executed(source: Path) -> NotebookNode:
    """The notebook of a script with its outputs; raises at the first cell that fails."""
    notebook = jupytext.read(source)
    for i, cell in enumerate(notebook.cells):
        cell.id = f"cell-{i}"
    client = NotebookClient(notebook, timeout=SECONDS, record_timing=False, resources={"metadata": {"path": HERE}})
    client.execute()
    return notebook


if __name__ == "__main__":
    for name in sys.argv[1:] or NAMES:
        nbformat.write(executed(HERE / f"{name}.py"), HERE / f"{name}.ipynb")
        print(f"{name}.ipynb written")
