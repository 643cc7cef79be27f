"""Our policy behind its gate: the forecast acts where the service's own gate would let it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from forecaster.decisions.gate import Gate, Standing, Voice
from forecaster.domain.policies import Policies
from forecaster.domain.policy import Policy
from forecaster.domain.signal import CPU, Signal
from forecaster.forecasting.forecaster import PeakSpan
from forecaster.replay import Terms, Traces, compare
from forecaster.replay.contestants import HPA, gated_with, policy_with
from forecaster.replay.foresight import Foresight
from forecaster.replay.gated import Course, Stood, acting_of, naive_minutes, spoken
from forecaster.replay.sight import sight_of
from tests.support.builders import NOON, hpa, minutes, workload

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forecaster.replay.foresee import Question
    from forecaster.replay.sight import Sight

DAY = 1440
ACTING, SEASONAL = Gate(Standing.ACTING), Gate(Standing.ACTING, Voice.SEASONAL)


def traces(before: int, length: int) -> Traces:
    """One workload with a peak of an hour each day, which begins at noon."""
    minute = np.arange(before + length) - before
    cores = np.where(minute % DAY < 60, 8.0, 1.0)
    one = workload(autoscaler=hpa(lowest=1, highest=100))
    return Traces((one,), NOON - minutes(before - 1), {CPU: cores[None]})


def boundless(sight: Sight, signals: Sequence[Signal], question: Question) -> Foresight:
    """Expects far more than comes."""
    values = np.full((sight.minutes, len(sight.traces.workloads), 1), 30.0)
    return Foresight(question.model, question.span, (0.5,), dict.fromkeys(signals, values))


def test_a_forecast_that_cannot_be_judged_yet_has_no_say() -> None:
    recorded = traces(200, 100)
    both = (HPA, policy_with("any"), gated_with("any"))
    outcome = compare(
        recorded,
        Policies(Policy()),
        both,
        begin=NOON,
        until=recorded.end,
        terms=Terms(shares=(1.0,)),
        foresee=boundless,
    )
    (stood,) = outcome.gates.values()
    assert [one.gate.standing for one in stood] == [Standing.OBSERVE]
    assert outcome.own("gated").pod_hours < outcome.own("policy").pod_hours / 2
    assert outcome.own("gated").missing == outcome.own(HPA.name).missing


def test_a_gate_is_judged_with_every_day_by_what_was_known_then() -> None:
    recorded = traces(4 * DAY, 2 * DAY)
    sight = sight_of(recorded, NOON, 2 * DAY - 1)
    stood = Course(sight, Terms()).of(0, Policy())
    assert [one.minute for one in stood] == [0, DAY]
    assert all(one.gate.since is not None for one in stood)


def test_it_acts_from_the_day_on_that_let_it() -> None:
    stood = (Stood(0, Gate()), Stood(3, ACTING))
    assert acting_of(stood, 5).tolist() == [False, False, False, True, True]


def test_yesterday_speaks_where_it_has_the_word() -> None:
    recorded = traces(2 * DAY, 2 * DAY)
    sight = sight_of(recorded, NOON, 2 * DAY - 1)
    flat = Foresight("model", PeakSpan(minutes(5), minutes(5)), (0.5, 0.9), {CPU: np.full((2 * DAY - 1, 1, 2), 3.0)})
    stood = (Stood(0, ACTING), Stood(DAY, SEASONAL))
    assert naive_minutes(stood, DAY + 2) == [DAY, DAY + 1]
    said = spoken(flat, {0: stood}, Course(sight, Terms())).values[CPU][:, 0]
    assert said[DAY - 1].tolist() == [3.0, 3.0]
    assert said[DAY + 20].tolist() == [8.0, 8.0]
    assert said[DAY + 600].tolist() == [1.0, 1.0]
