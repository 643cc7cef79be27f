"""Kubernetes quantities, exact: every notation in, integer nano- and milli-units and the canonical text out.

A quantity is a signed decimal with a suffix: `100m`, `1.5`, `2Gi`, `1e3`. The API keeps nine digits after the point
and rounds what is finer away from zero; values beyond 2^63-1 are held there. No code of the Kubernetes client is
needed for it.
"""

import re
from dataclasses import dataclass
from enum import StrEnum

_NANO = 10**9
_LARGEST = (2**63 - 1) * _NANO
_DIGITS_KEPT = 64  # longer numbers differ only in what rounding away from zero ignores

_POWER_DIGITS = 19
"""Digits of a power of ten, which the API reads as 64 bits."""
_SHOWN = 64
"""Characters of a text that are repeated."""
_TEXT = re.compile(r"([+-]?)([0-9]*+)(?:\.([0-9]*+))?([A-Za-z]*+)([+-]?[0-9]++)?", re.ASCII)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIX = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY_SUFFIX = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"]


class QuantityFormat(StrEnum):
    """The family of suffixes a quantity was written with, which its canonical text keeps."""

    DECIMAL_SI = "DecimalSI"
    BINARY_SI = "BinarySI"
    DECIMAL_EXPONENT = "DecimalExponent"


