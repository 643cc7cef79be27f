"""Node pools for the dashboard: composed where Prometheus is read, and encoded once each time they are made anew."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from forecaster.sources import factory

if TYPE_CHECKING:
    from forecaster.config.settings import Settings
    from forecaster.cycle.node_forecast import NodeForecast, NodePools
    from forecaster.vertical.admission.cluster import Cluster

PRESSURES_SHOWN = 20
"""Nodes shown whose memory may run out, the most likely first."""


def node_pools(settings: Settings) -> NodePools | None:
    """What reads nodes now and then; None where nothing shows them, or the source is no Prometheus."""
    serving = settings.serving
    shown = serving.enabled and serving.dashboard and serving.nodes_every > timedelta(0)
    if not shown or settings.source.kind != "prometheus":
        return None
    from forecaster.cycle.node_forecast import NodePools  # noqa: PLC0415  only where a dashboard shows nodes
    from forecaster.sources.cluster_facts import cluster_of  # noqa: PLC0415

    source = factory.prometheus(settings.prometheus, settings.queries, settings.signals)

    def read(now: datetime) -> Cluster:
        return cluster_of(source, now)

    return NodePools(read, serving.nodes_every)


@dataclass(slots=True)
class NodesText:
    """The newest forecast of nodes as JSON."""

    pools: NodePools | None
    absent: str = "the service does not read nodes; `forecaster nodes` says what it needs"
    """Why there are no pools, where there are none."""
    _of: NodeForecast | None = None
    _text: bytes = b""

    def __call__(self) -> bytes:
        """What is known now."""
        if self.pools is None:
            return refused(self.absent)
        latest = self.pools.latest
        if latest is None:
            return refused(self.pools.refused or "nodes are read after the first cycle")
        if latest is not self._of:
            self._of, self._text = latest, msgspec.json.encode(_shown(latest) | {"refused": self.pools.refused})
        return self._text


def _shown(latest: NodeForecast) -> dict[str, Any]:
    """Return the document without the counts of each workload in each window: they are as many as workloads."""
    from forecaster.cycle.node_document import document  # noqa: PLC0415  only where a dashboard shows nodes

    found: dict[str, Any] = msgspec.to_builtins(document(latest))
    for pool in found["pools"]:
        for window in pool["windows"]:
            del window["replicas"]
    found["memory_pressure"] = found["memory_pressure"][:PRESSURES_SHOWN]
    return found


def refused(why: str) -> bytes:
    """Why nothing is known of nodes, as JSON."""
    return msgspec.json.encode({"refused": why})
