"""An export bundle: histories, workloads, settings and decisions in one file. Reading one runs no code.

A zip file with

    manifest.json         `Manifest`: version, grid, workloads with HPAs and requests, settings that decisions depend on
    history/SIGNAL.npy    float32 [workload, minute]; minute j ends at `start` + j minutes; NaN: nothing was measured
    decisions.json        recommendations of the last minute, as `/api/v1` has them
    changes.json          recorded changes of decisions before it, of the ledger
"""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from tokenize import TokenError
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from forecaster.domain.signal import BUILT_IN, Signal, Signals
from forecaster.domain.window import PLAUSIBLE_YEARS
from forecaster.domain.workload import Workload
from forecaster.errors import SourceRefused, StoreError

FORMAT = "forecaster-export/1"
SUFFIX = ".zip"
HISTORY_ENTRY = "history/{}.npy"
DAMAGED = (TokenError, msgspec.MsgspecError, zipfile.BadZipFile, zlib.error)
MAX_MINUTES = 1_000_000
"""Nearly two years, which is more than any model learns from."""


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """Contents of a bundle; amounts in cores, bytes and per second, ratios 0-1, instants RFC 3339 in UTC."""

    format: str
    version: str
    """Version of forecaster that wrote it."""
    origin: str
    start: datetime
    """The end of the first minute."""
    minutes: int
    signals: tuple[str, ...]
    workloads: tuple[Workload, ...]
    settings: dict[str, Any]
    """Policies and what else decisions depend on; no address and no secret."""


@dataclass(frozen=True, slots=True, eq=False)
class Bundle:
    """Exported history; `values[signal][i, j]`, float32: `workloads[i]` in the minute that ends at start + j."""

    manifest: Manifest
    values: Mapping[Signal, NDArray[np.float32]]
    decisions: Sequence[dict[str, Any]] = ()
    """Recommendations as `/api/v1` has them."""
    changes: Sequence[dict[str, Any]] = ()
    """Earlier decisions: at, workload, replicas, verdict, reason, message."""

    @property
    def workloads(self) -> tuple[Workload, ...]:
        """Return the workloads in the order of the rows."""
        return self.manifest.workloads


def write_bundle(path: Path, bundle: Bundle) -> None:
    """Write the bundle, replacing the file as a whole.

    Raises:
        StoreError: the file cannot be written.
    """
    part = path.with_name(path.name + ".part")
    try:
        with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("manifest.json", msgspec.json.format(msgspec.json.encode(bundle.manifest), indent=1))
            for signal, values in bundle.values.items():
                with archive.open(HISTORY_ENTRY.format(signal), "w", force_zip64=True) as file:
                    np.lib.format.write_array(file, values.astype("<f4"), allow_pickle=False)
            archive.writestr("decisions.json", msgspec.json.encode(bundle.decisions))
            archive.writestr("changes.json", msgspec.json.encode(bundle.changes))
        part.replace(path)
    except OSError as error:
        raise StoreError(f"{path}: cannot be written ({error.strerror}); name a file in a folder of yours") from error
    finally:
        part.unlink(missing_ok=True)


def read_bundle(path: Path, known: Signals = BUILT_IN) -> Bundle:
    """Read a bundle; signals that are not in `known` are left out.

    Raises:
        SourceRefused: the file is no bundle, of another version, or damaged.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            manifest = _manifest(path, archive.read("manifest.json"))
            exported = [known.by_name[name] for name in manifest.signals if name in known.by_name]
            values = {signal: _history(path, archive, signal, manifest) for signal in exported}
            decisions, changes = (
                msgspec.json.decode(archive.read(f"{name}.json"), type=list[dict[str, Any]])
                for name in ("decisions", "changes")
            )
    except (ArithmeticError, EOFError, LookupError, MemoryError, OSError, RuntimeError, ValueError, *DAMAGED) as error:
        raise SourceRefused(
            f"{path}: not an export bundle, or damaged ({error}); `forecaster export` makes one"
        ) from error
    return Bundle(manifest, values, decisions, changes)


def _manifest(path: Path, text: bytes) -> Manifest:
    manifest = msgspec.json.decode(text, type=Manifest)
    if manifest.format != FORMAT:
        raise SourceRefused(f"{path}: of format {manifest.format!r}, and {FORMAT!r} is read here; export it anew")
    start, minutes = manifest.start, manifest.minutes
    if start.tzinfo is None or start.year not in PLAUSIBLE_YEARS or not 0 < minutes <= MAX_MINUTES:
        span = f"{minutes} minutes from {start.isoformat()}"
        raise SourceRefused(f"{path}: {span} are not 1 to {MAX_MINUTES} minutes from an instant with a time zone")
    return manifest


def _history(path: Path, archive: zipfile.ZipFile, signal: Signal, manifest: Manifest) -> NDArray[np.float32]:
    """Read one signal; its shape is checked before its values; values that are no demand become gaps."""
    expected = (len(manifest.workloads), manifest.minutes)
    with archive.open(HISTORY_ENTRY.format(signal)) as file:
        head = io.BytesIO(file.read(np.lib.format.MAGIC_LEN + 2 + 10_000))
    np.lib.format.read_magic(head)
    shape, _, dtype = np.lib.format.read_array_header_1_0(head)
    if shape != expected or dtype != np.dtype("<f4"):
        raise SourceRefused(f"{path}: {signal} is {dtype} {shape}, and the manifest says float32 {expected}")
    with archive.open(HISTORY_ENTRY.format(signal)) as file:
        values: NDArray[np.float32] = np.lib.format.read_array(file, allow_pickle=False)
    return np.where((values >= 0) & np.isfinite(values), values, np.float32(np.nan))
