"""The protocol buffers of remote write 1.0, of which few fields are needed.

WriteRequest { repeated TimeSeries timeseries = 1 }
TimeSeries   { repeated Label labels = 1; repeated Sample samples = 2 }
Label        { string name = 1; string value = 2 }
Sample       { double value = 1; int64 timestamp = 2, in milliseconds }
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from forecaster.remote_write.samples import Sample

FIRST, SECOND = b"\x0a", b"\x12"
"""Field numbers 1 and 2 with a length."""
DOUBLE = struct.Struct("<Bd")
SEVEN_BITS = 0x7F


def write_request(samples: Iterable[Sample]) -> bytes:
    """A request with one series for each sample."""
    return b"".join(_field(FIRST, _series(sample)) for sample in samples)


def _series(sample: Sample) -> bytes:
    labels = b"".join([_label(name, value) for name, value in sample.labels])
    milliseconds = round(sample.at.timestamp() * 1000)
    return labels + _field(SECOND, DOUBLE.pack(0x09, sample.value) + b"\x10" + varint(milliseconds))


@lru_cache(maxsize=65_536)
def _label(name: str, value: str) -> bytes:
    return _field(FIRST, _field(FIRST, name.encode()) + _field(SECOND, value.encode()))


def _field(tag: bytes, content: bytes) -> bytes:
    return tag + varint(len(content)) + content


def varint(number: int) -> bytes:
    """Seven bits a byte, the lowest first; the highest bit says that more come.

    >>> varint(300).hex()
    'ac02'
    """
    found = bytearray()
    while number > SEVEN_BITS:
        found.append(number & SEVEN_BITS | 0x80)
        number >>= 7
    found.append(number)
    return bytes(found)
