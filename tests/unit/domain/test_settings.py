from __future__ import annotations

import re
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecaster.domain.amounts import duration_text
from forecaster.domain.settings import bytes_text, cores_text, parse_amount, parse_bytes, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("5m", 300), ("1h30m", 5400), ("14d", 1_209_600), ("250ms", 0.25), ("1.5h", 5400), (" 1m ", 60)],
)
def test_durations_are_read_as_prometheus_and_kubernetes_write_them(text: str, seconds: float) -> None:
    assert parse_duration(text) == timedelta(seconds=seconds)


def test_a_bare_zero_is_a_duration() -> None:
    assert parse_duration("0") == timedelta(0)


@pytest.mark.parametrize("text", ["", "5", "m", "5 m", "-5m", "1w", "1e3s", "five minutes", "9" * 30 + "d", "٥m"])
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must be a duration"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "meant"), [("5", "5m or 5s"), ("5 minutes", "5m"), ("2HRS", "2h"), ("1.5 Day", "1.5d")]
)
def test_what_was_probably_meant_is_told(text: str, meant: str) -> None:
    with pytest.raises(ValueError, match=f"; write {meant}$"):
        parse_duration(text)


def test_a_number_without_a_unit_is_answered_with_both_spellings() -> None:
    with pytest.raises(ValueError, match="3m for minutes, 3s for seconds"):
        parse_duration(3)
    assert parse_duration(0) == timedelta(0)


@given(st.floats(0.001, 2**40))
def test_amounts_are_written_as_kubernetes_does_and_read_back_as_they_were(value: float) -> None:
    assert parse_amount(cores_text(value)) == value
    assert parse_bytes(bytes_text(float(int(value)))) == int(value)


def test_whole_quantities_are_short() -> None:
    assert [cores_text(cores) for cores in (0.01, 0.25, 2.0)] == ["10m", "250m", "2"]
    assert [bytes_text(amount) for amount in (2.0**24, 1.5 * 2**30, 1000.0)] == ["16Mi", "1536Mi", "1k"]


@pytest.mark.parametrize(("text", "value"), [("64Mi", 2**26), ("100m", 0.1), ("1.5", 1.5), ("1e3", 1000.0), (7, 7)])
def test_an_amount_is_a_number_or_a_quantity(text: object, value: float) -> None:
    assert parse_amount(text) == value


@pytest.mark.parametrize(
    ("text", "meant"),
    [("64MB", "64M"), ("64mi", "64Mi"), ("64 Mi", "64Mi"), ("0,5", "0.5"), ("2 cores", "2"), ("1g", "1G")],
)
def test_a_mistaken_amount_is_answered_with_its_spelling(text: str, meant: str) -> None:
    with pytest.raises(ValueError, match=f"^write {re.escape(meant)}$"):
        parse_amount(text)


def test_bytes_have_no_parts() -> None:
    with pytest.raises(ValueError, match="write 64Mi for mebibytes"):
        parse_bytes("64m")


@pytest.mark.parametrize(
    ("duration", "text"),
    [
        (timedelta(0), "0s"),
        (timedelta(seconds=90), "1m30s"),
        (timedelta(days=14), "14d"),
        (timedelta(hours=25, seconds=0.5), "1d1h0.5s"),
        (timedelta(microseconds=59_123_456), "59.123456s"),
    ],
)
def test_durations_are_spoken_as_short_as_they_can_be(duration: timedelta, text: str) -> None:
    assert duration_text(duration) == text


@given(st.timedeltas(timedelta(0), timedelta(days=4000)))
def test_what_is_spoken_reads_back_as_the_same(duration: timedelta) -> None:
    assert parse_duration(duration_text(duration)) == duration
