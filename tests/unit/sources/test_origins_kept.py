"""Origins of request rates outlive a process; those of workloads that are gone do not, however often it restarts."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest

from forecaster.sources.presets import PREFERRED
from forecaster.sources.request_origins import FORGOTTEN, Origins
from tests.support.builders import NOON
from tests.support.recommendations import workload_id

FIRST, SECOND = PREFERRED[:2]
HERE, GONE = workload_id("here"), workload_id("gone")


def restarted(before: Origins) -> Origins:
    after = Origins()
    after.restore(before.encoded())
    return after


def test_a_restart_each_day_keeps_no_workload_for_ever() -> None:
    origins = Origins()
    origins.choose({FIRST: [HERE, GONE]}, NOON)
    for day in range(1, FORGOTTEN.days + 2):
        origins = restarted(origins)
        origins.choose({FIRST: [HERE]}, NOON + timedelta(days=day))
        assert (GONE in origins.chosen) == (day < FORGOTTEN.days)
    assert origins.chosen == {HERE: FIRST}


def test_a_restart_takes_no_workload_from_its_origin_while_that_is_silent_for_less_than_an_hour() -> None:
    origins = Origins()
    origins.choose({SECOND: [HERE]}, NOON)
    origins = restarted(origins)
    for minutes in (30, 45, 60):
        origins.choose({FIRST: [HERE]}, NOON + timedelta(minutes=minutes))
        assert origins.chosen == {HERE: SECOND}
    origins.choose({FIRST: [HERE]}, NOON + timedelta(minutes=90))
    assert origins.chosen == {HERE: FIRST}


def test_what_was_seen_while_the_clock_was_ahead_holds_no_workload_to_a_silent_origin() -> None:
    origins = Origins()
    for days in (0, 365):
        origins.choose({SECOND: [HERE]}, NOON + timedelta(days=days))
    for minutes in (5, 70):
        origins.choose({FIRST: [HERE]}, NOON + timedelta(minutes=minutes))
    assert origins.chosen == {HERE: FIRST}


def test_a_file_without_days_is_understood_and_an_origin_of_another_version_left_out() -> None:
    origins = Origins()
    origins.restore(msgspec.json.encode({"origins": {FIRST: [HERE], "unheard-of": [GONE]}}))
    assert origins.chosen == {HERE: FIRST}
    origins.choose({}, NOON)
    assert origins.chosen == {HERE: FIRST}


@pytest.mark.parametrize(
    "content", [b"", b"{}", b'{"origins": {"istio": [["a", "b"]]}}', b'{"origins": {}, "days": 3}']
)
def test_what_is_no_such_file_changes_nothing(content: bytes) -> None:
    origins = Origins()
    origins.choose({FIRST: [HERE]}, NOON)
    with pytest.raises(msgspec.MsgspecError):
        origins.restore(content)
    assert origins.chosen == {HERE: FIRST}
