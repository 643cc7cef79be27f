"""Pods that leave, as a Prometheus that scrapes sees them: their series end at once, and nothing is looked back to."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from forecaster.domain.window import MINUTE
from forecaster.sources.prometheus import PrometheusSource
from forecaster.sources.queries import Queries
from forecaster.sources.settings import PrometheusSettings
from tests.support.exporters import SCRAPE, Exporters, ScrapedPod, ScrapedWorkload
from tests.support.fakes import CycleOnFakes, named
from tests.support.prometheus import RealPrometheus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from forecaster.domain.decision import Recommendation
    from tests.support.prometheus import Binaries

pytestmark = pytest.mark.prometheus

NOON = datetime(2024, 5, 6, 12, 0, tzinfo=UTC)
CHANGE, END = 9, 14
"""Minutes after noon: pods come or go, and come or go again."""


def shared(cores: float, pods: int) -> list[ScrapedPod]:
    return [ScrapedPod(f"web-{number}", "web-5d8f", cores / pods) for number in range(pods)]


def scaled_in(minute: float) -> list[ScrapedPod]:
    """Three cores on thirty pods, then on ten."""
    return shared(3.0, 30 if minute <= CHANGE else 10)


def taken_back(minute: float) -> list[ScrapedPod]:
    """Ten pods, and three new ones for some minutes that use a core each and are never ready."""
    new = [ScrapedPod(f"new-{number}", "web-6e9a", 1.0, ready=False) for number in range(3)]
    return [*shared(3.0, 10), *(new if CHANGE < minute <= END - 2 else [])]


@pytest.fixture
def server(prometheus_binaries: Binaries, tmp_path: Path) -> Iterator[RealPrometheus]:
    with RealPrometheus(
        prometheus_binaries, tmp_path / "data", options=["--web.enable-remote-write-receiver"]
    ) as running:
        yield running


@pytest.mark.parametrize("pods", [scaled_in, taken_back])
def test_take_no_load_with_them_and_leave_none(
    server: RealPrometheus, pods: Callable[[float], list[ScrapedPod]]
) -> None:
    """The rates of pods that stay show a window later what they took over."""
    played = play(server, pods)
    amounts = [recommendation.signals[0].measured for recommendation in played]
    assert amounts == [pytest.approx(3.0, rel=0.06)] * len(amounts)


def play(server: RealPrometheus, pods: Callable[[float], list[ScrapedPod]]) -> list[Recommendation]:
    """Run a cycle a minute, from the second minute before the change on."""
    recommendations: list[Recommendation] = []
    source = PrometheusSource(PrometheusSettings(url=server.url, retries=0), Queries(requests_from="none"))
    with closing(source), closing(Exporters(server.url)) as exporters:
        stage = CycleOnFakes(start=NOON + 5 * MINUTE, learns_first=False)
        stage.cycle.source = source
        for number in range(1, (END + 4) * (MINUTE // SCRAPE) + 1):
            at = NOON + number * SCRAPE
            present = pods(number * SCRAPE / MINUTE)
            ready = sum(pod.ready for pod in present)
            exporters.scrape([ScrapedWorkload("web", ready, present, 0.31, 40)], at)
            if (at - NOON) % MINUTE == 0 * MINUTE and at >= NOON + (CHANGE - 1) * MINUTE:
                recommendations.append(named(stage.cycle.run(at), "web"))
    return recommendations
