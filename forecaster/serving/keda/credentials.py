"""Certificates of the scaler: read again whenever their files change, and only when they fit together."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, NamedTuple

import grpc

if TYPE_CHECKING:
    from pathlib import Path


class CertificateFiles(NamedTuple):
    """PEM files: our chain, its key, and who signs clients. Without the last, any client may connect."""

    certificate: Path
    key: Path
    client_ca: Path | None


class ScalerCertificates:
    """What is loaded now, and what the files hold since."""

    def __init__(self, files: CertificateFiles) -> None:
        self._files = files
        self._stamp = self._stamp_now()
        self._loaded = _read(files)

    def credentials(self) -> grpc.ServerCredentials:
        """TLS for a server; each handshake asks whether the files have changed.

        Raises:
            OSError: a file cannot be read.
            ssl.SSLError: certificate and key do not belong together, or a file is no PEM.
        """
        demanded = self._files.client_ca is not None
        return grpc.dynamic_ssl_server_credentials(self._loaded, self.newest, require_client_authentication=demanded)

    def newest(self) -> grpc.ServerCertificateConfiguration:
        """The configuration of the files; the last good one while they are being replaced."""
        try:
            stamp = self._stamp_now()
            if stamp != self._stamp:
                self._loaded, self._stamp = _read(self._files), stamp
        except (OSError, ssl.SSLError):
            pass  # half of a rotation: the next handshake looks again
        return self._loaded

    def _stamp_now(self) -> tuple[tuple[int, int], ...]:
        found = [path.stat() for path in self._files if path is not None]
        return tuple((status.st_ino, status.st_mtime_ns) for status in found)


def _read(files: CertificateFiles) -> grpc.ServerCertificateConfiguration:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.certificate, files.key)  # refuses a key of another certificate
    if files.client_ca is not None:
        context.load_verify_locations(files.client_ca)
    authorities = None if files.client_ca is None else files.client_ca.read_bytes()
    pair = files.key.read_bytes(), files.certificate.read_bytes()
    return grpc.ssl_server_certificate_configuration([pair], root_certificates=authorities)
