"""A service that is killed goes on where it was: gates, lead times, scaling state, and what is offered."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any, NamedTuple

from forecaster.app.compose import single_cycle
from forecaster.config.settings import parse
from forecaster.horizontal.gate_states import GateState
from forecaster.sources import factory
from tests.support.builders import NOON, after, minutes, workload
from tests.support.composed import composed, published, recorded_cluster, scale, tick

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from pathlib import Path

    from forecaster.app.service import Service
    from tests.support.composed import Cluster

POLICY = {"policy": {"mode": "publish", "horizontal": {"sizing": "newsvendor"}}}


class WorkloadState(NamedTuple):
    """State and offer of one workload, without the words of its models."""

    gate: Any
    lead_time: Any
    state: list[str]
    offer: Any
    replicas: Any
    clamps: Any


def states_by_name(service: Service, directory: Path) -> dict[str, WorkloadState]:
    """State and offer of each workload, by name."""
    table, observed = published(directory), service.cycle.decider.observed
    states = {}
    for entry in table.entries:
        (id_,) = (key for key in observed.fleet.row if key.name == entry.name)
        row, view = observed.fleet.row[id_], table.view(entry)
        columns = [
            item for item in sorted(observed.state.arrays().items()) if item[1].shape[-1:] == (observed.state.rows,)
        ]
        state = [f"{name} {column[..., row].tolist()}" for name, column in columns]
        policy = service.cycle.policies.stated(id_).horizontal
        states[entry.name] = WorkloadState(
            observed.gates.of(id_),
            observed.lead_times.of(id_, policy),
            state,
            table.published(entry),
            view.replicas,
            view.clamps,
        )
    return states


def scale_ups(cluster: Cluster, service: Service, times: int) -> Iterator[datetime]:
    """Run cycles in which the cart gets a pod more every four minutes, ready three minutes later."""
    for minute in range(times * 4):
        pods = 5 + minute // 4
        scale(cluster, "cart", pods, pods if minute % 4 == 3 else pods - 1, after(minute))
        tick(service, after(minute))
        yield after(minute)


def test_a_killed_service_goes_on_in_its_first_cycle(tmp_path: Path) -> None:
    running_in, copied_to = tmp_path / "here", tmp_path / "there"
    with recorded_cluster() as cluster:
        with composed(cluster, running_in, **POLICY) as service:
            *_, last = scale_ups(cluster, service, times=6)
            while not written_at(service, last):
                last += minutes(1)
                tick(service, last)
            shutil.copytree(running_in, copied_to)
            tick(service, last + minutes(1))
            before = states_by_name(service, running_in)
        with composed(cluster, copied_to, **POLICY) as restarted:
            tick(restarted, last + minutes(1))
            later = states_by_name(restarted, copied_to)
    for name, expected in before.items():
        assert later[name]._asdict() == expected._asdict()
    assert before["cart"].lead_time.value == minutes(4)
    assert before["cart"].gate.standing is not None
    assert before["web"].gate.standing is GateState.ACTING


def written_at(service: Service, now: datetime) -> bool:
    """Whether the observations were written in the cycle of this instant."""
    return service.persisted[1].at == now


def test_what_was_earned_is_written_every_five_minutes(tmp_path: Path) -> None:
    with recorded_cluster() as cluster, composed(cluster, tmp_path) as service:
        written = []
        for minute in range(12):
            tick(service, after(minute))
            written.append((tmp_path / "observed.json").stat().st_mtime_ns)
    assert len(set(written)) == 3
    assert written[0] == written[4] != written[5] == written[9] != written[10]


def test_a_start_after_noon_of_a_clock_that_was_ahead_is_written_at_once(tmp_path: Path) -> None:
    with recorded_cluster() as cluster, composed(cluster, tmp_path) as service:
        tick(service, after(60))
        first = (tmp_path / "observed.json").stat().st_mtime_ns
        tick(service, NOON)
        assert (tmp_path / "observed.json").stat().st_mtime_ns != first


def test_where_requests_come_from_is_written_when_it_is_known_and_read_at_the_start(tmp_path: Path) -> None:
    """With the rest, five minutes later, a kill could turn an ingress controller's rate into a mesh's."""
    web = workload("web").id
    with recorded_cluster() as cluster:
        with composed(cluster, tmp_path) as first:
            first.cycle.source.request_origins.chosen[web] = "nginx-ingress"  # type: ignore[attr-defined]
            tick(first, NOON)
        with composed(cluster, tmp_path) as second:
            assert second.cycle.source.request_origins.chosen == {web: "nginx-ingress"}  # type: ignore[attr-defined]
        settings = parse({"prometheus": {"url": cluster.url}, "state": {"directory": str(tmp_path)}}, "test")
        once = single_cycle(settings, NOON).source
        assert once.request_origins.chosen == {web: "nginx-ingress"}  # type: ignore[attr-defined]
        factory.close(once)
