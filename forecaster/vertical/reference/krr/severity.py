"""How far a recommendation is from what there is, and the mark that a whole scan gets."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from forecaster.vertical.reference.krr.rounding import MEBIBYTE
from forecaster.vertical.reference.krr.strategies import UNKNOWN, Value

if TYPE_CHECKING:
    from collections.abc import Sequence


class Severity(StrEnum):
    """From nothing known to far off."""

    UNKNOWN = "UNKNOWN"
    GOOD = "GOOD"
    OK = "OK"
    WARNING = "WARNING"
    CRITICAL = "CRITICAL"


_WORST_FIRST = (Severity.CRITICAL, Severity.WARNING, Severity.OK, Severity.GOOD, Severity.UNKNOWN)
_CPU_STEPS = ((0.5, Severity.CRITICAL), (0.25, Severity.WARNING), (0.1, Severity.OK))
_MEMORY_STEPS = ((500.0, Severity.CRITICAL), (250.0, Severity.WARNING), (100.0, Severity.OK))
_COST = {Severity.CRITICAL: 1.0, Severity.WARNING: 0.7}
_LETTERS = ((30, "F"), (55, "D"), (70, "C"), (90, "B"))


def severity_of(resource: str, current: Value, recommended: Value) -> Severity:
    """By the absolute difference in cores or mebibytes; too much weighs like too little."""
    if UNKNOWN in {current, recommended}:
        return Severity.UNKNOWN
    if current is None or recommended is None:
        return Severity.GOOD if current is recommended else Severity.WARNING
    difference = abs(float(current) - float(recommended))
    steps = _CPU_STEPS if resource == "cpu" else _MEMORY_STEPS
    scale = 1 if resource == "cpu" else MEBIBYTE
    return next((severity for least, severity in steps if difference / scale >= least), Severity.GOOD)


def worst(severities: Sequence[Severity]) -> Severity:
    """The severity of a row from those of its values; unknown counts least."""
    return min(severities, key=_WORST_FIRST.index)


def score(severities: Sequence[Severity]) -> int:
    """Percent of rows in order, a warning counting as seven tenths of a critical one; 0 without rows."""
    if not severities:
        return 0
    rows = len(severities)
    cost = sum(_COST.get(severity, 0.0) for severity in severities)
    return int((rows - cost) / rows * 100)


def letter(points: int) -> str:
    """The mark of a score."""
    return next((mark for below, mark in _LETTERS if points < below), "A")
