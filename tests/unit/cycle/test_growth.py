"""No container that a cycle holds grows with the workloads that came and went."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sized
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from forecaster.demand.latest import SPARE_ROWS
from forecaster.domain.policies import Policies
from forecaster.domain.signal import CPU, CPU_CONTAINER, PODS
from forecaster.domain.window import MINUTE
from forecaster.domain.workload import NamedContainer, Resources, Target, TargetType
from forecaster.publish.table_file import TableFile
from forecaster.store.history import HistorySettings
from tests.support.builders import NOON, after, hpa, minutes, policy, workload
from tests.support.decided_records import RecordPublisher
from tests.support.fakes import CycleOnFakes, Load, steady

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CYCLES, COMING, SMALL = 300, 12, 300
"""900 workloads come before the first count and 900 before the second; growth of up to SMALL items is allowed."""
ALWAYS_NEW, STAYING = 200, 500
LEAF = (str, bytes, int, float, bool, type(None), np.ndarray, np.generic, type)


def sizes(root: object) -> Counter[str]:
    """The size of each container that is reached from an object, by the names that lead there.

    All items of a container have one name: their sizes are added up, of arrays the largest counts.
    """
    totals: Counter[str] = Counter()
    reached: set[int] = set()
    waiting: list[tuple[str, object]] = [("", root)]
    while waiting:
        path, holder = waiting.pop()
        if id(holder) in reached:
            continue
        reached.add(id(holder))
        if isinstance(holder, np.ndarray):
            totals[path] = max(totals[path], holder.size)
        elif isinstance(holder, Sized) and not isinstance(holder, LEAF):
            totals[path] += len(holder)
        waiting += ((f"{path}{name}", part) for name, part in parts(holder))
    return totals


def parts(holder: object) -> Iterator[tuple[str, Any]]:
    """Parts of an object: attributes by name, values of mappings and items of sequences under the name `[]`."""
    if isinstance(holder, Mapping):
        yield from (("[]", value) for value in list(holder.values()))
    elif isinstance(holder, (list, tuple, set, frozenset)) or type(holder).__name__ == "deque":
        yield from (("[]", value) for value in list(holder))  # type: ignore[call-overload]
    elif type(holder).__module__.partition(".")[0] in {"forecaster", "models"}:
        names = {name for kind in type(holder).__mro__ for name in getattr(kind, "__slots__", ())}
        yield from ((f".{name}", getattr(holder, name)) for name in names if hasattr(holder, name))
        yield from ((f".{name}", value) for name, value in getattr(holder, "__dict__", {}).items())


@pytest.fixture
def stage(tmp_path: Path) -> CycleOnFakes:
    """A cycle that publishes into a real table; a series is forgotten after an hour."""
    policies = Policies(policy(lead_time=minutes(60), sizing="newsvendor", gate=True))
    settings = HistorySettings(minutes_kept=minutes(120), weeks_kept=minutes(2880), forget_after=minutes(60))
    stage = CycleOnFakes(policies=policies, settings=settings, learns_first=False)
    table = TableFile(tmp_path / "table", interval=minutes(1), version="1", last_report=lambda: None)
    stage.cycle.effects = replace(stage.cycle.effects, publisher=RecordPublisher(policies, {"table": table}))
    return stage


def loads_of(cycle: int) -> list[Load]:
    """Four workloads that stay, and a dozen that come in each cycle for two of them; HPAs look at one container."""
    names = [f"stays-{i}" for i in range(4)] + [f"comes-{cycle // 2}-{i}" for i in range(COMING)]
    demand = {CPU: steady(2.0), PODS: steady(4.0), CPU_CONTAINER: steady(2.0)}
    app = NamedContainer("app", Resources(cpu_request=1.0))
    template = workload(autoscaler=hpa(Target("cpu", TargetType.UTILIZATION, 0.5, "app")), replicas=4 + cycle % 2)
    each = [replace(template, id=workload(name).id, containers=(app,)) for name in names]
    return [Load(workload, demand) for workload in each]


def test_what_a_cycle_holds_does_not_grow_with_the_workloads_that_came_and_went(stage: CycleOnFakes) -> None:
    """After a day of cycles, of fifty hours in all, as much is known of the workloads that left as ever will be."""
    measured: list[Counter[str]] = []
    for cycle in range(CYCLES):
        stage.source.loads = loads_of(cycle)
        stage.run(NOON + cycle * minutes(10))
        if cycle in {CYCLES // 2, CYCLES - 1}:
            measured.append(sizes(stage.cycle))
    early, late = measured
    assert {path: (early[path], size) for path, size in late.items() if size > 1.5 * early[path] + SMALL} == {}


def test_a_namespace_with_names_that_are_always_new_does_not_fill_the_memory() -> None:
    """An owner of a namespace replaces workloads every minute; history is kept for a week."""
    stage = CycleOnFakes(learns_first=False)
    stays = [Load(workload(f"stays-{number}"), {CPU: steady(2.0)}) for number in range(STAYING)]
    for cycle in range(12):
        comes = [Load(workload(f"comes-{cycle}-{number}"), {CPU: steady(2.0)}) for number in range(ALWAYS_NEW)]
        stage.source.loads = [*stays, *comes]
        stage.run(after(cycle))
    keys = stage.history.window(CPU, MINUTE).keys
    assert len(keys) == 2 * (STAYING + ALWAYS_NEW) + SPARE_ROWS
    assert {load.workload.id for load in stage.source.loads} <= set(keys)
