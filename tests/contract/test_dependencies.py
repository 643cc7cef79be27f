"""pyproject.toml declares every imported package, and nothing else."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

ROOT = Path(__file__).resolve().parents[2]
OURS = {"forecaster", "models"}
MODULES = {
    "prometheus-api-client": "prometheus_api_client",
    "pyyaml": "yaml",
    "scikit-learn": "sklearn",
    "grpcio": "grpc",
    "protobuf": "google",
}
"""Distributions whose module has another name."""


@cache
def project() -> dict[str, list[str]]:
    """Modules of the hard dependencies under "", and of each extra under its name."""
    project_table = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return {
        name: [*map(module, lines)]
        for name, lines in {"": project_table["dependencies"], **project_table["optional-dependencies"]}.items()
    }


def module(requirement: str) -> str:
    name = re.split(r"[<>=!~;\[ ]", requirement, maxsplit=1)[0].lower()
    return MODULES.get(name, name.replace("-", "_"))


@cache
def imported() -> dict[str, str]:
    """Third-party modules that the packages import, anywhere in a file, with one file each."""
    modules: dict[str, str] = {}
    for path in (path for package in sorted(OURS) for path in (ROOT / package).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            for name in names(node):
                modules.setdefault(name.split(".")[0], str(path.relative_to(ROOT)))
    return {name: where for name, where in modules.items() if name not in OURS | sys.stdlib_module_names}


def names(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module] if isinstance(node, ast.ImportFrom) and node.module and not node.level else []


@pytest.mark.parametrize("name", sorted(project()[""]))
def test_what_everybody_installs_is_imported(name: str) -> None:
    assert name in imported()


def test_what_is_imported_is_declared() -> None:
    at_run_time = {name for names in project().values() for name in names}
    assert {name: where for name, where in imported().items() if name not in at_run_time} == {}


def test_the_wheel_takes_no_name_but_our_two() -> None:
    """The list of files is the builder's own: a slip in pyproject.toml shows here, before anything is built."""
    tops = {Path(file.distribution_path).parts[0] for file in WheelBuilder(str(ROOT)).recurse_included_files()}
    assert tops == {"forecaster", "forecaster_models"}


def test_a_program_begins_below_everything_that_it_calls() -> None:
    """`if __name__ == "__main__"` is the last statement: a definition below it does not exist yet when it runs."""
    bodies = {file: ast.parse(file.read_text(encoding="utf-8")).body for file in (ROOT / "forecaster").rglob("*.py")}
    begins = {
        file: [place for place, statement in enumerate(body) if is_main(statement)] for file, body in bodies.items()
    }
    assert sum(map(bool, begins.values())) >= 3
    assert [file.name for file, places in begins.items() if places and places != [len(bodies[file]) - 1]] == []


def is_main(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.If) and "__name__" in ast.unparse(statement.test)
