"""One workload that cannot be computed is held with the reason; all others get the bytes they would have got alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from forecaster.cycle.sizes import PodSizes
from forecaster.domain.decision import Hold, Reason
from forecaster.domain.policies import Policies
from forecaster.domain.policy import HorizontalPolicy, Policy
from forecaster.domain.signal import CPU
from forecaster.domain.workload import Autoscaler, Resources, Target, TargetType, WorkloadId
from tests.support.builders import NOON, workload
from tests.support.fakes import CycleOnFakes, Load, named, steady

if TYPE_CHECKING:
    from collections.abc import Callable

    from forecaster.cycle.run import Outcome
    from forecaster.vertical.sizing.pod import PodSizing

SHARE = (Target("cpu", TargetType.UTILIZATION, 0.5),)


def infinite_request() -> Load:
    return Load(workload("bad", resources=Resources(cpu_request=float("inf"))), {CPU: steady(2.0)})


def no_request() -> Load:
    return Load(workload("bad", resources=Resources()), {CPU: steady(2.0)})


def silent() -> Load:
    return Load(workload("bad"), {CPU: lambda _: np.nan})


def huge() -> Load:
    return Load(workload("bad"), {CPU: steady(1e300)})


def negative_replicas() -> Load:
    return Load(workload("bad", replicas=-3), {CPU: steady(2.0)})


def impossible_bounds() -> Load:
    hpa = Autoscaler("bad", min_replicas=5, max_replicas=-1, targets=SHARE)
    return Load(workload("bad", autoscaler=hpa), {CPU: steady(2.0)})


def target_of_nothing() -> Load:
    hpa = Autoscaler("bad", 1, 9, (Target("cpu", TargetType.UTILIZATION, 0.0),))
    return Load(workload("bad", autoscaler=hpa), {CPU: steady(2.0)})


POISON = (infinite_request, no_request, silent, huge, negative_replicas, impossible_bounds, target_of_nothing)


def good(name: str, cpu: float) -> Load:
    return Load(workload(name), {CPU: steady(cpu)})


def played(loads: list[Load], sizing: str) -> list[Outcome]:
    horizontal = {"gate": False, "sizing": sizing}
    policies = Policies(Policy(horizontal=HorizontalPolicy.model_validate(horizontal)))
    return CycleOnFakes(*loads, policies=policies).run_minutes(0, 2)


def bytes_of(outcome: Outcome, names: list[str]) -> list[bytes]:
    return [msgspec.json.encode(named(outcome, name)) for name in names]


@settings(max_examples=25, deadline=None)
@given(
    poison=st.sampled_from(POISON),
    place=st.integers(0, 3),
    loads=st.lists(st.floats(0.1, 50.0), min_size=3, max_size=3),
    sizing=st.sampled_from(["quantile", "newsvendor"]),
)
def test_poison_in_one_row_changes_no_other(
    poison: Callable[[], Load], place: int, loads: list[float], sizing: str
) -> None:
    healthy = [good(f"web-{i}", cpu) for i, cpu in enumerate(loads)]
    names = [load.workload.id.name for load in healthy]
    poisoned = [*healthy[:place], poison(), *healthy[place:]]
    for alone, beside in zip(played(healthy, sizing), played(poisoned, sizing), strict=True):
        assert bytes_of(beside, names) == bytes_of(alone, names)
        assert isinstance(named(beside, "bad").replicas, Hold)


class BrokenSizes(PodSizes):
    """One workload has a size of which no record can be made."""

    def of(self, id_: WorkloadId) -> PodSizing:
        return None if id_.name == "bad" else PodSizes.of(self, id_)  # type: ignore[return-value]


def test_an_exception_in_the_size_of_a_row_holds_its_size_and_nothing_else() -> None:
    stage = CycleOnFakes(good("web", 2.0), good("bad", 2.0))
    stage.cycle.sizes = BrokenSizes()
    outcome = stage.run(NOON)
    bad, web = (named(outcome, name) for name in ("bad", "web"))
    assert bad.resources.reason is Reason.FAILED
    assert bad.replicas == web.replicas
    assert web.resources.reason is not Reason.FAILED
