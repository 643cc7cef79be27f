"""A fleet in shards on real processes with mutual TLS: all is decided, once, whatever dies meanwhile."""

from __future__ import annotations

import signal
import socket
import ssl
import threading
from contextlib import contextmanager
from datetime import timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from distributed import Client

from forecaster import __version__
from forecaster.app.facts import SOCKET, FactsServer
from forecaster.app.sharding.cycle import ShardedCycle
from forecaster.app.sharding.dask import WORKER_ERRORS, DaskExecutor, security_of
from forecaster.app.what_if import WhatIfAnswers
from forecaster.config.sharding import ShardingSettings
from forecaster.cycle.workload_facts import WorkloadFacts
from forecaster.domain.decision import Scale
from forecaster.domain.layers import PAUSED_POLICY, ClusterPolicies, Layer
from forecaster.domain.policy import PolicySelector
from tests.support.builders import after, workload, workload_id
from tests.support.composed import Cluster, composed, published, recorded_cluster
from tests.support.faulty_proxy import FaultyProxy
from tests.support.ports import free_ports
from tests.support.shard_processes import ANOTHER_VERSION, certificate_files, shard_processes
from tests.support.waiting import PATIENCE, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from pathlib import Path

    from forecaster.app.service import Service
    from forecaster.cycle.run import Outcome
    from forecaster.domain.workload import WorkloadId
    from tests.support.shard_processes import ShardProcesses

FLEET = [workload(id=workload_id(name, f"team-{team}")) for team in range(6) for name in ("web", "cart")]
CPU_QUERY = "container_cpu"
LONG = {"interval": "15m"}
"""Shards may take two thirds of it: long enough also on a machine that others use."""


class Site:
    """A Prometheus that may be held up, and the processes that ask it."""

    def __init__(self, cluster: Cluster, proxy: FaultyProxy, processes: ShardProcesses) -> None:
        self.cluster, self.proxy, self.processes = Cluster(proxy.url, cluster.fleet), proxy, processes

    @contextmanager
    def service(self, directory: Path, shards: int = 4, **given: Any) -> Iterator[ShardedCycle]:
        with self.composed(directory, shards, **given) as service:
            assert isinstance(service.cycle, ShardedCycle)
            yield service.cycle

    @contextmanager
    def composed(self, directory: Path, shards: int = 4, **given: Any) -> Iterator[Service]:
        settings: dict[str, Any] = {
            "sharding": {**self.processes.sharding, "shards": shards},
            "policy": {"mode": "publish", "horizontal": {"gate": False}},
            "prometheus": {"url": self.cluster.url, "retries": 0, "read_timeout_seconds": 120},
            "cycle": LONG,
            **given,
        }
        with composed(self.cluster, directory, **settings) as service:
            yield service


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with (
        recorded_cluster(FLEET) as cluster,
        FaultyProxy(cluster.url) as proxy,
        shard_processes(tmp_path_factory.mktemp("shards"), workers=2) as processes,
    ):
        yield Site(cluster, proxy, processes)


def decided(outcome: Outcome) -> dict[WorkloadId, object]:
    """Decision about each workload; each is there, once."""
    ids = [recommendation.id for recommendation in outcome.recommendations]
    assert sorted(ids) == sorted(workload.id for workload in FLEET)
    return {recommendation.id: recommendation.replicas for recommendation in outcome.recommendations}


def all_scaled(outcome: Outcome) -> bool:
    return all(isinstance(decision, Scale) for decision in decided(outcome).values()) and outcome.report.failures == ()


@contextmanager
def in_mid_cycle(site: Site, cycle: ShardedCycle, at: datetime) -> Iterator[list[Outcome]]:
    """A cycle that waits for its samples; at the end of the block it gets them, and then it has run."""
    outcomes: list[Outcome] = []
    site.proxy.kept_waiting, site.proxy.slow = 0, CPU_QUERY
    running = threading.Thread(target=lambda: outcomes.append(cycle.run(at)))
    running.start()
    wait_until(lambda: site.proxy.kept_waiting > 0, goal="a question of a shard")
    yield outcomes
    site.proxy.mended()
    running.join(PATIENCE)
    assert outcomes


