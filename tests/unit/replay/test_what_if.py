"""A what-if runs the engine of a replay with other settings, and writes them as a fragment of policy."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from forecaster.domain.policies import Policies
from forecaster.domain.policy import Policy
from forecaster.domain.signal import CPU, PODS
from forecaster.horizontal.gate_states import Gate, GateState
from forecaster.replay.assumptions import Assumptions
from forecaster.replay.compare import compare
from forecaster.replay.sliders import PolicyChange, override_of
from forecaster.replay.strategies import HPA, gated_with
from forecaster.replay.traces import Traces
from forecaster.replay.what_if import WHAT_IF_LENGTH, WhatIf, WhatIfFacts
from tests.support.builders import NOON, hpa, minutes, workload

HOURS = 72
NAIVE = "seasonal-naive-day"


def facts(*, standing: GateState = GateState.ACTING, alone: bool = False, **horizontal: object) -> WhatIfFacts:
    """A workload whose demand triples every other hour, for three days."""
    minute = np.arange(HOURS * 60)
    cores = np.where(minute // 60 % 2, 9.0, 3.0)
    web = workload(replicas=6, autoscaler=None if alone else hpa(highest=30))
    traces = Traces((web,), NOON - minutes(HOURS * 60 - 1), {CPU: cores[None], PODS: np.full((1, HOURS * 60), 6.0)})
    policy = Policy.model_validate({"horizontal": {"lead_time": "3m", **horizontal}})
    return WhatIfFacts(web, policy, traces, NAIVE, gate=Gate(standing))


@pytest.fixture(scope="module")
def prepared() -> WhatIf:
    """A what-if that has prepared every replay near the present policy."""
    what_if = WhatIf(facts(standing=GateState.OBSERVE))
    what_if.changed()
    while what_if.prepare():
        pass
    return what_if


def test_the_present_setting_is_what_a_replay_makes_of_it() -> None:
    known = facts(standing=GateState.OBSERVE)
    what_if = WhatIf(known)
    replayed = compare(
        known.traces,
        Policies(known.policy),
        (HPA, gated_with(NAIVE)),
        begin=NOON - WHAT_IF_LENGTH,
        until=NOON,
        assumed=Assumptions(shares=(1.0,), every=5),
    )
    assert what_if.alone().account == replayed.own(HPA.name)
    assert what_if.changed().account == replayed.own("gated")


def test_a_forecast_that_acts_takes_pods_and_leaves_less_short() -> None:
    what_if = WhatIf(facts())
    alone, present = what_if.alone().account, what_if.changed().account
    assert present.missing < alone.missing
    assert present.pod_hours > alone.pod_hours


def test_a_forecast_that_is_only_watched_acts_where_the_gate_is_taken_away() -> None:
    what_if = WhatIf(facts(standing=GateState.OBSERVE))
    watched, ungated = what_if.changed(), what_if.changed(PolicyChange.to(gate=False))
    assert watched.account.missing == what_if.alone().account.missing
    assert ungated.account.missing < watched.account.missing


@pytest.mark.parametrize(
    "change",
    [
        PolicyChange.to(target_share=0.6),
        PolicyChange.to(min_replicas=14),
        PolicyChange.to(quantile=0.5, lead_time=minutes(20)),
        PolicyChange.to(scale_down_stabilization=minutes(60)),
    ],
    ids=["target", "least", "lead time", "stabilization"],
)
def test_more_safety_costs_pods(change: PolicyChange) -> None:
    what_if = WhatIf(facts())
    assert what_if.changed(change).account.pod_hours > what_if.changed().account.pod_hours


def test_bounds_hold_in_the_hpa_too() -> None:
    track = WhatIf(facts()).changed(PolicyChange.to(max_replicas=7)).track
    assert track.desired.max() == 7


@pytest.mark.parametrize(
    "change",
    [
        PolicyChange.to(quantile=0.0),
        PolicyChange.to(tolerance=2.0),
        PolicyChange.to(min_replicas=9, max_replicas=3),
        PolicyChange.to(scale_down_stabilization=-minutes(1)),
    ],
    ids=["quantile", "tolerance", "bounds", "stabilization"],
)
def test_what_settings_would_refuse_is_refused(change: PolicyChange) -> None:
    with pytest.raises(ValueError, match=r"quantile|tolerance|max_replicas|scale_down_stabilization"):
        WhatIf(facts()).changed(change)


def test_without_an_hpa_there_is_nothing_to_compare_with() -> None:
    what_if = WhatIf(facts(alone=True))
    assert not what_if.prepare()
    with pytest.raises(ValueError, match="no HPA scales it"):
        what_if.changed()


def test_a_history_that_is_too_short_is_an_error() -> None:
    known = facts()
    short = replace(known, traces=Traces(known.traces.workloads, NOON - minutes(99), {CPU: np.ones((1, 100))}))
    with pytest.raises(ValueError, match="history"):
        WhatIf(short).changed()


def test_forecasts_of_lead_times_are_made_before_they_are_asked_for() -> None:
    what_if, prepared = WhatIf(facts()), 0
    while what_if.prepare():
        prepared += 1
    assert prepared == 1 + 11 + 1  # movements of sliders, eleven other lead times, and movements after these
    before = what_if.forecasts.copy()
    what_if.changed(PolicyChange.to(lead_time=minutes(10), quantile=0.9))
    assert what_if.forecasts == before


@pytest.mark.parametrize(
    "change",
    [
        PolicyChange.to(quantile=0.97),
        PolicyChange.to(scale_down_stabilization=minutes(17)),
        PolicyChange.to(max_replicas=8),
        PolicyChange.to(lead_time=minutes(8)),
        PolicyChange.to(target_share=0.65),
        PolicyChange.to(gate=False),
    ],
    ids=lambda change: next(iter(change.policy_fields), "target_share"),
)
def test_what_a_slider_leads_to_is_replayed_before_and_is_the_same(prepared: WhatIf, change: PolicyChange) -> None:
    beforehand, alone = prepared.replayed[change], WhatIf(facts(standing=GateState.OBSERVE)).changed(change)
    assert beforehand.account == alone.account
    assert beforehand.track.ready.tolist() == alone.track.ready.tolist()


def test_the_first_position_of_a_slider_brings_the_others(prepared: WhatIf) -> None:
    prepared.changed(PolicyChange.to(gate=False, quantile=0.9))
    assert PolicyChange.to(gate=False, quantile=0.91) in prepared.replayed


def test_replays_for_a_restless_reader_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("forecaster.replay.what_if.MAX_REPLAYED", 60)
    what_if = WhatIf(facts())
    for share in (0.61, 0.72, 0.83):
        what_if.changed(PolicyChange.to(target_share=share, quantile=share))
        assert len(what_if.replayed) <= 2 * 60


def test_the_fragment_of_policy_names_what_differs_and_nothing_else() -> None:
    known = facts(tolerance=0.2)
    change = PolicyChange.to(quantile=0.95, tolerance=0.2, scale_down_stabilization=timedelta(minutes=10))
    assert override_of(known.workload.id, change, known.policy.horizontal.model_dump()) == {
        "match": {"namespace": "shop", "kind": "Deployment", "name": "web"},
        "policy": {"horizontal": {"quantile": 0.95, "scale_down_stabilization": "10m"}},
    }


@pytest.mark.parametrize("within", [20, 300])
def test_a_question_that_comes_is_not_kept_waiting_by_what_is_made_ready(within: int) -> None:
    """Replays are abandoned for the question, before they begin or on their way, and made after its answer."""
    what_if, interruptions = WhatIf(facts()), iter([False] * within + [True])
    what_if.changed()
    known = set(what_if.replayed)
    assert what_if.prepare(lambda: next(interruptions))
    assert set(what_if.replayed) == known
    assert what_if.prepare(lambda: False)
    assert PolicyChange.to(gate=False) in what_if.replayed
