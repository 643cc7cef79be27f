"""StateKeys: signatures of stored state, HMAC-SHA-256 under a key of the release.

State decides, and what lies in a database or in the cluster can be written by others. The signature is the first field
of a JSON object: a forecaster from before signatures ignores the field and reads the rest.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import zlib
from dataclasses import dataclass, field
from pathlib import Path

from forecaster.errors import StoreError

HEAD, TAIL = b'{"signature":"', b'",'
SIGNATURE_DIGITS = 64
MIN_KEY_BYTES = 32
MAX_BYTES = 1 << 28
"""Bytes that state may take uncompressed, before its signature is known: 10,000 workloads have 4 MB."""
EITHER_FORMAT = zlib.MAX_WBITS | 32
KEY_FILE = "state.key"
"""Name of the key in the state directory, where the release has no other or it cannot be read."""


@dataclass(frozen=True, slots=True)
class StateKeys:
    """Keys of the release: the first one signs, all of them are accepted, so that a key can be replaced by another."""

    keys: tuple[bytes, ...] = field(repr=False)
    origin: str
    """Place of the keys, for messages."""
    of_release: bool = True
    """Whether other replicas have the keys, too; False for a key that this directory alone has."""

    @classmethod
    def of_text(cls, text: bytes, origin: str, *, of_release: bool = True) -> StateKeys:
        """Read keys, one a line.

        Raises:
            StoreError: there is none, or one is too short to be a secret.
        """
        keys = tuple(line.strip() for line in text.splitlines() if line.strip())
        if not keys or min(map(len, keys)) < MIN_KEY_BYTES:
            raise StoreError(f"{origin}: one key a line of {MIN_KEY_BYTES} characters or more; `openssl rand -hex 32`")
        return cls(keys, origin, of_release)

    def signed(self, content: bytes, subject: str, beside: bytes = b"") -> bytes:
        """Return a JSON object with a signature, which also covers its `subject` and what lies `beside` it."""
        return HEAD + _signature(self.keys[0], content, subject, beside) + TAIL + content[1:]

    def verified(self, content: bytes, subject: str, beside: bytes = b"") -> bytes:
        """Return the JSON object without its signature.

        Raises:
            StoreError: none of our keys signed this content as the state of `subject`.
        """
        place = len(HEAD) + SIGNATURE_DIGITS
        bare = b"{" + content[place + len(TAIL) :]
        signature = content[len(HEAD) : place] if is_signed(content) else b""
        if not any(hmac.compare_digest(signature, _signature(key, bare, subject, beside)) for key in self.keys):
            raise StoreError(
                f"the state of {subject} was not signed by a key of this release ({self.origin}), and is learned anew; "
                "if it is yours, add the key that signed it there as a second line before the next start"
            )
        return bare


def is_signed(content: bytes) -> bool:
    """Whether a JSON object begins with a signature, be it right or wrong."""
    return content.startswith(HEAD)


def inflated(content: bytes) -> bytes:
    """Decompress possibly forged content, of zlib or gzip. Raises zlib.error, TypeError."""
    stream = zlib.decompressobj(EITHER_FORMAT)
    decompressed = stream.decompress(content, MAX_BYTES)
    if not stream.eof:
        raise zlib.error(f"more than {MAX_BYTES} bytes, or cut off")
    return decompressed


def _signature(key: bytes, content: bytes, subject: str, beside: bytes) -> bytes:
    signed = subject.encode() + b"\0" + hashlib.sha256(beside).digest() + content
    return hmac.digest(key, signed, "sha256").hex().encode()


def new_key() -> bytes:
    """Return a key, as text."""
    return secrets.token_hex(MIN_KEY_BYTES).encode()


def read_key_file(path: Path) -> StateKeys:
    """Read the keys that the settings name.

    Raises:
        StoreError: the file cannot be read, or has no key.
    """
    try:
        return StateKeys.of_text(path.read_bytes(), f"state.key_file {path}")
    except OSError as error:
        raise StoreError(f"state.key_file {path}: {error.strerror}; mount the Secret that has the key") from error


def keep_keys(directory: Path, keys: tuple[bytes, ...]) -> None:
    """Put keys into the state directory, readable by this user alone.

    Raises:
        StoreError: the file cannot be written.
    """
    path, temporary = directory / KEY_FILE, directory / f".{KEY_FILE}.new"
    try:
        temporary.unlink(missing_ok=True)
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(b"\n".join(keys))
        temporary.replace(path)
    except OSError as error:
        raise StoreError(f"{path}: cannot be written ({error.strerror}); make its directory writable") from error


def keys_of_directory(directory: Path) -> StateKeys:
    """Read the keys of the state directory, or make one at the first start.

    Raises:
        StoreError: the file cannot be read or written.
    """
    path = directory / KEY_FILE
    try:
        if not path.exists():
            keep_keys(directory, (new_key(),))
        return StateKeys.of_text(path.read_bytes(), str(path), of_release=False)
    except OSError as error:
        raise StoreError(f"{path}: cannot be read ({error.strerror}); make it readable for this user") from error
