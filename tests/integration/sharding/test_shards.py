"""A fleet in shards, in this process: the numbers of one cycle, and nothing learned is lost when shards change."""

from __future__ import annotations

from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from forecaster.app.serve import known_of
from forecaster.app.sharding.cycle import ShardedCycle
from forecaster.app.sharding.learned import shard_of
from forecaster.app.sharding.shard import LocalExecutor, ShardFailure, ShardResult
from forecaster.app.sharding.sizes import ShardSizes
from forecaster.cycle.gates import NEW_JUDGED
from forecaster.cycle.observed import Observed
from forecaster.domain.decision import Scale
from forecaster.domain.window import StartedPod
from forecaster.errors import StoreError
from forecaster.horizontal.lead_time import MAX_SCALE_UPS
from forecaster.store.shards import ShardState
from tests.support.builders import NOON, after, workload, workload_id
from tests.support.composed import Cluster, composed, published, recorded_cluster, tick

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime
    from pathlib import Path

    from forecaster.app.service import Service
    from forecaster.app.sharding.shard import ShardTask
    from forecaster.domain.window import Inventory
    from forecaster.domain.workload import WorkloadId
    from forecaster.publish.reader import PublishedTable

FLEET = [workload(id=workload_id(name, f"team-{team}")) for team in range(6) for name in ("web", "cart")]
POLICY = {"mode": "publish", "horizontal": {"gate": False}}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with recorded_cluster(FLEET) as recorded:
        yield recorded


@contextmanager
def sharded(cluster: Cluster, directory: Path, shards: int = 4, **given: Any) -> Iterator[Service]:
    sharding = {"enabled": True, "shards": shards}
    with composed(cluster, directory, sharding=sharding, policy=POLICY, **given) as service:
        yield service


def offers(table: PublishedTable) -> dict[str, object]:
    """Every number and text that readers are offered, by workload."""
    return {f"{entry.namespace}/{entry.name}": (table.published(entry), table.view(entry)) for entry in table.entries}


def counts(table: PublishedTable) -> dict[str, object]:
    """The counts that readers are offered, by workload."""
    offered = {f"{entry.namespace}/{entry.name}": table.published(entry) for entry in table.entries}
    return {name: offer and offer.replicas and offer.replicas.value for name, offer in offered.items()}


def cycle_of(service: Service) -> ShardedCycle:
    assert isinstance(service.cycle, ShardedCycle)
    return service.cycle


def save_state(service: Service) -> None:
    """Save the state that outlives the service."""
    for entry in service.persisted:
        entry.part.save()


def remembered(cycle: ShardedCycle) -> dict[WorkloadId, object]:
    """Pods and earlier recommendations that the shards hold, by workload."""
    by_workload: dict[WorkloadId, object] = {}
    for state in cycle.learned.by_shard.values():
        observed = Observed()
        observed.restore(state.observed)
        of_shard = remembered_by(observed)
        assert not by_workload.keys() & of_shard.keys()
        by_workload |= of_shard
    return by_workload


def remembered_by(observed: Observed) -> dict[WorkloadId, object]:
    state = observed.state
    return {
        id_: (int(state.ready[row]), state.recommendations[:, row].tolist()) for id_, row in observed.fleet.row.items()
    }


def test_shards_offer_what_one_cycle_offers(cluster: Cluster, tmp_path: Path) -> None:
    with sharded(cluster, tmp_path / "shards") as divided, composed(cluster, tmp_path / "one", policy=POLICY) as whole:
        for minute in range(3):
            tick(divided, after(minute))
            tick(whole, after(minute))
        assert divided.report
        assert whole.report
        assert divided.report.failures == ()
        assert [cycle_of(divided).facts(each.id) for each in FLEET] == [
            known_of(whole.cycle)(each.id) for each in FLEET
        ]
        reports = [(each.series, each.verdicts, each.newest_sample_age) for each in (divided.report, whole.report)]
    assert reports[0] == reports[1]
    assert b"`forecaster nodes` reads them itself" in published(tmp_path / "shards").whole("nodes")
    by_shards, by_one = offers(published(tmp_path / "shards")), offers(published(tmp_path / "one"))
    assert len(by_shards) == len(FLEET)
    assert by_shards == by_one


