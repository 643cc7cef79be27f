"""The signal of errors of docs/scale.md on a real Prometheus: what a change is taken back by.

Of ten requests a second that web serves one in fifty fails, and one in five from the tenth minute on; api fails none
and has no series of failures; idle has counters that do not grow, and mute none at all.
"""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import structlog
import yaml

from forecaster.actuators.rollback import Health, errors_worse
from forecaster.app.health import WorkloadHealth
from forecaster.config.settings import parse
from forecaster.domain.workload import WorkloadId
from forecaster.sources.prometheus import PrometheusSource
from tests.support.exposition import World
from tests.support.prometheus import RealPrometheus, fill
from tests.support.snippets import snippets

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.prometheus import Binaries

pytestmark = pytest.mark.prometheus

START = datetime(2024, 5, 7, 12, tzinfo=UTC)
WELL, WORSE = (START + timedelta(minutes=minute) for minute in (8, 18))
WEB, API, IDLE, MUTE = (WorkloadId("shop", "Deployment", name) for name in ("web", "api", "idle", "mute"))


def world() -> World:
    shop = World("shop", START.timestamp(), interval=30.0, scrapes=41)
    for name in ("web", "api", "idle", "mute"):
        shop.deployed("shop", name, pods=2)
    late = shop.times >= (START + timedelta(minutes=10)).timestamp()
    rates = {"web": {"200": 5.0 - np.where(late, 1.0, 0.1), "503": np.where(late, 1.0, 0.1)}}
    rates |= {name: {"200": np.full(shop.scrapes, rate)} for name, rate in (("api", 5.0), ("idle", 0.0))}
    for name, by_code in rates.items():
        for code, rate in by_code.items():
            for pod in (f"{name}-5d8f-0", f"{name}-5d8f-1"):
                shop.total("http_requests_total", rate, namespace="shop", pod=pod, code=code)
    return shop


@pytest.fixture(scope="module")
def server(prometheus_binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealPrometheus]:
    data = tmp_path_factory.mktemp("errors") / "data"
    fill(data, world(), prometheus_binaries)
    with RealPrometheus(prometheus_binaries, data) as running:
        yield running


@pytest.fixture(scope="module")
def health(server: RealPrometheus) -> Iterator[WorkloadHealth]:
    """Health as a service with the settings of docs/scale.md measures it."""
    (block,) = (snippet.text for snippet in snippets() if snippet.page.name == "scale.md" and "errors:" in snippet.text)
    given: dict[str, Any] = yaml.safe_load(block)
    settings = parse({**given, "prometheus": {"url": server.url}}, "test")
    with closing(PrometheusSource(settings.prometheus, settings.queries)) as source:
        yield WorkloadHealth(None, source, settings.policies, structlog.get_logger())


def health_at(health: WorkloadHealth, at: datetime) -> dict[WorkloadId, Health]:
    return health(dict.fromkeys((WEB, API, IDLE, MUTE), at), at)


def test_the_query_of_the_page_tells_the_share_of_failures_of_each_workload(health: WorkloadHealth) -> None:
    before, after = health_at(health, WELL), health_at(health, WORSE)
    assert before[WEB].errors == pytest.approx(0.02, rel=0.02)
    assert after[WEB].errors == pytest.approx(0.2, rel=0.02)
    sentence = errors_worse(before[WEB].errors, after[WEB].errors, after[WEB].limit, worse_by=0.2)
    assert sentence == "errors are 0.2, above the limit of 0.05, and were 0.02"


def test_no_failures_are_a_zero_and_no_requests_are_unknown(health: WorkloadHealth) -> None:
    by_workload = health_at(health, WORSE)
    assert by_workload[API].errors == 0
    assert by_workload[IDLE] == by_workload[MUTE] == Health(limit=0.05)
