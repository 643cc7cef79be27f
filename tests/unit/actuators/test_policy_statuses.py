"""What a PredictivePolicy is told of itself: how many workloads, what stands over it, which Event."""

from __future__ import annotations

from dataclasses import dataclass, field
from time import process_time

import msgspec
import pytest

from forecaster.actuators.statuses import PolicyStatusWrite, PolicyStatusWriter, condition_event, status_there
from forecaster.domain.layers import ClusterPolicies, Layer
from forecaster.domain.policies import Policies
from forecaster.domain.policy import Policy, PolicySelector
from forecaster.domain.workload import WorkloadId
from forecaster.kube.client import ApiError
from forecaster.publish.publisher import offered_cycle
from forecaster.resources.objects import PolicyResource
from forecaster.resources.policy_status import PolicyStatus
from tests.support.fences import Fence, Log
from tests.support.recommendations import NOON, recommendation
from tests.support.told import told

WEB, API = (WorkloadId("shop", "Deployment", name) for name in ("web", "api"))


def policy(name: str, selector: PolicySelector | None = None, **stated: object) -> PolicyResource:
    layer = Layer(f"PredictivePolicy {name}", stated)
    return PolicyResource(name, selector or PolicySelector(), layer, uid=f"uid-{name}", generation=1)


def level(value: float) -> dict[str, float]:
    return {"quantile": value}


@dataclass
class Stage:
    """A writer on a fake cluster with these policies; two workloads."""

    resources: dict[str, PolicyResource]
    overrides: tuple[tuple[PolicySelector, dict[str, object]], ...] = ()
    labels: dict[WorkloadId, dict[str, str]] = field(default_factory=dict)
    written: list[PolicyStatusWrite] = field(default_factory=list)
    refuses: int = 0

    @classmethod
    def of(cls, *policies: PolicyResource, **fields: object) -> Stage:
        return cls({one.name: one for one in policies}, **fields)  # type: ignore[arg-type]

    def __post_init__(self) -> None:
        self.policies = Policies(Policy(), self.overrides)
        self.log = Log(self)
        every = lambda: list(self.resources.values())  # noqa: E731
        self.writer = PolicyStatusWriter(self.write, Fence(), self.policies, every, self.log)

    def write(self, write: PolicyStatusWrite) -> None:
        if self.refuses:
            raise ApiError("no", self.refuses)
        self.written.append(write)
        status = msgspec.Raw(msgspec.json.encode(write.status))
        self.resources[write.resource.name] = msgspec.structs.replace(write.resource, status=status)

    def cycle(self, *ids: WorkloadId) -> list[str]:
        """Names of the policies whose status was written."""
        selecting = tuple(
            (one.selector, one.layer) for one in sorted(self.resources.values(), key=lambda one: one.name)
        )
        self.policies.take_over(ClusterPolicies(selecting, labels=self.labels))
        here = ids or (WEB, API)
        for id_ in here:
            self.policies.of(id_)
        rows = [recommendation(id_, at=NOON) for id_ in here]
        self.writer.receive(offered_cycle(NOON, told(rows, NOON), [Policy()] * len(rows)))
        before = len(self.written)
        if self.writer.sender.sending:
            self.writer.sender.step()
        return [one.resource.name for one in self.written[before:]]

    def told(self, name: str) -> tuple[int, str, str, str]:
        """Workloads, and the status, reason and message of `Ready`."""
        status = status_there(self.resources[name].status, PolicyStatus)
        ready = status.condition("Ready")
        assert ready is not None
        return status.workloads, ready.status, ready.reason, ready.message


def test_it_is_told_how_many_workloads_it_selects_and_only_when_that_changes() -> None:
    stage = Stage.of(policy("teams", mode="publish"))
    assert stage.cycle() == ["teams"]
    assert stage.told("teams")[:3] == (2, "True", "PolicyInForce")
    assert stage.cycle() == []
    assert stage.cycle(WEB) == ["teams"]
    assert stage.told("teams")[0] == 1


