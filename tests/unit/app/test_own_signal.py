"""A signal that nobody built in: a queue in messages, by settings alone, from Prometheus to what an HPA reads."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from forecaster.app.compose import Nowhere, build_cycle, single_cycle
from forecaster.app.traces import of_recording
from forecaster.config.settings import parse
from forecaster.cycle.run import Effects
from forecaster.domain.decision import Scale
from forecaster.domain.signal import CPU, MEMORY, PODS, REQUESTS
from forecaster.domain.window import FIVE_MINUTES, MINUTE
from forecaster.domain.workload import Autoscaler, Resources, Target, TargetType, Workload, WorkloadId
from forecaster.errors import ConfigError
from forecaster.horizontal.sentences import explanation
from forecaster.publish.reader import TableReader
from forecaster.publish.table_file import TableFile
from forecaster.sources.embedded import EmbeddedPrometheus
from forecaster.sources.factory import source_of
from forecaster.sources.recorded import Recording
from forecaster.store.history import HistoryStore
from forecaster.store.snapshot import Snapshots
from tests.support.decided_records import record_publisher

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from forecaster.config.settings import Settings
    from forecaster.domain.decision import Recommendation

START = datetime(2026, 3, 2, tzinfo=UTC)
DAYS = 4
NOW = START + timedelta(days=DAYS) - timedelta(hours=1)
WORKER = WorkloadId("jobs", "Deployment", "worker")
PER_POD = 30.0

QUEUE: dict[str, Any] = {
    "unit": "messages",
    "query": 'sum by (namespace, workload_kind, workload) (broker_queue_messages{namespace=~"$namespaces"$labels}'
    " * on (namespace, workload) group_left (workload_kind) $workloads)",
    "metrics": ["broker_queue_messages"],
}


def backlog(minutes: int) -> np.ndarray[Any, Any]:
    """A queue that fills every day until noon and is worked off by midnight."""
    day = np.arange(minutes) % 1440 / 1440
    return 300.0 + 240.0 * np.sin(2 * np.pi * (day - 0.25))


@pytest.fixture
def settings(tmp_path: Path) -> Iterator[Settings]:
    given = {
        "signals": {"queue": QUEUE},
        "history": {"weeks_kept": "3d"},
        "forecast": {"model": "prior"},
        "state": {"directory": str(tmp_path / "state")},
        "policy": {"mode": "publish", "horizontal": {"gate": False}},
    }
    queue = parse(given, "test").signal_table.by_name["queue"]
    minutes = DAYS * 1440
    hpa = Autoscaler("worker", 1, 100, (Target("broker_queue_messages", TargetType.AVERAGE_VALUE, PER_POD),))
    worker = Workload(WORKER, 10, 10, Resources(cpu_request=0.5), hpa)
    unknown = np.full((1, minutes), np.nan)
    known = {CPU: np.full((1, minutes), 1.0), queue: backlog(minutes)[None], PODS: np.full((1, minutes), 10.0)}
    values = {MEMORY: unknown, REQUESTS: unknown} | known
    recording = Recording(START + MINUTE, (worker,), values)
    queries = parse(given, "test").queries.with_signals(parse(given, "test").signals)
    with EmbeddedPrometheus(recording, queries, recording.fleet(NOW)) as server:
        yield parse(given | {"prometheus": {"url": server.url}}, "test")


def decided(settings: Settings) -> Recommendation:
    (recommendation,) = single_cycle(settings, NOW).run(NOW).recommendations
    return recommendation


def test_it_decides_the_count_and_is_forecast(settings: Settings) -> None:
    recommendation = decided(settings)
    (view,) = recommendation.signals
    measured = backlog(DAYS * 1440)[-61]
    assert (view.signal, view.unit) == ("queue", "messages")
    assert view.measured == pytest.approx(measured, rel=1e-3)
    assert view.reactive_replicas == -(-measured // PER_POD)
    assert view.forecast is not None
    assert isinstance(recommendation.replicas, Scale)


def test_the_explanation_speaks_of_messages(settings: Settings) -> None:
    text = "\n".join(explanation(decided(settings)))
    assert "queue: target 30 messages a pod" in text
    assert "messages at 23:00" in text
    assert "of the peak between" in text


def test_the_external_metric_is_its_demand(settings: Settings, tmp_path: Path) -> None:
    table = TableFile(tmp_path / "table", interval=MINUTE, version="1.2.3")
    cycle = build_cycle(
        settings,
        source_of(settings),
        HistoryStore(settings.signal_table.measured, settings.history, now=NOW),
        Effects(record_publisher(table, settings.policies), Nowhere()),
        learns_first=True,
    )
    (recommendation,) = cycle.run(NOW).recommendations
    reader = TableReader(table.path)
    reader.refresh()
    assert reader.table is not None
    (entry,) = reader.table.entries
    offer = reader.table.published(entry)
    assert offer is not None
    assert offer.signals == ("queue",)
    (number,) = offer.demands
    assert number.signal == "queue"
    assert number.value >= (recommendation.signals[0].measured or 0.0)


def test_traces_of_it_can_be_replayed(settings: Settings) -> None:
    queue = settings.signal_table.by_name["queue"]
    traces = of_recording(Recording(START, (), {queue: np.zeros((0, 10)), PODS: np.zeros((0, 10))}))
    assert traces.signals == (queue,)


def test_a_mean_of_pods_is_multiplied_by_the_ready_ones() -> None:
    given = {"signals": {"gpu": {"unit": "gpus", "query": "avg_gpu", "per_pod": True, "divided_by": "ready-pods"}}}
    settings = parse(given, "test")
    queries = settings.queries.with_signals(settings.signals)
    assert (
        queries.signal("gpu")
        == f"(\navg_gpu\n)\n* on (namespace, workload_kind, workload)\n(\n{queries.signal(PODS)}\n)"
    )
    assert not settings.signal_table.by_name["gpu"].of_all_pods


def test_a_snapshot_is_read_without_a_signal_that_is_configured_no_more(settings: Settings, tmp_path: Path) -> None:
    before = HistoryStore(settings.signal_table.measured, settings.history, now=NOW)
    single_cycle_history(settings, before)
    Snapshots(tmp_path / "snapshot", before).save()
    fewer = HistoryStore((CPU, PODS), settings.history, now=NOW)
    assert Snapshots(tmp_path / "snapshot", fewer).load()
    assert np.isfinite(fewer.window(CPU, FIVE_MINUTES).values).any()
    assert set(fewer.rings) == {"cpu", "pods"}


def test_a_signal_that_is_new_begins_empty(settings: Settings, tmp_path: Path) -> None:
    before = HistoryStore((CPU, PODS), settings.history, now=NOW)
    single_cycle_history(settings, before)
    Snapshots(tmp_path / "snapshot", before).save()
    more = HistoryStore(settings.signal_table.measured, settings.history, now=NOW)
    assert Snapshots(tmp_path / "snapshot", more).load()
    assert np.isfinite(more.window(CPU, FIVE_MINUTES).values).any()
    assert not np.isfinite(more.window(settings.signal_table.by_name["queue"], FIVE_MINUTES).values).any()


def single_cycle_history(settings: Settings, history: HistoryStore) -> None:
    """The history as one source answers it."""
    source = source_of(settings)
    for gap in history.gaps(NOW):
        for block in source.history(gap.signal, gap.start, gap.end, gap.step):
            history.write(block)


@pytest.mark.parametrize(
    ("signals", "message"),
    [
        ({"Queue": QUEUE}, "a name is a lowercase word"),
        ({"replicas": QUEUE}, "a name is a lowercase word"),
        ({"queue": {"unit": "messages"}}, "needs a unit and a query"),
        ({"cpu": {"unit": "cores"}}, "is built in"),
        ({"queue": QUEUE | {"metrics": ["cpu"]}}, "means cpu already"),
        ({"queue": QUEUE, "other": QUEUE}, "means queue already"),
        ({"queue": QUEUE | {"colour": "blue"}}, "colour"),
    ],
)
def test_what_cannot_be_a_signal_is_refused(signals: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse({"signals": signals}, "test")


@pytest.mark.parametrize("policy", [{"demand_signal": "queue"}, {"pod_amounts": [{"signal": "queue", "amount": 30}]}])
def test_a_policy_names_only_signals_that_are_measured(policy: dict[str, Any]) -> None:
    parse({"signals": {"queue": QUEUE}, "policy": {"horizontal": policy}}, "test")
    with pytest.raises(ConfigError, match="'queue' is not measured"):
        parse({"policy": {"horizontal": policy}}, "test")
    with pytest.raises(ConfigError, match="'queue' is not measured"):
        parse({"overrides": [{"policy": {"horizontal": policy}}]}, "test")


def test_a_policy_states_what_a_pod_carries_where_no_hpa_does(settings: Settings) -> None:
    from forecaster.horizontal.targets import targets_of  # noqa: PLC0415

    given = {
        "signals": {"queue": QUEUE},
        "policy": {"horizontal": {"pod_amounts": [{"signal": "queue", "amount": 30}]}},
    }
    policy = parse(given, "test").policies.of(WORKER).horizontal
    (target,) = targets_of(Workload(WORKER, 1, 1), policy)
    assert str(target) == "30 messages a pod"
    assert settings.policies.of(WORKER).horizontal.signals == settings.signal_table
