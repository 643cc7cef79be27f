"""Settings of KEDA's external scaler. The computing process reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from forecaster.domain.section import Section


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
        None, description="PEM file of the authorities that sign KEDA's client certificate. Without it anybody may ask."
    )
    client_names: tuple[str, ...] = Field(
        (),
        description="Common names of client certificates that are answered. Default: every one of these authorities.",
    )
    plaintext: bool = Field(
        default=False, description="Serve without TLS, to whoever reaches the port. Only where no certificate is given."
    )

    @model_validator(mode="after")
    def _either_way(self) -> Self:
        if (self.certificate_file is None) is not (self.key_file is None):
            raise ValueError("certificate_file and key_file belong together")
        if self.certificate_file is None and (self.client_ca_file or self.client_names):
            raise ValueError("client_ca_file and client_names need certificate_file: without TLS nobody has a name")
        if self.client_names and self.client_ca_file is None:
            raise ValueError("client_names needs client_ca_file, which says whose certificates are believed")
        if self.enabled and self.plaintext is (self.certificate_file is not None):
            raise ValueError("either certificate_file and key_file, or plaintext: true")
        return self
