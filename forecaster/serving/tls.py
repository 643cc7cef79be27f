"""TLS of the secure listener: one context at a time, replaced when the certificate or the CA of proxies changes."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def server_context(certificate: Path, key: Path, proxy_ca: str = "") -> ssl.SSLContext:
    """TLS 1.2 and 1.3, HTTP/1.1, no session tickets; client certificates are asked for if there is a CA to verify them.

    Only the CA of proxies is loaded. With a second one it could not be told which of them vouched for a certificate,
    and any user's certificate with the right name would make its owner a proxy, that is, any user. A ticket would
    outlive the CA that the session was verified with.

    Raises:
        OSError: a file cannot be read or is no certificate, the key does not belong to it, or the CA is no CA.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.num_tickets = 0
    context.options |= ssl.OP_NO_TICKET | ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION
    context.set_alpn_protocols(["http/1.1"])
    context.load_cert_chain(certificate, key)
    if proxy_ca:
        context.load_verify_locations(cadata=proxy_ca)
        context.verify_mode = ssl.CERT_OPTIONAL
    return context


Stamp = tuple[tuple[int, int], ...]


class ServingCertificates:
    """Watches the serving certificate and is told the CA of proxies.

    A pair that does not fit, as there is between the writing of two files, leaves the last good one in place.
    """

    def __init__(self, certificate: Path, key: Path) -> None:
        self._files = (certificate, key)
        self._proxy_ca = ""
        self._stamp: Stamp = ()
        self.context: ssl.SSLContext | None = None
        self.fault = ""
        """Why the newest files are not used; empty when they are."""

    def trust(self, proxy_ca: str) -> None:
        """Verify client certificates against this bundle from the next handshake on."""
        if proxy_ca != self._proxy_ca:
            self._proxy_ca, self._stamp = proxy_ca, ()

    def refresh(self) -> None:
        """Load what has changed."""
        try:
            stamp = tuple((status.st_mtime_ns, status.st_ino) for status in (file.stat() for file in self._files))
            if stamp != self._stamp:
                self.context = server_context(*self._files, self._proxy_ca)
                self._stamp, self.fault = stamp, ""
        except OSError as error:
            self.fault = f"the serving certificate {self._files[0]} is not used: {error.strerror or error}"

    def current(self) -> ssl.SSLContext:
        """The context for the next handshake.

        Raises:
            OSError: there has never been a good one.
        """
        if self.context is None:
            raise OSError(self.fault)
        return self.context
