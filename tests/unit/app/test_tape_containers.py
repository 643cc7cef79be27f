"""A tape changes nothing of what the service knows: containers go on it, too, and come back from it."""

from __future__ import annotations

from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np
import pytest

from forecaster.app.compose import Nowhere, build_cycle
from forecaster.app.tape_replay import beginning, on_tape, retell
from forecaster.config.settings import parse
from forecaster.domain.signal import CPU, MEMORY, PODS, REQUESTS
from forecaster.domain.window import MINUTE
from forecaster.domain.workload import ContainerId, Resources, Workload, WorkloadId
from forecaster.sources.embedded import EmbeddedPrometheus
from forecaster.sources.factory import close, source_of
from forecaster.sources.recorded import Recording
from forecaster.store.history import HistoryStore

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from forecaster.config.settings import Settings
    from forecaster.cycle.run import Cycle
    from forecaster.ports import Ledger, Source

START = datetime(2026, 3, 2, tzinfo=UTC)
DAYS = 4
NOW = START + timedelta(days=DAYS) - timedelta(hours=1)
WEB = WorkloadId("shop", "Deployment", "web")
GIB = 2.0**30


@pytest.fixture
def settings(tmp_path: Path) -> Iterator[Settings]:
    minutes = DAYS * 1440
    day = np.arange(minutes) % 1440 / 1440
    web = Workload(WEB, 4, 4, Resources(cpu_request=1.0, cpu_limit=2.0, memory_request=GIB, memory_limit=GIB))
    values = {
        CPU: (2.0 + np.sin(2 * np.pi * day))[None],
        MEMORY: np.full((1, minutes), 2 * GIB),
        REQUESTS: np.full((1, minutes), np.nan),
        PODS: np.full((1, minutes), 4.0),
    }
    given = {"history": {"weeks_kept": "3d"}, "forecast": {"model": "prior"}, "state": {"directory": str(tmp_path)}}
    recording = Recording(START + MINUTE, (web,), values)
    with EmbeddedPrometheus(recording, parse(given, "test").queries, recording.fleet(NOW)) as server:
        yield parse(given | {"prometheus": {"url": server.url}}, "test")


def run(settings: Settings, tape: Path | None, minutes: int = 3) -> Cycle:
    """Some cycles, on tape if there is one."""
    history = HistoryStore(settings.signal_table.measured, settings.history, now=NOW)
    source = source_of(settings)
    with ExitStack() as parts:
        parts.callback(close, source)
        given: tuple[Source, Ledger] = source, Nowhere()
        if tape:
            given = on_tape(tape, *given, beginning(settings, history, NOW), parts)
        cycle = build_cycle(settings, given[0], history, publisher=Nowhere(), ledger=given[1])
        for minute in range(minutes):
            cycle.run(NOW + minute * MINUTE)
    return cycle


def test_containers_are_known_with_a_tape_as_without_one(settings: Settings, tmp_path: Path) -> None:
    plain, taped = run(settings, None), run(settings, tmp_path / "tape")
    app = ContainerId(WEB, "app")
    assert dict(plain.containers.of_workload) == {WEB: [app]}
    assert taped.containers.of_workload == plain.containers.of_workload
    assert taped.containers.facts == plain.containers.facts
    assert taped.containers.read == plain.containers.read == NOW
    np.testing.assert_array_equal(taped.containers.usage([app], CPU), plain.containers.usage([app], CPU))


def test_the_tape_is_played_with_them(settings: Settings, tmp_path: Path) -> None:
    run(settings, tmp_path / "tape")
    told = list(retell(tmp_path / "tape"))
    assert len(told) == 3
    assert all(one.same for one in told)
    (size,) = told[-1].outcome.recommendations[0].resources.containers  # type: ignore[union-attr]
    assert size.name == "app"
