"""One slow query is one missing fact: cycles over HTTP against an endpoint that delays some queries."""

from __future__ import annotations

import threading
import urllib.request
from contextlib import ExitStack
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from forecaster.domain.decision import Reason
from forecaster.domain.signal import CPU, MEMORY, REQUESTS
from forecaster.domain.window import MINUTE
from forecaster.sources.embedded import EmbeddedPrometheus
from forecaster.sources.prometheus import PrometheusSource
from forecaster.sources.queries import Queries
from forecaster.sources.recorded import load_recording
from forecaster.sources.settings import PrometheusSettings
from tests.support.fakes import CycleOnFakes
from tests.support.http_server import Reply, Server, vector

if TYPE_CHECKING:
    from collections.abc import Iterator

    from forecaster.cycle.run import Outcome
    from tests.support.http_server import HttpRequest

TIME_OUT = 1.0
"""Seconds; an answer that is not delayed comes sooner, even while other tests run."""


class Stage:
    """A cycle that reads a recording; queries named in `slow` take longer than it waits."""

    def __init__(self, parts: ExitStack) -> None:
        self.slow: set[str] = set()
        self.asked: list[str] = []
        self.answer_takes, self.seconds = 0.0, 0.0
        self._released = threading.Event()
        recording = load_recording()
        self.now = recording.start + timedelta(days=8, minutes=4)
        queries = Queries().with_requests_from("istio")
        self._names = {text: name for name, text in (queries.all_queries() | queries.container_facts()).items()}
        self._behind = parts.enter_context(EmbeddedPrometheus(recording, queries, recording.fleet(self.now)))
        server = parts.enter_context(Server(self._respond))
        parts.callback(self._released.set)
        settings = PrometheusSettings(url=server.url, read_timeout_seconds=TIME_OUT, retries=0)
        source = PrometheusSource(settings, queries, lambda: self.seconds)
        parts.callback(source.close)
        self.cycles = CycleOnFakes(start=self.now, learns_first=False)
        self.cycles.cycle.source = source

    def run(self, minute: int = 0) -> Outcome:
        self.asked.clear()
        return self.cycles.cycle.run(self.now + minute * MINUTE)

    def _respond(self, query: HttpRequest) -> Reply:
        name = self._names.get(query.form["query"], "")
        self.asked.append(name)
        self.seconds += self.answer_takes
        if name in self.slow:
            self._released.wait(10)
            return vector()
        request = urllib.request.Request(self._behind.url + query.path, data=query.body)  # noqa: S310  our own address
        with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310
            return Reply(body=answer.read())


@pytest.fixture
def stage() -> Iterator[Stage]:
    with ExitStack() as parts:
        yield Stage(parts)


def reasons(outcome: Outcome) -> set[Reason]:
    return {record.replicas.reason for record in outcome.recommendations}


def test_limits_that_come_too_late_hold_nothing(stage: Stage) -> None:
    stage.slow = {"pod_limits"}
    outcome = stage.run()
    assert Reason.SOURCE_DOWN not in reasons(outcome)
    assert any(
        "'pod_limits'" in failure and "nothing is known of it yet" in failure for failure in outcome.report.failures
    )


def test_limits_that_come_too_late_stay_the_last_ones(stage: Stage) -> None:
    before = {workload.id: workload.resources for workload in stage.run().inventory.workloads}
    stage.slow = {"pod_limits"}
    after = {}
    for minute in range(1, 9):
        outcome = stage.run(minute)
        after = {workload.id: workload.resources for workload in outcome.inventory.workloads}
        assert Reason.SOURCE_DOWN not in reasons(outcome)
    assert after == before


def test_memory_that_comes_too_late_does_not_starve_the_signals_after_it(stage: Stage) -> None:
    stage.run()
    stage.slow = {"memory"}
    outcome = stage.run(1)
    assert "requests" in stage.asked
    assert outcome.report.newest_sample_age[CPU] == outcome.report.newest_sample_age[REQUESTS] == 0.0
    assert outcome.report.newest_sample_age[MEMORY] == 60.0


def test_memory_that_is_always_late_is_asked_for_less_often_and_read_at_last(stage: Stage) -> None:
    stage.run()
    stage.slow = {"memory"}
    minutes = [minute for minute in range(1, 12) if stage.run(minute) and "memory" in stage.asked]
    assert minutes == [1, 2, 4, 8]
    stage.slow.clear()
    outcome = stage.run(13)
    assert outcome.report.newest_sample_age[MEMORY] == 0.0


def test_a_week_of_oom_kills_that_is_too_much_leaves_the_other_facts_of_containers(stage: Stage) -> None:
    stage.slow = {"oom_kills"}
    outcome = stage.run()
    assert stage.cycles.cycle.containers.facts.resources
    assert any(failure.startswith("containers: query 'oom_kills'") for failure in outcome.report.failures)


def test_a_cycle_pays_for_a_few_time_outs_only(stage: Stage) -> None:
    stage.run()
    stage.slow = {"pod_limits", "pod_requests", "hpa_max_replicas", "hpa_metric_targets", "memory", "requests", "cpu"}
    stage.run(30)
    assert len([name for name in stage.asked if name in stage.slow]) <= 4


def test_answers_that_all_take_twenty_seconds_bound_a_cycle_and_starve_no_question(stage: Stage) -> None:
    stage.run()
    stage.answer_takes = 20.0
    queries: set[str] = set()
    for minute in range(1, 13):
        begun = stage.seconds
        stage.run(minute)
        assert stage.seconds - begun <= 180.0
        queries |= set(stage.asked)
    assert {"cpu", "memory", "requests", "hpa_metric_targets", "pod_requests"} <= queries
