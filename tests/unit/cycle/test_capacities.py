"""Capacity in the cycle: throttled pods carry less than their request, a rollout that costs more is learned anew."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from forecaster.cycle.observed import Observed
from forecaster.domain.policies import Policies
from forecaster.domain.signal import BUILT_IN, CPU, REQUESTS, Signal, Signals
from forecaster.domain.signal import PODS as PODS_SIGNAL
from forecaster.domain.workload import ContainerBlock, ContainerFacts, ContainerId, Resources, Target, TargetType
from forecaster.horizontal.sentences import explanation
from forecaster.replay.judging import full_pods
from tests.support.builders import CPU_HALF, NOON, after, hpa, minutes, policy, workload
from tests.support.fakes import CycleOnFakes, FakeSource, Load, named

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime, timedelta

    from forecaster.domain.workload import Workload, WorkloadId

WEB = workload("web")
APP = ContainerId(WEB.id, "app")
BY_WORTH = Policies(policy(sizing="newsvendor"))
PODS = 4.0


@dataclass
class Telling(FakeSource):
    """A source with one container, and the share of the last hour in which it was throttled."""

    held_back: dict[ContainerId, float] = field(default_factory=dict)
    image: str = "shop/web:1"
    carried: dict[tuple[WorkloadId, str], float] = field(default_factory=dict)

    def containers(self, at: datetime) -> ContainerFacts:
        return ContainerFacts(images={APP: self.image}, held_back=self.held_back, carried=self.carried)

    def container_usage(
        self, signal: Signal, start: datetime, end: datetime, step: timedelta
    ) -> Iterator[ContainerBlock]:
        yield ContainerBlock((APP,), start, step, np.ones((1, (end - start) // step + 1)))


def sawtooth(low: float, high: float) -> Callable[[datetime], float]:
    """Usage of all pods that rises from `low` to `high` within each hour."""
    return lambda at: PODS * (low + (high - low) * ((at - NOON) / minutes(60) % 1))


class Stage(CycleOnFakes):
    """A cycle over one workload, run once an hour, which is how often containers are read."""

    def __init__(
        self, load: Load, held_back: float | None = None, *, policies: Policies = BY_WORTH, observed: bytes = b""
    ) -> None:
        super().__init__(load, policies=policies)
        shares = {} if held_back is None else {APP: held_back}
        self.source = self.cycle.source = Telling([load], held_back=shares)
        if observed:
            self.cycle.decider.observed.restore(observed)

    def hours(self, first: int, last: int) -> Stage:
        for hour in range(first, last + 1):
            self.run(after(60 * hour))
        return self

    def known(self, signal: Signal = CPU) -> tuple[float, int]:
        capacity = self.cycle.decider.observed.capacities.known[WEB.id, signal]
        return capacity.amount, capacity.minutes


def busy(workload: Workload = WEB, *, low: float = 0.3, high: float = 0.7) -> Load:
    return Load(workload, {CPU: sawtooth(low, high), PODS_SIGNAL: lambda at: PODS})


def test_throttling_at_seventy_percent_of_the_request_brings_the_capacity_down_to_there() -> None:
    stage = Stage(busy(), held_back=0.4).hours(0, 8)
    amount, learned_minutes = stage.known()
    assert 0.6 < amount < 0.72
    assert learned_minutes == 9 * 15
    assumed, learned = (named(each.run(after(481)), "web").signals[0] for each in (Stage(busy()).hours(0, 8), stage))
    assert learned.target == f"50 % of 1000m a pod, full at {amount * 1000:.0f}m (learned from 2 h, throttled above)"
    assert assumed.forecast_replicas is not None
    assert learned.forecast_replicas is not None
    assert learned.forecast_replicas > assumed.forecast_replicas


def test_explain_and_gates_take_the_same_pod_for_full() -> None:
    stage = Stage(busy(), held_back=0.4).hours(0, 8)
    amount, _ = stage.known()
    in_force = stage.cycle.decider.observed.in_force(BY_WORTH)
    assert full_pods(WEB, in_force.of(WEB.id).horizontal) == {CPU: amount}
    assert any("full at" in line for line in explanation(named(stage.run(after(481)), "web")))
    assert in_force.of(WEB.id) is stage.cycle.decider.observed.in_force(BY_WORTH).of(WEB.id)


def test_it_falls_no_lower_than_the_target_that_its_owner_has_tried() -> None:
    amount, _ = Stage(busy(low=0.1, high=0.3), held_back=0.9).hours(0, 12).known()
    assert amount == pytest.approx(0.5, abs=0.03)


def test_loads_beyond_the_request_that_were_carried_well_raise_it_up_to_the_limit() -> None:
    amount, _ = Stage(busy(low=1.0, high=1.5), held_back=0.0).hours(0, 12).known()
    assert 1.3 < amount < 1.5
    most, _ = Stage(busy(low=3.0, high=4.0), held_back=0.0).hours(0, 12).known()
    assert most == pytest.approx(2.0, abs=0.05)


def test_where_throttling_is_not_known_nothing_is_learned() -> None:
    assert Stage(busy()).hours(0, 4).cycle.decider.observed.capacities.known == {}


@pytest.mark.parametrize("stated", [{"sizing": "quantile"}, {"sizing": "newsvendor", "peak_target": 1.2}])
def test_where_capacity_decides_nothing_it_is_not_learned(stated: dict[str, object]) -> None:
    stage = Stage(busy(), held_back=0.4, policies=Policies(policy(**stated))).hours(0, 4)
    assert stage.cycle.decider.observed.capacities.known == {}
    assert named(stage.run(after(300)), "web").signals[0].target == "50 % of 1000m a pod"


def test_minutes_in_which_pods_come_or_go_are_not_learned_from() -> None:
    restless = replace(busy(), workload=WEB)
    restless.demand[PODS_SIGNAL] = lambda at: 4.0 + (at - NOON) // minutes(5) % 2
    _, learned_minutes = Stage(restless, held_back=0.4).hours(0, 3).known()
    assert learned_minutes == 0


class TestRollout:
    TARGET = Target("http_requests_per_second", TargetType.AVERAGE_VALUE, 40.0)

    def stage(self, cost_later: float, target: Target = TARGET) -> Stage:
        """Pods carry 70 requests/s for 0.7 cores; after six hours another image comes, at another cost."""
        serving = workload("web", autoscaler=hpa(target))
        cost = lambda at: 0.01 if at <= after(360) else cost_later  # noqa: E731
        load = Load(
            serving,
            {
                REQUESTS: lambda at: 70.0 * PODS,
                CPU: lambda at: 70.0 * PODS * cost(at),
                PODS_SIGNAL: lambda at: PODS,
            },
        )
        stage = Stage(
            load, held_back=0.0, policies=Policies(policy(sizing="newsvendor", requests_metric=self.TARGET.metric))
        )
        stage.hours(0, 6)
        assert isinstance(stage.source, Telling)
        stage.source.image = "shop/web:2"
        return stage

    def test_one_that_costs_more_a_request_begins_anew(self) -> None:
        stage = self.stage(cost_later=0.018)
        assert stage.known(REQUESTS)[0] > 65
        stage.hours(7, 7)
        assert stage.known(REQUESTS)[1] >= 360
        stage.hours(8, 8)
        amount, learned_minutes = stage.known(REQUESTS)
        assert 40 < amount < 60
        assert learned_minutes <= 60

    @pytest.mark.parametrize(("cost_later", "anew"), [(0.018, True), (0.0105, False)])
    def test_cpu_is_learned_anew_too_where_a_request_costs_more_of_it(self, cost_later: float, *, anew: bool) -> None:
        _, learned_minutes = self.stage(cost_later, CPU_HALF).hours(7, 8).known(CPU)
        assert (learned_minutes <= 60) is anew

    def test_one_that_costs_as_much_goes_on_with_what_was_learned(self) -> None:
        stage = self.stage(cost_later=0.0105)
        before, _ = stage.known(REQUESTS)
        amount, learned_minutes = stage.hours(7, 9).known(REQUESTS)
        assert amount == pytest.approx(before, rel=0.02)
        assert learned_minutes > 360


def test_a_restart_goes_on_with_what_was_learned() -> None:
    before = Stage(busy(), held_back=0.4).hours(0, 8)
    later = Stage(busy(), held_back=0.4, observed=before.cycle.decider.observed.encoded())
    assert later.known() == before.known()
    later.run(after(540))
    assert "full at" in named(later.run(after(541)), "web").signals[0].target


def test_a_workload_that_had_to_wait_comes_first_after_the_next_reading() -> None:
    """Each hourly cycle learns one of two workloads."""
    crowd = [busy(workload(f"web-{i}")) for i in range(2)]
    stage = CycleOnFakes(*crowd, policies=BY_WORTH)
    capacities = stage.cycle.decider.observed.capacities
    stage.source = stage.cycle.source = Telling(crowd)
    firsts = []
    for hour in range(3):
        stage.run(after(60 * hour))
        firsts.append([waiting.id.name for waiting in capacities.waiting])
    assert firsts == [["web-1"], ["web-0"], ["web-1"]]


def test_what_is_known_of_others_is_forgotten_with_them() -> None:
    observed = Observed()
    observed.restore(Stage(busy(), held_back=0.4).hours(0, 2).cycle.decider.observed.encoded())
    observed.forget_others(set())
    assert observed.capacities.known == {}


def test_the_work_of_a_signal_of_ones_own_fills_pods_too() -> None:
    """Pods carry 30 jobs for 0.7 cores of their one; throttled there, they carry no more."""
    jobs = Signal("jobs", unit="jobs", metrics=("jobs_running",), of_all_pods=True)
    own = Policies(policy(sizing="newsvendor"), signals=Signals((*BUILT_IN.demand, jobs)))
    web = workload("web", autoscaler=hpa(Target("jobs_running", TargetType.AVERAGE_VALUE, 10.0)))
    wave = sawtooth(0.3, 0.7)
    busy_with = Load(web, {jobs: lambda at: wave(at) * 30.0 / 0.7, CPU: wave, PODS_SIGNAL: lambda at: PODS})
    stage = Stage(busy_with, held_back=0.0, policies=own).hours(0, 6)
    assert stage.known(jobs)[0] == pytest.approx(30.0, rel=0.1)
    throttled = Stage(busy_with, held_back=0.5, policies=own).hours(0, 6)
    assert 10.0 <= throttled.known(jobs)[0] < stage.known(jobs)[0]


class TestAnswered:
    """A query says what a pod carries of a signal: a model server ran 40 requests while more waited."""

    FLIGHT = Signal("inference", unit="requests in flight", of_all_pods=True)
    POLICIES = Policies(policy(), signals=Signals((*BUILT_IN.demand, FLIGHT)))
    SERVER = replace(WEB, resources=Resources(), autoscaler=None)

    def stage(self, carried: float | None, *, observed: bytes = b"") -> Stage:
        load = Load(self.SERVER, {self.FLIGHT: lambda at: 100.0, PODS_SIGNAL: lambda at: PODS})
        stage = Stage(load, policies=self.POLICIES, observed=observed)
        stage.source.carried = {} if carried is None else {(self.SERVER.id, "inference"): carried}
        return stage

    def test_four_fifths_of_it_are_the_target_where_nothing_states_one(self) -> None:
        stage = self.stage(40.0).hours(0, 0)
        decided = named(stage.run(after(1)), "web")
        assert decided.signals[0].target.startswith("32 requests in flight a pod, full at 40 requests in flight")
        assert decided.replicas.replicas == 4  # 100 / 32, and the HPA's rounding up

    def test_without_an_answer_there_is_no_target(self) -> None:
        stage = self.stage(None).hours(0, 0)
        assert named(stage.run(after(1)), "web").replicas.reason == "no-target"

    def test_a_day_without_a_queue_and_a_restart_leave_it_known(self) -> None:
        before = self.stage(40.0).hours(0, 0)
        before.source.carried = {}
        encoded = before.hours(1, 2).cycle.decider.observed.encoded()
        decided = named(self.stage(None, observed=encoded).run(after(60 * 3)), "web")
        assert decided.signals[0].target.startswith("32 requests in flight a pod")
