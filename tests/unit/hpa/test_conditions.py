from __future__ import annotations

from forecaster.hpa.conditions import HpaCondition, find_condition, with_condition, without_condition
from tests.support.hpa import NOW, ago

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
