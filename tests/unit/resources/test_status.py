"""Decisions become a status with conditions; it stays unchanged while nothing is decided otherwise."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from forecaster.domain.decision import Clamp, Reason
from forecaster.domain.layers import Layer, leaf_origins
from forecaster.domain.policy import Policy
from forecaster.resources.objects import AutoscalerResource
from forecaster.resources.status import AutoscalerStatus, Decided, news, status_of
from tests.support.recommendations import NOON, recommendation, workload_id

WEB = AutoscalerResource("shop", "web", "uid-1", 3, workload_id(), msgspec.Raw(b'{"mode":"publish"}'), "publish")
DECIDED = Decided(recommendation(), Policy(mode="publish"))
EMPTY = AutoscalerStatus()


def conditions(decided: Decided, resource: AutoscalerResource = WEB) -> dict[str, tuple[str, str]]:
    return {each.type: (each.status, each.reason) for each in status_of(resource, decided, EMPTY, NOON).conditions}


def test_a_forecast_that_acts() -> None:
    status = status_of(WEB, DECIDED, EMPTY, NOON)
    assert (status.mode, status.current_replicas, status.recommended_replicas) == ("publish", 3, 5)
    assert (status.forecast_peak, status.gate, status.reason, status.message) == (
        "cpu 1800m",
        "acting",
        "forecast",
        "the forecast asks for 5, the measured demand for 4",
    )
    assert conditions(DECIDED) == {
        "Ready": ("True", "PolicyInForce"),
        "ForecastActing": ("True", "ForecastActing"),
        "Limited": ("False", "WithinLimits"),
    }


def test_a_hold_has_no_recommended_count_and_its_reason_is_a_condition() -> None:
    held = Decided(recommendation(replicas=None, reason=Reason.NO_DATA), Policy())
    assert status_of(WEB, held, EMPTY, NOON).recommended_replicas is None
    assert conditions(held)["ForecastActing"] == ("False", "NoData")


def test_a_workload_that_is_not_there_is_no_reason_for_numbers() -> None:
    status = status_of(WEB, Decided(None, Policy()), EMPTY, NOON)
    assert (status.current_replicas, status.recommended_replicas, status.forecast_peak) == (None, None, "")
    assert conditions(Decided(None, Policy())) == {
        "Ready": ("False", "TargetNotFound"),
        "ForecastActing": ("Unknown", "TargetNotFound"),
        "Limited": ("Unknown", "TargetNotFound"),
    }


def test_a_policy_that_is_left_out_says_what_contradicts_it() -> None:
    refused = replace(DECIDED, refused=[(WEB.layer, "horizontal.max_replicas: must not be below min_replicas 5")])
    condition = status_of(WEB, refused, EMPTY, NOON).condition("Ready")
    assert condition is not None
    assert (condition.status, condition.reason) == ("False", "PolicyRefused")
    assert "must not be below min_replicas 5" in condition.message


def test_a_policy_whose_events_and_rest_are_left_out_says_both() -> None:
    """The policy without its events is another layer, of the same origin."""
    rest = Layer(WEB.layer.origin, {"mode": "scale"})
    decided = replace(DECIDED, refused=[(WEB.layer, "too many events"), (rest, "mode: above the ceiling publish")])
    condition = status_of(WEB, decided, EMPTY, NOON).condition("Ready")
    assert condition is not None
    assert condition.message == "It is left out of the policy: too many events; mode: above the ceiling publish."


def test_what_annotations_state_otherwise_is_told() -> None:
    layers = [WEB.layer, Layer("annotations of HPA shop/web", {"mode": "floor"})]
    decided = replace(DECIDED, origins=leaf_origins(layers))
    assert conditions(decided)["Ready"] == ("True", "PartlyOverridden")


def test_a_mode_that_writes_and_is_not_enabled_is_not_ready() -> None:
    decided = Decided(recommendation(), Policy(mode="floor"), disabled=["floor"])
    assert conditions(decided)["Ready"] == ("False", "ModeNotEnabled")


def test_a_mode_that_is_not_enabled_is_said_although_annotations_state_something_else() -> None:
    over = leaf_origins([WEB.layer, Layer("annotations of HPA shop/web", {"mode": "floor"})])
    decided = Decided(recommendation(), Policy(mode="floor"), origins=over, disabled=["floor"])
    assert conditions(decided)["Ready"] == ("False", "ModeNotEnabled")


def test_mode_floor_of_a_workload_without_an_hpa_is_not_ready() -> None:
    """There is nothing whose minReplicas could be raised."""
    decided = Decided(replace(recommendation(), autoscaler=""), Policy(mode="floor"))
    assert conditions(decided)["Ready"] == ("False", "NoSingleHpa")
    assert conditions(replace(decided, policy=Policy(mode="publish")))["Ready"] == ("True", "PolicyInForce")


def test_the_last_clamp_that_changed_the_count_limits() -> None:
    clamps = (Clamp("forecast", 4, 9, "raised"), Clamp("blast radius", 9, 7, "surge 0.5"), Clamp("bounds", 7, 7, ""))
    decided = replace(DECIDED, recommendation=replace(recommendation(), clamps=clamps))
    assert conditions(decided)["Limited"] == ("True", "BlastRadius")


def test_a_gate_that_watches() -> None:
    watched = replace(
        DECIDED, recommendation=replace(recommendation(), shadow=True, gate_reason="held back: no better")
    )
    assert conditions(watched)["ForecastActing"] == ("False", "HeldBack")
    assert status_of(WEB, watched, EMPTY, NOON).gate == "held back"


decisions = st.builds(
    lambda now, replicas, watched: Decided(
        replace(recommendation(now=now, replicas=replicas), shadow=watched), Policy(mode="publish")
    ),
    st.integers(0, 9),
    st.none() | st.integers(0, 9),
    st.booleans(),
) | st.just(Decided(None, Policy()))


@given(decisions, decisions)
def test_instants_of_conditions_change_with_their_status_alone(first: Decided, second: Decided) -> None:
    before = status_of(WEB, first, EMPTY, NOON)
    after = status_of(WEB, second, before, NOON + timedelta(minutes=1))
    for condition in after.conditions:
        old = before.condition(condition.type)
        assert old is not None
        assert (condition.last_transition_time == old.last_transition_time) == (condition.status == old.status)


@given(decisions)
def test_the_same_decision_later_is_the_same_status_also_as_it_comes_back_from_the_api_server(decided: Decided) -> None:
    before = msgspec.json.decode(msgspec.json.encode(status_of(WEB, decided, EMPTY, NOON)), type=AutoscalerStatus)
    later = status_of(WEB, decided, before, NOON + timedelta(hours=1))
    assert later == before
    assert news(before, later) == []


def test_events_are_for_changes_and_for_what_is_wrong_at_first() -> None:
    good, gone = status_of(WEB, DECIDED, EMPTY, NOON), status_of(WEB, Decided(None, Policy()), EMPTY, NOON)
    assert news(EMPTY, good) == []
    assert [event.reason for event in news(EMPTY, gone)] == ["TargetNotFound"]
    assert [event.reason for event in news(gone, good)] == ["PolicyInForce", "ForecastActing"]
