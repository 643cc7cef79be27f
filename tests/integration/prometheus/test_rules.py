"""The recording rules in promtool and in the real Prometheus."""

from __future__ import annotations

import subprocess
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from forecaster.domain.signal import CPU, MEMORY, PODS, REQUESTS, Signal
from forecaster.sources.prometheus import PrometheusSource
from forecaster.sources.queries import Queries
from forecaster.sources.settings import PrometheusSettings
from tests.support.exposition import SCRAPES, World
from tests.support.prometheus import RealPrometheus, fill

if TYPE_CHECKING:
    from collections.abc import Iterator

    from forecaster.domain.workload import WorkloadId
    from tests.support.prometheus import Binaries

pytestmark = pytest.mark.prometheus

RULES = Path(__file__).parents[3] / "deploy" / "rules"
START = datetime(2024, 5, 6, 12, 0, tzinfo=UTC)
AT = START + timedelta(minutes=SCRAPES - 1)


def run_promtool(binaries: Binaries, *arguments: object) -> None:
    done = subprocess.run([binaries.promtool, *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_prometheus_accepts_every_rule_file(prometheus_binaries: Binaries) -> None:
    run_promtool(prometheus_binaries, "check", "rules", *sorted(RULES.glob("*.yaml")))


@pytest.mark.parametrize("file", sorted((RULES / "tests").glob("*.test.yaml")), ids=lambda file: file.name)
def test_the_rules_pass_their_own_tests(prometheus_binaries: Binaries, file: Path) -> None:
    run_promtool(prometheus_binaries, "test", "rules", file)


@pytest.fixture(scope="module")
def recorded(prometheus_binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealPrometheus]:
    """A small cluster whose recorded series were computed by Prometheus itself from the shipped rules."""
    data = tmp_path_factory.mktemp("recorded") / "data"
    fill(data, shop(), prometheus_binaries)
    server = RealPrometheus(prometheus_binaries, data)
    with server:
        rules = [RULES / "forecaster-workloads.yaml", RULES / "forecaster-requests-istio.yaml"]
        for _ in range(2):  # the second pass sees the owners that the first one recorded
            run_promtool(
                prometheus_binaries, "tsdb", "create-blocks-from", "rules", f"--url={server.url}",
                f"--start={START.timestamp():.0f}", f"--end={AT.timestamp():.0f}", "--eval-interval=60s",
                f"--output-dir={data}", *rules,
            )  # fmt: skip
            server.stop()
            server.start()
        yield server


def shop() -> World:
    cluster = World("shop", START.timestamp())
    cluster.deployed("shop", "web", pods=3, cores=0.5)
    cluster.deployed("shop", "api", pods=1, cores=2.0)
    cluster.pod("shop", "db-0", "StatefulSet", "db", cores=3.0)
    for pod in ("web-5d8f-0", "web-5d8f-1", "web-5d8f-2"):
        labels = {"namespace": "shop", "pod": pod, "container": "app", "resource": "cpu"}
        cluster.gauge("kube_pod_container_resource_requests", 0.75, **labels)
    cluster.counter(
        "istio_requests_total",
        7.0,
        reporter="destination",
        destination_workload="web",
        destination_workload_namespace="shop",
    )
    return cluster


def values(server: RealPrometheus, queries: Queries, signal: Signal, step: timedelta) -> dict[WorkloadId, float]:
    with closing(PrometheusSource(PrometheusSettings(url=server.url), queries)) as source:
        *_, block = source.history(signal, AT - 2 * step, AT, step)
    assert not block.warnings
    return dict(zip(block.ids, block.values[:, -1].tolist(), strict=True))


@pytest.mark.parametrize("step", [timedelta(minutes=1), timedelta(minutes=5)], ids=["1m", "5m"])
@pytest.mark.parametrize("signal", [CPU, MEMORY, REQUESTS, PODS])
def test_recorded_series_equal_the_queries_they_stand_for(
    recorded: RealPrometheus, signal: Signal, step: timedelta
) -> None:
    raw = values(recorded, Queries(requests_from="istio"), signal, step)
    assert raw
    assert values(recorded, Queries(preset="recorded"), signal, step) == pytest.approx(raw)


def test_the_recorded_inventory_equals_the_raw_one(recorded: RealPrometheus) -> None:
    inventories = []
    for preset in ("raw", "recorded"):
        with closing(PrometheusSource(PrometheusSettings(url=recorded.url), Queries(preset=preset))) as source:
            inventories.append(source.inventory(AT))
    assert inventories[0].workloads
    assert inventories[0] == inventories[1]
