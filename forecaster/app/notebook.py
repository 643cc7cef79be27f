"""Histories as panels for notebooks, in one line each: the bundled recording, a Prometheus, a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import yaml

from forecaster.app import traces
from forecaster.app.clock import current
from forecaster.config.settings import Settings, environment, parse
from forecaster.config.settings import load as load_settings
from forecaster.domain.signal import BUILT_IN, Signal
from forecaster.domain.window import FIVE_MINUTES, MINUTE, Block, last_multiple
from forecaster.errors import UnknownName
from forecaster.replay.traces import Traces
from forecaster.sources import factory
from forecaster.sources.bundle import SUFFIX, Bundle, read_bundle
from forecaster.sources.exported import table_of, workload_named
from forecaster.sources.queries import Queries
from forecaster.sources.recorded import load_recording
from forecaster.sources.settings import PrometheusSettings
from models import Panel, PanelError


def load(
    signal: str = "cpu", origin: str | Path | None = None, *, days: int = 14, step: timedelta = FIVE_MINUTES
) -> Panel:
    """Demand of what `origin` names: the address of a Prometheus, or a file as `exported` takes it.

    Without it of the Prometheus of `FORECASTER__PROMETHEUS__URL`, as the environment sets it up; where that is not set
    either, the bundled recording.

    Raises:
        SourceError: the Prometheus did not answer, or refused.
        SourceRefused: a bundle that is none.
        PanelError: there is no workload with this signal.
        UnknownName: there is no such signal.
    """
    settings = prometheus_of(origin)
    if settings:
        return of_prometheus(settings.prometheus, settings.queries, signal, days, step)
    return exported(origin, signal, step=step) if origin else recorded(signal, days=min(days, 13), step=step)


def load_traces(origin: str | Path | None = None, *, days: int = 14, fine: timedelta = timedelta(days=1)) -> Traces:
    """Demand to replay, with HPAs: of a bundle or of a Prometheus as `load` finds it, the newest `fine` by the minute.

    Raises:
        SourceError: the Prometheus did not answer, refused, or knows no workload.
        SourceRefused: a bundle that is none.
    """
    settings = prometheus_of(origin)
    if settings:
        history = timedelta(days=days) - fine
        return traces.measured(settings.prometheus, settings.queries, settings.signals, length=fine, history=history)
    return traces.bundled(Path(origin)) if origin else traces.recorded()


def prometheus_of(origin: str | Path | None = None) -> Settings | None:
    """The settings of the environment with the Prometheus that `origin` or they name; None where none is named."""
    if origin is None:
        stated = environment().get("prometheus")
        return load_settings() if isinstance(stated, dict) and stated.get("url") else None
    address = str(origin)
    return load_settings(None, {"prometheus": {"url": address}}) if "://" in address else None


def recorded(signal: str = "cpu", *, days: int = 13, step: timedelta = FIVE_MINUTES) -> Panel:
    """The newest days of the bundled recording: every workload that has the signal, as means over each step."""
    recording = load_recording()
    keys = [workload.id.path for workload in recording.workloads]
    whole = Panel.cleaned(recording.values[_signal(signal)], recording.start - MINUTE, MINUTE, keys)
    return _measured(whole.last(timedelta(days=days)).resample(step), signal)


def of_prometheus(
    settings: PrometheusSettings,
    queries: Queries,
    signal: str,
    days: int,
    step: timedelta,
    until: datetime | None = None,
) -> Panel:
    """The newest days of every workload that a Prometheus knows, `until` now.

    Raises:
        SourceError: it did not answer, or refused.
        PanelError: it knows no workload with this signal.
    """
    end = last_multiple(until or current(), step)
    with closing(factory.prometheus(settings, queries)) as source:
        blocks = list(source.history(_signal(signal), end - timedelta(days=days) + step, end, step))
    return _measured(panel_of_blocks(blocks), signal)


def exported(path: str | Path, signal: str = "cpu", *, step: timedelta = FIVE_MINUTES) -> Panel:
    """The panel of a file: CSV, Parquet, or a bundle of `forecaster export`; `panel.notes` says what was done to it.

    Raises:
        SourceRefused: a file that cannot be read.
        PanelError: a table that has no samples of this signal.
    """
    path = Path(path)
    if path.suffix == SUFFIX:
        return _of_bundle(read_bundle(path), signal, step)
    frame = table_of(path)
    if "signal" in frame:
        there = ", ".join(sorted(map(str, frame["signal"].unique())))
        frame = frame[frame["signal"] == signal]
        if frame.empty:
            raise PanelError(f"{path} holds no sample of {signal!r}; its signals are: {there}")
    panel = Panel.from_long(frame)
    whole = panel if panel.step >= step else Panel.from_long(frame, step)
    keys = tuple(workload_named(key).path for key in whole.keys)
    return replace(_measured(replace(whole, keys=keys), signal), notes=whole.notes)


def _of_bundle(bundle: Bundle, signal: str, step: timedelta) -> Panel:
    keys = tuple(workload.id.path for workload in bundle.workloads)
    values = bundle.values.get(_signal(signal), np.zeros((len(keys), 0), np.float32))
    whole = Panel.cleaned(values, bundle.manifest.start - MINUTE, MINUTE, keys)
    return _measured(whole.resample(step) if whole.length else whole, signal)


def checked_yaml(fragment: Mapping[str, object]) -> str:
    """A fragment of settings as YAML, after the service's own validation.

    Raises:
        ConfigError: with all its faults.
    """
    parse(fragment, "this notebook")
    return yaml.safe_dump(dict(fragment), sort_keys=False)


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
    return Panel(np.concatenate(parts, axis=1), start, blocks[0].step, tuple(id_.path for id_ in ids))


def _signal(name: str) -> Signal:
    """Return the signal of a name. Raises UnknownName."""
    try:
        return BUILT_IN.by_name[name]
    except KeyError:
        raise UnknownName("signal", name, BUILT_IN.by_name) from None


def _measured(panel: Panel, signal: str) -> Panel:
    """The series that have samples, from the first instant to the last at which one of them has."""
    known = np.isfinite(panel.values)
    rows, bins = np.flatnonzero(known.any(axis=1)), np.flatnonzero(known.any(axis=0))
    if not len(rows):
        raise PanelError(f"no workload has a sample of {signal}; `forecaster doctor` says what is missing")
    whole = panel.take(rows).until(panel.start + int(bins[-1] + 1) * panel.step)
    return whole.last(int(bins[-1] + 1 - bins[0]) * panel.step)
