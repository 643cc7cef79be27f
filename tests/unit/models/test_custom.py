"""Models of one's own are named by import path, and refused with a remedy when they are no models."""

import sys
from pathlib import Path

import pytest

import models
from models import ContractError, QuestionError

GOOD = """
from dataclasses import dataclass
from models import Panel
from models.fitted import held
from models.fitted import FittedRule

@dataclass(frozen=True)
class Ours:
    name: str = "ours"

    def fit(self, panel):
        return FittedRule(self, panel, None)

    def paths(self, history, learned, steps, levels):
        return held(history.values, steps, levels)
"""
BROKEN = GOOD.replace("held(history.values, steps, levels)", "held(history.values * 0 + 1, steps, levels)")


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "our_models.py").write_text(GOOD + "ready = Ours('ready')\nnumber = 3\n", encoding="utf-8")
    (tmp_path / "our_broken.py").write_text(BROKEN, encoding="utf-8")
    (tmp_path / "our_faulty.py").write_text(GOOD.replace("return held", "1 / 0; return held"), encoding="utf-8")
    (tmp_path / "our_needs.py").write_text("import no_such_package_of_ours\n", encoding="utf-8")
    yield "our_models"
    for name in ("our_models", "our_broken", "our_faulty", "our_needs"):
        sys.modules.pop(name, None)


def test_a_class_or_a_spec_is_found_by_its_path(module: str) -> None:
    assert models.create("our_models:Ours").name == "ours"
    assert models.create("our_models:ready").name == "ready"


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("our_models:", "write it as package.module:Name"),
        ("our_models:Missing", "module 'our_models' has no 'Missing'"),
        ("our_needs:Ours", "No module named 'no_such_package_of_ours'"),
        ("no_such_module_of_ours:Ours", "is its folder in PYTHONPATH"),
    ],
)
def test_what_does_not_import_is_refused_with_a_remedy(module: str, path: str, message: str) -> None:
    with pytest.raises(QuestionError, match=message):
        models.create(path)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("our_models:number", "is a int without 'name'"),
        ("our_models:held", "cannot be made without arguments"),
        ("our_broken:Ours", "times the demand gives"),
        ("our_faulty:Ours", "it raises ZeroDivisionError"),
    ],
)
def test_what_breaks_the_contract_is_refused(module: str, path: str, message: str) -> None:
    with pytest.raises(ContractError, match=message):
        models.create(path)
