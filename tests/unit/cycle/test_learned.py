"""A learned policy in the composed service: its demand stands in the place of the forecast of its workload alone."""

from __future__ import annotations

import pytest

from forecaster.domain.policies import Policies
from forecaster.domain.policy import HorizontalPolicy, Policy, PolicySelector
from forecaster.domain.signal import CPU, MEMORY, REQUESTS
from tests.support.builders import GIB, workload
from tests.support.fakes import CycleOnFakes, Load, load, named, steady

EVERYTHING = {CPU: steady(2.0), MEMORY: steady(2.0 * GIB), REQUESTS: steady(120.0)}
"""Requests and memory have a history, too, although no target is about them."""


def stage(kind: str) -> CycleOnFakes:
    learned = {"horizontal": {"learned": kind}}
    policies = Policies(Policy(horizontal=HorizontalPolicy(gate=False)), ((PolicySelector(name="web"), learned),))
    return CycleOnFakes(Load(workload("web"), EVERYTHING), load("cart"), policies=policies)


@pytest.mark.parametrize("kind", ["tabular", "fitted"])
def test_a_workload_with_signals_that_no_target_is_about_is_decided(kind: str) -> None:
    outcome = stage(kind).run_minutes(0, 8)[-1]
    assert outcome.report.failures == ()
    web = named(outcome, "web").signals[0].forecast
    assert web is not None
    assert (web.model, web.levels) == (f"learned-{kind}", ())
    assert "having heard last-value" in web.note


def test_the_others_keep_their_forecast() -> None:
    alone = CycleOnFakes(load("cart"), policies=Policies(Policy(horizontal=HorizontalPolicy(gate=False))))
    beside, without = stage("tabular").run_minutes(0, 8)[-1], alone.run_minutes(0, 8)[-1]
    assert named(beside, "cart") == named(without, "cart")


def test_what_a_policy_says_is_the_count_of_its_record() -> None:
    """The demand in the middle of what rounds up to the learned count."""
    record = named(stage("tabular").run_minutes(0, 8)[-1], "web").signals[0]
    assert record.forecast is not None
    assert record.forecast_replicas == pytest.approx(record.forecast.peak / 0.5 + 0.5, abs=1.0)
