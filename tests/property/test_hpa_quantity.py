"""Quantities: text and number are one (docs/hpa.md, section 2)."""

from __future__ import annotations

from decimal import Decimal, localcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecaster.domain.quantity import Quantity, QuantityError, QuantityFormat, parse_quantity

LARGEST = (2**63 - 1) * 10**9
nanos = st.integers(-LARGEST, LARGEST)
digits = st.text("0123456789", max_size=25)
suffixes = {
    "": 1, "n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3"), "k": 10**3, "M": 10**6, "G": 10**9,
    "T": 10**12, "P": 10**15, "E": 10**18, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50,
    "Ei": 2**60, "e3": 10**3, "E-3": Decimal("1e-3"), "e+0": 1,
}  # fmt: skip


@given(nanos, st.sampled_from([QuantityFormat.DECIMAL_SI, QuantityFormat.DECIMAL_EXPONENT]))
def test_the_text_of_a_decimal_quantity_reads_back(nano: int, format_: QuantityFormat) -> None:
    quantity = Quantity(nano, format_)
    assert parse_quantity(str(quantity)).nano == nano


@given(nanos)
def test_the_text_of_a_binary_quantity_reads_back(nano: int) -> None:
    assert parse_quantity(str(Quantity(nano, QuantityFormat.BINARY_SI))).nano == nano


@given(st.sampled_from(["", "-", "+"]), digits, digits, st.sampled_from(sorted(suffixes)))
def test_every_notation_is_its_number_rounded_away_from_zero(sign: str, whole: str, part: str, suffix: str) -> None:
    text = f"{sign}{whole}.{part}{suffix}"
    if not whole + part:
        with pytest.raises(QuantityError):
            parse_quantity(text)
        return
    with localcontext() as context:
        context.prec = 120
        exact = Decimal(f"{whole or '0'}.{part or '0'}") * suffixes[suffix] * 10**9
        size = min(int(exact.to_integral_value("ROUND_CEILING")), LARGEST)
    assert parse_quantity(text).nano == (-size if sign == "-" else size)


@given(nanos)
def test_milli_units_are_rounded_away_from_zero(nano: int) -> None:
    size = -(-abs(nano) // 10**6)
    expected = size if nano >= 0 else -size
    milli = Quantity(nano).milli
    assert (milli - expected) % 2**64 == 0
    assert -(2**63) <= milli < 2**63


@given(st.text(max_size=12) | st.text("0123456789.+-eEinumkKMGTP", max_size=12))
def test_any_other_text_is_refused_and_nothing_else(text: str) -> None:
    try:
        quantity = parse_quantity(text)
    except QuantityError:
        return
    assert abs(quantity.nano) <= LARGEST
