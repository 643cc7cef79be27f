"""Roll backs over any minutes: none below measured demand, none without evidence, held for as long as stated."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from forecaster.actuators.rollback import (
    MAX_HOLD,
    Health,
    Rollback,
    lasts,
    rolled_back,
    watch_after,
    watch_of,
    watch_text,
    worse,
)
from forecaster.actuators.scale.plan import CountOffer, scale_plan, updated_memory
from forecaster.actuators.scale.scales import WATCH_LABELS, WHY_MAX, watch_in, watch_labels
from forecaster.actuators.settings import ScaleSettings
from forecaster.actuators.writes import Change
from tests.support.builders import NOON
from tests.support.scales import FakeScales, live_scale_of

RULES = ScaleSettings(enabled=True, most_pods=1.0, most_growth=10.0)
counts = st.integers(0, 12)
ratios = st.floats(0, 1)
healths = st.builds(
    Health,
    desired=st.none() | counts,
    ready=st.none() | counts,
    restarted=st.none() | counts,
    release=st.sampled_from(["", "a", "b"]),
    errors=st.none() | ratios,
    limit=st.none() | ratios,
)
offers = st.builds(
    CountOffer,
    st.none() | st.integers(1, 12),
    st.booleans(),
    st.just(3),
    reactive=st.none() | st.integers(1, 12),
)


@given(st.lists(st.tuples(offers, healths, st.integers(1, 20)), min_size=4, max_size=25))
def test_counts_fall_by_a_roll_back_to_no_fewer_than_are_measured_and_not_at_all_while_held(
    minutes: list[tuple[CountOffer, Health, int]],
) -> None:
    cluster, memory, now = FakeScales.of_all(live_scale_of()), {}, NOON
    for offer, health, later in minutes:
        workload = replace(cluster.workload(), health=health)
        known = offer if offer.replicas is not None else offer._replace(reactive=None)
        memory = updated_memory(memory, {workload.id: known}, now, RULES)
        plan = scale_plan([workload], {workload.id: known}, lambda _: True, memory, now, RULES)
        for write in plan.writes:
            if write.change == Change.ROLL_BACK and write.replicas < workload.replicas:
                assert known.reactive is not None
                assert write.replicas >= known.reactive
                assert known.may_lower
            if isinstance(workload.watch, Rollback) and lasts(workload.watch.until, now):
                assert write.change == Change.RAISE
                assert write.replicas == known.reactive
            cluster.write(replace(write, subject=cluster.workload()))
        now += timedelta(minutes=later)


@given(healths, healths, st.floats(0.01, 1))
def test_nothing_is_worse_than_itself_nor_than_what_is_not_known(before: Health, now: Health, worse_by: float) -> None:
    assert not worse(now, now, worse_by)
    assert not worse(Health(release=now.release), now, worse_by)
    assert not worse(before, Health(release=before.release), worse_by)


@given(healths, st.integers(0, 30), st.integers(1, 86_400))
def test_each_hold_is_twice_the_one_before_and_a_day_at_most(health: Health, times: int, seconds: int) -> None:
    rules = RULES.model_copy(update={"rolled_back_for": timedelta(seconds=seconds)})
    watched = watch_after(Rollback(NOON, times, "so"), 3, health, NOON, rules, raised=True)
    if watched is not None:
        rollback = rolled_back(watched, "so", NOON, rules)
        assert rollback.until - NOON == min(timedelta(seconds=seconds) * 2 ** min(times, 20), MAX_HOLD)
        assert rollback.times == times + 1


@given(healths)
def test_what_is_written_down_is_read_again(health: Health) -> None:
    watched = watch_after(None, 3, health, NOON, RULES, raised=False)
    assert watched is None or watch_of({"forecaster.dev/watched": watch_text(watched)}) == watched


@given(healths, st.text(max_size=400))
def test_labels_state_the_same_as_the_annotation(health: Health, why: str) -> None:
    """A controller copies annotations of a workload to its objects; labels have 63 letters of a few kinds."""
    for watch in (watch_after(None, 3, health, NOON, RULES, raised=True), Rollback(NOON, 2, why)):
        labels = {name: text for name, text in watch_labels(watch).items() if text is not None}
        assert all(re.fullmatch(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?", text) for text in labels.values())
        watch_read = watch_in(labels)
        if isinstance(watch, Rollback):
            assert isinstance(watch_read, Rollback)
            assert (watch_read.until, watch_read.times, len(watch_read.why)) == (NOON, 2, min(len(why), WHY_MAX))
        else:
            assert watch_read == watch


@given(st.dictionaries(st.sampled_from(WATCH_LABELS), st.text(max_size=63)))
def test_labels_of_anything_raise_nothing(labels: dict[str, str]) -> None:
    watch = watch_in(labels)
    assert watch is None or msgspec.to_builtins(watch)


@given(st.binary(max_size=60) | st.text(max_size=60).map(lambda text: text.encode(errors="replace")))
def test_an_annotation_of_anything_raises_nothing(text: bytes) -> None:
    watch = watch_of({"forecaster.dev/watched": text.decode(errors="replace")})
    assert watch is None or msgspec.to_builtins(watch)
