"""Settings of published forecasts: where they are written, prices of pods, and copies by other replicas."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, Self

from pydantic import Field, SecretStr, field_validator, model_validator

from forecaster.domain.settings import Section
from forecaster.domain.workload import Prices


class PriceSettings(Section):
    """Prices of requests, in which the dashboard and reports state money; without prices they state pod-hours only."""

    core_hour: float | None = Field(None, ge=0, description="Price of a requested core for an hour.")
    gib_hour: float | None = Field(None, ge=0, description="Price of a requested GiB of memory for an hour.")
    currency: str = Field("", max_length=8, description="Unit beside amounts, e.g. EUR. Nothing is converted.")

    @model_validator(mode="after")
    def _both_or_none(self) -> Self:
        if (self.core_hour is None) != (self.gib_hour is None):
            raise ValueError("state both core_hour and gib_hour: half a price is a wrong sum")
        return self

    @property
    def stated(self) -> Prices | None:
        """The prices; None where none are stated."""
        if self.core_hour is None or self.gib_hour is None:
            return None
        return Prices(self.core_hour, self.gib_hour, self.currency)


class RemoteWriteSettings(Section):
    """Writes forecasts into a Prometheus, Mimir or another receiver of remote write; needs the extra `remote-write`."""

    url: str = Field(
        "",
        description=(
            "Address of the receiver, e.g. http://prometheus.monitoring:9090/api/v1/write (Prometheus wants "
            "--web.enable-remote-write-receiver). Empty: nothing is written."
        ),
    )
    timestamps: Literal["target", "evaluation"] = Field(
        "target",
        description=(
            "target: a forecast is at the time that it is about, so that a graph lays it over the outcome; "
            "receivers take at most ten minutes ahead, longer lead times are left out. evaluation: it stands at the "
            "time it was made."
        ),
    )
    quantiles: Literal["policy", "all"] = Field(
        "policy", description="policy: only the quantile that decides. all: 0.1, 0.5 and 0.95, too."
    )
    bearer_token_file: Path | None = Field(None, description="File with a bearer token; read again for every cycle.")
    ca_file: Path | None = Field(
        None, description="PEM file of the authorities that may sign the receiver's certificate. Default: the system's."
    )
    headers: dict[str, SecretStr] = Field(
        default_factory=dict, description="Further request headers, e.g. X-Scope-OrgID. Values count as secrets."
    )
    timeout_seconds: float = Field(5.0, gt=0, le=60, description="How long one request may take.")
    deadline_seconds: float = Field(
        30.0, gt=0, le=900, description="How long all requests of a cycle may take; the rest is left out."
    )
    series_per_request: int = Field(2000, ge=1, le=10_000, description="Most series in one request.")

    @field_validator("url")
    @classmethod
    def _is_http(cls, value: str) -> str:
        if value and not value.startswith(("http://", "https://")):
            raise ValueError("an http:// or https:// address is expected")
        return value


class ReplicaSettings(Section):
    """Two or more replicas: the holder of the Lease computes, the others serve its table and store its state."""

    enabled: bool = Field(
        default=False,
        description="Whether there are others. Needs serving.secure, state.directory for each alone, and the Lease "
        "`acting.lease` with the rights of deploy/components/replicas.",
    )
    host: str = Field(
        "",
        description="Name or address at which others reach the secure port of this one; in a pod its status.podIP, by "
        "FORECASTER__REPLICAS__HOST.",
    )
    ca_file: Path | None = Field(
        None,
        description="PEM file of the authority of serving.secure.certificate_file, by which a leader is verified.",
    )

    @model_validator(mode="after")
    def _can_be_found(self) -> Self:
        if self.enabled and not (self.host and self.ca_file):
            raise ValueError("enabled needs host and ca_file")
        return self
