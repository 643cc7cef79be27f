"""Health of the computing process, as the dashboard reads it."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec

from forecaster.domain.report import CycleReport, Effected, ForecastScore
from forecaster.domain.signal import CPU
from forecaster.publish.decision_history import DecisionHistory
from forecaster.publish.health import MAX_CYCLES, MAX_GROUPS, HealthHistory, SettingView, settings_in_force
from tests.support.recommendations import NOON, workload_id

if TYPE_CHECKING:
    from collections.abc import Iterable

MINUTE = timedelta(minutes=1)


def score(name: str = "web", *, error: float = 0.5, lead: int = 5, model: str = "ridge") -> ForecastScore:
    """Score of a forecast of a peak of 2 cores."""
    return ForecastScore(workload_id(name), CPU, NOON - lead * MINUTE, NOON, model, 0.9, 2.0 - error, 2.0, 2.0)


def report(minute: int, scores: Iterable[ForecastScore] = (), failures: tuple[str, ...] = ()) -> CycleReport:
    return CycleReport(
        at=NOON + minute * MINUTE,
        steps={"targets": 0.1, "decisions": 0.2},
        series={CPU: 7},
        newest_sample_age={CPU: 12.0},
        incomplete=Counter({("cpu", "silent-pods"): 2, ("memory", "partial-answer"): 1}),
        verdicts=Counter({("scale", "forecast"): 3, ("hold", "no-data"): 4}),
        failures=failures,
        scores=tuple(scores),
        gates=("shop/web: observe to acting",),
    )


def test_the_last_cycles_are_told_newest_first() -> None:
    book = HealthHistory()
    for minute in range(MAX_CYCLES + 5):
        book.follow(report(minute, failures=(f"minute {minute}",)))
    view = book.view(DecisionHistory())
    assert len(view.cycles) == MAX_CYCLES
    assert view.cycles[0].failures == (f"minute {MAX_CYCLES + 4}",)
    assert (view.since, view.cycles[0].steps["decisions"]) == (NOON, 0.2)


def test_a_report_counts_once() -> None:
    """A table is written again while no new cycle has ended."""
    book = HealthHistory()
    for _ in range(3):
        book.follow(report(0, [score()]))
    view = book.view(DecisionHistory())
    assert (len(view.cycles), len(view.moves), view.accuracy[0].forecasts) == (1, 1, 1.0)


def test_a_source_is_told_with_its_age_and_what_is_incomplete() -> None:
    book = HealthHistory()
    book.follow(report(0))
    (cpu,) = book.view(DecisionHistory()).sources
    assert msgspec.structs.astuple(cpu) == ("cpu", 7, 12.0, {"silent-pods": 2})


def test_forecasts_are_told_apart_by_model_and_lead() -> None:
    book = HealthHistory()
    book.follow(report(0, [score(lead=5), score(lead=5, error=1.0), score(lead=9), score(model="theta")]))
    by_model = {
        (group.model, group.minutes): (group.forecasts, group.error_ratio)
        for group in book.view(DecisionHistory()).accuracy
    }
    assert by_model == {("ridge", 5): (2.0, 0.375), ("ridge", 9): (1.0, 0.25), ("theta", 5): (1.0, 0.25)}


def test_leads_that_one_owner_makes_up_take_no_place_of_what_is_forecast_often() -> None:
    book = HealthHistory()
    book.follow(report(0, [score(lead=lead) for lead in range(1, 2 * MAX_GROUPS)]))
    for minute in (1, 2):
        book.follow(report(minute, [score(lead=lead, model="prior") for lead in (5, 8, 5, 8)]))
    accuracy = book.view(DecisionHistory()).accuracy
    assert len(accuracy) == MAX_GROUPS
    assert [(group.minutes, group.forecasts) for group in accuracy if group.model == "prior"] == [(5, 4.0), (8, 4.0)]


def test_the_workload_that_errs_most_is_named_first_and_one_with_few_forecasts_not_at_all() -> None:
    history, book = DecisionHistory(), HealthHistory()
    scores = [*(score("bad", error=1.5),) * 6, *(score("good", error=0.25),) * 6, *(score("new", error=9.0),) * 4]
    cycle = report(0, scores)
    history.follow(NOON, [workload_id(name) for name in ("bad", "good", "new")], [], cycle)
    book.follow(cycle)
    worst = [(workload.name, workload.accuracy.error_ratio) for workload in book.view(history).worst]
    assert worst == [("bad", 0.75), ("good", 0.125)]


def test_before_the_first_cycle_nothing_is_made_up() -> None:
    setting = SettingView("a.b", "1", "environment")
    view = HealthHistory((setting,)).view(DecisionHistory())
    assert (view.since, view.cycles, view.settings) == (
        None,
        (),
        (setting,),
    )


def test_what_was_written_to_the_cluster_is_told_by_actuator() -> None:
    book = HealthHistory()
    effected = Effected(leading=True, writes=Counter({("raise", "done"): 3}), states=Counter({"no-hpa": 2}))
    book.follow(CycleReport(at=NOON, effected={"floor": effected}))
    (acting,) = book.view(DecisionHistory()).acting
    assert (acting.name, acting.leading, acting.writes, acting.states) == (
        "floor",
        True,
        (("raise", "done", 3),),
        {"no-hpa": 2},
    )


def test_settings_say_where_they_are_stated_and_those_that_are_come_first() -> None:
    given = {"cycle": {"interval": "2m"}, "policy": {"mode": "observe"}, "serving": {"port": 80}}
    settings = settings_in_force(given, {"serving.port": "environment", "policy": "/etc/a.yaml"})
    assert [(setting.path, setting.value, setting.origin) for setting in settings] == [
        ("policy.mode", "observe", "/etc/a.yaml"),
        ("serving.port", "80", "environment"),
        ("cycle.interval", "2m", "default"),
    ]


def test_a_query_that_is_long_is_cut_and_a_secret_masked() -> None:
    settings = settings_in_force({"queries": {"cpu": "x" * 500}, "state": {"database": "postgresql://u:p@h/d"}}, {})
    assert [len(setting.value) for setting in settings if setting.path == "queries.cpu"] == [200]
    assert [setting.value for setting in settings if setting.path == "state.database"] == ["(not shown)"]