class QuantityError(ValueError):
    """The text is not a quantity; the message names the faulty part."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """An exact number of nano-units and the format of its text; a binary one with a fraction is written in decimals."""

    nano: int
    format: QuantityFormat = QuantityFormat.DECIMAL_SI

    @property
    def milli(self) -> int:
        """Signed 64-bit milli-units, rounded away from zero; beyond 64 bits they wrap, as they do in the API's code."""
        return (_away_from_zero(self.nano, 10**6) + 2**63) % 2**64 - 2**63

    @property
    def sign(self) -> int:
        """-1, 0 or 1."""
        return (self.nano > 0) - (self.nano < 0)

    def as_float(self) -> float:
        """Return the double that the API's code computes: the canonical decimal mantissa times its power of ten.

        Not the nearest double: 0.57 is stored as `570m`, and 570 * 0.001 is one ulp above 0.57.
        """
        mantissa, exponent = _decimal_parts(self.nano)
        return mantissa * 10.0**exponent

    def __str__(self) -> str:
        if self.format is QuantityFormat.BINARY_SI and abs(self.nano) >= 1024 * _NANO and self.nano % _NANO == 0:
            return _binary_text(self.nano // _NANO)
        mantissa, exponent = _decimal_parts(self.nano)
        if self.format is QuantityFormat.DECIMAL_EXPONENT:
            return f"{mantissa}e{exponent}" if exponent else str(mantissa)
        return f"{mantissa}{_DECIMAL_SUFFIX[exponent]}"


def parse_quantity(text: str) -> Quantity:
    """A quantity from its text; raises QuantityError.

    Examples:
        >>> parse_quantity("1.5Gi").milli
        1610612736000
        >>> str(parse_quantity("0.5"))
        '500m'
    """
    match = _TEXT.fullmatch(text)
    if match is None or not (match[2] or match[3]):
        raise QuantityError(
            f"{text[:_SHOWN]!r}: quantities are a decimal number and a suffix, like 100m, 1.5, 2Gi or 1e3"
        )
    sign, whole, fraction, suffix, power = match[1], match[2], match[3] or "", match[4], match[5]
    two, ten, format_ = _scale(text, suffix, power)
    nano = _scaled(whole, fraction, two, ten)
    below_one = format_ is QuantityFormat.BINARY_SI and nano < _NANO
    return Quantity(-nano if sign == "-" else nano, QuantityFormat.DECIMAL_SI if below_one else format_)


_LOOSE = re.compile(r"([+-]?(?:[0-9]++(?:[.,][0-9]++)?|[.,][0-9]++))\s*([A-Za-z]*)", re.ASCII)
_SPELLINGS = {"mb": "M", "gb": "G", "kb": "k", "tb": "T", "cpu": "", "cpus": "", "core": "", "cores": "", "b": ""}
_SPELLINGS |= {binary.lower() + ending: binary for binary in _BINARY for ending in ("", "b")}
_SPELLINGS |= {"g": "G", "t": "T", "p": "P", "kib": "Ki", "byte": "", "bytes": "", "mc": "m", "millicores": "m"}


def right_spelling(text: str) -> str:
    """Return the quantity that a text was probably meant to be; empty where that cannot be guessed.

    >>> right_spelling("64MB"), right_spelling("64 mib"), right_spelling("0,5"), right_spelling("much")
    ('64M', '64Mi', '0.5', '')
    """
    match = _LOOSE.fullmatch(text.strip())
    if match is None:
        return ""
    suffix = match[2] if match[2] in {**_DECIMAL, **_BINARY} else _SPELLINGS.get(match[2].lower())
    return "" if suffix is None else match[1].replace(",", ".") + suffix


def milli_quantity(milli: int, format_: QuantityFormat = QuantityFormat.DECIMAL_SI) -> Quantity:
    """A quantity from integer milli-units."""
    return Quantity(milli * 10**6, format_)


def _scale(text: str, suffix: str, power: str | None) -> tuple[int, int, QuantityFormat]:
    """Return the powers of two and of ten of a suffix."""
    if power is not None:
        digits = power.lstrip("+-").lstrip("0")
        if suffix in {"e", "E"} and len(digits) <= _POWER_DIGITS:
            return 0, int(digits or 0) * (-1 if power[0] == "-" else 1), QuantityFormat.DECIMAL_EXPONENT
    elif suffix in _BINARY:
        return _BINARY[suffix], 0, QuantityFormat.BINARY_SI
    elif suffix in _DECIMAL:
        return 0, _DECIMAL[suffix], QuantityFormat.DECIMAL_SI
    raise QuantityError(f"{text[:_SHOWN]!r}: unable to parse quantity's suffix {(suffix + (power or ''))[:_SHOWN]!r}")


def _scaled(whole: str, fraction: str, two: int, ten: int) -> int:
    """Nano-units of digits times 2^two times 10^ten, rounded up to a whole one and held at the largest value."""
    written = (whole + fraction).lstrip("0")
    digits = written.rstrip("0")
    if not digits:
        return 0
    exponent = 9 + ten - len(fraction) + len(written) - len(digits)
    if len(digits) > _DIGITS_KEPT:  # one more digit stands for the rest, whose size rounding away from zero ignores
        exponent += len(digits) - _DIGITS_KEPT - 1
        digits = digits[:_DIGITS_KEPT] + "1"
    if len(digits) + exponent > _DIGITS_KEPT:
        return _LARGEST
    if len(digits) + exponent < -_DIGITS_KEPT:
        return 1
    mantissa = int(digits) << two
    nano = mantissa * 10**exponent if exponent >= 0 else _away_from_zero(mantissa, 10**-exponent)
    return min(nano, _LARGEST)


def _away_from_zero(value: int, divisor: int) -> int:
    """The quotient, any remainder counting as a whole."""
    return -(-value // divisor) if value >= 0 else value // divisor


def _decimal_parts(nano: int) -> tuple[int, int]:
    """The canonical mantissa and its exponent, a multiple of three between -9 and 18."""
    if not nano:
        return 0, 0
    exponent = -9
    while exponent < 18 and nano % 1000 == 0:  # noqa: PLR2004 - E, the largest suffix
        nano //= 1000
        exponent += 3
    return nano, exponent


def _binary_text(value: int) -> str:
    steps = 0
    while steps < len(_BINARY_SUFFIX) - 1 and value % 1024 == 0:
        value //= 1024
        steps += 1
    return f"{value}{_BINARY_SUFFIX[steps]}"
