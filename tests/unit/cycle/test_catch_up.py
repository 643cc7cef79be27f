from __future__ import annotations

from forecaster.cycle.targets import Targets, pods_block
from forecaster.domain.signal import PODS
from forecaster.domain.window import MINUTE, Inventory
from tests.support.builders import NOON, after, workload
from tests.support.fakes import CycleOnFakes, load, nobody_answers


def test_ready_pods_come_from_the_inventory() -> None:
    workloads = (workload("web", replicas=4, ready=3), workload("cart", replicas=2))
    block = pods_block(Targets(Inventory(NOON, workloads)), NOON)
    assert (block.signal, block.start, block.step) == (PODS, NOON, MINUTE)
    assert dict(zip(block.ids, block.values[:, 0], strict=True)) == {workloads[0].id: 3.0, workloads[1].id: 2.0}


def test_an_empty_cluster_has_an_empty_block() -> None:
    assert pods_block(Targets(Inventory(NOON, ())), NOON).values.shape == (0, 1)


def test_another_origin_is_reported_once_and_not_again_in_each_cycle_of_an_outage() -> None:
    """The metric counts each report: a night without a source would be hundreds of changes."""
    stage = CycleOnFakes(load())
    stage.run()
    stage.source.moves = {workload("web").id: "its requests come from ingress-nginx"}
    assert len(stage.run(after(1)).report.moved) == 1
    stage.source.down = nobody_answers()
    assert stage.run(after(2)).report.moved == ()
