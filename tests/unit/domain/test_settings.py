from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecaster.domain.amounts import duration_text
from forecaster.domain.settings import parse_duration


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


def test_what_is_no_text_is_left_to_the_type() -> None:
    assert parse_duration(180) == 180


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
