"""Counters behind a workload's request rate: chosen for each, kept through restarts, changed only with word of it.

web stands behind an ingress controller that sees 4 requests a second. After forty minutes a mesh is installed, which
sees 10: those from inside of the cluster, too. After an hour the ingress controller of `moved` is taken away.
"""

from __future__ import annotations

from contextlib import ExitStack, closing
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np
import pytest

from forecaster.domain.signal import REQUESTS
from forecaster.domain.window import MINUTE
from forecaster.domain.workload import WorkloadId
from forecaster.sources.prometheus import PrometheusSource
from forecaster.sources.queries import Queries
from forecaster.sources.settings import PrometheusSettings
from tests.support.exposition import World
from tests.support.fakes import CycleOnFakes, named, stored_values
from tests.support.prometheus import RealPrometheus, fill

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from forecaster.cycle.run import Outcome
    from tests.support.prometheus import Binaries

pytestmark = pytest.mark.prometheus

START = datetime(2024, 5, 6, 12, 0, 7, tzinfo=UTC)
NOON = START.replace(second=0)
WEB, API = (WorkloadId("shop", "Deployment", name) for name in ("web", "api"))
INGRESS, MESH = 4.0, 10.0
INSTALLED, REMOVED = 40, 60
"""Minutes after noon in which a mesh is installed, and the ingress controller of `moved` is removed."""


def counted_between(cluster: World, metric: str, rate: float, since: int = 0, until: int = 999, **labels: str) -> None:
    """A counter that is there from one minute to another."""
    minute = (cluster.times - NOON.timestamp()) / 60
    there = (minute >= since) & (minute < until)
    cluster.total(metric, np.where(there, rate, np.nan), **labels)


def ingress(cluster: World, name: str, until: int = 999) -> None:
    labels = {"namespace": "shop", "service": name, "ingress": "front"}
    counted_between(cluster, "nginx_ingress_controller_requests", INGRESS, until=until, **labels)


def mesh(cluster: World, name: str, since: int = 0) -> None:
    labels = {"destination_workload": name, "destination_workload_namespace": "shop", "reporter": "destination"}
    counted_between(cluster, "istio_requests_total", MESH, since=since, **labels)


def worlds() -> Iterator[World]:
    for name, until in (("stays", 999), ("moved", REMOVED)):
        world = World(name, START.timestamp(), interval=30.0, scrapes=300)
        for workload in ("web", "api"):
            world.deployed("shop", workload)
        ingress(world, "web", until)
        mesh(world, "web", since=INSTALLED)
        mesh(world, "api", since=INSTALLED)
        yield world


@pytest.fixture(scope="module")
def server(prometheus_binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealPrometheus]:
    data = tmp_path_factory.mktemp("origins") / "data"
    fill(data, [span for world in worlds() for span in world], prometheus_binaries)
    with RealPrometheus(prometheus_binaries, data) as running:
        yield running


@pytest.fixture
def started(server: RealPrometheus) -> Iterator[Callable[..., CycleOnFakes]]:
    """A service that starts on one of the worlds, with what an earlier one kept."""
    with ExitStack() as sources:

        def start(world: str, known: bytes = b"", minute: int = 5) -> CycleOnFakes:
            source = PrometheusSource(PrometheusSettings(url=server.url), Queries(labels={"cluster": world}))
            sources.enter_context(closing(source))
            if known:
                source.request_origins.restore(known)
            stage = CycleOnFakes(start=at(minute), learns_first=False)
            stage.cycle.source = source
            return stage

        yield start


def at(minute: int) -> datetime:
    return NOON + timedelta(minutes=minute)


def run(stage: CycleOnFakes, *minutes: int) -> Outcome:
    return [stage.cycle.run(at(minute)) for minute in minutes][-1]


def requests(stage: CycleOnFakes, id_: WorkloadId) -> float:
    """The latest rate."""
    return stored_values(stage.history, REQUESTS, id_)[-1]


def test_a_mesh_that_is_installed_later_changes_nothing_for_who_has_an_ingress(
    started: Callable[..., CycleOnFakes],
) -> None:
    stage = started("stays")
    outcome = run(stage, 5, 20, INSTALLED + 5, INSTALLED + 25)
    assert requests(stage, WEB) == pytest.approx(INGRESS, rel=0.02)
    assert requests(stage, API) == pytest.approx(MESH, rel=0.02)
    assert not outcome.report.moved
    assert named(outcome, "web")


def test_rates_are_known_as_such_now_and_in_the_past(started: Callable[..., CycleOnFakes]) -> None:
    """A rate over a window is marked as a rate: after an outage of Prometheus it may be covered in part."""
    source = started("stays").cycle.source
    blocks = [source.latest(REQUESTS, at(INSTALLED + 5)), *source.history(REQUESTS, at(5), at(45), MINUTE)]
    assert len(blocks) > 1
    assert all(block.rated for block in blocks)


def test_nor_does_a_restart(started: Callable[..., CycleOnFakes]) -> None:
    before = started("stays")
    run(before, 5, INSTALLED + 5)
    after = started("stays", before.cycle.source.request_origins.encoded(), INSTALLED + 10)
    run(after, INSTALLED + 10)
    assert requests(after, WEB) == pytest.approx(INGRESS, rel=0.02)


def test_a_service_that_knows_nothing_prefers_the_mesh(started: Callable[..., CycleOnFakes]) -> None:
    """The choice is kept for this reason: without it a restart would turn 4 into 10."""
    stage = started("stays", minute=INSTALLED + 10)
    run(stage, INSTALLED + 10)
    assert requests(stage, WEB) == pytest.approx(MESH, rel=0.02)


def test_where_an_origin_falls_silent_for_an_hour_the_change_is_told_and_the_past_read_again(
    started: Callable[..., CycleOnFakes],
) -> None:
    stage = started("moved")
    run(stage, 5, 20, INSTALLED + 5, REMOVED - 1)
    quiet = run(stage, REMOVED + 20, REMOVED + 40)
    assert not quiet.report.moved
    turned = run(stage, REMOVED + 65)
    (change,) = turned.report.moved
    assert change.startswith(
        "Deployment shop/web: requests come from istio now, nginx-ingress is silent since 12:59 UTC"
    )
    run(stage, REMOVED + 66)
    known = np.array(stored_values(stage.history, REQUESTS, WEB))
    np.testing.assert_allclose(known[-60:], MESH, rtol=0.02)
