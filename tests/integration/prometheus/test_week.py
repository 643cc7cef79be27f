"""A week of thirty-three workloads in the real Prometheus: what comes out is what went in."""

from __future__ import annotations

from contextlib import closing
from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np
import pytest

from forecaster.domain.signal import CPU, DEMAND, MEMORY, Signal
from forecaster.errors import SourceUnavailable
from forecaster.sources.prometheus import PrometheusSource
from forecaster.sources.queries import Queries
from forecaster.sources.settings import PrometheusSettings
from tests.support.cluster_week import SCRAPE_OFFSET, rounded
from tests.support.prometheus import RealPrometheus

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from numpy.typing import NDArray

    from forecaster.domain.window import Block
    from tests.integration.conftest import FilledWeek
    from tests.support.cluster_week import Week
    from tests.support.prometheus import Binaries

pytestmark = [pytest.mark.prometheus, pytest.mark.slow]

FIVE_MINUTES = timedelta(minutes=5)
STEADY = timedelta(minutes=30)
"""Half an hour after the pods of the week change, which they do at full hours after its start."""


@pytest.fixture(scope="module")
def week(filled_week: FilledWeek) -> Week:
    return filled_week.week


@pytest.fixture(scope="module")
def server(filled_week: FilledWeek, prometheus_binaries: Binaries) -> Iterator[RealPrometheus]:
    with RealPrometheus(prometheus_binaries, filled_week.data) as running:
        yield running


@pytest.fixture
def source(server: RealPrometheus) -> Iterator[PrometheusSource]:
    opened = PrometheusSource(PrometheusSettings(url=server.url, retries=0), Queries())
    yield opened
    opened.close()


def in_order(block: Block, week: Week) -> NDArray[np.float64]:
    rows = {id_: index for index, id_ in enumerate(block.ids)}
    return block.values[[rows[workload.id] for workload in week.workloads]]


def put_in(week: Week, signal: Signal, at: datetime, window: int) -> NDArray[np.float64]:
    return week.level(signal, at) if signal == MEMORY else week.rate(signal, at, window)


@pytest.mark.parametrize("signal", DEMAND)
def test_the_newest_minute_is_the_demand_that_was_put_in(source: PrometheusSource, week: Week, signal: Signal) -> None:
    at = week.now - STEADY
    block = source.latest(signal, at)
    assert not block.warnings
    np.testing.assert_allclose(in_order(block, week)[:, 0], put_in(week, signal, at, 2), rtol=0.01)


@pytest.mark.parametrize("signal", DEMAND)
def test_a_week_at_five_minutes_is_the_demand_that_was_put_in(
    source: PrometheusSource, week: Week, signal: Signal
) -> None:
    """Point by point while the same pods run, and within one per cent over the week, with all pods that came and went.

    Up to this: `rate` does not extrapolate a young counter below zero, which can miss the seconds between
    the full minute and its scrape.
    """
    end = week.now - week.now.timestamp() % 300 * timedelta(seconds=1)
    blocks = list(source.history(signal, end - timedelta(days=6), end, FIVE_MINUTES))
    assert not any(block.warnings for block in blocks)
    values = np.hstack([in_order(block, week) for block in blocks])
    times = [blocks[0].start + index * FIVE_MINUTES for index in range(values.shape[1])]
    expected = np.array([put_in(week, signal, at, 5) for at in times]).T
    steady = [(at - week.start) % timedelta(hours=1) > 2 * FIVE_MINUTES for at in times]
    np.testing.assert_allclose(values[:, steady], expected[:, steady], rtol=SCRAPE_OFFSET / 300, atol=1e-6)
    if signal != MEMORY:  # without scrapes there are no staleness marks: a level outlives its pod here
        np.testing.assert_allclose(values.mean(axis=1), expected.mean(axis=1), rtol=0.01)


def test_the_inventory_is_the_fleet_of_the_week(source: PrometheusSource, week: Week) -> None:
    inventory = source.inventory(week.now)
    assert inventory.faults == ()
    assert {workload.id: rounded(workload) for workload in inventory.workloads} == {
        workload.id: rounded(workload) for workload in week.workloads
    }


def test_slices_of_any_size_give_the_same_values(server: RealPrometheus, week: Week) -> None:
    small = PrometheusSettings(url=server.url, samples_per_answer=1_000)
    whole = PrometheusSettings(url=server.url)
    end = week.now - STEADY
    read = []
    for settings in (small, whole):
        source = PrometheusSource(settings, Queries())
        blocks = list(source.history(CPU, end - timedelta(hours=6), end, timedelta(minutes=1)))
        read.append((len(blocks), np.hstack([in_order(block, week) for block in blocks])))
        source.close()
    (many, first), (few, second) = read
    assert many > few
    np.testing.assert_allclose(first, second, rtol=1e-12)  # sums in any order


def test_a_server_with_a_small_sample_budget_is_asked_for_less(
    server: RealPrometheus, filled_week: FilledWeek, prometheus_binaries: Binaries
) -> None:
    """A refused slice is halved until the server answers, and nothing is missing in the end."""
    server.stop()
    strict = RealPrometheus(prometheus_binaries, filled_week.data, options=["--query.max-samples=20000"])
    week = filled_week.week
    with strict, closing(PrometheusSource(PrometheusSettings(url=strict.url), Queries())) as source:
        end = week.now - STEADY
        blocks = list(source.history(CPU, end - timedelta(hours=6), end, timedelta(minutes=1)))
    server.start()
    assert len(blocks) > 2
    assert sum(block.values.shape[1] for block in blocks) == 6 * 60 + 1
    assert not np.isnan(np.hstack([in_order(block, week) for block in blocks])).any()


def test_while_the_server_is_down_the_source_says_so_and_afterwards_it_answers_again(
    server: RealPrometheus, source: PrometheusSource, week: Week
) -> None:
    before = source.latest(CPU, week.now)
    server.stop()
    with pytest.raises(SourceUnavailable, match="refused"):
        source.latest(CPU, week.now)
    server.start()
    np.testing.assert_array_equal(source.latest(CPU, week.now).values, before.values)
