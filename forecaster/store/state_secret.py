"""StateSecret: a Secret of the release's namespace, where a new pod finds the key that signs state, and small state.

State on a volume or in a database may be gone with them. The Secret has a checkpoint of what takes longest to learn.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import NamedTuple, Protocol

import msgspec

from forecaster.errors import StoreError
from forecaster.kube.client import ApiClient, ApiError
from forecaster.kube.objects import ObjectMeta, Secret, secret_path
from forecaster.store.signing import StateKeys, inflated, new_key

KEY, CHECKPOINT = "key", "checkpoint"
"""Entries of the Secret."""
MAX_CHECKPOINT = 700 * 1024
"""Bytes of a compressed checkpoint: a Secret has at most 1 MiB."""
CHECKPOINT_FORMAT = 1
"""Form of the checkpoint around the observations, which state their own version."""
GZIP = zlib.MAX_WBITS | 16


class StateSecret:
    """The Secret, read and changed by an account that may do so with this one alone."""

    def __init__(self, client: ApiClient, name: str) -> None:
        self.name, self._client, self._path = name, client, secret_path(*name.split("/"))
        self._version = ""
        """Last observed version of the object."""

    def keys(self) -> StateKeys:
        """Read the keys of the release; the first one that asks makes one.

        Raises:
            StoreError: the Secret cannot be read or written, or holds no key.
        """
        text = self.read(KEY)
        if not text:
            self.write(KEY, new_key())
            text = self.read(KEY)  # that of another replica, perhaps
        return StateKeys.of_text(text, f"Secret {self.name}")

    def read(self, entry: str) -> bytes:
        """Read one entry; empty without one.

        Raises:
            StoreError: the Secret cannot be read.
        """
        try:
            secret = self._client.get(self._path, Secret)
        except ApiError as error:
            raise StoreError(_remedy(self.name, error)) from error
        self._version = secret.metadata.resource_version
        return (secret.data or {}).get(entry, b"")

    def write(self, entry: str, content: bytes) -> None:
        """Replace one entry, unless another process wrote since the Secret was seen last: then that counts.

        Raises:
            StoreError: the Secret cannot be written.
        """
        if not self._version:
            self.read(entry)
        change = Secret(ObjectMeta(resource_version=self._version), {entry: content})
        self._version = ""
        try:
            self._version = self._client.patch(self._path, change, Secret).metadata.resource_version
        except ApiError as error:
            if error.status != HTTPStatus.CONFLICT:
                raise StoreError(_remedy(self.name, error)) from error


def _remedy(name: str, error: ApiError) -> str:
    if error.status == HTTPStatus.NOT_FOUND:
        return f"Secret {name}: there is none; apply deploy/base, which has it, empty"
    if error.status == HTTPStatus.FORBIDDEN:
        return f"{error}; bind the rights of deploy/base to this account"
    return str(error)


class PersistedCheckpoint(msgspec.Struct, frozen=True):
    """Small state of a cluster until an evaluation time."""

    format: int
    at: float
    """Last evaluation time that was decided, in epoch seconds."""
    cluster: str
    """UID of kube-system; empty where it was not known."""
    observed: msgspec.Raw


class CheckpointedState(Protocol):
    """State that has a checkpoint."""

    @property
    def decided_at(self) -> float:
        """Epoch seconds of the last evaluation time that was decided."""

    def encoded_within(self, max_bytes: int, pack: Callable[[bytes], bytes]) -> tuple[bytes, bytes, tuple[str, ...]]:
        """Encode and pack the part that fits into `max_bytes`; name the parts left out."""


class ReadCheckpoint(NamedTuple):
    """A checkpoint written by an earlier pod."""

    at: float
    observed: bytes


@dataclass(slots=True)
class Checkpoint:
    """Small state in the Secret, signed; `cluster` is the UID of kube-system, empty where it is not known."""

    secret: StateSecret
    keys: StateKeys
    cluster: str
    state: CheckpointedState
    holds: Callable[[], bool] = lambda: True
    """Whether this replica leads."""
    tell_left: Callable[[tuple[str, ...]], None] = lambda _: None
    """Called with the parts that did not fit, when these change."""
    left: tuple[str, ...] = field(default=(), init=False)
    _written: bytes = field(default=b"", init=False)
    _at: float = field(default=0.0, init=False)
    """Evaluation time of the checkpoint that was read: until the next decision the state is of then."""

    def save(self) -> None:
        """Write the checkpoint where the state has changed and this replica leads.

        Raises:
            StoreError: it cannot be written.
        """
        if not self.holds():
            return
        observed, packed, left = self.state.encoded_within(MAX_CHECKPOINT, self._packed)
        if left != self.left:
            self.left = left
            self.tell_left(left)
        if observed != self._written:
            self.secret.write(CHECKPOINT, packed)
            self._written = observed

    def decoded(self, content: bytes) -> ReadCheckpoint:
        """Return an earlier pod's learned state, as it wrote it into the Secret.

        Raises:
            StoreError: it is damaged, not signed by our key, of another cluster or a later version.
        """
        try:
            checkpoint = msgspec.json.decode(
                self.keys.verified(inflated(content), CHECKPOINT), type=PersistedCheckpoint
            )
        except (zlib.error, msgspec.MsgspecError) as error:
            raise StoreError(f"it is damaged ({error})") from error
        if checkpoint.format != CHECKPOINT_FORMAT:
            raise StoreError(f"it has the format {checkpoint.format}, and not {CHECKPOINT_FORMAT}")
        if checkpoint.cluster and self.cluster and checkpoint.cluster != self.cluster:
            raise StoreError(
                f"its cluster's kube-system has the UID {checkpoint.cluster}, and here it has {self.cluster}"
            )
        self._at = checkpoint.at
        return ReadCheckpoint(checkpoint.at, bytes(checkpoint.observed))

    def _packed(self, observed: bytes) -> bytes:
        at = max(self.state.decided_at, self._at)
        checkpoint = PersistedCheckpoint(CHECKPOINT_FORMAT, at, self.cluster, msgspec.Raw(observed))
        stream = zlib.compressobj(wbits=GZIP)
        return stream.compress(self.keys.signed(msgspec.json.encode(checkpoint), CHECKPOINT)) + stream.flush()
