from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import msgspec
import pytest

from forecaster.domain.decision import Reason
from forecaster.domain.report import CycleReport, DecisionChange, ForecastScore, ScoreSums
from forecaster.domain.signal import CPU
from forecaster.publish.decision_history import (
    FORGOTTEN_AFTER,
    MAX_CHANGES,
    DecisionHistory,
    WorkloadHistory,
)
from tests.support.recommendations import NOON, recommendation, workload_id

if TYPE_CHECKING:
    from forecaster.domain.decision import Recommendation

WEB = workload_id("web")


def follow(history: DecisionHistory, recommendations: list[Recommendation], report: CycleReport | None) -> None:
    """Follow one cycle in which these are all workloads."""
    changes = [
        (recommendation.id, DecisionChange.of(recommendation.at, recommendation.replicas))
        for recommendation in recommendations
    ]
    history.follow(
        max((recommendation.at for recommendation in recommendations), default=NOON),
        [recommendation.id for recommendation in recommendations],
        changes,
        report,
    )


def score(at: datetime, *, upper: float = 3.0, actual: float = 2.0) -> ForecastScore:
    return ForecastScore(WEB, CPU, at, at, "ridge", 0.9, median=1.5, upper=upper, actual=actual)


def report(*scores: ForecastScore, at: datetime = NOON) -> CycleReport:
    return CycleReport(at=at, scores=scores)


def test_a_decision_is_noted_when_it_changes() -> None:
    history = DecisionHistory()
    for minute, replicas in enumerate([5, 5, 6, 6, None, None, 6]):
        at = NOON + timedelta(minutes=minute)
        follow(history, [recommendation(at=at, replicas=replicas, reason=Reason.FORECAST)], None)
    noted = [(change.at.minute, change.replicas) for change in history.of(WEB).decisions]
    assert noted == [(6, 6), (4, None), (2, 6), (0, 5)]


def test_what_is_told_follows_every_change_and_every_score() -> None:
    history, encodings = DecisionHistory(), []
    cycles = [(5, []), (5, []), (6, []), (6, [score(NOON)]), (6, [])]
    for minute, (replicas, scores) in enumerate(cycles):
        at = NOON + timedelta(minutes=minute)
        follow(history, [recommendation(at=at, replicas=replicas)], report(*scores, at=at))
        encodings.append(history.encoded([WEB])[0])
        assert encodings[-1] == msgspec.json.encode(history.of(WEB))
    pasts = [msgspec.json.decode(encoding, type=WorkloadHistory) for encoding in encodings]
    assert [(len(past.decisions), len(past.accuracy)) for past in pasts] == [(1, 0), (1, 0), (2, 0), (2, 1), (2, 1)]
    assert encodings[0] is encodings[1]


def test_only_the_last_changes_are_kept() -> None:
    history = DecisionHistory()
    for count in range(1, 50):
        follow(history, [recommendation(replicas=count)], None)
    assert [change.replicas for change in history.of(WEB).decisions] == list(range(49, 49 - MAX_CHANGES, -1))


def test_a_workload_that_is_gone_for_long_is_forgotten() -> None:
    history = DecisionHistory()
    follow(history, [recommendation()], report(score(NOON)))
    follow(history, [recommendation(workload_id("other"), at=NOON + FORGOTTEN_AFTER)], None)
    assert history.of(WEB).decisions
    follow(history, [recommendation(workload_id("other"), at=NOON + FORGOTTEN_AFTER + timedelta(minutes=1))], None)
    assert history.of(WEB).decisions == ()
    assert history.of(WEB).accuracy == ()


def test_a_cycle_that_sees_nobody_forgets_nobody() -> None:
    history = DecisionHistory()
    follow(history, [recommendation()], None)
    follow(history, [], None)
    assert history.of(WEB).decisions


def test_it_goes_on_from_what_another_process_has_seen() -> None:
    history, before = DecisionHistory(), NOON - timedelta(hours=1)
    past = [(WEB, DecisionChange(before, count, "scale", "forecast", "")) for count in (4, 5, 5)]
    history.restore(NOON, past, [(WEB, "cpu", ScoreSums(1.0, 0.0, 0.9, 1.0, 2.0))])
    follow(history, [recommendation(replicas=5)], report(score(NOON)))
    assert [change.replicas for change in history.of(WEB).decisions] == [5, 4]
    (cpu,) = history.of(WEB).accuracy
    assert (cpu.forecasts, cpu.coverage) == (2.0, 0.5)


def test_accuracy_is_that_of_the_forecasts_that_have_matured() -> None:
    history = DecisionHistory()
    follow(history, [recommendation()], report(score(NOON), score(NOON, upper=1.8)))
    (cpu,) = history.of(WEB).accuracy
    assert (cpu.signal, cpu.forecasts, cpu.coverage, cpu.quantile) == ("cpu", 2.0, 0.5, 0.9)
    assert cpu.error_ratio == 0.25


def test_the_nominal_coverage_of_any_number_of_forecasts_has_no_digits_of_float_noise() -> None:
    history = DecisionHistory()
    follow(history, [recommendation()], report(*(score(NOON) for _ in range(11))))
    assert history.of(WEB).accuracy[0].quantile == 0.9


def test_a_report_counts_once() -> None:
    history = DecisionHistory()
    for _ in range(3):
        follow(history, [recommendation()], report(score(NOON)))
    assert history.of(WEB).accuracy[0].forecasts == 1.0


def test_a_forecast_of_yesterday_counts_half() -> None:
    history = DecisionHistory()
    tomorrow = NOON + timedelta(days=1)
    follow(history, [recommendation()], report(score(NOON, upper=1.0)))
    follow(history, [recommendation()], report(score(tomorrow), at=tomorrow))
    assert history.of(WEB).accuracy[0].coverage == pytest.approx(1 / 1.5)


def test_where_nothing_was_measured_there_is_no_ratio() -> None:
    history = DecisionHistory()
    follow(history, [recommendation()], report(score(NOON, actual=0.0)))
    assert history.of(WEB).accuracy[0].error_ratio is None
