"""Demand to replay, for command line and notebooks: the bundled recording, an export, or weeks of a Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from forecaster import __version__
from forecaster.app.clock import current
from forecaster.config.settings import Settings
from forecaster.domain.decision import Recommendation
from forecaster.domain.signal import BUILT_IN, Signal, Signals
from forecaster.domain.window import FIVE_MINUTES, MINUTE, Block, last_multiple
from forecaster.domain.workload import WorkloadId
from forecaster.errors import SourceRefused
from forecaster.publish.record import verdict_of
from forecaster.publish.views import recommendation_view
from forecaster.replay.traces import Traces
from forecaster.sources import factory
from forecaster.sources.bundle import FORMAT, Bundle, Manifest, read_bundle
from forecaster.sources.queries import Queries
from forecaster.sources.recorded import Recording, load_recording
from forecaster.sources.settings import PrometheusSettings, SignalSettings, signals_of

if TYPE_CHECKING:
    from forecaster.domain.workload import Workload
    from forecaster.ports import Source
    from forecaster.sources.exported import Exported
    from forecaster.store.ledger import Decision

FRESH = timedelta(hours=3)
"""Latest minutes that decisions read before the replay begins; older history is read in steps of five minutes."""
REQUESTS_METRIC = "http_requests_per_second"
"""Name under which the HPAs of the bundled recording know the request rate."""


def recorded() -> Traces:
    """The real load that is bundled with the package, thirteen days of eleven workloads."""
    return of_recording(load_recording())


def of_recording(recording: Recording) -> Traces:
    """A recording as traces."""
    return Traces(recording.workloads, recording.start, recording.values, "; ".join(recording.origins))


def exported(
    path: Path, described: Callable[[WorkloadId, Collection[Signal]], Workload], known: Signals = BUILT_IN
) -> Traces:
    """A CSV or Parquet file (docs/replay.md says of what form); `described` adds HPA and requests, which it has not.

    Raises:
        SourceRefused: the file cannot be read or is not of that form.
    """
    from forecaster.sources.exported import read_export  # noqa: PLC0415  pandas takes 0.3 s; the demo does without

    export: Exported = read_export(path, known)
    workloads = tuple(described(id_, tuple(export.values)) for id_ in export.ids)
    return Traces(workloads, export.start, export.values, f"exported to {path.name}")


def bundled(path: Path, known: Signals = BUILT_IN) -> Traces:
    """An export bundle: demand with the workloads and HPAs that it belongs to.

    Raises:
        SourceRefused: it is no bundle, of another version, or damaged.
    """
    bundle = read_bundle(path, known)
    values = {signal: array.astype(np.float64) for signal, array in bundle.values.items()}
    return Traces(bundle.workloads, bundle.manifest.start, values, f"exported to {path.name}, {bundle.manifest.origin}")


def measured(
    settings: PrometheusSettings,
    queries: Queries | None = None,
    signals: Mapping[str, SignalSettings] = factory.NO_SIGNALS,
    *,
    length: timedelta,
    history: timedelta = timedelta(days=14),
    until: datetime | None = None,
    chosen: Callable[[Iterable[WorkloadId]], Collection[WorkloadId]] = frozenset,
) -> Traces:
    """The last weeks of a cluster: the last `length` by the minute, `history` before it by five minutes.

    An end in the future is the present: pods of hours that are to come would cost, and serve nothing.

    Raises:
        SourceError: Prometheus did not answer, or refused.
        SourceRefused: it knows no workload of those chosen.
    """
    end = last_multiple(min(until or current(), current()), FIVE_MINUTES)
    with closing(factory.prometheus(settings, queries or Queries(), signals)) as source:
        inventory = source.inventory(end)
        chosen_ids = chosen(inventory.ids)
        workloads = tuple(workload for workload in inventory.workloads if workload.id in chosen_ids)
        if not workloads:
            raise SourceRefused(f"none of {len(inventory.workloads)} workloads is meant; `forecaster once` lists them")
        fine, measured_signals = end - length - FRESH, signals_of(signals).measured
        values = {
            signal: _measured(source, signal, workloads, fine - history, fine, end) for signal in measured_signals
        }
    known = {signal: array for signal, array in values.items() if np.isfinite(array).any()}
    return Traces(workloads, fine - history + MINUTE, known, "measured by Prometheus")


def _measured(
    source: Source, signal: Signal, workloads: Sequence[Workload], start: datetime, fine: datetime, end: datetime
) -> NDArray[np.float64]:
    """Read [workload, minute] from the minute after `start` to the one that ends at `end`."""
    demand = np.full((len(workloads), (end - start) // MINUTE), np.nan)
    row = {workload.id: i for i, workload in enumerate(workloads)}
    for block in source.history(signal, start + FIVE_MINUTES, fine, FIVE_MINUTES):
        _fill(demand, row, block, start)
    for block in source.history(signal, fine + MINUTE, end, MINUTE):
        _fill(demand, row, block, start)
    return demand


def _fill(demand: NDArray[np.float64], row: Mapping[WorkloadId, int], block: Block, start: datetime) -> None:
    """A coarser point describes every minute of its time."""
    width = block.step // MINUTE
    first = (block.start - start) // MINUTE - width
    for id_, values in zip(block.ids, block.values, strict=True):
        if id_ in row:
            demand[row[id_], first : first + len(values) * width] = np.repeat(values, width)


# Contents of an export bundle: the histories of a source, the settings, one cycle's decisions, and the ledger.


PORTABLE = ("history", "signals", "cycle", "forecast", "floor", "scale", "resize", "policy", "overrides")
"""The sections of the settings that decisions depend on, or other sections; the rest holds addresses and secrets."""


def bundle_of(
    traces: Traces, settings: Settings, decided: Sequence[Recommendation] = (), changes: Sequence[dict[str, Any]] = ()
) -> Bundle:
    """Bundle the demand and the decisions about it."""
    stated = settings.model_dump(mode="json", exclude_defaults=True)
    manifest = Manifest(
        format=FORMAT,
        version=__version__,
        origin=traces.origin,
        start=traces.start,
        minutes=traces.minutes,
        signals=tuple(str(signal) for signal in traces.values),
        workloads=traces.workloads,
        settings={name: value for name, value in stated.items() if name in PORTABLE},
    )
    ids = {workload.id for workload in traces.workloads}
    views = [msgspec.to_builtins(recommendation_view(row)) for row in decided if row.id in ids]
    return Bundle(
        manifest, {signal: values.astype(np.float32) for signal, values in traces.values.items()}, views, changes
    )


def change_rows(changes: Mapping[WorkloadId, Sequence[Decision]]) -> list[dict[str, Any]]:
    """Return the changes of decisions that the service recorded, as rows."""
    return [
        {
            "at": change.at.isoformat(),
            **id_._asdict(),
            **change.decided._asdict(),
            "verdict": verdict_of(change.decided.replicas_now, change.decided.replicas),
            "message": change.message,
        }
        for id_, each in changes.items()
        for change in each
    ]
