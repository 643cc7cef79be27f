""""""

from __future__ import annotations

from forecaster.hpa.state import (
    HpaCondition,
    HpaState,
    MetricStatus,
    find_condition,
    status_differs,
    with_condition,
    without_condition,
)
from tests.support.hpa import NOW, ago, moved, past

STATE = HpaState(
    history=(past(3, 60), past(5, 15)),
    scale_ups=(moved(2, 30),),
    scale_downs=(moved(1, 90, outdated=True),),
    conditions=(
        HpaCondition("AbleToScale", "True", "ReadyForNewScale", "fine", ago(10)),
        HpaCondition("ScalingActive", "True", "x"),
    ),
    current_replicas=3,
    desired_replicas=5,
    current_metrics=(MetricStatus("Resource", "cpu", 80, 400), None),
    last_scale_time=NOW,
)


def test_the_status_is_written_when_a_reason_or_a_value_changes() -> None:
    assert not status_differs(STATE, STATE)
    assert status_differs(STATE, STATE._replace(desired_replicas=6))
    assert status_differs(STATE, STATE._replace(current_replicas=6))
    assert status_differs(STATE, STATE._replace(current_metrics=()))
    assert status_differs(STATE, STATE._replace(last_scale_time=ago(1)))
    assert status_differs(STATE, STATE._replace(conditions=STATE.conditions[:1]))


def test_memory_and_times_do_not_count_for_the_status() -> None:
    later = tuple(c._replace(last_transition=NOW) for c in STATE.conditions)
    assert not status_differs(STATE, STATE._replace(conditions=later, history=(), scale_ups=(), scale_downs=()))


def test_another_message_counts_where_one_was_recorded() -> None:
    reworded = tuple(c._replace(message="other") for c in STATE.conditions)
    assert status_differs(STATE._replace(conditions=reworded), STATE)
    silent = tuple(c._replace(message="") for c in STATE.conditions)
    assert not status_differs(STATE._replace(conditions=silent), STATE._replace(conditions=reworded))


READY = HpaCondition("AbleToScale", "True", "ReadyForNewScale", "fine", ago(60))
ACTIVE = HpaCondition("ScalingActive", "True", "ValidMetricFound", "found", ago(60))


def test_a_new_condition_goes_to_the_end() -> None:
    listed = with_condition((READY,), ACTIVE, NOW)
    assert listed == (READY, ACTIVE._replace(last_transition=NOW))


def test_a_known_condition_keeps_its_place_and_its_time_while_the_status_stays() -> None:
    again = HpaCondition("AbleToScale", "True", "SucceededRescale", "moved")
    assert with_condition((READY, ACTIVE), again, NOW) == (again._replace(last_transition=ago(60)), ACTIVE)


def test_the_time_moves_with_the_status() -> None:
    failed = HpaCondition("AbleToScale", "False", "FailedGetScale", "gone")
    assert with_condition((READY,), failed, NOW)[0].last_transition == NOW


def test_conditions_are_found_and_removed_by_type() -> None:
    assert find_condition((READY, ACTIVE), "ScalingActive") == ACTIVE
    assert find_condition((READY,), "ScalingActive") is None
    assert without_condition((READY, ACTIVE), "AbleToScale") == (ACTIVE,)
