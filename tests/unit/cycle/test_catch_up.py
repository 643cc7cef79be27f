from __future__ import annotations

from forecaster.cycle.catch_up import pods_block
from forecaster.cycle.targets import Targets, find_targets
from forecaster.domain.signal import PODS
from forecaster.domain.window import MINUTE, Inventory
from tests.support.builders import NOON, after, workload
from tests.support.fakes import FakeSource, load, nobody_answers


def test_ready_pods_come_from_the_inventory() -> None:
    here = (workload("web", replicas=4, ready=3), workload("cart", replicas=2))
    block = pods_block(Targets(Inventory(NOON, here)), NOON)
    assert (block.signal, block.start, block.step) == (PODS, NOON, MINUTE)
    assert dict(zip(block.ids, block.values[:, 0], strict=True)) == {here[0].id: 3.0, here[1].id: 2.0}


def test_an_empty_cluster_has_an_empty_block() -> None:
    assert pods_block(Targets(Inventory(NOON, ())), NOON).values.shape == (0, 1)


def test_a_source_that_answers_replaces_what_was_known() -> None:
    before = Inventory(NOON, (workload("gone"),))
    targets = find_targets(FakeSource([load("web")]), before, after(1))
    assert ([one.id.name for one in targets.inventory.workloads], targets.down) == (["web"], "")


def test_a_source_that_is_down_leaves_what_was_known_and_says_why() -> None:
    before = Inventory(NOON, (workload("web"),))
    targets = find_targets(FakeSource([], down=nobody_answers()), before, after(1))
    assert targets == Targets(before, str(nobody_answers()))


def test_a_source_that_was_never_up_leaves_nobody() -> None:
    targets = find_targets(FakeSource([], down=nobody_answers()), None, NOON)
    assert targets.inventory.workloads == ()
