"""Promises of every `Source`, whatever stands behind it."""

from __future__ import annotations

from contextlib import closing
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pytest

from forecaster.domain.signal import BUILT_IN, CPU, Signal
from forecaster.sources.embedded import EmbeddedPrometheus
from forecaster.sources.prometheus import PrometheusSource
from forecaster.sources.queries import Queries
from forecaster.sources.recorded import load_recording
from forecaster.sources.settings import PrometheusSettings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from forecaster.domain.window import Block
    from forecaster.ports import Source

MINUTE = timedelta(minutes=1)


class Subject(NamedTuple):
    """A source and a time at which it has a day of history behind it."""

    source: Source
    now: datetime


def embedded() -> Iterator[Subject]:
    recording = load_recording()
    now = recording.start + timedelta(days=8, minutes=4)
    with EmbeddedPrometheus(recording, Queries(), recording.fleet(now)) as endpoint:
        settings = PrometheusSettings(url=endpoint.url, samples_per_answer=2_000)
        with closing(PrometheusSource(settings, Queries())) as source:
            yield Subject(source, now)


SOURCES = {"embedded": embedded}


@pytest.fixture(params=SOURCES, scope="module")
def subject(request: pytest.FixtureRequest) -> Iterator[Subject]:
    yield from SOURCES[request.param]()


def together(blocks: list[Block], step: timedelta) -> dict[tuple[str, str, str], dict[datetime, float]]:
    """Finite values by workload and time."""
    values: dict[tuple[str, str, str], dict[datetime, float]] = {}
    for block in blocks:
        for id_, row in zip(block.ids, block.values.tolist(), strict=True):
            for index, value in enumerate(row):
                if not np.isnan(value):
                    values.setdefault(id_, {})[block.start + index * step] = value
    return values


@pytest.mark.parametrize("signal", BUILT_IN.measured)
def test_latest_is_one_column_at_exactly_the_time_that_was_asked_for(subject: Subject, signal: Signal) -> None:
    block = subject.source.latest(signal, subject.now)
    assert (block.signal, block.start, block.end) == (signal, subject.now, subject.now)
    assert block.values.shape == (len(block.ids), 1)
    assert block.values.dtype == np.float64


@pytest.mark.parametrize("signal", BUILT_IN.measured)
@pytest.mark.parametrize("minutes", [1, 5])
def test_history_covers_every_point_of_the_grid_once_and_in_order(
    subject: Subject, signal: Signal, minutes: int
) -> None:
    step = minutes * MINUTE
    start, end = subject.now - timedelta(hours=6), subject.now
    times = [
        block.start + index * step
        for block in subject.source.history(signal, start, end, step)
        for index in range(block.values.shape[1])
    ]
    grid = [start + index * MINUTE for index in range(6 * 60 + 1)]
    assert times == [at for at in grid if at.timestamp() % step.total_seconds() == 0]


@pytest.mark.parametrize("signal", BUILT_IN.measured)
def test_a_block_holds_each_workload_once_with_values_that_can_be(subject: Subject, signal: Signal) -> None:
    for block in subject.source.history(signal, subject.now - timedelta(hours=6), subject.now, MINUTE):
        assert len(set(block.ids)) == len(block.ids) == len(block.values)
        assert not np.isinf(block.values).any()
        assert not (block.values < 0).any()


@pytest.mark.parametrize("signal", BUILT_IN.measured)
def test_history_and_latest_agree(subject: Subject, signal: Signal) -> None:
    history = list(subject.source.history(signal, subject.now - 5 * MINUTE, subject.now, MINUTE))
    latest = subject.source.latest(signal, subject.now)
    newest = {id_: times.get(subject.now) for id_, times in together(history, MINUTE).items()}
    assert newest == pytest.approx(dict(zip(latest.ids, latest.values[:, 0].tolist(), strict=True)))


def test_the_same_question_has_the_same_answer(subject: Subject) -> None:
    spans = [subject.source.history(CPU, subject.now - timedelta(hours=1), subject.now, MINUTE) for _ in "ab"]
    first, second = (together(list(blocks), MINUTE) for blocks in spans)
    assert first == second


def test_an_empty_range_has_no_points(subject: Subject) -> None:
    blocks = subject.source.history(CPU, subject.now, subject.now - MINUTE, MINUTE)
    assert sum(block.values.shape[1] for block in blocks) == 0


def test_the_inventory_names_each_workload_once_and_those_with_demand_among_them(subject: Subject) -> None:
    inventory = subject.source.inventory(subject.now)
    ids = [workload.id for workload in inventory.workloads]
    assert inventory.at == subject.now
    assert len(set(ids)) == len(ids) > 0
    assert set(subject.source.latest(CPU, subject.now).ids) <= set(ids)
    assert all(workload.replicas >= 0 and workload.ready_replicas >= 0 for workload in inventory.workloads)
