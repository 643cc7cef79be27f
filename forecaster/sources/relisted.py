"""A source with another inventory in front of it; every other question goes to the source."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime, timedelta

    from forecaster.domain.signal import Signal
    from forecaster.domain.window import Block
    from forecaster.domain.workload import ContainerBlock, ContainerFacts
    from forecaster.sources.prometheus import PrometheusSource


class RelistedSource:
    """Another source without its inventory, which subclasses provide."""

    def __init__(self, source: PrometheusSource) -> None:
        self.source = source

    def latest(self, signal: Signal, at: datetime) -> Block:
        """Return the source's answer."""
        return self.source.latest(signal, at)

    def history(self, signal: Signal, start: datetime, end: datetime, step: timedelta) -> Iterator[Block]:
        """Return the source's answer."""
        return self.source.history(signal, start, end, step)

    def containers(self, at: datetime) -> ContainerFacts:
        """Return the source's answer."""
        return self.source.containers(at)

    def container_usage(
        self, signal: Signal, start: datetime, end: datetime, step: timedelta
    ) -> Iterator[ContainerBlock]:
        """Return the source's answer."""
        return self.source.container_usage(signal, start, end, step)
