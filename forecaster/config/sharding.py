"""Division of a fleet into parts: their number, and where they are computed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from pydantic import Field, model_validator

from forecaster.domain.settings import Section

SCHEDULER_ADDRESS = re.compile(r"(?P<scheme>tcp|tls)://(?P<host>\[[0-9a-fA-F:.]+\]|[^\s/:\[\]]+):(?P<port>\d{1,5})")
LOOPBACK = frozenset({"127.0.0.1", "[::1]", "localhost"})


class ShardingSettings(Section):
    """A fleet that one process does not compute within a minute: its namespaces in shards, each a cycle of its own."""

    enabled: bool = Field(
        default=False,
        description="Whether the fleet is divided. The dashboard then shows no history, what-if and nodes.",
    )
    shards: int = Field(
        8,
        ge=1,
        le=4096,
        description="How many shards the namespaces are spread over: two to four for each worker, of 1,000 to 10,000 "
        "workloads each. Another number is taken over while the service runs, with all that was learned.",
    )
    scheduler: str = Field(
        "",
        description="Address of the Dask scheduler whose workers compute them, tls://HOST:PORT; or tcp:// on loopback. "
        "Empty: this process, one after the other. Needs the extra `dask`.",
    )
    ca_file: Path | None = Field(
        None,
        description="PEM file of an authority that signs for this scheduler, its workers and the service, and for "
        "nothing else: a certificate of it is the right to run code there.",
    )
    certificate_file: Path | None = Field(None, description="PEM file of the certificate that this process shows.")
    key_file: Path | None = Field(None, description="PEM file of its key.")

    @property
    def files(self) -> tuple[Path | None, ...]:
        """Return the files of TLS."""
        return (self.ca_file, self.certificate_file, self.key_file)

    @property
    def port(self) -> int:
        """On which the scheduler listens."""
        match = SCHEDULER_ADDRESS.fullmatch(self.scheduler)
        return int(match["port"]) if match else 0

    @property
    def listens_at(self) -> str:
        """Return the address of scheduler and workers: all interfaces with TLS, unless the scheduler is on loopback."""
        match = SCHEDULER_ADDRESS.fullmatch(self.scheduler)
        return f"{match['scheme']}://{match['host'] if match['host'] in LOOPBACK else ''}" if match else ""

    @model_validator(mode="after")
    def _is_private(self) -> Self:
        match = SCHEDULER_ADDRESS.fullmatch(self.scheduler)
        if self.scheduler and not match:
            raise ValueError("scheduler must be tls://HOST:PORT")
        if match and match["scheme"] == "tcp" and match["host"] not in LOOPBACK:
            raise ValueError("scheduler must be tls://HOST:PORT: without TLS anybody may run code on the workers")
        if match and match["scheme"] == "tls" and not all(self.files):
            raise ValueError("scheduler with tls:// needs ca_file, certificate_file and key_file")
        return self


def fitting(value: ShardingSettings, others: Mapping[str, Any]) -> ShardingSettings:
    """The section, where it goes with the other ones.

    Raises:
        ValueError: it does not.
    """
    state, replicas, source = (others.get(name) for name in ("state", "replicas", "source"))
    if not value.enabled:
        return value
    if source and source.kind != "prometheus":
        raise ValueError(f"enabled needs source.kind prometheus, which every shard reads for itself, not {source.kind}")
    shared = state and (state.database_file or state.database.startswith("postgres"))
    if replicas and replicas.enabled and not shared:
        raise ValueError("enabled with replicas needs state.database of PostgreSQL: there they find the learned state")
    return value
