"""Recorded load in a real VictoriaMetrics, scraped twice: what comes out is what went in, by its own arithmetic.

Its `rate` counts the sample before the window: over two minutes, with a scrape a minute, it is the mean of two minutes
where Prometheus knows one.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np
import pytest

from forecaster.domain.signal import CPU, MEMORY, REQUESTS, Signal
from forecaster.sources.prometheus import PrometheusSource
from forecaster.sources.queries import Queries
from forecaster.sources.settings import PrometheusSettings
from tests.support.cluster_week import MINUTE, SCRAPE_OFFSET, played_week, rounded, scraped
from tests.support.prometheus import Span
from tests.support.stores import find_store
from tests.support.victoria_metrics import VictoriaMetrics

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from forecaster.domain.window import Block
    from tests.support.cluster_week import Week

pytestmark = [pytest.mark.prometheus, pytest.mark.slow]

RATES = (CPU, REQUESTS)
MIDDLE_OF_AN_HOUR = timedelta(minutes=30)
"""Pods of the week come and go at full hours after its start."""
PAST, AHEAD = timedelta(minutes=100), timedelta(minutes=20)


@pytest.fixture(scope="module")
def week() -> Week:
    now = datetime.now(UTC).replace(second=0, microsecond=0)
    return played_week(now - MIDDLE_OF_AN_HOUR)


@pytest.fixture(scope="module")
def source(week: Week, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrometheusSource]:
    """A source on a server to which two replicas of a scraper write, each with a label of its own."""
    binary = find_store("victoria-metrics", "VICTORIA_METRICS_BIN")
    if binary is None:
        pytest.skip("no victoria-metrics: run .ci/stores, or set VICTORIA_METRICS_BIN to its folder")
    with VictoriaMetrics(binary, tmp_path_factory.mktemp("victoria") / "data") as server:
        server.take(recent(week))
        server.take(replace(span, head=span.head.replace("{", '{replica="b",', 1)) for span in recent(week))
        opened = PrometheusSource(PrometheusSettings(url=server.url, headers={"X-Scope-OrgID": "shop"}), Queries())
        yield opened
        opened.close()


def recent(week: Week) -> Iterator[Span]:
    now = week.now + MIDDLE_OF_AN_HOUR
    first, last = (now - PAST).timestamp(), (now + AHEAD).timestamp()
    for span in scraped(week):
        within = (span.times >= first) & (span.times < last)
        if within.any():
            yield Span(span.head, span.times[within], span.values[within])


def put_in(week: Week, signal: Signal, at: datetime, minutes: int) -> NDArray[np.float64]:
    """The mean of as many minutes as there are before the last scrape."""
    newest = (at - timedelta(seconds=SCRAPE_OFFSET) - week.start) // MINUTE
    return week.demand[signal][:, newest - minutes + 1 : newest + 1].mean(axis=1)


def in_order(block: Block, week: Week) -> NDArray[np.float64]:
    rows = {id_: index for index, id_ in enumerate(block.ids)}
    return block.values[[rows[workload.id] for workload in week.workloads]]


def pods_of(week: Week) -> NDArray[np.intp]:
    """Count the pods in the hour that begins at `week.now`."""
    return week.pods[:, (week.now - week.start) // timedelta(hours=1)]


@pytest.mark.parametrize("signal", RATES)
def test_a_rate_is_the_mean_of_the_minutes_of_its_window(source: PrometheusSource, week: Week, signal: Signal) -> None:
    block = source.latest(signal, week.now + timedelta(minutes=20))
    assert not block.warnings
    expected = put_in(week, signal, week.now + timedelta(minutes=20), 2)
    np.testing.assert_allclose(in_order(block, week)[:, 0], expected, rtol=1e-3)


def test_memory_is_that_of_the_last_scrape(source: PrometheusSource, week: Week) -> None:
    block = source.latest(MEMORY, week.now)
    np.testing.assert_allclose(in_order(block, week)[:, 0], put_in(week, MEMORY, week.now, 1), rtol=1e-3)


@pytest.mark.parametrize("signal", RATES)
def test_the_scrapes_of_the_last_seconds_are_not_hidden(source: PrometheusSource, week: Week, signal: Signal) -> None:
    """VictoriaMetrics by itself answers with what was known half a minute ago."""
    at = datetime.now(UTC).replace(microsecond=0)
    block = source.latest(signal, at)
    np.testing.assert_allclose(in_order(block, week)[:, 0], put_in(week, signal, at, 2), rtol=1e-3)


@pytest.mark.parametrize(("step", "minutes"), [(MINUTE, 2), (5 * MINUTE, 5)])
def test_a_range_has_the_points_that_were_asked_for(
    source: PrometheusSource, week: Week, step: timedelta, minutes: int
) -> None:
    end = week.now + timedelta(minutes=25)
    blocks = list(source.history(CPU, end - timedelta(minutes=15), end, step))
    assert not any(block.warnings for block in blocks)
    values = np.hstack([in_order(block, week) for block in blocks])
    times = [block.start + index * step for block in blocks for index in range(block.values.shape[1])]
    assert len(times) >= timedelta(minutes=15) // step
    expected = np.array([put_in(week, CPU, at, minutes) for at in times]).T
    np.testing.assert_allclose(values, expected, rtol=1e-3)


def test_sums_are_known_to_be_complete(source: PrometheusSource, week: Week) -> None:
    block = source.latest(CPU, week.now + timedelta(minutes=20))
    made_of = block.made_of
    assert made_of is not None
    pods = {workload.id: float(count) for workload, count in zip(week.workloads, pods_of(week), strict=True)}
    assert dict(zip(block.ids, made_of.pods[:, 0].tolist(), strict=True)) == pods
    assert (made_of.per_pod == 2).all()


def test_the_inventory_is_the_fleet(source: PrometheusSource, week: Week) -> None:
    pods = pods_of(week).tolist()
    fleet = [replace(workload, replicas=n, ready_replicas=n) for workload, n in zip(week.workloads, pods, strict=True)]
    listed = source.inventory(week.now + timedelta(minutes=20)).workloads
    assert {workload.id: rounded(workload) for workload in listed} == {
        workload.id: rounded(workload) for workload in fleet
    }
