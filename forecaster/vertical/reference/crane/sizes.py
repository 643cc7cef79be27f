"""The ladder of sizes that recommendations are rounded up to: pairs of cores and gibibytes."""

from __future__ import annotations

import re
from typing import NamedTuple

_PAIR = re.compile(r"(\d+(?:\.\d+)?)c(\d+(?:\.\d+)?)g", re.ASCII)
_GIBIBYTE = 2**30


class Size(NamedTuple):
    """One rung."""

    cores: float
    gibibytes: float


class LadderError(ValueError):
    """The ladder cannot be read; the message names the rung."""


def parse(text: str) -> list[Size]:
    """Rungs in order of cores, then memory; raises LadderError."""
    return sorted(_rung(rung.strip()) for rung in text.split(","))


def smallest_that_fits(ladder: list[Size], cores: float, memory_bytes: float) -> Size:
    """The first rung with enough of both; (0, 0) if there is none."""
    gibibytes = memory_bytes / _GIBIBYTE
    fitting = (size for size in ladder if size.cores >= cores and size.gibibytes >= gibibytes)
    return next(fitting, Size(0.0, 0.0))


def _rung(text: str) -> Size:
    match = _PAIR.fullmatch(text)
    if match is None:
        raise LadderError(f"{text!r}: a rung is cores and gibibytes, like 0.5c1g")
    return Size(float(match[1]), float(match[2]))
