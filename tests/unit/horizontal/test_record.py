"""A row that cannot be computed names the number or the object at fault."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from forecaster.domain.decision import Hold, Reason
from forecaster.horizontal.decide import decide as decide_rows
from forecaster.horizontal.state import State
from tests.support.builders import CPU_HALF, NO_SAMPLE, NOON, after, hpa, measured, outlook, outlooks, policy, workload
from tests.support.horizontal import NOTHING_BEFORE, decide, decided
from tests.support.one_row import Subject, inputs_of_one, record

FORECASTS = outlooks(cpu=2.0, cpu_ahead=3.0)


def verdict(**columns: object) -> Hold:
    """Hold of a row whose columns have these impossible values."""
    subject = Subject(workload(), policy().horizontal, FORECASTS, failure=str(columns.pop("failure", "")))
    inputs = inputs_of_one(subject, NOON)
    arrays = {name: np.array([number]) for name, number in columns.items()}
    numbers = {name: arrays.pop(name, column) for name, column in inputs.policy.numbers.items()}
    of_policy = {name: arrays.pop(name) for name in columns if hasattr(inputs.policy, name)}
    spoilt = replace(inputs, policy=replace(inputs.policy, numbers=numbers, **of_policy), **arrays)
    decisions, _ = decide_rows(spoilt, State.new(1), NOON.timestamp())
    hold = record(decisions, 0, subject).replicas
    assert isinstance(hold, Hold)
    return hold


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("tolerance", np.nan, "tolerance: nan is impossible"),
        ("surge", -1.0, "surge: -1 is impossible"),
        ("quantile", 1.0, "quantile: 1 is impossible"),
        ("max_replicas", 0, "max_replicas: 0 is impossible"),
        ("ready", -2, "ready replicas: -2 is impossible"),
        ("current", 2**40, "replicas: 1099511627776 is impossible"),
    ],
)
def test_an_impossible_number_fails_its_row_by_name(column: str, value: float, message: str) -> None:
    assert verdict(**{column: value}) == Hold(Reason.FAILED, message)


def test_a_row_that_could_not_be_read_has_the_message_of_its_reader() -> None:
    assert verdict(unreadable=True, failure="KeyError: 'x'") == Hold(Reason.FAILED, "KeyError: 'x'")


@pytest.mark.parametrize("value", [float("inf"), -1.0, 1e300])
def test_what_is_no_amount_is_not_measured(value: float) -> None:
    (cpu,) = outlooks(cpu=2.0)
    decision = decided({cpu: replace(outlook(cpu, 2.0, 3.0), measured=measured(value))})
    note = f"what was measured, {value:g}, is no amount of demand"
    assert decision.replicas == Hold(Reason.NO_DATA, f"cpu: {note}")
    assert (decision.signals[0].measured, decision.signals[0].note) == (None, note)


def test_a_forecast_that_is_no_amount_is_none() -> None:
    decision = decided(outlooks(cpu=2.0, cpu_ahead=float("inf")))
    assert (decision.recommended_replicas, decision.replicas.reason) == (4, Reason.FALLBACK)
    assert decision.signals[0].note == "the forecast is no amount of demand"


def test_a_target_of_nothing_fails_its_row() -> None:
    decision = decided(FORECASTS, workload=workload(autoscaler=hpa(replace(CPU_HALF, value=0.001))))
    assert decision.replicas == Hold(Reason.FAILED, "the target of a pod: nothing can be computed by it")


def test_after_a_silence_the_clamp_says_what_was_missing() -> None:
    keeps = policy(outage_hold=timedelta(minutes=30))
    _, state = decide(workload(replicas=8), outlooks(cpu=NO_SAMPLE), keeps, NOTHING_BEFORE, NOON)
    decision, _ = decide(workload(replicas=8), outlooks(cpu=1.0), keeps, state, after(5))
    assert [(clamp.rule, clamp.why) for clamp in decision.clamps] == [
        ("outage", "samples were missing: cpu: no sample; floor until 12:30 UTC")
    ]


def test_after_an_outage_of_load_the_clamp_says_which() -> None:
    keeps, state, sentences = policy(outage_hold=timedelta(minutes=30)), NOTHING_BEFORE, []
    for minute, (cpu, ahead) in enumerate(((4.0, 4.0), (0.1, 0.1), (2.0, 0.1))):
        decision, state = decide(workload(replicas=8), outlooks(cpu=cpu, cpu_ahead=ahead), keeps, state, after(minute))
        sentences += [clamp.why for clamp in decision.clamps if clamp.rule == "outage"]
    assert sentences == [
        "cpu load has gone; floor until 12:31 UTC",
        "cpu load is back after an outage; floor until 12:32 UTC",
    ]
