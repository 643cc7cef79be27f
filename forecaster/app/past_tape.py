"""Tapes of what a service would have seen where none has run: of the demo's cluster under its HPAs, of a Prometheus."""

from __future__ import annotations

from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from forecaster.app.compose import SCORES_AT_ONCE, Nowhere, build_cycle
from forecaster.app.demo import Stage, minutes, settings_for, setups_of, show_pods, simulation
from forecaster.app.tape_replay import beginning
from forecaster.domain.window import MINUTE, last_multiple
from forecaster.replay.engine import NO_FLOOR
from forecaster.sources.embedded import EmbeddedPrometheus
from forecaster.sources.factory import close, source_of
from forecaster.sources.recorded import load_recording
from forecaster.sources.tape import Tape, TapedLedger, taped
from forecaster.store.history import HistoryStore

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime, timedelta
    from pathlib import Path

    from forecaster.config.settings import Settings
    from forecaster.cycle.run import Cycle


def recorded_tape(path: Path, begin: datetime, length: timedelta) -> Path:
    """What the service would have taped from `begin` on, a cycle a minute, while it only watched.

    Raises:
        StoreError: the file cannot be written.
    """
    recording = load_recording()
    fleet = recording.fleet(begin)
    with EmbeddedPrometheus(recording, settings_for("http://unused").queries, fleet) as endpoint:
        settings = settings_for(endpoint.url)
        with taped_cycle(path, settings, begin) as cycle:
            stage = Stage(endpoint.url, recording, fleet, settings.policies, cycle, begin)
            setups, _ = setups_of(stage)
            alone = simulation(stage, setups, length)
            for minute, now in enumerate(minutes(begin, length)):
                cycle.run(now)
                pods = alone.minute(minute, [NO_FLOOR] * len(setups))
                show_pods(fleet, dict(zip(setups, pods, strict=True)), now + MINUTE)
    return path


def measured_tape(path: Path, settings: Settings, begin: datetime, length: timedelta) -> Path:
    """Write a tape of a past span, from the full minute before `begin` on, with what Prometheus has of it.

    Raises:
        StoreError: the file cannot be written.
    """
    first = last_multiple(begin, MINUTE)
    with taped_cycle(path, settings, first) as cycle:
        for now in minutes(first, length):
            cycle.run(now)
    return path


@contextmanager
def taped_cycle(path: Path, settings: Settings, begin: datetime) -> Iterator[Cycle]:
    """A cycle from `begin` on that writes down what its source answers and what it decides; it publishes nothing."""
    history = HistoryStore(settings.signal_table.measured, settings.history, now=begin)
    source = source_of(settings)
    tape = Tape(path, beginning(settings, history, begin, fits=SCORES_AT_ONCE), source)
    try:
        with closing(tape):
            ledger = TapedLedger(Nowhere(), tape)
            yield build_cycle(
                settings, taped(source, tape), history, publisher=Nowhere(), ledger=ledger, fits=SCORES_AT_ONCE
            )
    finally:
        close(source)
