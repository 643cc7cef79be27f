from __future__ import annotations

from forecaster.cycle.catch_up import pods_block
from forecaster.cycle.targets import Targets
from forecaster.domain.signal import PODS
from forecaster.domain.window import MINUTE, Inventory
from tests.support.builders import NOON, workload


def test_ready_pods_come_from_the_inventory() -> None:
    here = (workload("web", replicas=4, ready=3), workload("cart", replicas=2))
    block = pods_block(Targets(Inventory(NOON, here)), NOON)
    assert (block.signal, block.start, block.step) == (PODS, NOON, MINUTE)
    assert dict(zip(block.ids, block.values[:, 0], strict=True)) == {here[0].id: 3.0, here[1].id: 2.0}


def test_an_empty_cluster_has_an_empty_block() -> None:
    assert pods_block(Targets(Inventory(NOON, ())), NOON).values.shape == (0, 1)
