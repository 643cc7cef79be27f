from __future__ import annotations

from datetime import timedelta

import pytest

from forecaster.publish.values import (
    MetricTarget,
    Moment,
    NotKnown,
    NotNamed,
    OfferedNumber,
    OfferedValue,
    WorkloadOffer,
    value_of,
)
from tests.support.recommendations import NOON

CPU = OfferedNumber(6.4, NOON, "forecast", signal="cpu", quantile=0.85)
MEMORY = OfferedNumber(8e9, NOON, "measured", signal="memory")
WEB = WorkloadOffer(
    replicas_now=7,
    replicas_held=7,
    demands=(CPU, MEMORY),
    replicas=OfferedNumber(13, NOON, "forecast"),
    floor=OfferedNumber(12, NOON, "forecast"),
    consumers=(MetricTarget("forecaster_demand", "AverageValue", 0.5),),
    abstain="auto",
    last_for_seconds=600,
    signals=("cpu", "memory"),
)
NOW = Moment(NOON + timedelta(seconds=20), NOON, fresh=True)


def web(**changed: object) -> WorkloadOffer:
    return WorkloadOffer(**{field: getattr(WEB, field) for field in WEB.__struct_fields__} | changed)  # type: ignore[arg-type]


def lost(sample: OfferedNumber) -> OfferedNumber:
    return OfferedNumber(
        sample.value, sample.at, sample.source, known=False, signal=sample.signal, quantile=sample.quantile
    )


def test_demand_is_that_of_the_signal_asked_for() -> None:
    assert value_of(WEB, "forecaster_demand", NOW, signal="cpu") == OfferedValue(
        "forecaster_demand", 6.4, NOON, "forecast", "cpu", 0.85
    )


@pytest.mark.parametrize(("metric", "count"), [("forecaster_replicas", 13), ("forecaster_floor", 12)])
def test_counts_belong_to_no_signal(metric: str, count: int) -> None:
    answer = value_of(WEB, metric, NOW)
    assert isinstance(answer, OfferedValue)
    assert (answer.value, answer.signal) == (count, "")
    assert isinstance(value_of(WEB, metric, NOW, signal="cpu"), NotNamed)


def test_the_only_signal_need_not_be_named() -> None:
    answer = value_of(web(demands=(CPU,), signals=("cpu",)), "forecaster_demand", NOW)
    assert isinstance(answer, OfferedValue)
    assert answer.signal == "cpu"


def test_one_of_several_signals_has_to_be_named() -> None:
    assert value_of(WEB, "forecaster_demand", NOW) == NotNamed("several signals: name one of cpu, memory")


def test_what_does_not_exist_is_said_to() -> None:
    assert isinstance(value_of(WEB, "forecaster_demands", NOW), NotNamed)
    assert isinstance(value_of(WEB, "forecaster_demand", NOW, signal="disk"), NotNamed)


def test_age_is_that_of_the_sample() -> None:
    answer = value_of(WEB, "forecaster_replicas", NOW)
    assert isinstance(answer, OfferedValue)
    assert answer.age(NOW.now) == timedelta(seconds=20)
    assert answer.age(NOON - timedelta(seconds=5)) == timedelta(0)


def test_a_value_that_is_no_longer_known_is_the_last_one_and_keeps_its_time() -> None:
    later = Moment(NOON + timedelta(minutes=5), NOON + timedelta(minutes=5), fresh=True)
    answer = value_of(web(demands=(lost(CPU),), signals=("cpu",)), "forecaster_demand", later)
    assert answer == OfferedValue("forecaster_demand", 6.4, NOON, "last", "cpu", 0.85)


def test_then_it_keeps_the_count_by_the_target_of_the_hpa() -> None:
    later = Moment(NOON + timedelta(minutes=11), NOON + timedelta(minutes=11), fresh=True)
    answer = value_of(web(demands=(lost(CPU),), signals=("cpu",)), "forecaster_demand", later)
    assert answer == OfferedValue("forecaster_demand", 3.5, later.published_at, "neutral", "cpu", None)


def test_other_readers_say_their_own_target() -> None:
    later = Moment(NOON + timedelta(minutes=11), NOON + timedelta(minutes=11), fresh=True)
    unread = web(demands=(), consumers=(), why="no-data")
    assert value_of(unread, "forecaster_demand", later, signal="cpu") == NotKnown("no-data")
    answer = value_of(unread, "forecaster_demand", later, signal="cpu", target=2.0)
    assert isinstance(answer, OfferedValue)
    assert answer.value == 14.0


def test_a_count_is_kept_as_it_is() -> None:
    answer = value_of(web(replicas=None), "forecaster_replicas", NOW)
    assert isinstance(answer, OfferedValue)
    assert (answer.value, answer.source) == (7.0, "neutral")


def test_nothing_in_a_stale_table_is_known() -> None:
    """The computing process died: an error, since the count is out of date as well; or last, for its time."""
    dead = Moment(NOON + timedelta(minutes=9), NOON, fresh=False)
    answer = value_of(WEB, "forecaster_demand", dead, signal="cpu")
    assert isinstance(answer, NotKnown)
    assert "nothing has been computed since" in answer.message
    repeating = web(abstain="last")
    answer = value_of(repeating, "forecaster_demand", dead, signal="cpu")
    assert isinstance(answer, OfferedValue)
    assert (answer.source, answer.value) == ("last", 6.4)
    late = dead._replace(now=NOON + timedelta(minutes=11))
    assert isinstance(value_of(repeating, "forecaster_demand", late, signal="cpu"), NotKnown)


def test_a_signal_that_decides_nothing_is_said_to_be_none() -> None:
    answer = value_of(web(signals=("cpu",)), "forecaster_demand", NOW, signal="memory")
    assert answer == NotNamed("the count is not decided by signal 'memory'; there are cpu")


def test_one_of_several_signals_has_to_be_named_while_only_one_is_known_too() -> None:
    """Otherwise a reader that names none would get the demand of another signal when one fades."""
    assert isinstance(value_of(web(demands=(CPU,)), "forecaster_demand", NOW), NotNamed)


def test_two_targets_that_differ_leave_open_which_of_them_asks() -> None:
    later = Moment(NOON + timedelta(minutes=11), NOON + timedelta(minutes=11), fresh=True)
    two = tuple(MetricTarget("forecaster_demand", "AverageValue", target) for target in (0.35, 1e9))
    answer = value_of(web(demands=(lost(CPU),), consumers=two), "forecaster_demand", later, signal="cpu")
    assert isinstance(answer, NotNamed)
    assert "2 targets" in answer.message
