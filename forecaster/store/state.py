"""The state directory and its settings: observations of workloads, and whether the directory is writable."""

from __future__ import annotations

import shutil
import tempfile
import zlib
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Generic, Protocol, TypeVar

import msgspec
from pydantic import Field, ValidationInfo, field_validator

from forecaster.domain.amounts import memory
from forecaster.domain.report import Check
from forecaster.domain.settings import Duration, Section
from forecaster.errors import StoreError
from forecaster.store.signing import StateKeys, is_signed
from forecaster.store.snapshot import CHECKSUM

IDENTITY_FILE = "cluster.json"
BENEFIT_FILE = "benefit.sums"
STATE_FILES = (
    BENEFIT_FILE,
    "history.snapshot",
    "observed.json",
    "request-origins.json",
    "stated.json",
    "ledger.sqlite*",
    "recommendations.table*",
)
FOREIGN = "of-another-cluster"
"""Folder of the state directory into which state of another cluster is moved."""


class ClusterIdentity(msgspec.Struct, frozen=True):
    """Identity of the cluster; empty where it is not known."""

    created: frozenset[str] = frozenset()
    """Instants at which kube-system was created, seconds since 1970: one for each cluster that the source describes."""
    labels: frozenset[str] = frozenset()
    """External labels of Prometheus, `name=value`."""
    uid: str = ""
    """UID of kube-system, from the API server."""

    def difference(self, other: ClusterIdentity) -> str:
        """Return why `other` is another cluster; empty where it is this one, or not enough is known of both."""
        if self.uid and other.uid:
            return "" if self.uid == other.uid else f"its kube-system has the UID {other.uid}, and here {self.uid}"
        if self.created and other.created:
            if self.created & other.created:
                return ""
            return f"its kube-system was created at {_listed(other.created)}, and here at {_listed(self.created)}"
        if self.labels and other.labels and self.labels != other.labels:
            return f"its Prometheus has the labels {_listed(other.labels)}, and here it has {_listed(self.labels)}"
        return ""


def _listed(texts: frozenset[str]) -> str:
    return ", ".join(sorted(texts))


def claim_state(directory: Path, identity: ClusterIdentity) -> str:
    """Bind the state directory to a cluster, and move state of another one aside; return why that was done, or "".

    Raises:
        StoreError: the directory cannot be read or written.
    """
    file = directory / IDENTITY_FILE
    try:
        before = msgspec.json.decode(file.read_bytes(), type=ClusterIdentity) if file.exists() else ClusterIdentity()
    except (OSError, UnicodeDecodeError, msgspec.MsgspecError) as error:
        raise StoreError(f"{file}: cannot be read ({error}); remove it if the state is that of this cluster") from error
    foreign = identity.difference(before)
    try:
        if foreign:
            _move_aside(directory)
            before = ClusterIdentity()
        known = ClusterIdentity(
            identity.created or before.created, identity.labels or before.labels, identity.uid or before.uid
        )
        temporary = file.with_name(f".{file.name}.new")
        temporary.write_bytes(msgspec.json.encode(known))
        temporary.replace(file)
    except OSError as error:
        raise StoreError(f"{file}: cannot be written ({error.strerror}); make its directory writable") from error
    return foreign


def _move_aside(directory: Path) -> None:
    aside = directory / FOREIGN
    aside.mkdir(exist_ok=True)
    for path in [path for name in STATE_FILES for path in directory.glob(name)]:
        path.replace(aside / path.name)


class Persisted(Protocol):
    """State that outlives the process, as bytes."""

    def encoded(self) -> bytes:
        """Encode the present state."""

    def restore(self, persisted: bytes) -> None:
        """Take over a state that `encoded` gave. Raises `msgspec.MsgspecError` where it is something else."""


State = TypeVar("State", bound=Persisted)


