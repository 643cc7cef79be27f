"""The outcome fits a terminal of eighty columns and says what it leaves out."""

from __future__ import annotations

import math
from io import StringIO

import msgspec
from rich.console import Console

from forecaster.app.demo import play, setups_of
from forecaster.app.demo_comparison import FloorComparison
from forecaster.replay.account import Account
from forecaster.report.demo_summary import print_summary
from forecaster.report.demo_view import demo_view
from tests.support.builders import minutes
from tests.support.recommendations import NOON
from tests.support.stage import BATCH, WEB, stage

LARGE = Account(9999.9, minutes(9999), minutes(999), 1000.0, 123.456)
COMPARED = {WEB: FloorComparison(LARGE, LARGE, LARGE)}


def test_no_number_is_cut_in_eighty_columns() -> None:
    console = Console(file=StringIO(), width=80)
    print_summary(console, COMPARED, {BATCH: "no HPA scales it"}, minutes(720))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= 80
    assert text.count("12.346%") >= 6
    assert "Left out: shop/batch, no HPA scales it." in text
    assert "forecaster once --prometheus" in text


def test_machines_get_the_recommendations_as_once_prints_them_and_the_outcome_beside() -> None:
    scene = stage([2.0] * 10, [5])
    setups, left_out = setups_of(scene)
    *_, last = play(scene, setups, minutes(5))
    compared = {WEB: FloorComparison(last.plain[WEB].account, last.floored[WEB].account, None)}
    view = msgspec.to_builtins(demo_view(NOON, last, setups, compared, left_out))
    assert [one["name"] for one in view["recommendations"]] == ["batch", "web"]
    outcome = view["outcome"]
    assert outcome["workloads"][0]["pod_cores"] == 1.0
    assert math.isclose(outcome["total"]["plain_hpa"]["pod_hours"], 4 * 5 / 60)
    assert outcome["total"]["plain_hpa_at_equal_pod_hours"] is None
    assert outcome["left_out"][0]["name"] == "batch"
    assert outcome["verdict"]
