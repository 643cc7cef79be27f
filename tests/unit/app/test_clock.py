from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecaster.app.clock import current, instant
from forecaster.domain.window import EPOCH, last_multiple
from forecaster.errors import ConfigError

MINUTES = st.sampled_from((1, 2, 3, 5, 10, 15)).map(lambda count: timedelta(minutes=count))
INSTANTS = st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001  bounds of a strategy


def test_the_clock_is_aware() -> None:
    assert current().tzinfo is UTC


@pytest.mark.parametrize("text", ["2026-03-01T12:00:00Z", "2026-03-01T13:00:00+01:00", "2026-03-01 12:00+00:00"])
def test_an_instant_is_read_in_any_time_zone(text: str) -> None:
    assert instant(text) == datetime(2026, 3, 1, 12, tzinfo=UTC)
    assert instant(text).tzinfo is UTC


def test_no_text_is_now() -> None:
    assert timedelta(0) <= instant(None) - EPOCH <= current() - EPOCH


@pytest.mark.parametrize("text", ["", "noon", "2026-03-01", "2026-03-01T12:00:00", "0001-01-01T00:00:00+14:00"])
def test_an_instant_that_is_none_is_a_fault_with_an_example(text: str) -> None:
    with pytest.raises(ConfigError, match="2026-03-01T12:00:00Z") as refused:
        instant(text)
    assert [(fault.path, fault.value) for fault in refused.value.faults] == [("--at", text)]


@given(INSTANTS, MINUTES)
def test_an_evaluation_time_is_the_last_multiple_of_the_interval(at: datetime, interval: timedelta) -> None:
    chosen = last_multiple(at, interval)
    assert (chosen - EPOCH) % interval == timedelta(0)
    assert chosen <= at < chosen + interval


@given(INSTANTS, MINUTES)
def test_all_replicas_evaluate_at_the_same_times(at: datetime, interval: timedelta) -> None:
    begun = last_multiple(at, interval)
    assert last_multiple(begun + interval - timedelta(microseconds=1), interval) == begun
