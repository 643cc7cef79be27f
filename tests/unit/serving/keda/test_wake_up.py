"""From a decision about a workload at zero to KEDA's question whether it is active."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from forecaster.decisions.decide import decide
from forecaster.decisions.state import ScalingState
from forecaster.domain.policy import Policy
from forecaster.domain.workload import Target, TargetType
from forecaster.publish.values import AskedAt, OfferedValue, value_of
from forecaster.serving.keda.trigger import Trigger, active, parse_trigger
from tests.support.builders import NO_FORECAST, NOON, hpa, outlooks, workload
from tests.support.published import offer_of

if TYPE_CHECKING:
    from forecaster.domain.outlook import Unknown

OF_KEDA = Target("s0-forecaster-requests", TargetType.AVERAGE_VALUE, 100.0)
METADATA = {"signal": "requests", "target": "100", "activationTarget": "1"}


def is_active(now: float | Unknown, coming: float | Unknown) -> bool | None:
    """What KEDA is told of a workload at zero; None where that is an error."""
    trigger = parse_trigger("shop", "web", METADATA)
    assert isinstance(trigger, Trigger)
    asleep = workload(replicas=0, autoscaler=hpa(OF_KEDA))
    policy = Policy(mode="publish")
    seen = outlooks(requests=now, requests_ahead=coming)
    recommendation, _ = decide(asleep, seen, policy, ScalingState(), NOON)
    published = offer_of(recommendation, policy)
    assert published
    moment = AskedAt(NOON + timedelta(seconds=10), NOON, fresh=True)
    value = value_of(published, "forecaster_demand", moment, signal="requests", target=trigger.asked.target)
    return active(trigger, value) if isinstance(value, OfferedValue) else None


@pytest.mark.parametrize(
    ("now", "coming", "expected"),
    [
        pytest.param(0.0, 350.0, True, id="load is coming"),
        pytest.param(350.0, 0.0, True, id="load is there, and no forecast lowers it"),
        pytest.param(0.0, 0.2, False, id="less than the activation is coming"),
        pytest.param(0.0, NO_FORECAST, False, id="nothing is there, and nothing is forecast"),
        pytest.param(NO_FORECAST, NO_FORECAST, None, id="nothing is known"),
    ],
)
def test_a_workload_at_zero_is_woken_by_what_is_there_or_coming(
    now: float | Unknown, coming: float | Unknown, *, expected: bool | None
) -> None:
    assert is_active(now, coming) is expected