@dataclass(frozen=True, slots=True)
class ObservedFile(Generic[State]):
    """Saves it to one file, a checksum and JSON, and reads it back."""

    path: Path
    observed: State
    keys: StateKeys | None = None
    """Keys that sign the file; a file without a signature comes from an older version without signatures, and is
    accepted."""

    def save(self) -> None:
        """Replace the file; call it between cycles.

        Raises:
            StoreError: it cannot be written; the previous one is still there.
        """
        temporary = self.path.with_name(f".{self.path.name}.new")
        try:
            persisted = self.observed.encoded()
            persisted = self.keys.signed(persisted, self.path.name) if self.keys else persisted
            temporary.write_bytes(CHECKSUM.pack(zlib.crc32(persisted)) + persisted)
            temporary.replace(self.path)
        except OSError as error:
            raise StoreError(
                f"{self.path}: cannot be saved ({error.strerror}); a restart measures and judges anew. Make its "
                "directory writable and free some space."
            ) from error

    def load(self) -> bool:
        """Restore the stored state; return whether there was any.

        Raises:
            StoreError: it cannot be read, is damaged, or signed by another release; nothing was taken over.
        """
        try:
            persisted = _checked(self.path.read_bytes())
            if self.keys and is_signed(persisted):
                persisted = self.keys.verified(persisted, self.path.name)
            self.observed.restore(persisted)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise StoreError(f"{self.path}: cannot be read ({error.strerror}); measuring and judging anew") from error
        except msgspec.MsgspecError as error:
            raise StoreError(f"{self.path}: damaged ({error}); measuring and judging anew") from error
        return True


def _checked(content: bytes) -> bytes:
    persisted = content[CHECKSUM.size :]
    if len(content) < CHECKSUM.size or CHECKSUM.unpack_from(content)[0] != zlib.crc32(persisted):
        raise msgspec.ValidationError("its checksum is wrong")
    return persisted


FREE_BYTES = 2 * 2**30
"""A snapshot of 10,000 workloads and its successor, and a month of decisions."""


def probe_state(directory: Path) -> list[Check]:
    """Try to write where snapshot, table and database lie, or in the folder in which their directory would be made."""
    there = next(path for path in (directory, *directory.absolute().parents) if path.exists())
    try:
        with tempfile.TemporaryFile(dir=there) as file:
            file.write(b"forecaster")
        free = shutil.disk_usage(there).free
    except OSError as error:
        remedy = "make it writable for this user, or name another directory in state.directory"
        return [Check("state directory", ok=False, detail=f"{directory}: {error.strerror}", remedy=remedy)]
    return [
        Check("state directory", ok=True, detail=f"{directory} is writable"),
        Check(
            "free space",
            ok=free >= FREE_BYTES,
            detail=f"{memory(free)} are free, {memory(FREE_BYTES)} are enough",
            remedy="free some space, or name another directory in state.directory",
        ),
    ]


class StateSettings(Section):
    """State that outlives the process."""

    directory: Path = Field(
        Path("forecaster-state"), description="Directory of snapshot, table and the SQLite database."
    )
    database: str = Field(
        "",
        description="SQLAlchemy address of the ledger, e.g. postgresql+psycopg://...; default: SQLite in `directory`.",
    )
    database_file: Path | None = Field(
        None, description="File that holds the address of the database, for addresses with a password."
    )
    key_file: Path | None = Field(
        None,
        description="File with the key that signs state, `openssl rand -hex 32`; keys of before in further lines are "
        "accepted, too.",
    )
    secret: str = Field(
        "",
        pattern=r"^([a-z0-9.-]+/[a-z0-9.-]+)?$",
        description="NAMESPACE/NAME of a Secret with a checkpoint of learned state, and the key if no `key_file` is "
        "stated. Without both the key lies in `directory`.",
    )
    keep: Duration = Field(timedelta(days=30), gt=timedelta(0), description="How long decisions and scores are stored.")

    @field_validator("database_file")
    @classmethod
    def _one_address(cls, value: Path | None, info: ValidationInfo) -> Path | None:
        if value and info.data.get("database"):
            raise ValueError("use either database or database_file")
        return value
