"""Kubernetes quantities, every notation (docs/hpa.md, section 2)."""

from __future__ import annotations

import pytest

from forecaster.domain.quantity import (
    Quantity,
    QuantityError,
    QuantityFormat,
    milli_quantity,
    parse_quantity,
    right_spelling,
)


@pytest.mark.parametrize(
    ("text", "milli", "canonical"),
    [
        ("1", 1000, "1"),
        ("0", 0, "0"),
        ("100m", 100, "100m"),
        ("0.0001", 1, "100u"),
        ("-0.0001", -1, "-100u"),
        ("1.0", 1000, "1"),
        (".5", 500, "500m"),
        ("5.", 5000, "5"),
        ("+1.5", 1500, "1500m"),
        ("1Mi", 1_048_576_000, "1Mi"),
        ("1024Ki", 1_048_576_000, "1Mi"),
        ("1.5Gi", 1_610_612_736_000, "1536Mi"),
        ("0.5Ki", 512_000, "512"),
        ("1Ki", 1_024_000, "1Ki"),
        ("1500", 1_500_000, "1500"),
        ("15000", 15_000_000, "15k"),
        ("1e3", 1_000_000, "1e3"),
        ("1E3", 1_000_000, "1e3"),
        ("12e-1", 1200, "1200e-3"),
        ("1E", (10**21 + 2**63) % 2**64 - 2**63, "1E"),
        ("1n", 1, "1n"),
        ("0.1n", 1, "1n"),
        ("1u", 1, "1u"),
        ("1001u", 2, "1001u"),
        ("-1001u", -2, "-1001u"),
        ("2k", 2_000_000, "2k"),
        ("3M", 3_000_000_000, "3M"),
        ("3T", 3 * 10**15, "3T"),
        ("0.1Ti", 109_951_162_777_600, "109951162777600m"),
    ],
)
def test_every_notation_is_exact(text: str, milli: int, canonical: str) -> None:
    quantity = parse_quantity(text)
    assert (quantity.milli, str(quantity)) == (milli, canonical)


@pytest.mark.parametrize(
    "text",
    ["", ".", "-", "1x", "e3", "1ki", "1K", "1e", "--1", "1 ", " 1", "1m3", "1.2.3", "1Zi", "nan", "inf", "١", "1Ki3"],
)
def test_other_text_is_refused_and_named(text: str) -> None:
    with pytest.raises(QuantityError) as refusal:
        parse_quantity(text)
    assert repr(text) in str(refusal.value)


def test_long_text_is_refused_at_once_and_shown_in_part() -> None:
    """The pattern of quantities in definitions of custom resources lets all of these pass."""
    for text in (f"{'1' * 200_000}e1.5", f"1e{'9' * 5000}", f"1e-{'9' * 5000}"):
        with pytest.raises(QuantityError) as refusal:
            parse_quantity(text)
        assert len(str(refusal.value)) < 300
    assert right_spelling(f"{'1' * 200_000}!") == ""
    assert parse_quantity(f"2e{'0' * 5000}3").nano == 2 * 10**12


def test_values_beyond_63_bits_are_held() -> None:
    for text in ("99999999999999999999", "10Ei", "1e400", "9" * 5000):
        assert parse_quantity(text).nano == (2**63 - 1) * 10**9


def test_very_small_values_are_one_nano() -> None:
    for text in ("1e-400", "0." + "0" * 5000 + "1"):
        assert parse_quantity(text).nano == 1
    assert parse_quantity("0e-400").nano == 0


def test_digits_beyond_any_size_only_round() -> None:
    assert parse_quantity("1." + "0" * 6000).nano == 10**9
    assert parse_quantity("1." + "0" * 6000 + "1").nano == 10**9 + 1
    assert parse_quantity("1" + "0" * 70 + "e-70").nano == 10**9


def test_milli_units_wrap_at_64_bits() -> None:
    assert parse_quantity("9223372036854775807").milli == -1000
    assert parse_quantity("9223372036854775").milli == 9_223_372_036_854_775_000


def test_a_float_is_mantissa_times_power_of_ten() -> None:
    assert parse_quantity("0.57").as_float() == 570 * 0.001 == 0.5700000000000001
    assert parse_quantity("0.1").as_float() == 0.1
    assert parse_quantity("20k").as_float() == 20_000.0
    assert parse_quantity("-2").as_float() == -2.0
    assert parse_quantity("0").as_float() == 0.0
    assert parse_quantity("5n").as_float() == 5e-9


def test_signs() -> None:
    assert [parse_quantity(text).sign for text in ("-1n", "0", "1n")] == [-1, 0, 1]


def test_binary_text_is_kept_from_1024_on() -> None:
    binary = QuantityFormat.BINARY_SI
    assert str(Quantity(1024 * 10**9, binary)) == "1Ki"
    assert str(Quantity(1023 * 10**9 + 1, binary)) == "1023000000001n"
    assert str(Quantity(-2048 * 10**9, binary)) == "-2Ki"
    assert str(milli_quantity(2**60 * 1000, binary)) == "1Ei"
    assert parse_quantity("0.9Ki").format is QuantityFormat.BINARY_SI
    assert parse_quantity("0.0005Ki").format is QuantityFormat.DECIMAL_SI


def test_binary_text_never_rounds_a_fraction_up() -> None:
    binary = QuantityFormat.BINARY_SI
    assert str(milli_quantity(1610612736500, binary)) == "1610612736500m"
    assert str(Quantity(1024 * 10**9 + 1, binary)) == "1024000000001n"
    assert str(Quantity(-(2048 * 10**9 + 10**8), binary)) == "-2048100m"
    assert str(milli_quantity(2**63 - 1, binary)) == "9223372036854775807m"


def test_an_exponent_of_nothing_is_left_out() -> None:
    assert [str(parse_quantity(text)) for text in ("5e0", "0e3")] == ["5", "0"]


def test_leading_zeros_are_no_digits() -> None:
    assert parse_quantity("0" * 70 + "1").nano == 10**9


def test_one_byte_in_binary_is_still_binary() -> None:
    assert parse_quantity("0.0009765625Ki").format is QuantityFormat.BINARY_SI


def test_a_suffix_that_is_none_is_named() -> None:
    for text, suffix in (("1x", "'x'"), ("1m3", "'m3'"), ("1e", "'e'")):
        with pytest.raises(QuantityError, match=f"suffix {suffix}$"):
            parse_quantity(text)