def test_workers_decide_what_this_process_decides(site: Site, tmp_path: Path) -> None:
    with (
        site.service(tmp_path / "there") as remote,
        site.service(tmp_path / "here", sharding={"enabled": True}) as local,
    ):
        for minute in range(3):
            by_workers, by_itself = remote.run(after(minute)), local.run(after(minute))
            assert all_scaled(by_workers)
            assert decided(by_workers) == decided(by_itself)
        assert len(published(tmp_path / "there").entries) == len(FLEET)


def test_a_reader_tries_other_settings_on_what_a_worker_remembers(site: Site, tmp_path: Path) -> None:
    """The dashboard's process asks over the socket of the service, which asks the worker of the shard."""
    question = msgspec.json.encode({"id": FLEET[0].id, "changes": {"quantile": 0.99}})
    with (
        site.service(tmp_path / "there") as remote,
        site.service(tmp_path / "here", sharding={"enabled": True}) as local,
    ):
        facts, answers = FactsServer(remote.facts, tmp_path), WhatIfAnswers(str(tmp_path / SOCKET))
        facts.start()
        assert b"the first cycle still runs" in answers.answer(question)
        for minute in range(2):
            remote.run(after(minute))
            local.run(after(minute))
        wait_until(lambda: known(remote) == known(local), goal="what the workers know")
        wait_until(lambda: b'"changed":' in answers.answer(question), goal="an answer to other settings")
        facts.close()


def known(cycle: ShardedCycle) -> list[WorkloadFacts | None]:
    """Facts about each workload; None where a worker did not answer in time."""
    answers = [cycle.facts(workload.id) for workload in FLEET]
    return [msgspec.msgpack.decode(answer, type=WorkloadFacts) if answer else None for answer in answers]


def test_what_objects_of_the_cluster_state_reaches_the_workers(site: Site, tmp_path: Path) -> None:
    """A pause and a selector by labels, as annotations and objects state them; the mappings of both are frozen."""
    paused, labelled = FLEET[0].id, FLEET[1].id
    more = Layer("PredictivePolicy gold", MappingProxyType({"horizontal": {"min_replicas": 17}}))
    stated = ClusterPolicies(
        defaults=((PolicySelector(labels={"tier": "gold"}), more),),
        own={paused: (Layer("annotation", PAUSED_POLICY),)},
        labels={labelled: {"tier": "gold"}},
    )
    with site.service(tmp_path) as cycle:
        cycle.policies.take_over(stated)
        outcome = cycle.run(after(0))
        assert outcome.report.failures == ()
        large = [
            id_ for id_, decision in decided(outcome).items() if isinstance(decision, Scale) and decision.replicas == 17
        ]
        assert large == [labelled]
        table = published(tmp_path)
        assert [
            (entry.namespace, entry.kind, entry.name) for entry in table.entries if table.published(entry) is None
        ] == [paused]


def test_processes_say_that_they_are_well(site: Site) -> None:
    assert site.processes.scheduler
    for process in (site.processes.scheduler, *site.processes.workers):
        assert site.processes.healthy(process)


def test_a_certificate_of_another_authority_is_refused(site: Site, tmp_path: Path) -> None:
    foreign = ShardingSettings.model_validate(site.processes.sharding | certificate_files(tmp_path))
    with pytest.raises(WORKER_ERRORS), Client(foreign.scheduler, timeout=2, security=security_of(foreign)):
        pass
    host, port = foreign.scheduler.removeprefix("tls://").split(":")
    context = ssl.create_default_context(cafile=site.processes.sharding["ca_file"])
    with pytest.raises(ssl.SSLError), socket.create_connection((host, int(port))) as plain:  # noqa: SIM117
        with context.wrap_socket(plain, server_hostname=host) as nameless:
            nameless.recv(1)


def test_a_worker_that_is_killed_in_mid_cycle_costs_no_decision(site: Site, tmp_path: Path) -> None:
    with site.service(tmp_path) as cycle:
        cycle.run(after(0))
        shards = set(cycle.learned.by_shard)
        with in_mid_cycle(site, cycle, after(1)) as outcomes:
            site.processes.kill_worker()
        assert all_scaled(outcomes[0])
        assert {shard: state.at for shard, state in cycle.learned.by_shard.items()} == dict.fromkeys(shards, after(1))
        wait_until(lambda: all(known(cycle)), goal="what the other worker knows")
        site.processes.start_workers(1)
        site.processes.wait_for_workers(2)
        assert all_scaled(cycle.run(after(2)))


