"""Numbers and table cells as KRR prints them, with all their cuts."""

from __future__ import annotations

from decimal import Decimal

from forecaster.vertical.reference.krr.strategies import UNKNOWN, Value

_SUFFIXES = {
    "m": Decimal("0.001"),
    "Ki": Decimal(2**10),
    "Mi": Decimal(2**20),
    "Gi": Decimal(2**30),
    "Ti": Decimal(2**40),
    "Pi": Decimal(2**50),
    "Ei": Decimal(2**60),
    "k": Decimal(10**3),
    "M": Decimal(10**6),
    "G": Decimal(10**9),
    "T": Decimal(10**12),
    "P": Decimal(10**15),
    "E": Decimal(10**18),
}
_UNITS = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_BINARY = 1024
_LEAST_OF_UNIT = 10
UNSET = "unset"


def parsed(text: str) -> float:
    """A number with an optional suffix or exponent; raises decimal.InvalidOperation for anything else."""
    suffix = next((suffix for suffix in _SUFFIXES if text.endswith(suffix)), "")
    return float(Decimal(text.removesuffix(suffix)) * _SUFFIXES.get(suffix, Decimal(1)))


def printed(value: float) -> str:
    """Millis below one, the plain float below 1024, else whole binary units of which there are at least ten."""
    if value < 1:
        return f"{int(value * 1000)}m"
    if value < _BINARY:
        return str(float(value))
    whole, power = int(value), 0
    while power < len(_UNITS) - 1 and whole >= _LEAST_OF_UNIT * _BINARY ** (power + 1):
        power += 1
    return f"{whole / _BINARY**power:.0f}{_UNITS[power]}"


def difference(current: Value, recommended: Value, pods: int = 1) -> str:
    """Sign and size of the change over all pods, empty where none is known; what there is not counts as zero."""
    if recommended == UNKNOWN:
        return ""
    change = float(recommended or 0.0) - (0.0 if current is None or current == UNKNOWN else float(current))
    return f"{'+' if change >= 0 else '-'}{printed(abs(change) * pods)}"


def cell(current: Value, recommended: Value, *, with_difference: bool = True) -> str:
    """`(difference) current -> recommended`."""
    if current is None and recommended is None:
        return UNSET
    moved = difference(current, recommended) if with_difference else ""
    return f"{f'({moved}) ' if moved else ''}{_side(current)} -> {_side(recommended)}"


def _side(value: Value) -> str:
    if value is None:
        return UNSET
    return UNKNOWN if value == UNKNOWN else printed(float(value))
