"""Promises of every decision, for each workload, policy, demand and forecast."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from hypothesis import assume, given
from hypothesis import strategies as st

from forecaster.domain.decision import Hold, Scale
from forecaster.domain.signal import CPU, DEMAND, MEMORY, REQUESTS, Measured, Signal
from forecaster.domain.workload import Autoscaler, Resources, Target, TargetType, Workload
from forecaster.horizontal.state import State
from forecaster.hpa.numbers import MAX_INT32
from tests.support.builders import GIB, NO_FORECAST, NO_SAMPLE, NOON, STALE, after, ahead, measured, policy, workload_id
from tests.support.horizontal import NEVER_SEEN, NOTHING_BEFORE, decide, recommended, recommended_before
from tests.support.outlook import SignalForecast

if TYPE_CHECKING:
    from forecaster.domain.decision import Recommendation
    from forecaster.domain.policy import Policy

MOST = {CPU: 1000.0, MEMORY: 4000 * GIB, REQUESTS: 1e5}
UNKNOWN = st.sampled_from((NO_SAMPLE, STALE))


@dataclass(frozen=True)
class Case:
    """All inputs of one decision."""

    workload: Workload
    outlooks: dict[Signal, SignalForecast]
    policy: Policy
    state: State

    def decide(self) -> tuple[Recommendation, State]:
        return decide(self.workload, self.outlooks, self.policy, self.state, NOON)

    @property
    def count(self) -> int:
        return self.decide()[0].recommended_replicas

    def seeing(self, signal: Signal, **sides: object) -> Case:
        """Return the case with another measurement or forecast of one signal."""
        return replace(self, outlooks={**self.outlooks, signal: replace(self.outlooks[signal], **sides)})


def demands(signal: Signal) -> st.SearchStrategy[float]:
    return st.one_of(st.just(0.0), st.floats(0.0, MOST[signal]), st.floats(0.0, MOST[signal] / 100))


@st.composite
def outlooks(draw: st.DrawFn, signal: Signal) -> SignalForecast:
    now = draw(st.one_of(demands(signal).map(measured), UNKNOWN))
    coming = draw(st.one_of(demands(signal).map(ahead), st.just(NO_FORECAST)))
    return SignalForecast(signal, now, coming)


TARGETS = st.one_of(
    st.builds(
        Target,
        st.sampled_from(("cpu", "memory")),
        st.just(TargetType.UTILIZATION),
        st.integers(1, 200).map(lambda percent: percent / 100),
    ),
    st.builds(Target, st.just("cpu"), st.just(TargetType.AVERAGE_VALUE), st.floats(0.01, 8.0)),
    st.builds(Target, st.just("rate"), st.just(TargetType.AVERAGE_VALUE), st.floats(1.0, 1000.0)),
    st.builds(Target, st.just("queue"), st.just(TargetType.AVERAGE_VALUE), st.floats(1.0, 1000.0)),
)
AUTOSCALERS = st.builds(
    lambda lowest, more, targets: Autoscaler("web-hpa", lowest, lowest + more, tuple(targets)),
    st.integers(0, 20),
    st.integers(1, 200),
    st.lists(TARGETS, max_size=4),
)
WORKLOADS = st.builds(
    Workload,
    st.just(workload_id()),
    st.integers(0, 60),
    st.integers(0, 70),
    st.builds(
        Resources,
        cpu_request=st.none() | st.floats(0.01, 16.0),
        memory_request=st.none() | st.floats(GIB / 64, 64 * GIB),
    ),
    st.none() | AUTOSCALERS,
)
POLICIES = st.builds(
    policy,
    scale_in_by_forecast=st.booleans(),
    min_replicas=st.none() | st.integers(1, 10),
    max_replicas=st.none() | st.integers(10, 80),
    tolerance=st.sampled_from((0.0, 0.1, 0.35)),
    requests_metric=st.just("rate"),
    requests_per_pod=st.none() | st.floats(1.0, 1000.0),
    scale_down_stabilization=st.sampled_from((0, 60, 300, 3600)).map(lambda seconds: timedelta(seconds=seconds)),
)
STATES = st.lists(st.tuples(st.integers(0, 100), st.floats(0, 90)), max_size=6).map(
    lambda entries: recommended_before(*entries)
)
OUTLOOKS = st.fixed_dictionaries({signal: outlooks(signal) for signal in DEMAND})
CASES = st.builds(Case, WORKLOADS, OUTLOOKS, POLICIES, STATES)
SETTLED = CASES.map(lambda case: replace(case, workload=within_bounds(case)))
"""A hold keeps a size beyond the bounds where a number would be bounded: stories that compare the two start within."""
SIGNALS = st.sampled_from(DEMAND)


def bounds(case: Case) -> tuple[int, int]:
    horizontal, hpa = case.policy.horizontal, case.workload.autoscaler
    highest = horizontal.max_replicas or (hpa.max_replicas if hpa else MAX_INT32)
    lowest = horizontal.min_replicas or (max(hpa.min_replicas, 1) if hpa else 1)
    return min(lowest, highest), highest


def bounded(count: int, case: Case) -> int:
    lowest, highest = bounds(case)
    return min(max(count, lowest), highest)


def within_bounds(case: Case) -> Workload:
    replicas = case.workload.replicas
    return replace(case.workload, replicas=replicas and bounded(replicas, case))


@given(SETTLED, SIGNALS, st.data())
def test_more_measured_demand_never_means_fewer_replicas(case: Case, signal: Signal, data: st.DataObject) -> None:
    low, high = sorted((data.draw(demands(signal)), data.draw(demands(signal))))
    counts = [case.seeing(signal, measured=measured(value)).count for value in (low, high)]
    assert counts == sorted(counts)


@given(SETTLED, SIGNALS, st.data())
def test_a_higher_forecast_never_means_fewer_replicas(case: Case, signal: Signal, data: st.DataObject) -> None:
    low, high = sorted((data.draw(demands(signal)), data.draw(demands(signal))))
    counts = [case.seeing(signal, ahead=ahead(value)).count for value in (low, high)]
    assert counts == sorted(counts)


@given(SETTLED)
def test_without_leave_a_forecast_never_lowers_what_the_measured_demand_asks(case: Case) -> None:
    assume(not case.policy.horizontal.scale_in_by_forecast)
    blind = replace(case, outlooks={s: replace(outlook, ahead=NO_FORECAST) for s, outlook in case.outlooks.items()})
    assert case.count >= blind.count


@given(CASES)
def test_the_count_reaches_what_every_single_signal_asks(case: Case) -> None:
    decided, _ = case.decide()
    assume(isinstance(decided.replicas, Scale) and not case.policy.horizontal.scale_in_by_forecast)
    proposed = [count for view in decided.signals for count in (view.reactive_replicas, view.forecast_replicas)]
    assert decided.recommended_replicas >= bounded(max(count for count in proposed if count is not None), case)


@given(CASES)
def test_bounds_hold_for_every_number_that_is_given(case: Case) -> None:
    decided, _ = case.decide()
    assume(isinstance(decided.replicas, Scale))
    lowest, highest = bounds(case)
    assert lowest <= decided.recommended_replicas <= highest


@given(CASES, UNKNOWN)
def test_without_data_the_count_never_changes(case: Case, unknown: object) -> None:
    silent = {signal: replace(outlook, measured=unknown) for signal, outlook in case.outlooks.items()}
    decided, state = replace(case, outlooks=silent).decide()
    assert isinstance(decided.replicas, Hold)
    assert decided.recommended_replicas == case.workload.replicas
    assert set(recommended(state)) <= set(recommended(case.state))


@given(CASES, SIGNALS, UNKNOWN)
def test_losing_a_signal_never_takes_a_workload_below_its_present_size(
    case: Case, signal: Signal, unknown: object
) -> None:
    blind = case.seeing(signal, measured=unknown)
    decided, _ = blind.decide()
    assume(any(view.signal == signal and view.target for view in decided.signals))
    assert decided.recommended_replicas >= bounded(case.workload.replicas, case) or isinstance(decided.replicas, Hold)


@given(CASES)
def test_part_of_a_sum_never_takes_a_workload_below_its_present_size(case: Case) -> None:
    parts = {
        signal: replace(outlook, measured=replace(outlook.measured, lower_bound="1 of 2 pods"))
        for signal, outlook in case.outlooks.items()
        if isinstance(outlook.measured, Measured)
    }
    decided, _ = replace(case, outlooks=case.outlooks | parts).decide()
    stays = decided.recommended_replicas >= bounded(case.workload.replicas, case) or isinstance(decided.replicas, Hold)
    assert stays or not any(view.signal in parts and view.target for view in decided.signals)


@given(st.integers(1, 60), st.floats(1.2, 4.0), POLICIES, STATES)
def test_part_of_a_sum_raises_as_the_whole_would(pods: int, load: float, under: Policy, state: State) -> None:
    """Every pod is filled more than it should be, and nothing is forecast."""
    hpa = Autoscaler("web-hpa", 1, 500, (Target("cpu", TargetType.UTILIZATION, 0.5),))
    full = Workload(workload_id(), pods, pods, Resources(cpu_request=1.0), hpa)
    whole = Case(full, {CPU: SignalForecast(CPU, measured(pods * 0.5 * load), NO_FORECAST)}, under, state)
    part = replace(measured(pods * 0.5 * load), lower_bound="1 of 2 pods")
    assert whole.seeing(CPU, measured=part).count == whole.count


@given(CASES, st.randoms())
def test_the_order_of_targets_and_signals_is_irrelevant(case: Case, random: object) -> None:
    hpa = case.workload.autoscaler
    assume(hpa is not None)
    targets, outlooks = list(hpa.targets), list(case.outlooks.items())
    random.shuffle(targets)
    random.shuffle(outlooks)
    shuffled = replace(case.workload, autoscaler=replace(hpa, targets=tuple(targets)))
    assert replace(case, workload=shuffled, outlooks=dict(outlooks)).count == case.count


@given(CASES, st.floats(-0.9, 1.0), st.sampled_from((0.1, 0.35)))
def test_within_the_tolerance_nothing_moves(case: Case, deviation: float, tolerance: float) -> None:
    """All pods ready and CPU about at its target of half a core a pod, measured and forecast.

    The last tenth of the lower side belongs to the HPA's cutting of utilization to whole percent.
    """
    replicas = bounded(case.workload.replicas or 1, case)
    hpa = Autoscaler("web-hpa", *bounds(case), (Target("cpu", TargetType.UTILIZATION, 0.5),))
    pods = Workload(workload_id(), replicas, replicas, Resources(cpu_request=1.0), hpa)
    cpu = replicas * 0.5 * (1 + deviation * tolerance)
    outlooks = {CPU: SignalForecast(CPU, measured(cpu), ahead(cpu))}
    calm = replace(case, workload=pods, outlooks=outlooks, policy=policy(tolerance=tolerance), state=NOTHING_BEFORE)
    assert calm.count == replicas


@given(CASES)
def test_scaling_down_never_goes_below_the_highest_recommendation_of_the_window(case: Case) -> None:
    decided, _ = case.decide()
    assume(isinstance(decided.replicas, Scale))
    begin = NOON - case.policy.horizontal.scale_down_stabilization
    recent = [replicas for replicas, at in recommended(case.state) if at >= begin]
    assert decided.recommended_replicas >= bounded(max(recent, default=0), case)


@given(CASES)
def test_the_steps_lead_without_a_jump_from_the_formula_to_the_number(case: Case) -> None:
    decided, _ = case.decide()
    assume(isinstance(decided.replicas, Scale) and all(view.reactive_replicas is not None for view in decided.signals))
    formula = max(view.reactive_replicas for view in decided.signals)
    assert [formula, *(clamp.after for clamp in decided.clamps)] == [
        *(clamp.before for clamp in decided.clamps),
        decided.recommended_replicas,
    ]
    assert all(clamp.before != clamp.after for clamp in decided.clamps)


@given(WORKLOADS, POLICIES, st.lists(OUTLOOKS, min_size=2, max_size=8), st.integers(0, 8))
def test_going_on_from_a_stored_state_equals_one_run(
    workload: Workload, under: Policy, outlooks: list[dict[Signal, SignalForecast]], cut: int
) -> None:
    def run(begin: int, end: int, state: State, replicas: int) -> tuple[list[Recommendation], State, int]:
        decided = []
        for minute in range(begin, end):
            pods = replace(workload, replicas=replicas)
            recommendation, state = decide(pods, outlooks[minute], under, state, after(minute))
            decided.append(recommendation)
            replicas = recommendation.recommended_replicas
        return decided, state, replicas

    cut = min(cut, len(outlooks))
    whole, end_state, _ = run(0, len(outlooks), NEVER_SEEN, workload.replicas)
    first, state, replicas = run(0, cut, NEVER_SEEN, workload.replicas)
    second, second_state, _ = run(cut, len(outlooks), State.of_arrays(state.arrays()), replicas)
    assert first + second == whole
    assert recommended(second_state) == recommended(end_state)


@given(CASES)
def test_deciding_twice_gives_the_same(case: Case) -> None:
    (first, state), (other, again) = case.decide(), case.decide()
    assert (first, recommended(state)) == (other, recommended(again))