def test_another_number_of_shards_takes_over_what_was_learned(cluster: Cluster, tmp_path: Path) -> None:
    """Stabilization remembers the counts of before: the fleet that was divided anew decides as the one that was not."""
    with sharded(cluster, tmp_path / "other") as other, sharded(cluster, tmp_path / "same") as same:
        for minute in range(3):
            tick(other, after(minute))
            tick(same, after(minute))
        before = remembered(cycle_of(other))
        cycle_of(other).divide(3)
        assert remembered(cycle_of(other)) == before
        assert len(before) == len(FLEET)
        assert len(cycle_of(other).learned.by_shard) <= 3
        for minute in range(3, 5):
            tick(other, after(minute))
            tick(same, after(minute))
            assert counts(published(tmp_path / "other")) == counts(published(tmp_path / "same"))
        assert other.report
        assert other.report.failures == ()


def test_a_restart_goes_on_from_what_lies_in_the_database_by_any_number_of_shards(
    cluster: Cluster, tmp_path: Path
) -> None:
    with sharded(cluster, tmp_path) as service:
        for minute in range(3):
            tick(service, after(minute))
        save_state(service)
        before = remembered(cycle_of(service))
    for shards in (4, 5):
        with sharded(cluster, tmp_path, shards) as service:
            cycle_of(service).learned.restore()
            assert remembered(cycle_of(service)) == before
            tick(service, after(2 + shards))
            save_state(service)
            before = remembered(cycle_of(service))


def test_a_fleet_that_is_divided_for_the_first_time_keeps_what_it_has_learned(cluster: Cluster, tmp_path: Path) -> None:
    with composed(cluster, tmp_path, policy=POLICY) as service:
        for minute in range(3):
            tick(service, after(minute))
        save_state(service)
        begun = service.cycle.decider.observed.fleet.row.keys()  # type: ignore[union-attr]
    with sharded(cluster, tmp_path) as service:
        tick(service, after(3))
        memory = remembered(cycle_of(service))
        assert memory.keys() == set(begun)
        assert {len(counts) for _, counts in memory.values()} == {4}  # type: ignore[misc]


def test_a_fleet_that_is_divided_no_more_goes_on_from_what_its_shards_learned_and_back(
    cluster: Cluster, tmp_path: Path
) -> None:
    with composed(cluster, tmp_path, policy=POLICY) as service:
        tick(service, after(0))
        save_state(service)
    with sharded(cluster, tmp_path) as service:
        for minute in range(1, 3):
            tick(service, after(minute))
        save_state(service)
        before = remembered(cycle_of(service))
    with composed(cluster, tmp_path, policy=POLICY) as service:
        observed = service.cycle.decider.observed  # type: ignore[union-attr]
        assert remembered_by(observed) == before
        assert {len(counts) for _, counts in before.values()} == {3}  # type: ignore[misc]
        tick(service, after(3))
        save_state(service)
        before = remembered_by(observed)
    with sharded(cluster, tmp_path, shards=3) as service:
        cycle_of(service).learned.restore()
        assert remembered(cycle_of(service)) == before


def test_nothing_is_decided_while_the_database_does_not_say_what_was_learned(cluster: Cluster, tmp_path: Path) -> None:
    with sharded(cluster, tmp_path) as service:
        tick(service, after(0))
        before = published(tmp_path).meta.published_at
        learned = cycle_of(service).learned
        learned.read, away = False, learned.store.read
        learned.store.read = refused  # type: ignore[method-assign]
        tick(service, after(1))
        assert service.report
        assert any("the database is away" in line for line in service.report.failures)
        assert {reason for _, reason in service.report.verdicts} == {"source-down"}
        with pytest.raises(StoreError, match="not read yet"):
            learned.save()
        learned.store.read = away  # type: ignore[method-assign]
        tick(service, after(2))
        assert service.report.failures == ()
        assert published(tmp_path).meta.published_at > before


def refused() -> Any:
    raise StoreError("ledger: the database is away")


