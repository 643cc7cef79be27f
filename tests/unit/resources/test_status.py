"""What was decided becomes a status with conditions; it stays as it is while nothing is decided otherwise."""

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


def conditions(decided: Decided, one: AutoscalerResource = WEB) -> dict[str, tuple[str, str]]:
    return {each.type: (each.status, each.reason) for each in status_of(one, decided, EMPTY, NOON).conditions}


def test_a_forecast_that_acts() -> None:
    found = status_of(WEB, DECIDED, EMPTY, NOON)
    assert (found.mode, found.current_replicas, found.recommended_replicas) == ("publish", 3, 5)
    assert (found.forecast_peak, found.gate, found.reason, found.message) == (
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
    found = status_of(WEB, Decided(None, Policy()), EMPTY, NOON)
    assert (found.current_replicas, found.recommended_replicas, found.forecast_peak) == (None, None, "")
    assert conditions(Decided(None, Policy()))["Ready"] == ("False", "TargetNotFound")


def test_a_policy_that_is_left_out_says_what_contradicts_it() -> None:
    refused = replace(DECIDED, refused=[(WEB.layer, "horizontal.max_replicas: must not be below min_replicas 5")])
    found = status_of(WEB, refused, EMPTY, NOON).condition("Ready")
    assert found is not None
    assert (found.status, found.reason) == ("False", "PolicyRefused")
    assert "must not be below min_replicas 5" in found.message


def test_a_policy_whose_events_and_rest_are_left_out_says_both() -> None:
    """What is left of it without its events is another layer, of the same origin."""
    rest = Layer(WEB.layer.origin, {"mode": "scale"})
    found = replace(DECIDED, refused=[(WEB.layer, "too many events"), (rest, "mode: above the ceiling publish")])
    said = status_of(WEB, found, EMPTY, NOON).condition("Ready")
    assert said is not None
    assert said.message == "It is left out of the policy: too many events; mode: above the ceiling publish."


def test_what_annotations_state_otherwise_is_told() -> None:
    layers = [WEB.layer, Layer("annotations of HPA shop/web", {"mode": "floor"})]
    found = replace(DECIDED, origins=leaf_origins(layers))
    assert conditions(found)["Ready"] == ("True", "PartlyOverridden")


def test_a_mode_that_writes_and_is_not_enabled_is_not_ready() -> None:
    found = Decided(recommendation(), Policy(mode="floor"), disabled=["floor"])
    assert conditions(found)["Ready"] == ("False", "ModeNotEnabled")


def test_a_mode_that_is_not_enabled_is_said_although_annotations_state_something_else() -> None:
    over = leaf_origins([WEB.layer, Layer("annotations of HPA shop/web", {"mode": "floor"})])
    found = Decided(recommendation(), Policy(mode="floor"), origins=over, disabled=["floor"])
    assert conditions(found)["Ready"] == ("False", "ModeNotEnabled")


def test_mode_floor_of_a_workload_without_an_hpa_is_not_ready() -> None:
    """There is nothing whose minReplicas could be raised."""
    found = Decided(replace(recommendation(), autoscaler=""), Policy(mode="floor"))
    assert conditions(found)["Ready"] == ("False", "NoSingleHpa")
    assert conditions(replace(found, policy=Policy(mode="publish")))["Ready"] == ("True", "PolicyInForce")


def test_the_last_clamp_that_changed_the_count_limits() -> None:
    clamps = (Clamp("forecast", 4, 9, "raised"), Clamp("blast radius", 9, 7, "surge 0.5"), Clamp("bounds", 7, 7, ""))
    found = replace(DECIDED, recommendation=replace(recommendation(), clamps=clamps))
    assert conditions(found)["Limited"] == ("True", "BlastRadius")


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
    for one in after.conditions:
        old = before.condition(one.type)
        assert old is not None
        assert (one.last_transition_time == old.last_transition_time) == (one.status == old.status)


@given(decisions)
def test_the_same_decision_later_is_the_same_status_also_as_it_comes_back_from_the_api_server(one: Decided) -> None:
    before = msgspec.json.decode(msgspec.json.encode(status_of(WEB, one, EMPTY, NOON)), type=AutoscalerStatus)
    later = status_of(WEB, one, before, NOON + timedelta(hours=1))
    assert later == before
    assert news(before, later) == []


def test_events_are_for_changes_and_for_what_is_wrong_at_first() -> None:
    good, gone = status_of(WEB, DECIDED, EMPTY, NOON), status_of(WEB, Decided(None, Policy()), EMPTY, NOON)
    assert news(EMPTY, good) == []
    assert [one.reason for one in news(EMPTY, gone)] == ["TargetNotFound"]
    assert [one.reason for one in news(gone, good)] == ["PolicyInForce", "ForecastActing"]
