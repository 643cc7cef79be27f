"""Two replicas, of which one computes: what each serves is the same to the digit, also when the other takes over."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import httpx
import pytest

from forecaster.app.serve import table_path
from forecaster.domain.window import MINUTE
from forecaster.serving.replicas import replicated_files
from tests.integration.service.test_restart import POLICY, states_by_name
from tests.support.builders import NOON, after, workload
from tests.support.composed import composed, published, recorded_cluster, scale, tick
from tests.support.played_time import PlayedTime
from tests.support.replicas import two_replicas
from tests.support.waiting import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from pathlib import Path

    from tests.support.composed import Cluster
    from tests.support.replicas import Member

GROUP = "/apis/external.metrics.k8s.io/v1beta1/namespaces/shop"
DEMAND = f"{GROUP}/forecaster_demand?labelSelector=workload%3Dcart%2Csignal%3Dcpu"
CART = "/api/v1/namespaces/shop/workloads/Deployment/cart"
PATHS = (
    DEMAND,
    "/api/v1/recommendations",
    "/api/v1/recommendations/shop/cart",
    f"{CART}/decisions",
    f"{CART}/explanation",
)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with recorded_cluster([workload("web"), workload("cart")]) as running:
        yield running


@pytest.fixture
def clock(tmp_path: Path) -> PlayedTime:
    played = PlayedTime(tmp_path / "clock")
    played.set(NOON)
    return played


def minute(cluster: Cluster, leader: Member, follower: Member, clock: PlayedTime, at: datetime) -> None:
    """Run a cycle of the leader, in which the cart has another count, and copy it."""
    number = (at - NOON) // MINUTE
    scale(cluster, "cart", 4 + number % 5, 4 + number % 5, at)
    clock.set(at + leader.settings.cycle.delay)
    assert leader.service
    tick(leader.service, at)
    follower.follower.step(leader.leader)


def test_for_an_hour_both_serve_the_same_to_the_digit(cluster: Cluster, clock: PlayedTime, tmp_path: Path) -> None:
    with two_replicas(cluster, tmp_path, clock, **POLICY) as (first, second):
        first.lead()
        for number in range(60):
            minute(cluster, first, second, clock, after(number))
            assert second.taken[-1].published_at == after(number)
            assert rows(second) == rows(first)
            if number % 15 == 14:
                first.until_serving(after(number))
                second.until_serving(after(number))
                for path in PATHS:
                    assert first.ask(path).is_success
                    assert second.ask(path).json() == first.ask(path).json()
        assert table_path(second.directory).read_bytes() == table_path(first.directory).read_bytes()


def rows(member: Member) -> list[object]:
    """Everything that its table says of all workloads."""
    table = published(member.directory)
    return [(table.published(entry), table.view(entry)) for entry in table.entries]


def test_the_other_replica_goes_on_as_the_dead_one_would_have(
    cluster: Cluster, clock: PlayedTime, tmp_path: Path
) -> None:
    with two_replicas(cluster, tmp_path, clock, **POLICY) as (first, second):
        first.lead()
        for number in range(12):
            minute(cluster, first, second, clock, after(number))
        first.die()
        shutil.copytree(first.directory, tmp_path / "as-it-was")
        follower = second.lead()
        assert follower.taken_over == after(11)
        tick(follower, after(11))
        assert follower.report is None  # the leader has decided it
        scale(cluster, "cart", 9, 9, after(12))
        tick(follower, after(12))
        taken_over = states_by_name(follower, second.directory)
        with composed(cluster, tmp_path / "as-it-was", **POLICY) as restarted:
            tick(restarted, after(12))
            assert states_by_name(restarted, tmp_path / "as-it-was") == taken_over
        first.follower.step(second.leader)
        assert rows(first) == rows(second)


def test_while_the_leader_is_silent_its_last_table_is_served_with_its_age(
    cluster: Cluster, clock: PlayedTime, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with two_replicas(cluster, tmp_path, clock, policy={"mode": "publish"}) as (first, second):
        first.lead()
        minute(cluster, first, second, clock, NOON)
        second.until_serving(NOON)
        first.die()
        first.serving.stop(timeout=0.2)
        clock.set(NOON + 2 * MINUTE)
        second.follower.step(first.leader)
        assert second.ask(DEMAND).json()["items"][0]["value"] != "0"
        assert second.ask("/api/v1/recommendations").json()["age_seconds"] == 120
        second.follower.step(None)  # nobody leads any more
        out = capsys.readouterr().out
        assert (out.count("leader_not_copied"), out.count("leader_copied")) == (1, 0)


def test_a_replica_that_lost_the_lease_publishes_nothing(cluster: Cluster, clock: PlayedTime, tmp_path: Path) -> None:
    with two_replicas(cluster, tmp_path, clock, policy={"mode": "publish"}) as (first, _):
        service = first.lead()
        tick(service, NOON)
        first.election.held = False
        tick(service, after(1))
        assert published(first.directory).meta.published_at == NOON
        assert service.report
        assert any("the Lease was not renewed in time" in each for each in service.report.failures)


def test_the_files_are_for_those_with_the_right_to_them(cluster: Cluster, clock: PlayedTime, tmp_path: Path) -> None:
    with two_replicas(cluster, tmp_path, clock) as (first, second):
        first.lead()
        minute(cluster, first, second, clock, NOON)
        there = replicated_files(table_path(first.directory)).keys() - {"new-pods"}  # no pod is sized in this mode
        assert first.ask("/replica/v1/files").json()["tags"].keys() == there
        assert first.ask("/replica/v1/files/observed?tag=of-another&at=0").status_code == 412
        assert first.ask("/replica/v1/files/ledger?tag=x&at=0").status_code == 404
        assert first.ask("/replica/v1/files/..%2F..%2Fserving-ca.key?tag=x&at=0").status_code == 404
        plain = httpx.get(f"http://{first.serving.address}/replica/v1/files", timeout=PATIENCE)
        assert plain.status_code == 403


def test_clocks_that_differ_by_minutes_are_told(
    cluster: Cluster, clock: PlayedTime, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The table served then is as old as the follower's clock says: stale at last, and never another number."""
    with two_replicas(cluster, tmp_path, clock, policy={"mode": "publish"}) as (first, second):
        first.lead()
        minute(cluster, first, second, clock, NOON)
        second.follower.clock = (clock() + 4 * MINUTE).timestamp
        second.follower.step(first.leader)
        (line,) = [each for each in capsys.readouterr().out.splitlines() if "clocks_differ" in each]
        assert "leader_ahead_seconds=-240.0" in line
