"""The live table: what changes most comes first, under a line of counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forecaster.cycle.run import Outcome
from forecaster.domain.report import CycleReport
from forecaster.domain.window import Inventory
from forecaster.report.recommendations import MAX_PRINTED, LiveTable, failure_lines, headline
from tests.support.recommendations import NOON, recommendation, workload_id

if TYPE_CHECKING:
    import pytest

COUNTS = {"same": 3, "held": None, "more": 9, "fewer": 2}


def test_what_changes_most_is_on_top_and_the_rest_waits(capsys: pytest.CaptureFixture[str]) -> None:
    made = [recommendation(workload_id(name), replicas=count) for name, count in COUNTS.items()]
    outcome = Outcome(Inventory(NOON, ()), made, CycleReport(at=NOON))
    assert headline(outcome, made).startswith("2026-03-01 12:00 UTC: 4 workloads, 1 up, 1 down, 1 keep, 1 hold")
    with LiveTable(rows=3) as picture:
        picture.show(outcome, {row.id for row in made})
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines if line.startswith("shop/")] == ["shop/more", "shop/fewer", "shop/held"]
    assert lines[-1] == "1 more; `forecaster once` lists all"


def test_without_a_terminal_pictures_follow_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    made = [recommendation(workload_id("web"), replicas=5)]
    outcome = Outcome(Inventory(NOON, ()), made, CycleReport(at=NOON))
    with LiveTable() as picture:
        for _ in range(2):
            picture.show(outcome, {row.id for row in made})
        assert capsys.readouterr().out.count("shop/web") == 2


def test_a_pipe_has_all_of_them_and_is_not_told_how_to_end_what_has_ended(capsys: pytest.CaptureFixture[str]) -> None:
    made = [recommendation(workload_id(f"web-{number}")) for number in range(60)]
    outcome = Outcome(Inventory(NOON, ()), made, CycleReport(at=NOON))
    with LiveTable(lasts=False) as picture:
        picture.show(outcome, {row.id for row in made})
    printed = capsys.readouterr().out
    assert (printed.count("shop/web-"), "more;" in printed, "Ctrl-C" in printed) == (60, False, False)


def test_an_owner_of_a_thousand_misspelt_annotations_takes_no_screen_from_others() -> None:
    faults = tuple(f"Deployment shop/web-{number}: annotation forecaster.dev/mode is 'flor'" for number in range(1000))
    lines = failure_lines(Outcome(Inventory(NOON, ()), [], CycleReport(at=NOON, failures=("no answer", *faults))))
    assert (lines[0], lines[MAX_PRINTED], len(lines)) == ("! no answer", "! and 951 more", MAX_PRINTED + 2)
