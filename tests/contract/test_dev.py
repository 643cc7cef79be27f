"""`./dev` is one entry for people: what it names in its usage starts."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LOCK = "requirements-dev.lock"


def shell(folder: Path, *words: str) -> str:
    return subprocess.run(["sh", *words], cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Copy the script beside an environment in which everything is installed; Jupyter prints the files to open."""
    for name in ("dev", "pyproject.toml", LOCK):
        shutil.copy(ROOT / name, tmp_path / name)
    programs = tmp_path / ".venv" / "bin"
    programs.mkdir(parents=True)
    for name, text in (("python", "exit 1"), ("jupyter-lab", 'echo "opens $@"')):
        (programs / name).write_text(f"#!/bin/sh\n{text}\n")
        (programs / name).chmod(0o755)
    (tmp_path / ".venv" / f".installed-{LOCK}").write_text(shell(tmp_path, "-c", f"cat {LOCK} pyproject.toml | cksum"))
    return tmp_path


@pytest.mark.parametrize(("given", "opened"), [((), "notebooks"), (("mine",), "mine")])
def test_notebook_opens_jupyter_on_the_notebooks_or_on_a_folder(
    clone: Path, given: tuple[str, ...], opened: str
) -> None:
    assert shell(clone, "dev", "notebook", *given) == f"opens {opened}\n"


@pytest.mark.parametrize(
    ("fails", "code"),
    [("-m cluster tests/cluster", 1), ("-m cluster tests/cluster/test_bad", 1), ("-m not", 1), ("?", 0)],
)
def test_all_tests_run_also_where_some_fail_and_each_failure_counts(clone: Path, fails: str, code: int) -> None:
    for part in ("prometheus", "stores", "postgres", "chromium", "control-plane", "keda", "packaging"):
        (clone / ".ci").mkdir(exist_ok=True)
        (clone / ".ci" / part).write_text("exit 0\n")
    (clone / ".venv" / "bin" / "python").write_text(
        f'#!/bin/sh\necho "ran $* :: for $(nice)"\ncase "$*" in *"{fails}"*) exit 1 ;; esac\n'
    )
    done = subprocess.run(["sh", "dev", "test", "--all", "-q"], cwd=clone, check=False, capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    others, *cluster = done.stdout.splitlines()
    assert "-m not cluster -q" in others, "printed first"
    assert all("-m cluster" in line for line in cluster)
    assert len(cluster) == (1 if fails == "-m cluster tests/cluster" else 2), "the days follow the tests that passed"
    assert int(others.split()[-1]) > int(cluster[0].split()[-1]), "they give way"


def test_an_environment_of_which_the_making_was_interrupted_is_made_anew(clone: Path) -> None:
    """Each later command ended with "No module named pip"."""
    (clone / ".venv" / f".installed-{LOCK}").unlink()
    (clone / "python").write_text("#!/bin/sh\n")
    (clone / "python").chmod(0o755)
    environment = {**os.environ, "PYTHON": str(clone / "python")}
    done = subprocess.run(["sh", "dev", "notebook"], cwd=clone, env=environment, capture_output=True, check=False)
    assert b"creating .venv" in done.stderr


def test_every_command_is_in_the_usage(clone: Path) -> None:
    usage = shell(clone, "dev", "help")
    for command in ("demo", "test", "notebook", "check", "format", "docs", "lock", "run"):
        assert f"./dev {command}" in usage
