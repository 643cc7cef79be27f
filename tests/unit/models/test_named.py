"""Models are named with their settings, as configuration has them; mistakes are answered with what there is."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import models
from forecaster.config.settings import parse
from forecaster.errors import ConfigError
from models import ContractError, NearestDay, QuestionError, create, parsed_name
from models.leaderboard import compare
from tests.support.panels import daily_waves


def test_settings_stand_in_brackets_and_are_literals() -> None:
    assert parsed_name("nearest-day") == ("nearest-day", {})
    assert parsed_name("ours:M(days=5, weights='w.npz', shares=(1, 2))").settings == {
        "days": 5,
        "weights": "w.npz",
        "shares": (1, 2),
    }
    assert create("nearest-day(nearest=4, hours=3)") == NearestDay(nearest=4, hours=3)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("nearest-day(4)", "every setting has a name"),
        ("nearest-day(nearest=)", "cannot be read"),
        ("nearest-day(nearest=__import__('os').getcwd())", "cannot be read"),
        ("nearest-day(naerest=4)", "no setting 'naerest'; it has nearest, hours, days"),
        ("nearest-day(nearest='4')", "nearest is a int, by default 8"),
        ("last-value(days=1)", "no setting 'days'"),
        ("hour-of-week(calendar='Europe/Berlin')", "no setting 'calendar'; it has days"),
        ("hour-of-week(days=0)", "days is 0; it must be above 0"),
        ("seasonal-naive-week(period=3)", "no setting 'period'"),
        ("no-such(days=1)", "there is no model 'no-such'"),
    ],
)
def test_a_mistake_is_answered_with_what_there_is(text: str, fault: str) -> None:
    with pytest.raises(QuestionError, match=fault):
        create(text)


def test_a_model_of_ones_own_has_settings_and_is_served_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "our_days.py").write_text(Path("notebooks/median_of_days.py").read_text())
    monkeypatch.syspath_prepend(tmp_path)
    try:
        assert create("our_days:MedianOfDays(days=3)").days == 3
        settings = parse({"forecast": {"model": "our_days:MedianOfDays(days=3)"}}, "test")
        assert settings.forecast.model == "our_days:MedianOfDays(days=3)"
        with pytest.raises(ConfigError, match="no setting 'weeks'; it has days"):
            parse({"forecast": {"model": "our_days:MedianOfDays(weeks=3)"}}, "test")
    finally:
        sys.modules.pop("our_days", None)


def test_one_model_with_two_settings_is_compared_under_the_names_asked_for() -> None:
    board = compare(daily_waves(2), ["nearest-day", "nearest-day(nearest=2)"], steps=6, count=2)
    assert {"nearest-day", "nearest-day(nearest=2)"} < set(board.table().index)


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
        ("our_broken:Ours", "times the demand gives .*, on an ordinary panel; divide by a size of the series"),
        (
            "our_faulty:Ours",
            r"it raises ZeroDivisionError: .* \(our_faulty.py, line \d+\), on the panel 'ordinary'; .*",
        ),
    ],
)
def test_what_breaks_the_contract_is_refused(module: str, path: str, message: str) -> None:
    with pytest.raises(ContractError, match=message):
        models.create(path)
