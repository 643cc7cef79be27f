"""Forecasts of replays on disk, one file of plain arrays for each hash of their inputs."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

BYTES_LIMIT = 4 * 2**30
"""Bytes in the directory beyond which the files that were used least recently go."""


@dataclass(frozen=True, slots=True)
class ForecastFiles:
    """A directory of `<key>.npz`. What is damaged is computed anew; a full disk keeps and stops nothing."""

    directory: Path
    limit: int = BYTES_LIMIT

    def get(self, key: str) -> Mapping[str, NDArray[np.float64]] | None:
        """Return the arrays stored under this key; None without usable ones."""
        path = self._path(key)
        try:
            with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
                forecast = {name: arrays[name] for name in arrays.files}
        except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile):
            return None
        with suppress(OSError):
            os.utime(path)
        return forecast

    def put(self, key: str, arrays: Mapping[str, NDArray[np.float64]]) -> None:
        """Keep this, if it can be kept: whole or not at all."""
        temporary = self.directory / f".{key}.{os.getpid()}.new"
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            with temporary.open("wb") as file:
                np.savez(file, allow_pickle=False, **arrays)
            temporary.replace(self._path(key))
            self._tidy()
        except OSError:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)

    def _tidy(self) -> None:
        newest_first = sorted(self.directory.glob("*.npz"), key=lambda path: -path.stat().st_mtime)
        total_bytes = 0
        for path in newest_first:
            total_bytes += path.stat().st_size
            if total_bytes > self.limit:
                path.unlink(missing_ok=True)

    def _path(self, key: str) -> Path:
        return self.directory / f"{key}.npz"


def usual_directory() -> Path:
    """Return the directory in the user's cache."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "forecaster" / "forecasts"
