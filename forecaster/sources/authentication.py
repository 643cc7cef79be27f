"""Who we are: read from files at each request, so that rotation needs no restart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from requests.auth import AuthBase, HTTPBasicAuth

from forecaster.errors import SourceRefused

if TYPE_CHECKING:
    from pathlib import Path

    from requests import PreparedRequest

    from forecaster.sources.settings import PrometheusSettings


class SecretFile:
    """The content of a file, without surrounding white space, read again when the file changes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: tuple[int, int, int] | None = None
        self._text = ""

    def read(self) -> str:
        """The present content. Raises `SourceRefused` when it cannot be read: a person must look."""
        try:
            status = self._path.stat()
            version = (status.st_mtime_ns, status.st_size, status.st_ino)
            if version != self._seen:
                self._text = self._path.read_text(encoding="utf-8").strip()
                self._seen = version
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not text"
            raise SourceRefused(f"cannot read the secret file {self._path}: {reason}") from error
        return self._text


class BearerToken(AuthBase):
    """`Authorization: Bearer` from a file."""

    def __init__(self, file: SecretFile) -> None:
        self._file = file

    def __call__(self, request: PreparedRequest) -> PreparedRequest:
        """Add the header."""
        request.headers["Authorization"] = f"Bearer {self._file.read()}"
        return request


class Password(AuthBase):
    """Basic authentication with the password from a file."""

    def __init__(self, username: str, file: SecretFile) -> None:
        self._username = username
        self._file = file

    def __call__(self, request: PreparedRequest) -> PreparedRequest:
        """Add the header."""
        return HTTPBasicAuth(self._username, self._file.read())(request)  # type: ignore[no-any-return]


class Anonymous(AuthBase):
    """Nothing added. Without it requests would look for credentials in the user's .netrc."""

    def __call__(self, request: PreparedRequest) -> PreparedRequest:
        """Leave the request as it is."""
        return request


def identity(settings: PrometheusSettings) -> AuthBase:
    """The authentication that the settings ask for."""
    if settings.bearer_token_file:
        return BearerToken(SecretFile(settings.bearer_token_file))
    if settings.password_file:
        return Password(settings.username, SecretFile(settings.password_file))
    return Anonymous()
