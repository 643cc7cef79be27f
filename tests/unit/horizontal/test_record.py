"""What cannot be computed is said of its row, with the number or the object that is at fault."""

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

SEEN = outlooks(cpu=2.0, cpu_ahead=3.0)


def verdict(**columns: object) -> Hold:
    """The hold of a row in which these columns are impossible."""
    subject = Subject(workload(), policy().horizontal, SEEN, failure=str(columns.pop("failure", "")))
    inputs = inputs_of_one(subject, NOON)
    arrays = {name: np.array([one]) for name, one in columns.items()}
    numbers = {name: arrays.pop(name, column) for name, column in inputs.policy.numbers.items()}
    of_policy = {name: arrays.pop(name) for name in columns if hasattr(inputs.policy, name)}
    spoilt = replace(inputs, policy=replace(inputs.policy, numbers=numbers, **of_policy), **arrays)
    found, _ = decide_rows(spoilt, State.new(1), NOON.timestamp())
    told = record(found, 0, subject).replicas
    assert isinstance(told, Hold)
    return told


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("tolerance", np.nan, "tolerance: nan is impossible"),
        ("surge", -1.0, "surge: -1 is impossible"),
        ("quantile", 1.0, "quantile: 1 is impossible"),
        ("max_replicas", 0, "max_replicas: 0 is impossible"),
        ("ready", -2, "ready replicas: -2 is impossible"),
        ("current", 2**40, "replicas: 1099511627776 is impossible"),
    ],
)
def test_an_impossible_number_fails_its_row_by_name(column: str, value: float, said: str) -> None:
    assert verdict(**{column: value}) == Hold(Reason.FAILED, said)


def test_a_row_that_could_not_be_read_says_what_its_reader_said() -> None:
    assert verdict(unreadable=True, failure="KeyError: 'x'") == Hold(Reason.FAILED, "KeyError: 'x'")


@pytest.mark.parametrize("value", [float("inf"), -1.0, 1e300])
def test_what_is_no_amount_is_not_measured(value: float) -> None:
    (cpu,) = outlooks(cpu=2.0)
    one = decided({cpu: replace(outlook(cpu, 2.0, 3.0), measured=measured(value))})
    said = f"what was measured, {value:g}, is no amount of demand"
    assert one.replicas == Hold(Reason.NO_DATA, f"cpu: {said}")
    assert (one.signals[0].measured, one.signals[0].note) == (None, said)


def test_a_forecast_that_is_no_amount_is_none() -> None:
    one = decided(outlooks(cpu=2.0, cpu_ahead=float("inf")))
    assert (one.recommended_replicas, one.replicas.reason) == (4, Reason.FALLBACK)
    assert one.signals[0].note == "the forecast is no amount of demand"


def test_a_target_of_nothing_fails_its_row() -> None:
    one = decided(SEEN, of=workload(autoscaler=hpa(replace(CPU_HALF, value=0.001))))
    assert one.replicas == Hold(Reason.FAILED, "the target of a pod: nothing can be computed by it")


def test_after_a_silence_the_clamp_says_what_was_missing() -> None:
    keeps = policy(outage_hold=timedelta(minutes=30))
    _, state = decide(workload(replicas=8), outlooks(cpu=NO_SAMPLE), keeps, NOTHING_BEFORE, NOON)
    one, _ = decide(workload(replicas=8), outlooks(cpu=1.0), keeps, state, after(5))
    assert [(clamp.rule, clamp.why) for clamp in one.clamps] == [
        ("outage", "samples were missing: cpu: no sample; floor until 12:30 UTC")
    ]


def test_after_an_outage_of_load_the_clamp_says_which() -> None:
    keeps, state, said = policy(outage_hold=timedelta(minutes=30)), NOTHING_BEFORE, []
    for minute, (cpu, ahead) in enumerate(((4.0, 4.0), (0.1, 0.1), (2.0, 0.1))):
        one, state = decide(workload(replicas=8), outlooks(cpu=cpu, cpu_ahead=ahead), keeps, state, after(minute))
        said += [clamp.why for clamp in one.clamps if clamp.rule == "outage"]
    assert said == [
        "cpu load has gone; floor until 12:31 UTC",
        "cpu load is back after an outage; floor until 12:32 UTC",
    ]
