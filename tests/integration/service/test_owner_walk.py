"""Everything that an owner can write, through the composed cycle: it harms the owner's own workload at most.

The whole space at once, each in a namespace of its own: a field at, below and above its bounds, absent, of another type
or enormous; beside neighbours whose decisions are those of a cluster where nobody wrote anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
import pytest

from forecaster.domain.decision import Scale
from forecaster.domain.layers import NOTHING_STATED, ClusterPolicies
from forecaster.domain.window import MINUTE
from forecaster.domain.workload import WorkloadId
from forecaster.resources.objects import CustomResource, autoscaler_of_resource
from forecaster.resources.status import AutoscalerStatus, Decided, status_of
from forecaster.sources.stated import AnnotatedObject, cluster_policies
from tests.support.api_objects import metadata
from tests.support.builders import NOON, workload
from tests.support.composed import composed, published, recorded_cluster
from tests.support.owner_walk import Case, annotated, specs

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from forecaster.domain.decision import Recommendation
    from forecaster.domain.policies import Policies
    from forecaster.resources.objects import AutoscalerResource
    from forecaster.resources.status import Condition

CASES = [*specs(), *annotated()]
OWNERS = [WorkloadId(f"team-{number:04}", "Deployment", "web") for number in range(len(CASES))]
NEIGHBOURS = [WorkloadId(namespace, "Deployment", "web") for namespace in ("alpha", "team-0500x", "zulu")]
"""Namespaces of the neighbours: before, between and after the others."""

POLICY = {"mode": "publish", "horizontal": {"gate": False}}
"""A forecast that is not on trial has its say at once."""


def resource_of(id_: WorkloadId, case: Case) -> AutoscalerResource:
    spec = {"scaleTargetRef": {"name": id_.name}, **(case.spec or {})}
    document = {"metadata": {**metadata(id_.name, id_.namespace), "uid": str(id_)}, "spec": spec}
    return autoscaler_of_resource(msgspec.json.decode(msgspec.json.encode(document), type=CustomResource))


RESOURCES = [resource_of(id_, case) for id_, case in zip(OWNERS, CASES, strict=True) if case.annotations is None]


def everything() -> ClusterPolicies:
    """Policies that all owners state together."""
    noted = [
        AnnotatedObject(f"Deployment {id_}", id_, case.annotations)
        for id_, case in zip(OWNERS, CASES, strict=True)
        if case.annotations is not None
    ]
    return cluster_policies(autoscalers=RESOURCES, workloads=noted)


@dataclass
class Walked:
    """Two cycles of a fleet where owners state something."""

    policies: Policies
    decided: Mapping[WorkloadId, Recommendation]
    failures: Sequence[str]
    rows: int
    """Workloads in the table that is served."""


def walked(ids: Sequence[WorkloadId], stated: ClusterPolicies, directory: Path) -> Walked:
    fleet = [workload(id=id_) for id_ in ids]
    with recorded_cluster(fleet, days=2) as cluster, composed(cluster, directory, policy=POLICY) as service:
        service.cycle.policies.take_over(stated)
        service.cycle.seconds = lambda: 0.0  # there is time for all, which a larger fleet would have later
        for number in range(2):
            outcome = service.cycle.run(NOON + number * MINUTE)
        decided = {recommendation.id: recommendation for recommendation in outcome.recommendations}
        return Walked(service.cycle.policies, decided, outcome.report.failures, len(published(directory).entries))


@pytest.fixture(scope="module")
def all_at_once(tmp_path_factory: pytest.TempPathFactory) -> Walked:
    return walked([*OWNERS, *NEIGHBOURS], everything(), tmp_path_factory.mktemp("state"))


def test_no_cycle_fails_and_everything_is_published(all_at_once: Walked) -> None:
    assert all_at_once.failures == ()
    assert (all_at_once.rows, len(all_at_once.decided)) == (len(OWNERS) + len(NEIGHBOURS),) * 2


def test_the_neighbours_are_decided_as_if_nobody_had_written_anything(all_at_once: Walked, tmp_path: Path) -> None:
    quiet = walked(NEIGHBOURS, NOTHING_STATED, tmp_path)
    for id_ in NEIGHBOURS:
        decided = all_at_once.decided[id_]
        assert isinstance(decided.replicas, Scale)
        assert decided == quiet.decided[id_]


def test_nothing_goes_to_0_or_below_what_is_measured(all_at_once: Walked) -> None:
    """Exceptions are an owner who states a lower maximum, or freezes the count."""
    for id_, case in zip(OWNERS, CASES, strict=True):
        recommendation, stated = all_at_once.decided[id_], all_at_once.policies.stated(id_).horizontal
        if not isinstance(recommendation.replicas, Scale):
            continue
        reactive = max((view.reactive_replicas or 0 for view in recommendation.signals), default=0)
        held = [event.max_replicas for event in stated.events if event.over_measured and event.max_replicas]
        least = min(reactive, stated.max_replicas or reactive, *held)
        frozen = any(event.freeze for event in stated.events)
        assert recommendation.replicas.replicas >= (recommendation.replicas_now if frozen else max(1, least)), (
            case.label
        )


def ready_of(resource: AutoscalerResource, fleet: Walked) -> Condition:
    """Condition Ready of an object."""
    decided = Decided(
        fleet.decided[resource.target], fleet.policies.stated(resource.target), fleet.policies.refused(resource.target)
    )
    ready = status_of(resource, decided, AutoscalerStatus(), NOON).condition("Ready")
    assert ready is not None
    return ready


def refusals(all_at_once: Walked) -> Iterator[tuple[Case, str]]:
    """Refusal of each owner: the condition of the object, or the line about the annotation."""
    messages = {}
    for resource in RESOURCES:
        ready = ready_of(resource, all_at_once)
        messages[resource.target] = ready.message if ready.reason == "PolicyRefused" else ""
    faults = all_at_once.policies.cluster.faults
    for id_, case in zip(OWNERS, CASES, strict=True):
        lines = [line for line in faults if str(id_) in line]
        yield case, messages.get(id_, "") or "; ".join(lines)


def test_what_is_beyond_a_bound_is_refused_and_its_owner_told(all_at_once: Walked) -> None:
    refused = list(refusals(all_at_once))
    silent = [case.label for case, why in refused if case.beyond and not why]
    assert silent == []
    assert sum(case.beyond for case, _ in refused) > 100


def test_what_is_refused_changes_nothing_of_the_policy(all_at_once: Walked) -> None:
    """A mode that cannot be read is taken for `observe`, which is the default here."""
    default = all_at_once.policies.defaults
    for (case, why), id_ in zip(refusals(all_at_once), OWNERS, strict=True):
        if case.annotations is None and why:
            assert all_at_once.policies.stated(id_) == default, case.label


def test_events_beyond_those_of_a_namespace_are_left_out_and_their_owners_told(tmp_path: Path) -> None:
    """Events count by the names of workloads: the last one has no effect, in its own namespace alone."""
    crowd = [WorkloadId("crowded", "Deployment", f"web-{number:02}") for number in range(21)]
    beside = WorkloadId("zulu", "Deployment", "web")
    night = {"cron": "0 2 * * *", "duration": "1h", "freeze": True}
    now = {"name": "now", "start": "2020-01-01T00:00:00Z", "end": "2099-01-01T00:00:00Z", "freeze": True}
    case = Case("many", {"horizontal": {"events": [*({"name": f"night-{each}", **night} for each in range(49)), now]}})
    resources = [resource_of(id_, case) for id_ in (*crowd, beside)]
    fleet = walked([*crowd, beside], cluster_policies(autoscalers=resources), tmp_path)
    assert fleet.failures == ()
    held = [id_ for id_, recommendation in fleet.decided.items() if str(recommendation.replicas.reason) == "frozen"]
    assert held == [*crowd[:-1], beside]
    for resource in resources:
        assert ("states more than 1,000 events" in ready_of(resource, fleet).message) == (resource.target == crowd[-1])
