"""Counts over any days: offers bound them, not knowing lowers nothing, owners' counts always come back."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from forecaster.actuators.limits import MIN_GROWTH, MIN_PODS, MIN_WORKLOADS
from forecaster.actuators.scale.plan import CountOffer, due_workloads, scale_plan, undone, updated_memory
from forecaster.actuators.settings import ScaleSettings
from forecaster.actuators.writes import Change
from tests.support.builders import NOON
from tests.support.carried import carried
from tests.support.scales import FakeScales, live_scale_of

if TYPE_CHECKING:
    from forecaster.actuators.limits import Memory
    from forecaster.actuators.scale.plan import LiveScale, ScaleWrite
    from tests.support.carried import Carried

NAMES = ("a", "b")
RULES = ScaleSettings(enabled=True)

offers = st.one_of(
    st.just(CountOffer(None)),
    st.builds(
        lambda counts, lowers: CountOffer(max(counts), lowers, reactive=min(counts)),
        st.tuples(st.integers(1, 60), st.integers(1, 60)),
        st.booleans(),
    ),
)
events = st.one_of(
    *[st.tuples(st.just("offer"), st.sampled_from(NAMES), offers)] * 5,
    st.tuples(st.just("minutes"), st.just(""), st.integers(1, 90)),
    st.tuples(st.just("owner"), st.sampled_from(NAMES), st.integers(0, 10)),
    st.tuples(st.just("mode"), st.sampled_from(NAMES), st.booleans()),
    st.tuples(st.just("hpa"), st.sampled_from(NAMES), st.booleans()),
    st.tuples(st.just("restart"), st.just(""), st.none()),
    st.tuples(st.just("dies"), st.just(""), st.booleans()),
)


class Days:
    """A leader over some workloads, minute by minute, and what their owners last stated."""

    def __init__(self) -> None:
        self.cluster = FakeScales.of_all(*(live_scale_of(name) for name in NAMES))
        self.now = NOON
        self.offers = {id_: CountOffer(None) for id_ in self.cluster.workloads}
        self.scaled = dict.fromkeys(self.cluster.workloads, True)
        self.scalers = dict.fromkeys(self.cluster.workloads, False)
        self.stated = {workload.id: workload.replicas for workload in self.cluster.workloads.values()}
        self.memory: Memory = {}

    def happens(self, kind: str, name: str, value: object) -> None:
        id_ = live_scale_of(name).id
        match kind, value:
            case "offer", CountOffer():
                self.offers[id_] = value
            case "mode", bool():
                self.scaled[id_] = value
            case "hpa", bool():
                self.scalers[id_] = value
            case "owner", int():
                self.cluster.owner_sets(value, name)
                if self.cluster.workload(name).other_writers:
                    self.stated[id_] = value
            case "restart", None:
                self.memory = {}
            case "minutes", int():
                self.now += timedelta(minutes=value)
            case "dies", bool():
                self.cluster.dies = value

    def live(self) -> list[LiveScale]:
        workloads = self.cluster.workloads.values()
        return [replace(workload, scalers=("HPA web",) if self.scalers[workload.id] else ()) for workload in workloads]

    def cycle(self) -> Carried:
        known = {id_: offer for id_, offer in self.offers.items() if self.scaled[id_]}
        self.memory = updated_memory(self.memory, known, self.now, RULES)
        leaving = {id_: offer.reactive for id_, offer in self.offers.items() if not self.scaled[id_]}
        scaled = self.scaled.__getitem__
        plan = scale_plan(self.live(), known, scaled, self.memory, self.now, RULES, leaving=leaving)
        done = carried(plan, RULES, cluster=self.cluster)
        for write in done.writes:
            if write.change == Change.FORGET and self.scalers[write.subject.id]:
                self.stated[write.subject.id] = write.replicas  # the HPA's from now on
        self.now += timedelta(minutes=1)
        return done


MOVES = {Change.RAISE, Change.LOWER}


@given(st.lists(events, min_size=10, max_size=30))
def test_not_knowing_partial_input_and_a_first_look_lower_nothing(happened: list[tuple[str, str, object]]) -> None:
    days = Days()
    for event in happened:
        days.happens(*event)
        at = days.now
        for write in days.cycle().writes:
            if write.change != Change.LOWER or not days.scaled[write.subject.id]:
                continue
            offer, remembered = days.offers[write.subject.id], days.memory[write.subject.key]
            assert offer.replicas is not None
            assert offer.may_lower
            assert at - remembered.since >= RULES.lower_after
            assert write.replicas >= max(count for _, count in remembered.offered)


@given(st.lists(events, min_size=10, max_size=30))
def test_every_count_is_one_that_was_asked_for_or_on_the_way_to_it(happened: list[tuple[str, str, object]]) -> None:
    days = Days()
    for event in happened:
        days.happens(*event)
        for write in days.cycle().writes:
            offer, was = days.offers[write.subject.id], write.subject.replicas
            if write.change in MOVES and days.scaled[write.subject.id]:
                assert offer.replicas is not None
                assert min(offer.reactive or offer.replicas, was) <= write.replicas <= max(offer.replicas, was)
                assert write.replicas >= 1
                assert was > 0
                assert not write.subject.scalers


@given(st.lists(events, min_size=10, max_size=30))
def test_nothing_takes_away_what_the_measured_demand_needs(happened: list[tuple[str, str, object]]) -> None:
    """No lowering, change of the mode or back-off does so: only the owner and another autoscaler may."""
    days = Days()
    for event in happened:
        days.happens(*event)
        for write in days.cycle().writes:
            needed, was = days.offers[write.subject.id].reactive, write.subject.replicas
            if write.replicas < was:
                assert needed is not None
                assert write.replicas >= min(was, needed)


@given(st.integers(2, 60), st.integers(1, 5), st.integers(1, 400))
def test_a_foreign_count_below_the_measured_demand_lasts_until_the_next_cycle(
    before: int, foreign: int, needed: int
) -> None:
    days = Days()
    id_ = live_scale_of("a").id
    days.offers[id_] = CountOffer(before, reactive=before)
    days.cycle()
    days.happens("owner", "a", foreign)
    days.offers[id_] = CountOffer(needed, reactive=needed)
    days.cycle()
    days.cycle()
    assert days.cluster.workload("a").replicas >= needed


@given(st.lists(events, min_size=10, max_size=30))
def test_a_change_of_the_mode_brings_the_owners_count_back(happened: list[tuple[str, str, object]]) -> None:
    days = Days()
    for event in happened:
        days.happens(*event)
        days.cycle()
    days.cluster.dies = False
    days.scalers = dict.fromkeys(days.scalers, False)
    days.scaled = dict.fromkeys(days.scaled, False)
    days.offers = dict.fromkeys(days.offers, CountOffer(1, reactive=1))
    for _ in range(60):  # step by step; one that died within a restoring, or met another writer, is finished later
        days.cycle()
    assert {id_: workload.replicas for id_, workload in days.cluster.workloads.items()} == days.stated
    assert not days.cluster.marked()


@given(st.lists(events, min_size=10, max_size=30))
def test_a_release_brings_the_owners_count_back(happened: list[tuple[str, str, object]]) -> None:
    days = Days()
    for event in happened:
        days.happens(*event)
        days.cycle()
    days.cluster.dies = False
    for workload in days.cluster.marked():
        write = undone(workload, "released")
        assert write is not None
        days.cluster.write(write)
    assert {id_: workload.replicas for id_, workload in days.cluster.workloads.items()} == days.stated
    assert not days.cluster.marked()


@given(st.lists(st.tuples(st.integers(1, 60), st.integers(1, 200)), min_size=1, max_size=40))
def test_the_limits_of_a_cycle_hold(fleet: list[tuple[int, int]]) -> None:
    live = [live_scale_of(f"w{number}", count) for number, (count, _) in enumerate(fleet)]
    offers = {workload.id: CountOffer(row[1], current=row[0]) for workload, row in zip(live, fleet, strict=True)}
    memory = updated_memory({}, offers, NOON, RULES)
    plan = carried(scale_plan(live, offers, lambda _: True, memory, NOON, RULES), RULES)
    assert len(plan.writes) <= max(MIN_WORKLOADS, int(RULES.most_workloads * len(live)))
    assert sum(map(added, plan.writes)) <= max(MIN_PODS, int(RULES.most_pods * sum(count for count, _ in fleet)))
    for write in plan.writes:
        assert added(write) <= max(MIN_GROWTH, int(RULES.most_growth * write.subject.replicas))
    named = {write.subject.id for write in plan.writes} | {refusal.subject.id for refusal in plan.refusals}  # type: ignore[attr-defined]
    assert named == {workload.id for workload in live if (offers[workload.id].replicas or 0) > workload.replicas}
    due = list(due_workloads(offers, memory, NOON, RULES))
    assert set(due) == named
    growth = [(offers[id_].replicas or 0) / offers[id_].current for id_ in due]
    assert growth == sorted(growth, reverse=True)


def added(write: ScaleWrite) -> int:
    return write.replicas - write.subject.replicas


def test_a_lowering_takes_half_of_the_pods_at_most() -> None:
    days = Days()
    days.cluster = FakeScales.of_all(live_scale_of("a", 40), live_scale_of("b"))
    days.offers = dict.fromkeys(days.offers, CountOffer(3))
    counts = []
    for _ in range(10):
        days.cycle()
        counts.append(days.cluster.workload("a").replicas)
    assert counts == [40, 40, 40, 40, 40, 20, 10, 5, 3, 3]
