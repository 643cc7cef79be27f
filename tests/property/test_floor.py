"""Floors over any days: bounds hold, holding lowers nothing, limits hold, and the owner's value always comes back."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from forecaster.actuators.floor.plan import floor_plan, released
from forecaster.actuators.floor.values import FloorOffer, WrittenFloor
from forecaster.actuators.limits import MIN_GROWTH, MIN_PODS, MIN_WORKLOADS
from forecaster.actuators.settings import FloorSettings
from forecaster.actuators.writes import MANAGER, Change
from tests.support.autoscalers import FakeAutoscalers, live_hpa
from tests.support.builders import NOON
from tests.support.carried import carried

if TYPE_CHECKING:
    from forecaster.actuators.floor.plan import FloorPlan
    from forecaster.actuators.floor.values import LiveAutoscaler
    from forecaster.actuators.limits import Memory
    from tests.support.carried import Carried

NAMES = ("a", "b")
RULES = FloorSettings(enabled=True)
UNLIMITED = RULES.model_copy(update={"most_workloads": 1.0, "most_pods": 1000.0, "most_growth": 1000.0})

offers = st.one_of(
    st.just(FloorOffer(None)),
    st.builds(FloorOffer, st.integers(0, 60), st.booleans()),
    st.builds(FloorOffer, st.just(0)),
)
offered = st.tuples(st.just("offer"), st.sampled_from(NAMES), offers)
events = st.one_of(
    *[offered] * 5,
    st.tuples(st.just("minutes"), st.just(""), st.integers(4, 8)),
    st.tuples(st.just("owner"), st.sampled_from(NAMES), st.integers(1, 10)),
    st.tuples(st.just("mode"), st.sampled_from(NAMES), st.booleans()),
    st.tuples(st.just("restart"), st.just(""), st.none()),
    st.tuples(st.just("minutes"), st.just(""), st.integers(1, 90)),
    st.tuples(st.just("dies"), st.just(""), st.booleans()),
)


class Days:
    """A leader over some HPAs, minute by minute, and what their owners last stated."""

    def __init__(self, rules: FloorSettings = RULES) -> None:
        self.cluster = FakeAutoscalers.of(*(live_hpa(name) for name in NAMES))
        self.rules = rules
        self.now = NOON
        self.offers = {hpa.target: FloorOffer(None) for hpa in self.cluster.listed()}
        self.floored = {hpa.target: True for hpa in self.cluster.listed()}
        self.stated = {hpa.key: hpa.min_replicas for hpa in self.cluster.listed()}
        self.memory: Memory = {}

    def happens(self, kind: str, name: str, value: object) -> None:
        target = live_hpa(name).target
        match kind, value:
            case "offer", FloorOffer():
                self.offers[target] = value
            case "mode", bool():
                self.floored[target] = value
            case "owner", int():
                self.cluster.owner_sets(value, name)
                if self.cluster.hpas["shop", name].other_writers:
                    self.stated["shop", name] = value
            case "restart", None:
                self.memory = {}
            case "minutes", int():
                self.now += timedelta(minutes=value)
            case "dies", bool():
                self.cluster.dies = value

    def plan(self) -> FloorPlan:
        return floor_plan(
            self.cluster.listed(), self.offers, lambda id_: self.floored[id_], self.memory, self.now, self.rules
        )

    def cycle(self) -> Carried:
        plan = self.plan()
        self.memory = plan.memory
        done = carried(plan, self.rules, cluster=self.cluster)
        self.now += timedelta(minutes=1)
        return done


@given(st.lists(events, min_size=10, max_size=30))
def test_every_write_is_within_bounds_and_none_lowers_below_the_owners_value(
    happened: list[tuple[str, str, object]],
) -> None:
    days = Days()
    for event in happened:
        days.happens(*event)
        before = {hpa.key: hpa for hpa in days.cluster.listed()}
        for write in days.cycle().writes:
            was = before[write.subject.key]
            assert write.min_replicas <= was.max_replicas
            assert write.min_replicas >= days.stated[was.key]


@given(st.lists(events, min_size=10, max_size=30))
def test_holding_and_partial_input_lower_nothing_but_what_has_expired(happened: list[tuple[str, str, object]]) -> None:
    days = Days()
    for event in happened:
        days.happens(*event)
        at = days.now
        for write in days.cycle().writes:
            offer, floor = days.offers[write.subject.target], write.subject.floor
            unsure = days.floored[write.subject.target] and (offer.floor is None or not offer.may_lower)
            if unsure and write.min_replicas < write.subject.min_replicas:
                assert floor is not None
                assert offer.floor is None
                assert floor.expires <= at


@given(st.lists(events, min_size=10, max_size=30))
def test_the_owners_value_always_comes_back(happened: list[tuple[str, str, object]]) -> None:
    """By `release`, whatever happened before, also after the process died between the steps of a restoring."""
    days = Days()
    for event in happened:
        days.happens(*event)
        days.cycle()
    days.cluster.dies = False
    for hpa in days.cluster.listed(marked=True):
        write = released(hpa, days.now, expired=False)
        assert write is not None
        days.cluster.write(write)
    for hpa in days.cluster.listed():
        assert hpa.min_replicas == days.stated[hpa.key]
        assert (hpa.floor, hpa.marked, hpa.backed_off_until) == (None, False, None)
        assert "forecaster" not in hpa.writers


@given(st.lists(events, min_size=10, max_size=30))
def test_a_change_of_the_mode_undoes_everything_in_one_cycle(happened: list[tuple[str, str, object]]) -> None:
    days = Days()
    for event in happened:
        days.happens(*event)
        days.cycle()
    days.cluster.dies = False
    days.floored = dict.fromkeys(days.floored, False)
    days.cycle()
    days.cycle()  # one that died within a restoring, or met another writer, is finished by the next one
    assert {hpa.key: hpa.min_replicas for hpa in days.cluster.listed()} == days.stated
    assert not days.cluster.listed(marked=True)


@given(st.lists(events, max_size=20))
def test_what_was_written_is_not_written_again(happened: list[tuple[str, str, object]]) -> None:
    days = Days(UNLIMITED)
    for event in happened:
        days.happens(*event)
        at = days.now
        days.cycle()
        days.now = at
        again = [write.change for write in days.cycle().writes]
        # A restoring that died is finished; one whose time of backing off is over is raised after its marks went.
        assert set(again) <= {Change.FORGET, Change.RAISE}
        days.now = at
        assert days.cycle().writes == [] or days.cluster.dies


@given(
    st.lists(
        st.tuples(st.integers(1, 30), st.integers(0, 60), st.integers(1, 60), st.integers(0, 200)),
        min_size=1,
        max_size=40,
    ),
    st.floats(0.01, 1.0),
    st.floats(0.01, 1.0),
    st.floats(0.1, 3.0),
)
def test_the_limits_of_a_cycle_hold(
    fleet: list[tuple[int, int, int, int]], workloads: float, pods: float, growth: float
) -> None:
    rules = FloorSettings(enabled=True, most_workloads=workloads, most_pods=pods, most_growth=growth)
    hpas = [
        live_hpa(f"w{number}", lowest, lowest + above, replicas=there)
        for number, (lowest, above, there, _) in enumerate(fleet)
    ]
    offers = {hpa.target: FloorOffer(row[3]) for hpa, row in zip(hpas, fleet, strict=True)}
    plan = carried(floor_plan(hpas, offers, lambda _: True, {}, NOON, rules), rules)
    assert len(plan.writes) <= max(MIN_WORKLOADS, int(workloads * len(hpas)))
    assert sum(map(added, plan.writes)) <= max(MIN_PODS, int(pods * sum(hpa.replicas for hpa in hpas)))
    for write in plan.writes:
        there = max(write.subject.replicas, write.subject.min_replicas)
        assert added(write) <= max(MIN_GROWTH, int(growth * there))
        assert write.min_replicas > write.subject.min_replicas
    moved = {write.subject.name for write in plan.writes} | {each.subject.name for each in plan.refusals}
    wants = {hpa.name for hpa in hpas if min(offers[hpa.target].floor or 0, hpa.max_replicas) > hpa.min_replicas}
    assert moved == wants  # every change that is not written is reported


def added(write: object) -> int:
    """Pods that a write makes the HPA add."""
    hpa: LiveAutoscaler = write.subject  # type: ignore[attr-defined]
    return max(0, write.min_replicas - max(hpa.replicas, hpa.min_replicas))  # type: ignore[attr-defined]


def test_a_large_fleet_is_moved_and_undone_by_500_in_a_cycle() -> None:
    hpas = [live_hpa(f"w{number}", replicas=40) for number in range(4000)]
    offers = {hpa.target: FloorOffer(5) for hpa in hpas}
    assert len(carried(floor_plan(hpas, offers, lambda _: True, {}, NOON, RULES), RULES).writes) == 500
    raised = [replace(hpa, marked=True, floor=WrittenFloor(2, NOON), writers=frozenset({MANAGER})) for hpa in hpas]
    undone = carried(floor_plan(raised, offers, lambda _: False, {}, NOON, RULES), RULES).writes
    restored = [write for write in undone if write.change == Change.RESTORE]
    assert {write.min_replicas for write in restored} == {2}
    assert len(restored) == 500


def test_a_floor_whose_change_waits_is_renewed_meanwhile() -> None:
    due = WrittenFloor(2, NOON + timedelta(minutes=3))
    raised = [
        replace(live_hpa(f"w{number}", lowest=4), marked=True, floor=due, writers=frozenset({MANAGER}))
        for number in range(MIN_WORKLOADS + 2)
    ]
    offers = {hpa.target: FloorOffer(6) for hpa in raised}
    plan = carried(floor_plan(raised, offers, lambda _: True, {}, NOON, RULES), RULES)
    assert {write.subject.name for write in plan.writes} == {hpa.name for hpa in raised}
    waiting = {refusal.subject.name for refusal in plan.refusals}
    renewed = [write for write in plan.writes if write.subject.name in waiting]
    assert {(write.change, write.min_replicas) for write in renewed} == {(Change.RENEW, 4)}
    until = NOON + RULES.expires_after
    assert all(write.floor == WrittenFloor(2, until, write.subject.target.path) for write in plan.writes)
