"""Health of a workload before and after a change: its pods as they are watched, and errors by its policy."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
import structlog
import yaml
from structlog.testing import capture_logs

from forecaster.actuators.rollback import Health, worse
from forecaster.app.health import WorkloadHealth
from forecaster.config.settings import parse
from forecaster.domain.signal import Signal
from forecaster.domain.workload import Workload, WorkloadId
from forecaster.errors import ConfigError, SourceUnavailable
from forecaster.sources.live import LiveCluster
from forecaster.sources.queries import ERROR_SIGNAL_PREFIX, Queries
from tests.support.api_objects import deployment, event, lists, metadata, played, pod
from tests.support.fakes import FakeSource, Load
from tests.support.snippets import snippets

if TYPE_CHECKING:
    from tests.support.api_objects import Document

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
SINCE = NOW - timedelta(minutes=5)
WEB = WorkloadId("shop", "Deployment", "web")
HTTP = Signal(f"{ERROR_SIGNAL_PREFIX}http", unit="")
QUERY = "sum by (namespace, workload_kind, workload) (errors)"
SETTINGS: dict[str, Any] = {
    "queries": {"errors": {"http": QUERY}},
    "policy": {"rollback": {"errors": "http", "limit": 0.05}},
}


def pod_that(name: str, *, restarts: int = 0, minutes: float = 0, ready: str = "True", made: float = 60) -> Document:
    """A pod made `made` minutes ago, whose last restart and last change of readiness are `minutes` ago."""
    changed, created = ((NOW - timedelta(minutes=each)).isoformat() for each in (minutes, made))
    document = pod(name, ("ReplicaSet", "web-1"), creationTimestamp=created)
    ended = {"lastState": {"terminated": {"finishedAt": changed}}} if restarts else {}
    conditions = [{"type": "Ready", "status": ready, "lastTransitionTime": changed}]
    document["status"] |= {"conditions": conditions, "containerStatuses": [{"restartCount": restarts, **ended}]}
    return document


def live_of(*pods: Document) -> LiveCluster:
    cluster = LiveCluster(clock=NOW.timestamp)
    sets = [{"metadata": metadata("web-1", owner=("Deployment", "web"))}]
    lists(cluster, {"deployments": [deployment()], "replicasets": sets, "pods": pods})
    return cluster


def health_of(live: LiveCluster | None, source: FakeSource | None = None) -> Health:
    policies = parse(SETTINGS, "test").policies
    health = WorkloadHealth(live, source, policies, structlog.get_logger())
    return health({WEB: SINCE}, NOW)[WEB]


def source_of(errors: float) -> FakeSource:
    return FakeSource([Load(Workload(WEB, 3, 3), {HTTP: lambda _: errors})])


def test_pods_and_errors_are_seen_together() -> None:
    health = health_of(live_of(*(pod_that(f"web-{each}") for each in range(3))), source_of(0.02))
    assert health == Health(desired=3, ready=3, restarted=0, failing=0, release="web-1", errors=0.02, limit=0.05)
    assert health.known


@pytest.mark.parametrize(
    ("document", "restarted"),
    [
        (pod_that("a", restarts=1, minutes=2), 1),
        (pod_that("a", restarts=4, minutes=9), 0),
        (pod_that("a", restarts=1, minutes=1, made=3), 0),
        (pod_that("a", restarts=2, minutes=1, made=3), 1),
    ],
    ids=["since", "before", "new, once", "new, again"],
)
def test_restarts_count_since_a_change_and_the_first_one_of_a_new_pod_does_not(
    document: Document, restarted: int
) -> None:
    assert health_of(live_of(document)).restarted == restarted


@pytest.mark.parametrize(("minutes", "ready"), [(0.5, 1), (2.0, 0)], ids=["for a moment", "for long"])
def test_a_pod_that_was_ready_counts_until_it_has_not_been_for_a_minute(minutes: float, ready: int) -> None:
    live = live_of(pod_that("a"))
    played(live.pods, [event("MODIFIED", pod_that("a", ready="False", minutes=minutes))])
    assert health_of(live).ready == ready


def lost(document: Document, *, reason: str = "") -> Document:
    """A pod as it stands after its node stopped to answer: the node controller takes Ready from it and says no more."""
    changed = (NOW - timedelta(minutes=3)).isoformat()
    ready = {"type": "Ready", "status": "False", "lastTransitionTime": changed, "reason": reason}
    document["status"]["conditions"] = [ready, {"type": "ContainersReady", "status": "True"}]
    return document


def health_after(*changed: Document, deleted: int = 0) -> Health:
    """Three pods that served, of which the first ones change and the last ones are deleted."""
    live = live_of(*(pod_that(f"web-{each}") for each in range(3)))
    gone = [pod_that(f"web-{each}") for each in range(3 - deleted, 3)]
    played(
        live.pods,
        [event("MODIFIED", document) for document in changed] + [event("DELETED", document) for document in gone],
    )
    return health_of(live)


WELL = Health(desired=3, ready=3, restarted=0, failing=0, release="web-1")


class TestNodes:
    """Trouble of nodes is no evidence against a count: floors were taken back when nodes went NotReady."""

    @pytest.mark.parametrize("lost_pods", [1, 2, 3])
    def test_pods_on_nodes_that_do_not_answer_are_no_evidence(self, lost_pods: int) -> None:
        health = health_after(*(lost(pod_that(f"web-{each}")) for each in range(lost_pods)))
        assert (health.ready, worse(WELL, health, 0.2)) == (3 - lost_pods, "")

    def test_pods_that_are_evicted_are_none(self) -> None:
        health = health_after(deleted=2)
        assert (health.ready, worse(WELL, health, 0.2)) == (1, "")

    def test_a_restart_by_its_node_is_none(self) -> None:
        pods = [pod_that(f"web-{each}", restarts=1, minutes=2) for each in range(3)]
        for document in pods:
            document["status"]["containerStatuses"][0]["lastState"]["terminated"]["reason"] = "Unknown"
        assert worse(WELL, health_of(live_of(*pods)), 0.2) == ""

    @pytest.mark.parametrize("reason", ["ContainersNotReady", "ReadinessGatesNotReady"])
    def test_pods_that_a_kubelet_calls_not_ready_are_evidence(self, reason: str) -> None:
        health = health_after(*(lost(pod_that(f"web-{each}"), reason=reason) for each in range(2)))
        assert worse(WELL, health, 0.2) == "2 of 3 pods are not ready, 0 were before"


def test_without_live_facts_only_errors_are_known() -> None:
    assert health_of(None, source_of(0.02)) == Health(errors=0.02, limit=0.05)


@pytest.mark.parametrize("fault", ["down", "partial", "silent"])
def test_errors_that_are_not_told_in_full_are_not_known(fault: str) -> None:
    source = source_of(0.9)
    if fault == "down":
        source.down = SourceUnavailable("connection refused")
    elif fault == "partial":
        source.partial = {NOW: 0.5}
    else:
        source.mute = {HTTP: SINCE}
    with capture_logs() as logs:
        assert health_of(None, source) == Health(limit=0.05)
    assert [entry["event"] for entry in logs] == ([] if fault == "silent" else ["errors_not_known"])


def test_each_signal_of_errors_is_asked_once_a_cycle() -> None:
    source = source_of(0.02)
    health = WorkloadHealth(None, source, parse(SETTINGS, "test").policies, structlog.get_logger())
    for at in (NOW, NOW, NOW + timedelta(minutes=1)):
        health({WEB: SINCE}, at)
    assert [question.signal for question in source.questions] == [HTTP, HTTP]


class TestSettings:
    def test_those_of_the_page_are_settings(self) -> None:
        (block,) = (
            snippet.text for snippet in snippets() if snippet.page.name == "scale.md" and "errors:" in snippet.text
        )
        settings = parse(yaml.safe_load(block), "test")
        assert settings.policies.stated(WEB).rollback.limit == 0.05
        assert "$owners" not in settings.queries.signal(HTTP)

    def test_the_query_is_asked_as_others_are(self) -> None:
        queries = Queries.model_validate({"errors": {"http": "errors{$namespaces}[$window]"}, "namespaces": "shop"})
        assert queries.signal(HTTP) == "errors{shop}[2m]"
        assert queries.all_queries()[HTTP] == "errors{shop}[2m]"
        assert queries.signal(f"{ERROR_SIGNAL_PREFIX}grpc") == ""

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ({"policy": SETTINGS["policy"]}, "'http' is not one of queries.errors \\(none is there\\)"),
            ({"overrides": [{"policy": SETTINGS["policy"]}]}, "'http' is not one of queries.errors"),
            ({**SETTINGS, "policy": {"rollback": {"errors": "http"}}}, "errors http needs a limit, e.g. 0.05"),
            ({"queries": {"errors": {"http": " "}}}, "http: needs a query"),
            ({"queries": {"errors": {"HTTP errors": QUERY}}}, "errors"),
        ],
        ids=["unknown", "unknown to an override", "no limit", "no query", "no name"],
    )
    def test_faults_are_told_at_the_start(self, given: dict[str, Any], message: str) -> None:
        with pytest.raises(ConfigError, match=message):
            parse(given, "test")
