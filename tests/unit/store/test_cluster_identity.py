"""State of another cluster is not taken over: its gates and lead times were measured on other workloads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from forecaster.errors import StoreError
from forecaster.sources.prometheus import PrometheusSource, external_labels
from forecaster.sources.queries import Queries
from forecaster.sources.settings import PrometheusSettings
from forecaster.store.state import FOREIGN, ClusterIdentity, claim_state
from tests.support.builders import NOON
from tests.support.http_server import HttpRequest, Reply, Server, vector

if TYPE_CHECKING:
    from pathlib import Path

HERE = ClusterIdentity(frozenset({"1700000000"}), frozenset({"cluster=a"}))
CONFIG = "global:\n  external_labels:\n    cluster: a\n    prometheus_replica: prometheus-0\n"


def prometheus(request: HttpRequest) -> Reply:
    if request.path.endswith("/status/config"):
        return Reply(body=msgspec.json.encode({"status": "success", "data": {"yaml": CONFIG}}))
    return vector(({"namespace": "kube-system", "instance": "ksm-0"}, "1700000000"))


def test_a_cluster_is_known_by_its_kube_system_and_by_the_labels_of_its_prometheus() -> None:
    with Server(prometheus) as server:
        source = PrometheusSource(PrometheusSettings(url=server.url, retries=0), Queries())
        assert ClusterIdentity(*source.cluster_identity(NOON)) == HERE
        source.close()


@pytest.mark.parametrize(
    ("config", "labels"),
    [
        (CONFIG, {"cluster": "a", "prometheus_replica": "prometheus-0"}),
        (f"scrape_configs: []\n{CONFIG}rule_files: []\n", {"cluster": "a", "prometheus_replica": "prometheus-0"}),
        ("global: {external_labels: {zone: 1}}\n", {"zone": "1"}),
        ("global:\n\n  # of two\n  external_labels: {a: b}\n", {"a": "b"}),
        ("global:\n  scrape_interval: 1m\n", {}),
        ("global: [1, 2]\n", {}),
        ("global:\n  external_labels: none\n", {}),
        ("[1, 2]", {}),
        ("", {}),
    ],
)
def test_only_the_section_with_the_labels_is_read_whatever_its_form(config: str, labels: dict[str, str]) -> None:
    assert external_labels(config) == labels


def test_jobs_of_a_configuration_are_not_parsed() -> None:
    """Jobs of a large cluster have a hundred thousand lines, and a start waits for ten seconds only."""
    assert external_labels(CONFIG + "scrape_configs:\n- {job_name: never closed\n") == external_labels(CONFIG)


def test_a_prometheus_that_is_away_tells_nothing() -> None:
    with Server(lambda _: Reply(status=503)) as server:
        source = PrometheusSource(PrometheusSettings(url=server.url, retries=0), Queries())
        assert ClusterIdentity(*source.cluster_identity(NOON)) == ClusterIdentity()
        source.close()


@pytest.mark.parametrize(
    "other",
    [
        ClusterIdentity(frozenset({"1600000000"}), HERE.labels),
        ClusterIdentity(frozenset(), frozenset({"cluster=b"})),
    ],
)
def test_state_of_another_cluster_is_moved_aside_and_said(tmp_path: Path, other: ClusterIdentity) -> None:
    assert claim_state(tmp_path, other) == ""
    (tmp_path / "observed.json").write_text("gates of the other cluster")
    assert "and here" in claim_state(tmp_path, HERE)
    assert not (tmp_path / "observed.json").exists()
    assert (tmp_path / FOREIGN / "observed.json").exists()
    assert claim_state(tmp_path, HERE) == ""


def test_a_damaged_identity_is_an_error_with_its_remedy(tmp_path: Path) -> None:
    (tmp_path / "cluster.json").write_bytes(b'{"uid":"\xff\xfe"}')
    with pytest.raises(StoreError, match=r"cannot be read .* remove it if the state is that of this cluster"):
        claim_state(tmp_path, HERE)


@pytest.mark.parametrize(
    "now",
    [
        HERE,
        ClusterIdentity(),
        ClusterIdentity(HERE.created | {"1800000000"}, frozenset({"cluster=renamed"})),
        ClusterIdentity(frozenset(), HERE.labels),
    ],
)
def test_state_stays_where_nothing_shows_another_cluster(tmp_path: Path, now: ClusterIdentity) -> None:
    claim_state(tmp_path, HERE)
    (tmp_path / "observed.json").write_text("gates")
    assert claim_state(tmp_path, now) == ""
    assert (tmp_path / "observed.json").exists()


def test_a_damaged_identity_is_named(tmp_path: Path) -> None:
    (tmp_path / "cluster.json").write_text("{")
    with pytest.raises(StoreError, match=r"cluster.json: cannot be read"):
        claim_state(tmp_path, HERE)