def test_a_shard_that_fails_holds_its_workloads_and_no_others(cluster: Cluster, tmp_path: Path) -> None:
    with sharded(cluster, tmp_path) as service:
        cycle = cycle_of(service)
        failing, *late = dict.fromkeys(shard_of(workload.id.namespace, 4) for workload in FLEET)
        cycle.executor = HalfOfIt(failing, late[0])
        outcome = cycle.run(after(0))
        held = {
            recommendation.id: recommendation.replicas.message
            for recommendation in outcome.recommendations
            if recommendation.replicas.reason == "failed"
        }
        assert {shard_of(id_.namespace, 4) for id_ in held} == {failing, late[0]}
        assert set(held.values()) == {
            f"shard {failing} of 4: KeyError: 'web'",
            f"shard {late[0]} of 4: not computed within 40 s",
        }
        assert set(held.values()) <= set(outcome.report.failures)
        assert len(outcome.recommendations) == len(FLEET) > len(held)


@pytest.mark.parametrize("missing", ["numbers", "report", "sizes"])
def test_an_answer_in_another_form_holds_the_workloads_of_its_shard_and_no_others(
    cluster: Cluster, tmp_path: Path, missing: str
) -> None:
    """A worker of another version may leave out a column, a count or a workload."""
    with sharded(cluster, tmp_path) as service:
        cycle = cycle_of(service)
        odd, *_ = dict.fromkeys(shard_of(workload.id.namespace, 4) for workload in FLEET)
        cycle.executor = OtherVersion(odd, missing)
        tick(service, NOON)
        assert published(tmp_path).meta.published_at == NOON
        assert service.report
        (line,) = service.report.failures
        assert line.startswith(f"shard {odd} of 4: its answer is not understood")
        held = sum(shard_of(workload.id.namespace, 4) == odd for workload in FLEET)
        assert service.report.verdicts["hold", "failed"] == held
        cycle.executor = LocalExecutor()
        tick(service, after(1))
        assert service.report.failures == ()


class OtherVersion(LocalExecutor):
    """An executor in which the answer of one shard lacks something."""

    def __init__(self, shard: int, missing: str) -> None:
        super().__init__()
        self.shard, self.missing = shard, missing

    def run(self, tasks: Sequence[ShardTask], seconds: float) -> Iterator[ShardResult | ShardFailure]:
        for answer in LocalExecutor.run(self, tasks, seconds):
            odd = isinstance(answer, ShardResult) and answer.shard == self.shard
            yield self._other(answer) if odd else answer

    def _other(self, answer: ShardResult) -> ShardResult:
        if self.missing == "sizes":
            return answer._replace(sizes=ShardSizes([len(FLEET)], answer.sizes.resources[:1]))
        without = copy(getattr(answer, self.missing))
        object.__delattr__(without, {"numbers": "lead", "report": "incomplete"}[self.missing])
        return answer._replace(**{self.missing: without})


class HalfOfIt(LocalExecutor):
    """An executor in which one shard cannot be computed, and one does not come."""

    def __init__(self, failing: int, late: int) -> None:
        super().__init__()
        self.failing, self.late = failing, late

    def run(self, tasks: Sequence[ShardTask], seconds: float) -> Iterator[ShardResult | ShardFailure]:
        yield ShardFailure(self.failing, "KeyError: 'web'")
        yield from LocalExecutor.run(
            self, [task for task in tasks if task.shard not in {self.failing, self.late}], seconds
        )


def test_pods_that_a_failing_shard_was_not_told_of_are_told_later_each_with_its_node_pool(
    cluster: Cluster, tmp_path: Path
) -> None:
    web = FLEET[0].id
    slow, quick = StartedPod(timedelta(minutes=4), "gpu"), StartedPod(timedelta(seconds=20), "web")
    with sharded(cluster, tmp_path) as service:
        cycle = cycle_of(service)
        cycle.source, cycle.executor = (
            Starting(cycle.source, {web: (slow, slow)}),
            HalfOfIt(shard_of(web.namespace, 4), -1),
        )
        cycle.run(after(0))
        cycle.source.started, cycle.executor = {web: (quick,)}, Noting()
        cycle.run(after(1))
        assert cycle.executor.started == {web: (slow, slow, quick)}


