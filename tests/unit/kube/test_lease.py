"""The election on a fake Lease: replicas with clocks of their own, lost renewals, conflicts. Never two writers."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecaster.kube.client import ApiError, UnreachableError
from forecaster.kube.lease import (
    HOLD_SECONDS,
    PAUSE_ANNOTATION,
    REQUEST_SECONDS,
    RESUMED_ANNOTATION,
    VALID_SECONDS,
    WRITE_SECONDS,
    Election,
    ElectionThread,
    Leader,
    Lease,
    LeaseAnnotations,
    LeaseSpec,
    lease_path,
    resume_falling,
)
from forecaster.kube.objects import ObjectMeta
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

PATH = lease_path("forecaster", "forecaster")
NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)


@dataclass
class FakeLeases:
    """One Lease, empty at first; `delay` passes before each request arrives, `before_patch` runs then."""

    lease: Lease | None = field(default_factory=lambda: Lease(ObjectMeta(name="forecaster", resource_version="1")))
    now: float = 0.0
    delay: float = 0.0
    away: bool = False
    before_patch: Callable[[], None] | None = None
    patches: int = 0
    reads: int = 0

    def get(self, path: str, kind: Any) -> Any:
        self.reads += 1
        self._arrive()
        if self.lease is None:
            raise ApiError(f"GET {path}: 404", 404)
        return self.lease

    def patch(self, path: str, change: msgspec.Struct, kind: Any) -> Any:
        self._arrive()
        interruption, self.before_patch = self.before_patch, None
        if interruption:
            interruption()
        assert isinstance(change, Lease | LeaseAnnotations)
        assert self.lease is not None
        if change.metadata.resource_version != self.lease.metadata.resource_version:
            raise ApiError(f"PATCH {path}: 409 the object has been modified", 409)
        spec = change.spec if isinstance(change, Lease) else self.lease.spec
        assert spec.holder_identity is None or spec.holder_identity  # the API server refuses ""
        marks = self.lease.metadata.annotations | change.metadata.annotations
        meta = msgspec.structs.replace(self.lease.metadata, annotations=marks)
        self.lease = msgspec.structs.replace(self.lease, metadata=meta)
        self._put(spec)
        return self.lease

    def annotate(self, value: str) -> None:
        assert self.lease is not None
        annotated = msgspec.structs.replace(self.lease.metadata, annotations={PAUSE_ANNOTATION: value})
        self.lease = msgspec.structs.replace(self.lease, metadata=annotated)
        self._put(self.lease.spec)

    def _put(self, spec: LeaseSpec) -> None:
        assert self.lease is not None
        self.patches += 1
        version = str(int(self.lease.metadata.resource_version) + 1)
        self.lease = Lease(msgspec.structs.replace(self.lease.metadata, resource_version=version), spec)

    def _arrive(self) -> None:
        self.now += self.delay
        if self.away:
            raise UnreachableError("no answer")


def replica(leases: FakeLeases, name: str, *, started: float = 0.0, skew: timedelta = timedelta(0)) -> Election:
    """A replica whose monotonic clock began at `started`, and whose wall clock is wrong by `skew`."""
    return Election(
        leases,
        PATH,
        name,
        seconds=lambda: leases.now + started,
        clock=lambda: NOON + skew + timedelta(seconds=leases.now),
    )


def test_the_first_replica_to_ask_leads_and_the_second_one_does_not() -> None:
    leases = FakeLeases()
    first, second = replica(leases, "a"), replica(leases, "b")
    first.step()
    second.step()
    assert (first.valid(), second.valid()) == (True, False)
    assert leases.lease is not None
    assert leases.lease.spec.renew_time == "2026-11-22T12:00:00.000000Z"


def test_a_leader_that_cannot_renew_stops_before_another_may_begin() -> None:
    leases = FakeLeases()
    first, second = replica(leases, "a"), replica(leases, "b")
    first.step()
    second.step()
    leases.now = WRITE_SECONDS
    assert not first.valid()
    second.step()
    assert not second.valid()
    leases.now = VALID_SECONDS
    second.step()
    assert second.valid()
    assert WRITE_SECONDS + 4 * REQUEST_SECONDS <= VALID_SECONDS


def test_a_leader_that_cannot_renew_publishes_a_little_longer_than_it_writes_and_no_longer_than_it_leads() -> None:
    leases = FakeLeases()
    first, second = replica(leases, "a"), replica(leases, "b")
    first.step()
    second.step()
    leases.now = WRITE_SECONDS
    assert (first.leading(), first.holds()) == (False, True)
    leases.now = HOLD_SECONDS
    second.step()
    assert (first.holds(), second.holds()) == (False, False)


def test_a_follower_is_told_where_the_leader_is_asked() -> None:
    leases = FakeLeases()
    first, second = replica(leases, "a"), replica(leases, "b")
    first.address, second.address = "10.0.0.1:6443", "10.0.0.2:6443"
    first.step()
    second.step()
    assert first.leader is None
    assert second.leader == Leader("a", "10.0.0.1:6443")
    first.release()
    second.step()
    assert second.leading()
    assert second.leader is None


def test_a_clock_that_is_hours_ahead_takes_nothing_over() -> None:
    """By the instants in the Lease it would have run out long ago."""
    leases = FakeLeases()
    first, second = replica(leases, "a"), replica(leases, "b", started=1e6, skew=timedelta(hours=3))
    for _ in range(20):
        first.step()
        second.step()
        leases.now += 2.0
        assert (first.valid(), second.valid()) == (True, False)


def test_a_replica_that_has_just_started_waits_for_a_whole_validity() -> None:
    leases = FakeLeases()
    replica(leases, "gone", skew=-timedelta(days=1)).step()
    new = replica(leases, "new")
    new.step()
    leases.now = VALID_SECONDS - 0.1
    new.step()
    assert not new.valid()
    leases.now = VALID_SECONDS
    new.step()
    assert new.valid()
    assert leases.lease is not None
    assert leases.lease.spec.lease_transitions == 2


def test_of_two_that_take_over_at_the_same_time_one_gets_a_conflict() -> None:
    leases = FakeLeases()
    first, second = replica(leases, "a"), replica(leases, "b")
    leases.before_patch = second.step
    first.step()
    assert (first.valid(), second.valid()) == (False, True)
    assert first.fault == ""


def test_a_release_hands_over_at_once_and_is_for_good() -> None:
    leases = FakeLeases()
    first, second = replica(leases, "a"), replica(leases, "b")
    first.step()
    first.release()
    assert not first.valid()
    second.step()
    assert second.valid()
    first.step()
    assert not first.valid()


def test_what_is_released_late_is_not_taken_from_the_next_leader() -> None:
    leases = FakeLeases()
    first, second = replica(leases, "a"), replica(leases, "b")
    first.step()
    second.step()
    leases.now = VALID_SECONDS
    second.step()
    first.release()
    assert second.valid()
    assert leases.lease is not None
    assert leases.lease.spec.holder_identity == "b"


def test_the_time_of_a_slow_renewal_counts_from_its_beginning() -> None:
    leases = FakeLeases(delay=2.0)
    candidate = replica(leases, "a")
    candidate.step()
    leases.now = WRITE_SECONDS
    assert not candidate.valid()


@pytest.mark.parametrize(("value", "writes"), [("true", False), ("deploy freeze", False), ("false", True)])
def test_an_annotation_of_the_lease_stops_all_writes(value: str, *, writes: bool) -> None:
    leases = FakeLeases()
    candidate = replica(leases, "a")
    candidate.step()
    leases.annotate(value)
    candidate.step()
    assert (candidate.valid(), candidate.leading()) == (writes, True)


def test_a_leader_reads_the_lease_only_where_something_else_wrote_it() -> None:
    leases = FakeLeases()
    candidate = replica(leases, "a")
    for leases.now in (0.0, 2.0, 4.0):
        candidate.step()
    assert (leases.reads, leases.patches) == (1, 3)
    leases.annotate("true")
    leases.now = 6.0
    candidate.step()
    assert (leases.reads, candidate.paused, candidate.leading()) == (2, True, True)
    assert candidate.answered_at() == candidate.clock().timestamp()


def test_a_lease_that_is_missing_is_said_with_the_remedy() -> None:
    leases = FakeLeases(lease=None)
    candidate = replica(leases, "a")
    candidate.step()
    assert not candidate.valid()
    assert "deploy/base" in candidate.fault


def test_an_error_that_is_not_the_api_servers_is_said_and_ends_nothing() -> None:
    leases = FakeLeases()
    candidate = replica(leases, "a")

    def fails() -> None:
        raise ZeroDivisionError

    leases.before_patch = fails
    candidate.step()
    assert (candidate.valid(), candidate.fault.partition(": ")[2][:17]) == (False, "ZeroDivisionError")
    candidate.step()
    assert (candidate.valid(), candidate.fault) == (True, "")


def test_the_api_server_away_and_back() -> None:
    leases = FakeLeases()
    candidate = replica(leases, "a")
    candidate.step()
    leases.away, leases.now = True, 60.0
    candidate.step()
    assert (candidate.valid(), candidate.fault) == (False, "no answer")
    leases.away = False
    candidate.step()
    assert (candidate.valid(), candidate.fault) == (True, "")


@given(
    events=st.lists(
        st.tuples(
            st.integers(0, 2),
            st.sampled_from(["step", "step", "step", "lost", "interrupted", "release"]),
            st.sampled_from([0.0, 0.1, 2.0, 6.2, 6.9, VALID_SECONDS - WRITE_SECONDS, VALID_SECONDS]),
            st.sampled_from([0.0, 0.0, 0.5, 2.0]),
        ),
        max_size=60,
    ),
    skews=st.tuples(*[st.integers(-100_000, 100_000)] * 3),
)
def test_there_are_never_two_writers(events: list[tuple[int, str, float, float]], skews: tuple[int, ...]) -> None:
    """Three replicas with any wall clocks, any pauses, requests that are slow, lost or overtaken.

    A write that was begun at the last moment is still under way for four timeouts of a request.
    """
    leases = FakeLeases()
    replicas = [
        replica(leases, name, started=1e4 * number, skew=timedelta(seconds=skew))
        for number, (name, skew) in enumerate(zip("abc", skews, strict=True))
    ]
    last_write = dict.fromkeys("abc", float("-inf"))
    for number, event, pause, delay in events:
        leases.now += pause
        leases.delay = delay
        candidate, other = replicas[number], replicas[number - 1]
        if event == "release":
            candidate.release()
            last_write[candidate.identity] = float("-inf")  # what gives the Lease back waits for its writes
        else:
            leases.away = event == "lost"
            leases.before_patch = other.step if event == "interrupted" else None
            candidate.step()
            leases.away, leases.before_patch = False, None
        for each in replicas:
            if each.valid():
                last_write[each.identity] = leases.now + 4 * REQUEST_SECONDS
        writing = [name for name, until in last_write.items() if until > leases.now]
        assert sum(each.valid() for each in replicas) <= 1
        assert len(writing) <= 1, writing


def test_the_thread_leads_and_gives_the_lease_back() -> None:
    leases = FakeLeases()
    candidate = replica(leases, "a")
    thread = ElectionThread(candidate)
    wait_until(candidate.valid, goal="the Lease")
    thread.close()
    assert leases.lease is not None
    assert leases.lease.spec.holder_identity is None


def test_a_persons_word_about_a_braked_fleet_reaches_the_leader_and_stops_no_renewal() -> None:
    leases = FakeLeases()
    leader = replica(leases, "a")
    leader.step()
    assert (leader.leading(), leader.resumed_at) == (True, None)
    assert resume_falling(leases, PATH, NOON).resumed_at == NOON
    leader.step()
    assert (leader.leading(), leader.resumed_at) == (True, NOON)


@pytest.mark.parametrize("text", ["", "yes", "2026-11-22", "9999-12-31T23:59:59-23:59", "x" * 5000])
def test_a_word_that_is_no_instant_is_none(text: str) -> None:
    assert Lease(ObjectMeta(annotations={RESUMED_ANNOTATION: text})).resumed_at is None
