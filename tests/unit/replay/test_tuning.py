"""A proposal must have been better on days that were not used to choose it."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import pytest
import yaml
from jsonschema import Draft202012Validator

from forecaster.cli.catalogue import schema_of
from forecaster.cli.tune import tuned_text, tuned_view
from forecaster.config.settings import parse
from forecaster.domain.policies import Policies
from forecaster.domain.policy import Policy
from forecaster.domain.signal import CPU, Signal
from forecaster.replay.assumptions import Assumptions
from forecaster.replay.sliders import PolicyChange
from forecaster.replay.traces import Traces
from forecaster.replay.tuning import DailyCosts, PolicyProposal, Tuning, best, change, judged, tune
from tests.support.builders import NOON, hpa, minutes, workload

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forecaster.replay.forecasts import ForecastRequest, ReplayForecasts
    from forecaster.replay.traces import Measurements

PRESENT = PolicyChange.to(quantile=0.9, lead_time=minutes(3), scale_down_stabilization=minutes(5))
OTHER = PolicyChange.to(quantile=0.7, lead_time=minutes(3), scale_down_stabilization=minutes(5))
WEB = workload("web", autoscaler=hpa(highest=200))
NOISE = np.random.default_rng(1).normal(0, 1, 14)


def daily(present: np.ndarray, other: np.ndarray) -> DailyCosts:
    """Daily costs in pod-hours, without any shortage."""
    cost = np.array([present, other], float)
    return DailyCosts(cost, np.zeros_like(cost), 9.0)


def test_what_is_better_every_day_is_proposed_with_its_interval() -> None:
    proposal = judged([PRESENT, OTHER], daily(100 + NOISE, 90 + NOISE), WEB)
    assert isinstance(proposal, PolicyProposal)
    assert proposal.chosen == OTHER
    assert proposal.cost.low <= proposal.cost.expected <= proposal.cost.high < 0
    assert proposal.cost.expected == pytest.approx(-0.1, abs=0.01)
    assert proposal.agreed == 1.0
    assert proposal.missing is None


def test_one_lucky_day_is_not_evidence() -> None:
    lucky = 100 + 3 * NOISE
    lucky[4] = 20.0
    assert "not sure enough" in str(judged([PRESENT, OTHER], daily(100 - 3 * NOISE, lucky), WEB))


def test_the_present_policy_stays_where_others_are_as_good() -> None:
    assert "no setting" in str(judged([PRESENT, OTHER], daily(100 + NOISE, 99.5 + NOISE), WEB))
    assert best(np.array([[100.0], [99.5]])) == 0


def test_shortage_counts_at_its_price() -> None:
    short = DailyCosts(np.array([[10.0] * 8, [9.0] * 8]), np.array([[0.0] * 8, [0.2] * 8]), 9.0)
    assert "no setting" in str(judged([PRESENT, OTHER], short, WEB))


def test_what_leaves_more_short_is_proposed_only_where_that_is_allowed() -> None:
    cheaper = DailyCosts(np.array([100 + NOISE, 80 + NOISE]), np.array([np.ones(14), np.full(14, 1.5)]), 9.0)
    assert "leaves no more short" in str(judged([PRESENT, OTHER], cheaper, WEB, allow_shortage=False))
    assert not isinstance(judged([PRESENT, OTHER], cheaper, WEB, allow_shortage=True), str)


def test_the_interval_holds_the_truth_about_as_often_as_it_says() -> None:
    rng, held = np.random.default_rng(5), 0
    for _ in range(60):
        before = rng.normal(100, 5, 20)
        estimate = change(before, before * rng.normal(0.95, 0.05, 20))
        held += estimate.low <= -0.05 <= estimate.high
    assert 45 <= held <= 59


def test_an_estimate_repeats() -> None:
    assert change(100 + NOISE, 90 - NOISE) == change(100 + NOISE, 90 - NOISE)


def coming(measurements: Measurements, signals: Sequence[Signal], request: ForecastRequest) -> ReplayForecasts:
    """Perfect forecasts at every level."""
    from forecaster.replay.strategies import perfect  # noqa: PLC0415

    return perfect(measurements, request.span)


def tuned(days: int, assumed: Assumptions | None = None) -> Tuning:
    rng = np.random.default_rng(3)
    count = (days + 1) * 1440
    cores = 6.0 + 4.0 * np.sin(np.arange(count) * 2 * np.pi / 1440) + rng.uniform(0, 0.5, count)
    traces = Traces((WEB,), NOON - timedelta(days=1) + minutes(1), {CPU: cores[None, :]})
    until = NOON + timedelta(days=days)
    assumed = assumed or Assumptions(shares=())
    return tune(traces, Policies(Policy()), begin=NOON, until=until, forecasting=coming, assumed=assumed)


@pytest.fixture(scope="module")
def six_days() -> Tuning:
    """Tuning of six days whose demand is known ahead, so that the HPA's target of 50 % is much too safe."""
    return tuned(6)


def test_too_few_days_are_refused() -> None:
    tuning = tuned(3)
    assert not tuning.proposals
    assert "3 whole days" in tuning.refused[WEB.id]
    text = tuned_text(tuning)
    assert "no proposal, 3 whole days" in text
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize("line_break", ["\n", "\x85", "\u2028", "\u2029"])
def test_a_name_states_no_policy(line_break: str) -> None:
    name = WEB.id._replace(name=f"web{line_break}policy: {{mode: scale}} #")
    tuning = Tuning(NOON, NOON, (), {name: "too short"})
    assert yaml.safe_load(tuned_text(tuning)) == {"overrides": []}


def test_what_is_printed_is_a_policy_that_the_settings_take(six_days: Tuning) -> None:
    text = tuned_text(six_days)
    settings = parse(yaml.safe_load(text), "tuned")
    (proposal,) = six_days.proposals
    assert proposal.cost.high < 0
    assert proposal.chosen.target_share > 1.0
    policy = settings.policies.of(WEB.id).horizontal
    assert policy.scale_down_stabilization == proposal.chosen.policy_fields["scale_down_stabilization"]
    assert "confidence" in text
    assert "another target of its HPA: cpu 65% instead of 50%" in text


def test_its_document_is_of_its_schema(six_days: Tuning) -> None:
    document = json.loads(msgspec.json.encode(tuned_view(six_days)))
    assert list(Draft202012Validator(schema_of("tune")).iter_errors(document)) == []
