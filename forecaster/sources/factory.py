"""Sources by kind, and how each of them is built.

A source of your own is a file in this package with a function that takes a `SourceConfig` and returns a `Source`, and
one line in `SOURCES`. Its options stand in `source.options` of the settings; it checks them itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from pydantic import Field, field_validator

from forecaster.domain.settings import Section

if TYPE_CHECKING:
    from forecaster.ports import Source
    from forecaster.sources.prometheus import PrometheusSource
    from forecaster.sources.queries import Queries
    from forecaster.sources.request_origins import Origins
    from forecaster.sources.settings import PrometheusSettings, SignalSettings

NO_SIGNALS: Mapping[str, SignalSettings] = MappingProxyType({})
"""No signals beside CPU, memory and requests."""


class SourceSettings(Section):
    """The source of histories and inventories."""

    kind: str = Field("prometheus", description="Kind of the source, a name of `sources.factory.SOURCES`.")
    options: dict[str, Any] = Field(
        default_factory=dict, description="What a source of another kind wants to know; prometheus has its own section."
    )

    @field_validator("kind")
    @classmethod
    def _known(cls, value: str) -> str:
        if value not in SOURCES:
            raise ValueError(f"must be one of {', '.join(SOURCES)}")
        return value


class SourceConfig(Protocol):
    """The sections of the settings that a source is built from."""

    @property
    def source(self) -> SourceSettings:
        """Settings of the source."""

    @property
    def prometheus(self) -> PrometheusSettings:
        """Settings of the connection to Prometheus."""

    @property
    def queries(self) -> Queries:
        """Queries of the source."""

    @property
    def signals(self) -> Mapping[str, SignalSettings]:
        """Signals beside CPU, memory and requests."""


def source_of(config: SourceConfig) -> Source:
    """Return the source of these settings, before its first query."""
    return SOURCES[config.source.kind](config)


@contextmanager
def opened(config: SourceConfig) -> Iterator[Source]:
    """Return the source of these settings; its resources are released at the end."""
    source = source_of(config)
    try:
        yield source
    finally:
        close(source)


def close(source: Source) -> None:
    """Release a source's resources, if it holds any."""
    release = getattr(source, "close", None)
    if release is not None:
        release()


def origins_of(source: Source) -> Origins | None:
    """Return the origins of request rates from a source that detects them; None for another."""
    return getattr(getattr(source, "source", source), "request_origins", None)


def prometheus(
    settings: PrometheusSettings, queries: Queries, signals: Mapping[str, SignalSettings] = NO_SIGNALS
) -> PrometheusSource:
    """Return a Prometheus source that reads these signals beside CPU, memory and requests."""
    from forecaster.sources.prometheus import PrometheusSource  # noqa: PLC0415  settings are read without HTTP

    return PrometheusSource(settings, queries.with_signals(signals))


SOURCES: Mapping[str, Callable[[SourceConfig], Source]] = {
    "prometheus": lambda config: prometheus(config.prometheus, config.queries, config.signals),
}
"""Constructors of sources, in alphabetical order."""
