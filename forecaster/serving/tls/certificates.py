"""Certificates: the newest good context, however often files and CA are replaced."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forecaster.serving.tls.context import server_context

if TYPE_CHECKING:
    import ssl
    from pathlib import Path

Stamp = tuple[tuple[int, int], ...]


class Certificates:
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
