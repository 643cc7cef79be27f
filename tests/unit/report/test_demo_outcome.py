"""The demo's end: the played counts as floors against the plain HPA, and against the plain HPA that spends as much."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING

import msgspec
import pytest

from forecaster.app.demo import compared, play, setups_of
from forecaster.replay.comparison import Benefit
from forecaster.report.demo import demo_view, noted, print_played
from tests.support.builders import minutes
from tests.support.stage import WEB, stage

if TYPE_CHECKING:
    from forecaster.app.demo import PlayedMinute
    from forecaster.domain.workload import WorkloadId
    from forecaster.replay.comparison import Comparison, WorkloadComparison
    from forecaster.replay.realised import DecidedCount


def played(cores: list[float], counts: list[int | None], length: int) -> tuple[PlayedMinute, Comparison]:
    scene = stage(cores, counts)
    decisions: dict[WorkloadId, list[DecidedCount]] = defaultdict(list)
    *_, last = noted(play(scene, setups_of(scene)[0], minutes(length)), decisions)
    return last, compared(scene, decisions, last.now)


def only(whole: Comparison) -> WorkloadComparison:
    (workload,) = whole.workloads
    return workload


def test_a_floor_that_comes_in_time_beats_lower_targets_at_the_same_cost() -> None:
    """Nothing is short with a floor from three minutes before the jump on; lower targets pay all the time."""
    _, whole = played([2.0] * 40 + [6.0] * 30, [4] * 35 + [12], 60)
    web = only(whole)
    plain, floored, equal = web.curves["hpa"].own, web.curves["decided"].own, web.equal("decided")
    assert floored.missing == 0.0
    assert equal is not None
    assert equal.pod_hours == pytest.approx(floored.pod_hours)
    assert plain.missing > equal.missing > 0.0
    assert web.benefit("decided") is not Benefit.WORSE


@pytest.mark.parametrize(("world", "strategy"), [("plain", "hpa"), ("floored", "decided")])
def test_both_clusters_cost_what_they_cost_in_the_play(world: str, strategy: str) -> None:
    last, whole = played([2.0] * 5 + [6.0] * 15, [5] * 4 + [9, None], 15)
    outcome, account = only(whole).curves[strategy].own, getattr(last, world)[WEB].account
    assert (outcome.short, outcome.measured, outcome.changes) == (account.short, account.measured, account.changes)
    assert outcome.pod_hours == pytest.approx(account.pod_hours)
    assert outcome.missing == pytest.approx(account.missing)


def test_a_floor_that_nobody_needs_costs_and_is_never_praised() -> None:
    _, whole = played([2.0] * 40, [5], 30)
    web = only(whole)
    assert web.curves["decided"].own.pod_hours > web.curves["hpa"].own.pod_hours
    assert web.curves["hpa"].own.missing == web.curves["decided"].own.missing == 0.0
    assert web.benefit("decided") is Benefit.WORSE


def test_the_outcome_fits_eighty_columns_and_says_what_it_leaves_out(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    print_played(played([2.0] * 5 + [6.0] * 15, [9], 15)[1])
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 80
    words = " ".join(text.split())
    for part in ("UNSERVED DEMAND", "MINUTES SHORT", "POD-HOURS", "Left out, no HPA scales it", "once --prometheus"):
        assert part in words


def test_machines_get_the_recommendations_as_once_prints_them_and_the_outcome_beside() -> None:
    last, whole = played([2.0] * 10, [5], 5)
    view = msgspec.to_builtins(demo_view(last, whole))
    assert [row["name"] for row in view["recommendations"]] == ["batch", "web"]
    outcome = view["outcome"]
    assert outcome["workloads"][0]["pod_capacity"] == 1.0
    assert math.isclose(outcome["total"]["hpa"]["own"]["pod_hours"], 4 * 5 / 60)
    assert outcome["left_out"][0]["name"] == "batch"
    assert outcome["summary"]
