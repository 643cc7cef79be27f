from __future__ import annotations

from dataclasses import replace

import pytest

from forecaster.domain.decision import Hold, Reason, Recommendation
from forecaster.store.past import changed, decision_row
from tests.support.recommendations import recommendation

BEFORE = recommendation(cpu_request=1.0)


def is_change(after: Recommendation) -> bool:
    return changed(decision_row(BEFORE), decision_row(after))


def test_the_first_decision_is_a_change() -> None:
    assert changed(None, decision_row(BEFORE))


@pytest.mark.parametrize("request_now", [1.0, 1.04, 0.96])
def test_requests_may_drift_by_five_percent(request_now: float) -> None:
    assert not is_change(recommendation(cpu_request=request_now))


@pytest.mark.parametrize("request_now", [1.06, 0.9])
def test_requests_that_drift_further_are_a_change(request_now: float) -> None:
    assert is_change(recommendation(cpu_request=request_now))


@pytest.mark.parametrize(
    "after",
    [
        recommendation(cpu_request=1.0, now=4),
        recommendation(cpu_request=1.0, replicas=6),
        recommendation(cpu_request=1.0, replicas=None),
        recommendation(cpu_request=1.0, reason=Reason.REACTIVE),
        replace(BEFORE, resources=Hold(Reason.SHORT_HISTORY, "2 h of 24 h")),
    ],
    ids=["present count", "count", "verdict", "reason", "resources unknown"],
)
def test_everything_else_is_a_change(after: Recommendation) -> None:
    assert is_change(after)


def test_an_amount_that_appears_is_a_change() -> None:
    without = decision_row(BEFORE)._replace(cpu_limit=None)
    assert changed(without, without._replace(cpu_limit=1.0, cpu_request=1.01))


def test_another_explanation_of_the_same_decision_is_none() -> None:
    assert not is_change(replace(BEFORE, signals=(), clamps=()))
