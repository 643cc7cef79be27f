"""Models are named with their settings, as configuration has them; mistakes are answered with what there is."""

import sys
from pathlib import Path

import pytest

from forecaster.config.settings import parse
from forecaster.errors import ConfigError
from models import NearestDay, QuestionError, create, parsed_name
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
