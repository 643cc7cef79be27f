"""Weights: arrays of a network from a local folder, as plain numbers; nothing in the files is ever executed.

Two formats: `.npz` without pickled objects, and `.safetensors` (eight bytes with the length of a JSON header, the
header with type, shape and place of each array, then the bytes). Formats that can hold code (.pt, .bin, .pkl) are
refused.
"""

from __future__ import annotations

import json
import zipfile
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .errors import WeightsError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from .panel import Floats

TYPES = {"F64": np.float64, "F32": np.float32, "F16": np.float16}
# Half of a float32: its upper 16 bits.
BRAIN_FLOAT = "BF16"
HEADER_LENGTH = 8
# The format's own limit; a larger header is a damaged or hostile file.
LONGEST_HEADER = 100_000_000
SUFFIXES = (".npz", ".safetensors")


def read_weights(folder: Path) -> dict[str, Floats]:
    """All arrays of the `.npz` and `.safetensors` files of a folder, as float32 or wider.

    Raises:
        WeightsError: there is no such file, one is damaged, holds objects instead of numbers, or a name comes twice.
    """
    files = sorted(path for path in folder.glob("*") if path.suffix in SUFFIXES)
    if not files:
        raise WeightsError(
            f"{folder} holds no {' or '.join(SUFFIXES)} file; convert other formats first, they can hold code"
        )
    weights: dict[str, Floats] = {}
    for file in files:
        found = _npz(file) if file.suffix == ".npz" else _safetensors(file)
        twice = weights.keys() & found.keys()
        if twice:
            raise WeightsError(f"{file}: the array {min(twice)!r} is in another file of {folder} as well")
        weights |= found
    return weights


def _npz(file: Path) -> dict[str, Floats]:
    try:
        with np.load(file, allow_pickle=False) as arrays:
            return {name: _numbers(file, name, arrays[name]) for name in arrays.files}
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise WeightsError(f"{file} is no archive of plain arrays: {error}") from error


def _safetensors(file: Path) -> dict[str, Floats]:
    try:
        content = file.read_bytes()
        length = int.from_bytes(content[:HEADER_LENGTH], "little")
        if not 0 < length <= min(LONGEST_HEADER, len(content) - HEADER_LENGTH):
            raise WeightsError(f"{file} begins with a header of {length} bytes; the file is damaged")
        header = json.loads(content[HEADER_LENGTH : HEADER_LENGTH + length])
        body = memoryview(content)[HEADER_LENGTH + length :]
        return {name: _array(file, name, entry, body) for name, entry in header.items() if name != "__metadata__"}
    except (OSError, KeyError, TypeError, AttributeError, ValueError) as error:
        if isinstance(error, WeightsError):
            raise
        raise WeightsError(f"{file} is no safetensors file: {type(error).__name__}: {error}") from error


def _array(file: Path, name: str, entry: Mapping[str, Any], body: memoryview) -> Floats:
    begin, end = entry["data_offsets"]
    if not 0 <= begin <= end <= len(body):
        raise WeightsError(
            f"{file}: the array {name!r} lies at {begin}..{end} of {len(body)} bytes; the file is damaged"
        )
    if entry["dtype"] == BRAIN_FLOAT:
        upper = np.frombuffer(body[begin:end], dtype="<u2").astype("<u4") << 16
        return upper.view("<f4").reshape(entry["shape"])
    if entry["dtype"] not in TYPES:
        raise WeightsError(
            f"{file}: the array {name!r} is {entry['dtype']}; only {', '.join([*TYPES, BRAIN_FLOAT])} are read"
        )
    array = np.frombuffer(body[begin:end], dtype=np.dtype(TYPES[entry["dtype"]]).newbyteorder("<"))
    return _numbers(file, name, array.reshape(entry["shape"]))


def _numbers(file: Path, name: str, array: npt.NDArray[Any]) -> Floats:
    if array.dtype.kind != "f":
        raise WeightsError(f"{file}: the array {name!r} is {array.dtype}; weights are floating point numbers")
    if not np.isfinite(array).all():
        raise WeightsError(f"{file}: the array {name!r} holds numbers that are not finite")
    return array.astype(np.promote_types(array.dtype, np.float32))
