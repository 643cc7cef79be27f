"""Histories as panels for notebooks: one line for the bundled recording, one for a Prometheus of one's own."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np

from forecaster.app.clock import current
from forecaster.domain.signal import BUILT_IN
from forecaster.domain.window import MINUTE, last_multiple
from forecaster.forecasting.peaks import key_of
from forecaster.sources import factory
from forecaster.sources.queries import Queries
from forecaster.sources.recorded import load_recording
from forecaster.sources.settings import PrometheusSettings
from models import Panel, PanelError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from forecaster.domain.window import Block

FIVE_MINUTES = timedelta(minutes=5)


def recorded(signal: str = "cpu", *, days: int = 13, step: timedelta = FIVE_MINUTES) -> Panel:
    """The newest days of the bundled recording: every workload that has the signal, as means over each step."""
    recording = load_recording()
    keys = [key_of(workload.id) for workload in recording.workloads]
    whole = Panel.cleaned(recording.values[BUILT_IN.by_name[signal]], recording.start - MINUTE, MINUTE, keys)
    return _measured(whole.last(timedelta(days=days)).resample(step), signal)


def measured(
    url: str,
    signal: str = "cpu",
    *,
    days: int = 14,
    step: timedelta = FIVE_MINUTES,
    until: datetime | None = None,
    queries: Queries | None = None,
) -> Panel:
    """The newest days of every workload that a Prometheus knows, `until` now.

    Raises:
        SourceError: it did not answer, or refused.
        PanelError: it knows no workload with this signal.
    """
    end = last_multiple(until or current(), step)
    source = factory.prometheus(PrometheusSettings(url=url), queries or Queries())
    try:
        blocks = list(source.history(BUILT_IN.by_name[signal], end - timedelta(days=days) + step, end, step))
    finally:
        source.close()
    return _measured(panel_of_blocks(blocks), signal)


def panel_of_blocks(blocks: Sequence[Block]) -> Panel:
    """Neighbouring slices of time as one panel; a workload that is missing from one has a gap there."""
    ids = sorted({id_ for block in blocks for id_ in block.ids})
    row = {id_: i for i, id_ in enumerate(ids)}
    parts = []
    for block in blocks:
        part = np.full((len(ids), block.values.shape[1]), np.nan)
        part[[row[id_] for id_ in block.ids]] = block.values
        parts.append(part)
    # A block names instants at which a bin ends, a panel those at which it begins.
    start = blocks[0].start - blocks[0].step
    return Panel(np.concatenate(parts, axis=1), start, blocks[0].step, tuple(key_of(id_) for id_ in ids))


def _measured(panel: Panel, signal: str) -> Panel:
    known = np.flatnonzero(np.isfinite(panel.values).any(axis=1))
    if not len(known):
        raise PanelError(f"no workload has a sample of {signal}; `forecaster doctor` says what is missing")
    return panel.take(known)