def test_what_stands_over_it_is_named_with_the_workloads_that_both_select() -> None:
    named = PolicySelector(name="web")
    stage = Stage.of(
        policy("a", horizontal=level(0.8), mode="publish"),
        policy("b", horizontal=level(0.9), mode="publish"),
        overrides=((named, {"horizontal": level(0.95)}),),
    )
    stage.cycle()
    over = "horizontal.quantile 0.95 by overrides[0] for 1 workload."
    both = f"Stated otherwise: horizontal.quantile 0.9 by PredictivePolicy b for 2 workloads; {over}"
    assert stage.told("a") == (2, "True", "PartlyOverridden", both)
    assert stage.told("b")[2:] == (
        "PartlyOverridden",
        "Stated otherwise: horizontal.quantile 0.95 by overrides[0] for 1 workload.",
    )


def test_a_policy_for_each_of_a_hundred_teams_is_told_in_a_moment() -> None:
    """Each was once compared with each other one by looking at every workload: 12 s for this many."""
    selectors = [PolicySelector(namespace=f"team-{i}") for i in range(100)]
    stage = Stage.of(*(policy(f"p{i:03}", one, horizontal=level(0.5 + i / 250)) for i, one in enumerate(selectors)))
    began = process_time()
    assert len(stage.cycle(*(WorkloadId(f"team-{i % 100}", "Deployment", f"w{i}") for i in range(1_000)))) == 100
    assert process_time() - began < 4
    assert stage.told("p007")[:3] == (10, "True", "PolicyInForce")


def test_policies_that_select_nothing_in_common_are_no_conflict() -> None:
    stage = Stage.of(
        policy("a", PolicySelector(name="web"), horizontal=level(0.8)),
        policy("b", PolicySelector(name="api"), horizontal=level(0.9)),
    )
    stage.cycle()
    assert {stage.told(name)[2] for name in ("a", "b")} == {"PolicyInForce"}


@pytest.mark.parametrize(
    ("selector", "why"),
    [
        (PolicySelector(namespace="shpo"), "It selects no workload."),
        (
            PolicySelector(labels={"team": "shop"}),
            "It selects no workload; labels of workloads are not known without live facts.",
        ),
    ],
    ids=["by name", "by labels that are not known"],
)
def test_one_that_selects_nothing_is_told_and_warned_of(selector: PolicySelector, why: str) -> None:
    stage = Stage.of(policy("teams", selector, mode="publish"))
    stage.cycle()
    assert stage.told("teams") == (0, "False", "MatchesNothing", why)
    (write,) = stage.written
    event = condition_event(write.resource, write.news[0], NOON)
    assert (event.type, event.reason, event.metadata.namespace) == ("Warning", "MatchesNothing", "default")
    assert (event.involved_object.kind, event.involved_object.namespace) == ("PredictivePolicy", "")


def test_another_label_of_a_workload_is_another_status() -> None:
    stage = Stage.of(policy("teams", PolicySelector(labels={"team": "shop"}), mode="publish"))
    stage.labels = {WEB: {"team": "shop"}}
    stage.cycle()
    assert stage.told("teams")[0] == 1
    stage.labels = {WEB: {"team": "shop"}, API: {"team": "shop"}}
    assert stage.cycle() == ["teams"]
    assert stage.told("teams")[0] == 2


def test_one_that_contradicts_what_is_below_it_names_a_workload() -> None:
    stage = Stage.of(policy("a", horizontal={"min_replicas": 5}), policy("b", horizontal={"max_replicas": 2}))
    stage.cycle()
    _, status, reason, message = stage.told("b")
    assert (status, reason) == ("False", "PolicyRefused")
    assert message.startswith("It is left out of 2 workloads, shop/api among them: ")


def test_what_failed_is_written_in_the_next_cycle() -> None:
    stage = Stage.of(policy("teams", mode="publish"))
    stage.refuses = 503
    assert stage.cycle() == []
    assert [event for event, _ in stage.log.lines] == ["statuses_not_written"]
    stage.refuses = 0
    assert stage.cycle() == ["teams"]
    assert stage.writer.sender.outcomes == {"failed": 1, "written": 1}
