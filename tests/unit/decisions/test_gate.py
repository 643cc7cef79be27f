"""Who may decide: up by evidence, down by worse evidence, and not back and forth."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecaster.decisions.gate import BETTER, LEAST_SHORT, Evidence, Gate, Record, Standing, Voice, judged
from forecaster.domain.decision import Reason, Scale
from tests.support.builders import NOON, after, decided, outlooks, policy


def evidence(model: float, reactive: float = 0.1, seasonal: float | None = None, days: float = 3.0) -> Evidence:
    return Evidence(days, reactive, Record(model), Record(seasonal) if seasonal is not None else None)


def after_all(*found: Evidence | None, gate: Gate | None = None) -> Gate:
    gate = gate or Gate()
    for minute, one in enumerate(found):
        gate = judged(gate, one, after(minute))
    return gate


ACTING = Gate(Standing.ACTING, Voice.MODEL, NOON, "promoted")


def test_a_new_workload_is_observed() -> None:
    assert Gate().standing is Standing.OBSERVE


def test_good_evidence_makes_a_trial_and_once_more_lets_it_act() -> None:
    assert after_all(evidence(0.05)).standing is Standing.TRIAL
    assert after_all(evidence(0.05), evidence(0.06)).standing is Standing.ACTING


def test_a_trial_that_fails_is_over() -> None:
    assert after_all(evidence(0.05), evidence(0.12)).standing is Standing.OBSERVE


def test_what_is_worse_is_demoted_and_says_so() -> None:
    gate = after_all(evidence(0.11), gate=ACTING)
    assert gate.standing is Standing.OBSERVE
    assert "demoted" in gate.why
    assert "11.00% of the demand short on 3 days, measured demand alone 10.00%" in gate.why


def test_between_the_margins_everyone_stays_where_he_is() -> None:
    between = evidence(0.1 * (BETTER + 1) / 2)
    assert after_all(between, gate=ACTING) is ACTING
    assert after_all(between, between).standing is Standing.OBSERVE


def test_no_evidence_and_hours_of_it_change_nothing() -> None:
    assert after_all(None, evidence(0.9, days=0.5), gate=ACTING) is ACTING


def test_yesterday_speaks_where_it_decides_better() -> None:
    gate = after_all(evidence(0.08, seasonal=0.04), evidence(0.08, seasonal=0.04))
    assert (gate.standing, gate.voice) == (Standing.ACTING, Voice.SEASONAL)


def test_a_difference_that_is_no_shortage_leaves_the_word_to_the_model() -> None:
    assert evidence(LEAST_SHORT / 2, seasonal=0.0).best is Voice.MODEL


def test_where_nothing_is_short_there_is_something_to_gain_only_if_pods_are_saved() -> None:
    saves = Evidence(3.0, 0.0, Record(0.0, saving=0.2))
    idle = Evidence(3.0, 0.0, Record(0.0, saving=0.01))
    assert after_all(saves, saves).standing is Standing.ACTING
    assert after_all(idle, idle).standing is Standing.OBSERVE


def test_decisions_that_cannot_be_as_lean_are_never_let_in() -> None:
    dear = Evidence(3.0, 0.1, None)
    assert after_all(dear, dear).standing is Standing.OBSERVE


@given(
    st.lists(st.builds(evidence, st.floats(0, 1), st.floats(0, 1), st.none() | st.floats(0, 1)), max_size=8),
    st.floats(0, 1),
    st.floats(0, 1),
    st.floats(0, 1),
)
def test_nobody_acts_who_is_worse_than_both_baselines(
    earlier: list[Evidence], model: float, reactive: float, seasonal: float
) -> None:
    gate = after_all(*earlier, evidence(model, reactive, seasonal))
    if gate.standing is Standing.ACTING and gate.voice is Voice.MODEL:
        assert model < max(reactive, LEAST_SHORT) or model <= seasonal


@pytest.mark.parametrize("standing", [Standing.OBSERVE, Standing.TRIAL])
def test_a_forecast_that_does_not_act_is_recorded_and_moves_nothing(standing: Standing) -> None:
    from forecaster.decisions.decide import decide  # noqa: PLC0415  with its state
    from forecaster.decisions.state import ScalingState  # noqa: PLC0415
    from tests.support.builders import workload  # noqa: PLC0415

    gate = Gate(standing, Voice.MODEL, NOON, "promising")
    one, _ = decide(workload(), outlooks(cpu=2.0, cpu_ahead=9.0), policy(gate=True), ScalingState(), NOON, gate=gate)
    assert isinstance(one.replicas, Scale)
    assert (one.replicas.replicas, one.replicas.reason) == (4, Reason.GATED)
    assert one.signals[0].forecast_replicas == 18
    assert one.watched


def test_without_a_gate_in_the_policy_it_has_its_say() -> None:
    assert decided(outlooks(cpu=2.0, cpu_ahead=9.0)).wanted_replicas == 18
