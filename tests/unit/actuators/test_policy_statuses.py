"""The status of a PredictivePolicy: its workloads, the statements that override it, and its Event."""

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
from tests.support.decided_records import decided_fleet
from tests.support.fences import Fence, Log
from tests.support.recommendations import NOON, recommendation

WEB, API = (WorkloadId("shop", "Deployment", name) for name in ("web", "api"))


def policy(name: str, selector: PolicySelector | None = None, **stated: object) -> PolicyResource:
    layer = Layer(f"PredictivePolicy {name}", stated)
    return PolicyResource(name, selector or PolicySelector(), layer, uid=f"uid-{name}", generation=1)


def level(value: float) -> dict[str, float]:
    return {"quantile": value}


@dataclass
class Stage:
    """A writer of statuses over a fake cluster with these policies and two workloads."""

    resources: dict[str, PolicyResource]
    overrides: tuple[tuple[PolicySelector, dict[str, object]], ...] = ()
    labels: dict[WorkloadId, dict[str, str]] = field(default_factory=dict)
    written: list[PolicyStatusWrite] = field(default_factory=list)
    refuses: int = 0

    @classmethod
    def of(cls, *policies: PolicyResource, **fields: object) -> Stage:
        return cls({resource.name: resource for resource in policies}, **fields)  # type: ignore[arg-type]

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
            (resource.selector, resource.layer)
            for resource in sorted(self.resources.values(), key=lambda resource: resource.name)
        )
        self.policies.take_over(ClusterPolicies(selecting, labels=self.labels))
        workloads = ids or (WEB, API)
        for id_ in workloads:
            self.policies.of(id_)
        rows = [recommendation(id_, at=NOON) for id_ in workloads]
        self.writer.receive(offered_cycle(NOON, decided_fleet(rows, NOON), [Policy()] * len(rows)))
        before = len(self.written)
        if self.writer.sender.sending:
            self.writer.sender.step()
        return [write.resource.name for write in self.written[before:]]

    def ready(self, name: str) -> tuple[int, str, str, str]:
        """Workloads of a policy, and the status, reason and message of its condition `Ready`."""
        status = status_there(self.resources[name].status, PolicyStatus)
        condition = status.condition("Ready")
        assert condition is not None
        return status.workloads, condition.status, condition.reason, condition.message


def test_a_status_counts_the_selected_workloads_and_is_written_only_when_that_changes() -> None:
    stage = Stage.of(policy("teams", mode="publish"))
    assert stage.cycle() == ["teams"]
    assert stage.ready("teams")[:3] == (2, "True", "PolicyInForce")
    assert stage.cycle() == []
    assert stage.cycle(WEB) == ["teams"]
    assert stage.ready("teams")[0] == 1


def test_statements_that_override_a_policy_are_named_with_the_workloads_that_both_select() -> None:
    named = PolicySelector(name="web")
    stage = Stage.of(
        policy("a", horizontal=level(0.8), mode="publish"),
        policy("b", horizontal=level(0.9), mode="publish"),
        overrides=((named, {"horizontal": level(0.95)}),),
    )
    stage.cycle()
    over = "horizontal.quantile 0.95 by overrides[0] for 1 workload."
    both = f"Stated otherwise: horizontal.quantile 0.9 by PredictivePolicy b for 2 workloads; {over}"
    assert stage.ready("a") == (2, "True", "PartlyOverridden", both)
    assert stage.ready("b")[2:] == (
        "PartlyOverridden",
        "Stated otherwise: horizontal.quantile 0.95 by overrides[0] for 1 workload.",
    )


def test_statuses_of_a_hundred_policies_are_made_in_a_moment() -> None:
    """Comparing each pair of policies over every workload took 12 s for this many."""
    selectors = [PolicySelector(namespace=f"team-{i}") for i in range(100)]
    stage = Stage.of(
        *(policy(f"p{i:03}", selector, horizontal=level(0.5 + i / 250)) for i, selector in enumerate(selectors))
    )
    began = process_time()
    assert len(stage.cycle(*(WorkloadId(f"team-{i % 100}", "Deployment", f"w{i}") for i in range(1_000)))) == 100
    assert process_time() - began < 4
    assert stage.ready("p007")[:3] == (10, "True", "PolicyInForce")


def test_policies_that_select_nothing_in_common_are_no_conflict() -> None:
    stage = Stage.of(
        policy("a", PolicySelector(name="web"), horizontal=level(0.8)),
        policy("b", PolicySelector(name="api"), horizontal=level(0.9)),
    )
    stage.cycle()
    assert {stage.ready(name)[2] for name in ("a", "b")} == {"PolicyInForce"}


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
def test_a_policy_that_selects_nothing_says_so_and_is_warned_of(selector: PolicySelector, why: str) -> None:
    stage = Stage.of(policy("teams", selector, mode="publish"))
    stage.cycle()
    assert stage.ready("teams") == (0, "False", "MatchesNothing", why)
    (write,) = stage.written
    event = condition_event(write.resource, write.news[0], NOON)
    assert (event.type, event.reason, event.metadata.namespace) == ("Warning", "MatchesNothing", "default")
    assert (event.involved_object.kind, event.involved_object.namespace) == ("PredictivePolicy", "")


def test_another_label_of_a_workload_is_another_status() -> None:
    stage = Stage.of(policy("teams", PolicySelector(labels={"team": "shop"}), mode="publish"))
    stage.labels = {WEB: {"team": "shop"}}
    stage.cycle()
    assert stage.ready("teams")[0] == 1
    stage.labels = {WEB: {"team": "shop"}, API: {"team": "shop"}}
    assert stage.cycle() == ["teams"]
    assert stage.ready("teams")[0] == 2


def test_a_policy_that_contradicts_the_ones_below_it_names_a_workload() -> None:
    stage = Stage.of(policy("a", horizontal={"min_replicas": 5}), policy("b", horizontal={"max_replicas": 2}))
    stage.cycle()
    _, status, reason, message = stage.ready("b")
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