def test_a_worker_that_stands_still_costs_no_decision(site: Site, tmp_path: Path) -> None:
    with site.service(tmp_path) as cycle:
        cycle.run(after(0))
        still = site.processes.workers[0]
        still.send_signal(signal.SIGSTOP)
        assert isinstance(cycle.executor, DaskExecutor)
        cycle.executor.waits = 0.005  # three seconds
        outcome = cycle.run(after(1))
        still.send_signal(signal.SIGCONT)
        assert all_scaled(outcome)
        assert all_scaled(cycle.run(after(2)))


def test_another_number_of_shards_is_taken_over_while_workers_run(site: Site, tmp_path: Path) -> None:
    with site.service(tmp_path) as cycle:
        for minute, shards in enumerate((4, 2, 7)):
            cycle.divide(shards)
            assert all_scaled(cycle.run(after(minute)))
            assert {state.at for state in cycle.learned.by_shard.values()} == {after(minute)}
            assert set(cycle.learned.by_shard) <= set(range(shards))


def test_the_fleet_goes_on_after_the_scheduler_was_killed(site: Site, tmp_path: Path) -> None:
    with site.service(tmp_path) as cycle:
        cycle.run(after(0))
        assert isinstance(cycle.executor, DaskExecutor)
        before = cycle.executor.there
        with in_mid_cycle(site, cycle, after(1)) as outcomes:
            site.processes.kill_scheduler()
            site.processes.start_scheduler()
        assert all_scaled(outcomes[0])
        assert {state.at for state in cycle.learned.by_shard.values()} == {after(1)}
        site.processes.wait_for_workers(len(before))
        cycle.run(after(2))
        assert cycle.executor.there == before, "else shards go to workers without their history"
    assert all(worker.poll() is None for worker in site.processes.workers)


def test_what_keeps_shards_from_workers_is_said_of_each_workload(site: Site, tmp_path: Path) -> None:
    (port,) = free_ports(1)
    executor = DaskExecutor(f"tcp://127.0.0.1:{port}")
    with site.service(tmp_path, shards=2) as cycle:
        cycle.executor, cycle.patience = executor, timedelta(seconds=1)
        outcome = cycle.run(after(0))
    messages = {recommendation.replicas.message for recommendation in outcome.recommendations}
    assert all(f"the scheduler at tcp://127.0.0.1:{port} is away" in message for message in messages)
    assert {recommendation.replicas.reason for recommendation in outcome.recommendations} == {"failed"}


def test_a_worker_of_another_version_is_named_where_it_gives_no_answer_and_not_used_beside_others(
    site: Site, tmp_path: Path
) -> None:
    """A worker of another version may not understand its shard, and Dask does not report why."""
    with site.service(tmp_path, shards=2) as cycle:
        site.processes.start_workers(1, *ANOTHER_VERSION)
        site.processes.wait_for_workers(3)
        site.processes.kill_worker()
        site.processes.kill_worker()
        site.processes.wait_for_workers(1)
        site.processes.workers[0].send_signal(signal.SIGSTOP)
        patience, cycle.patience = cycle.patience, timedelta(seconds=3)
        outcome = cycle.run(after(0))
        (address,) = cycle.executor.there  # type: ignore[attr-defined]  # of Dask's
        why = f"not computed within 3 s by worker {address}, which is not of forecaster {__version__}; deploy workers"
        assert all(why in recommendation.replicas.message for recommendation in outcome.recommendations)
        cycle.patience = timedelta(0)  # nothing is given to a worker, so none is to blame
        outcome = cycle.run(after(1))
        assert not [each for each in outcome.recommendations if "worker" in each.replicas.message]
        site.processes.workers[0].send_signal(signal.SIGCONT)
        site.processes.start_workers(1)
        site.processes.wait_for_workers(2)
        cycle.patience = patience
        assert all_scaled(cycle.run(after(2)))
        assert address not in cycle.executor.last.values()  # type: ignore[attr-defined]
