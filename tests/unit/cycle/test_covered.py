"""Coverage in the cycle: learned from scores where the policy asks for it, and in force in the next decision."""

from __future__ import annotations

import numpy as np
import pytest

from forecaster.cycle.observed import Observed
from forecaster.domain.policies import Policies
from forecaster.domain.signal import CPU, PODS
from forecaster.domain.window import MINUTE
from forecaster.horizontal.explain import explanation
from forecaster.horizontal.quantile import Held
from tests.support.builders import NOON, policy, workload
from tests.support.fakes import CycleOnFakes, Load, named

WEB = workload("web").id
CORRECTED = Policies(policy(coverage_correction=True, quantile=0.9))
MISSED = Held(0.9, 210.0, 168.0)
"""80 % of so many p90s held."""


def wavy() -> Load:
    return Load(
        workload("web"),
        {CPU: lambda at: 2.0 + np.sin((at - NOON).total_seconds() / 700), PODS: lambda at: 4.0},
    )


def stage(policies: Policies, held: Held | None = None) -> CycleOnFakes:
    one = CycleOnFakes(wavy(), policies=policies)
    if held:
        one.cycle.decider.observed.coverage.held[WEB, CPU] = held
        one.cycle.decider.observed.coverage.pooled[CPU, 0.9] = held
    return one


def test_forecasts_that_covered_too_little_are_asked_for_higher_and_explain_says_so() -> None:
    stated, corrected = (named(stage(CORRECTED, held).run(), "web") for held in (None, MISSED))
    before, now = stated.signals[0].forecast, corrected.signals[0].forecast
    assert before and now  # noqa: PT018  both are there
    assert (before.quantile, now.quantile) == (0.9, 0.9)
    assert now.peak > before.peak
    assert now.peaks == before.peaks
    told = "p90 asked as p95.3: 80% of 210 peaks were covered, 80% of those of all workloads"
    assert f"    note: {told}" in explanation(corrected)


def test_whose_policy_does_not_ask_for_it_is_left_alone() -> None:
    for policies in (Policies(policy(quantile=0.9)), Policies(policy(coverage_correction=True, sizing="newsvendor"))):
        one = stage(policies)
        one.run_minutes(0, 20)
        assert one.cycle.decider.observed.coverage.held == {}
    assert not named(stage(Policies(policy(quantile=0.9)), MISSED).run(), "web").signals[0].note


def test_every_score_is_learned_from_at_the_stated_level() -> None:
    """What is corrected must not be taken for what is to be corrected: the score is of the answer, the rest is not."""
    one = stage(CORRECTED, MISSED)
    outcomes = one.run_minutes(0, 40)
    scores = one.ledger.scores
    assert scores
    held = one.cycle.decider.observed.coverage.held[WEB, CPU]
    assert held.matured == pytest.approx(MISSED.matured + 0.475 * len(scores), abs=0.2)
    for score in scores:
        said = named(outcomes[(score.made_at - NOON) // MINUTE], "web").signals[0].forecast
        assert said
        assert (score.quantile, score.upper) == (0.9, pytest.approx(said.peak, rel=0.02))


def test_a_restart_knows_what_was_covered() -> None:
    before, later = Observed(), Observed()
    for covered in (True, False, True):
        before.coverage.matured(WEB, CPU, 0.9, covered=covered)
    later.restore(before.kept())
    assert later.coverage.held == before.coverage.held
    assert later.coverage.pooled[CPU, 0.9].matured == before.coverage.pooled[CPU, 0.9].matured