def test_pods_of_a_shard_that_fails_for_days_do_not_pile_up(cluster: Cluster, tmp_path: Path) -> None:
    web, pod = FLEET[0].id, StartedPod(timedelta(minutes=4), "gpu")
    with sharded(cluster, tmp_path) as service:
        cycle = cycle_of(service)
        cycle.source, cycle.executor = (
            Starting(cycle.source, {web: (pod,) * 30}),
            HalfOfIt(shard_of(web.namespace, 4), -1),
        )
        for minute in range(3):
            cycle.run(after(minute))
        assert len(cycle.started[web]) == MAX_SCALE_UPS


class Starting:
    """A cluster in which pods have become ready."""

    def __init__(self, source: Any, started: dict[WorkloadId, tuple[StartedPod, ...]]) -> None:
        self.source, self.started = source, started

    def inventory(self, at: datetime) -> Inventory:
        return replace(self.source.inventory(at), started=self.started)


class Noting(LocalExecutor):
    """An executor that keeps which pods shards are told of."""

    def run(self, tasks: Sequence[ShardTask], seconds: float) -> Iterator[ShardResult | ShardFailure]:
        self.started = {id_: pods for task in tasks for id_, pods in task.inventory.started.items()}
        yield from LocalExecutor.run(self, tasks, seconds)


def test_a_fleet_whose_shards_have_learned_nothing_goes_on_undivided(cluster: Cluster, tmp_path: Path) -> None:
    """Each shard failed; somebody who turns shards off for that must not be left with a service that does not start."""
    with sharded(cluster, tmp_path) as service:
        learned = cycle_of(service).learned
        learned.restore()
        learned.keep(0, ShardState(after(1), Observed().encoded(), b""))
        save_state(service)
    with composed(cluster, tmp_path, policy=POLICY) as service:
        tick(service, after(2))
        assert len(published(tmp_path).entries) == len(FLEET)


def test_workloads_that_go_and_come_back_find_their_shard(cluster: Cluster, tmp_path: Path) -> None:
    with sharded(cluster, tmp_path, shards=1) as service:
        cycle = cycle_of(service)
        tick(service, after(0))
        whole, cycle.source = cycle.source, WithoutTeam(cycle.source, "team-0")
        tick(service, after(1))
        assert len(offers(published(tmp_path))) == len(FLEET) - 2
        cycle.source = whole
        tick(service, after(2))
        assert len(offers(published(tmp_path))) == len(FLEET)
        assert service.report
        assert service.report.failures == ()


class WithoutTeam:
    """A cluster without one of its namespaces."""

    def __init__(self, source: Any, team: str) -> None:
        self.source, self.team = source, team

    def inventory(self, at: datetime) -> Inventory:
        inventory: Inventory = self.source.inventory(at)
        left = tuple(workload for workload in inventory.workloads if workload.id.namespace != self.team)
        return replace(inventory, workloads=left, whole=frozenset({"Deployment"}))


def test_shards_of_one_process_share_the_time_for_what_may_wait(cluster: Cluster, tmp_path: Path) -> None:
    """Fits, sizes and gates of one shard do not keep the next one waiting."""
    with sharded(cluster, tmp_path) as service:
        tick(service, after(0))
        executor = cycle_of(service).executor
        assert isinstance(executor, LocalExecutor)
        running = [entry.cycle for entry in executor.cycles.running.values()]
        assert len(running) > 1
        assert sum((cycle.budget for cycle in running), timedelta()) <= service.settings.interval / 2
        assert sum(cycle.decider.observed.gates.most_new for cycle in running) <= NEW_JUDGED


def test_policies_that_change_meanwhile_are_those_of_all_shards(cluster: Cluster, tmp_path: Path) -> None:
    with sharded(cluster, tmp_path) as service:
        tick(service, after(0))
        policies = service.cycle.policies
        horizontal = policies.defaults.horizontal.model_copy(update={"min_replicas": 17})
        policies.restate(policies.defaults.model_copy(update={"horizontal": horizontal}), ())
        outcome = service.cycle.run(after(1))
        assert {
            recommendation.replicas.replicas
            for recommendation in outcome.recommendations
            if isinstance(recommendation.replicas, Scale)
        } == {17}
