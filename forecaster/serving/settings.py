"""Settings of the serving process and of KEDA's scaler: the computing process reads them and hands them over."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from forecaster.domain.clock import TimeZone
from forecaster.domain.settings import Duration, Section


class UpstreamSettings(Section):
    """The adapter that had the group of external metrics before; requests for other metrics are passed on to it."""

    server: str = Field(
        "",
        pattern=r"^$|^https://[^/@]+$",
        description="Its address, e.g. https://keda-operator-metrics-apiserver.keda.svc:443. Default: there is none.",
    )
    ca_file: Path | None = Field(None, description="PEM file of the authority that signed its certificate.")
    token_file: Path = Field(
        Path("/var/run/secrets/kubernetes.io/serviceaccount/token"),
        description="Token of ours that it is shown; its account needs `list` on external.metrics.k8s.io.",
    )

    @model_validator(mode="after")
    def _is_verified(self) -> Self:
        if self.server and self.ca_file is None:
            raise ValueError("server needs ca_file: a server in its place would decide what scales")
        return self


class SecureSettings(Section):
    """A second port, with TLS and the cluster's own users and rights; the plain one keeps probes and /metrics."""

    enabled: bool = Field(default=False, description="Whether to listen there.")
    host: str = Field("0.0.0.0", description="Address to listen on.")  # noqa: S104  the API server comes from outside the pod
    port: int = Field(6443, ge=0, le=65535, description="Port to listen on; 0 takes a free one.")
    certificate_file: Path | None = Field(
        None, description="PEM file with the server's certificate chain; read again whenever it changes."
    )
    key_file: Path | None = Field(None, description="PEM file with the key of that certificate.")
    kubeconfig: Path | None = Field(
        None, description="Client configuration for the API server; default: the pod's own service account."
    )
    service: str = Field(
        "",
        pattern=r"^$|^[^/]+/[^/]+$",
        description="NAMESPACE/NAME of our Service. With it, an API group of another Service is reported.",
    )
    certified_reviews: bool = Field(
        default=False,
        description="Whether /admit/pods answers only the certificate that the API server shows as the front proxy. "
        "The API server has to be configured to show it to webhooks: docs/vertical.md.",
    )
    upstream: UpstreamSettings = UpstreamSettings()

    @model_validator(mode="after")
    def _has_certificate(self) -> Self:
        if self.enabled and not (self.certificate_file and self.key_file):
            raise ValueError("needs certificate_file and key_file")
        return self


class CalendarSettings(Section):
    """Public holidays that are marked on the axes of the dashboard. Forecasts heed them only where the model does."""

    zone: TimeZone = Field(
        "UTC", description="IANA name of the time zone in which their days begin, e.g. Europe/Berlin."
    )
    countries: tuple[str, ...] = Field(
        (), description="Codes of countries, with a region if need be: DE, DE-BY. Needs the extra `calendar`."
    )


class ServingSettings(Section):
    """The serving process."""

    enabled: bool = Field(default=True, description="Whether `forecaster run` starts it.")
    host: str = Field("0.0.0.0", description="Address to listen on.")  # noqa: S104  probes and Prometheus come from outside the pod
    port: int = Field(8080, ge=0, le=65535, description="Port to listen on; 0 takes a free one.")
    stale_after: Annotated[Duration, Field(gt=timedelta(0))] | None = Field(
        None,
        description=(
            "An older table is stale: its values are no longer taken as known, and workloads in mode publish abstain. "
            "Default: three intervals."
        ),
    )
    workload_metrics: Literal["none", "counts", "all"] = Field(
        "counts",
        description=(
            "Gauges of every workload in /metrics. counts: replicas and demand at its quantile; all: the whole "
            "forecast and its error, too."
        ),
    )
    forecast_path: bool = Field(
        default=True,
        description=("Whether /api/v1 has the coming hour step by step, too; a tenth of all workloads a cycle."),
    )
    dashboard: bool = Field(
        default=True,
        description=(
            "Whether there is a dashboard at /. Its pictures lie beside the table, 4 kB a workload, and are written "
            "every five minutes."
        ),
    )
    nodes_every: Duration = Field(
        timedelta(hours=1),
        ge=timedelta(0),
        description=(
            "How often the Nodes page of the dashboard is made anew, after all that decides: a forecast of every "
            "workload over the coming day, and eighteen queries for nodes and pods. 0: never."
        ),
    )
    report: Path | None = Field(
        None,
        description=(
            "Page of `forecaster report --html` that is served at /report, its figures at /report.json. Default: "
            "report.html in state.directory."
        ),
    )
    holidays: CalendarSettings = CalendarSettings()
    secure: SecureSettings = SecureSettings()


class KedaSettings(Section):
    """The external scaler of KEDA, a process of its own beside the serving one."""

    enabled: bool = Field(default=False, description="Whether `forecaster run` starts it; needs the extra `keda`.")
    host: str = Field("0.0.0.0", description="Address to listen on.")  # noqa: S104  KEDA comes from outside the pod
    port: int = Field(9090, ge=1, le=65535, description="Port to listen on.")
    certificate_file: Path | None = Field(
        None, description="PEM file with the server's certificate chain; read again whenever it changes."
    )
    key_file: Path | None = Field(None, description="PEM file with the key of that certificate.")
    client_ca_file: Path | None = Field(
        None,
        description="PEM file of the authorities that sign KEDA's client certificate. Without it any client may ask.",
    )
    client_names: tuple[str, ...] = Field(
        (),
        description="Common names of client certificates that are answered. Default: every one of these authorities.",
    )
    plaintext: bool = Field(
        default=False,
        description="Serve without TLS, to any client that reaches the port. Only where no certificate is given.",
    )

    @model_validator(mode="after")
    def _either_way(self) -> Self:
        if (self.certificate_file is None) is not (self.key_file is None):
            raise ValueError("certificate_file and key_file belong together")
        if self.certificate_file is None and (self.client_ca_file or self.client_names):
            raise ValueError("client_ca_file and client_names need certificate_file: without TLS no client has a name")
        if self.client_names and self.client_ca_file is None:
            raise ValueError("client_names needs client_ca_file, which says which certificates are believed")
        if self.enabled and self.plaintext is (self.certificate_file is not None):
            raise ValueError("either certificate_file and key_file, or plaintext: true")
        return self
