from __future__ import annotations

import json

import pytest

from forecaster.hpa.conditions import HpaCondition
from forecaster.hpa.state import HpaState, MetricStatus, state_from_json, state_to_json, status_differs
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


@pytest.mark.parametrize("state", [STATE, HpaState()], ids=["full", "new"])
def test_a_stored_state_is_the_state(state: HpaState) -> None:
    assert state_from_json(json.loads(json.dumps(state_to_json(state)))) == state


def test_a_stored_state_of_another_form_is_refused() -> None:
    with pytest.raises(KeyError):
        state_from_json({"history": None})


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
    told = tuple(c._replace(message="other") for c in STATE.conditions)
    assert status_differs(STATE._replace(conditions=told), STATE)
    silent = tuple(c._replace(message="") for c in STATE.conditions)
    assert not status_differs(STATE._replace(conditions=silent), STATE._replace(conditions=told))
