"""Contents of an export bundle: the histories of a source, the settings, one cycle's decisions, and the ledger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from forecaster import __version__
from forecaster.config.settings import Settings
from forecaster.domain.decision import Recommendation
from forecaster.domain.workload import WorkloadId
from forecaster.publish.record import verdict_of
from forecaster.publish.views import recommendation_view
from forecaster.replay.traces import Traces
from forecaster.sources.bundle import FORMAT, Bundle, Manifest
from forecaster.store.ledger import Decision

PORTABLE = ("history", "signals", "cycle", "forecast", "floor", "scale", "resize", "policy", "overrides")
"""The sections of the settings that decisions depend on, or other sections; the rest holds addresses and secrets."""


def bundle_of(
    traces: Traces,
    settings: Settings,
    decided: Sequence[Recommendation] = (),
    changes: Sequence[dict[str, Any]] = (),
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
