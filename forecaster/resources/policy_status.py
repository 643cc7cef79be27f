"""The status of a PredictivePolicy: how many workloads it selects, and what stands over it there. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated

from forecaster.domain.amounts import counted
from forecaster.domain.layers import Layer, leaves
from forecaster.domain.policies import NO_LABELS, matches
from forecaster.domain.policy import PolicySelector
from forecaster.domain.workload import WorkloadId
from forecaster.kube.objects import Wire
from forecaster.resources.objects import PolicyResource
from forecaster.resources.status import Condition, ConditionState, condition_after, described

WORKLOADS_SHOWN = 5
"""Most overridden settings, or workloads, that one sentence names."""


class PolicyStatus(Wire, frozen=True):
    """Last findings of the service's leader."""

    observed_generation: Annotated[int, described("Generation of the specification that this is about.")] = 0
    workloads: Annotated[int | None, described("Workloads that it selects.")] = None
    conditions: Annotated[tuple[Condition, ...], described("Ready.")] = ()

    def condition(self, kind: str) -> Condition | None:
        """Return one condition."""
        return next((condition for condition in self.conditions if condition.type == kind), None)


@dataclass(frozen=True, slots=True)
class Selected:
    """Facts about the fleet that statuses are made from."""

    ids: Sequence[WorkloadId]
    labels: Mapping[WorkloadId, Mapping[str, str]]
    layers: Sequence[tuple[PolicySelector, Layer]]
    """PredictivePolicies and overrides, the lowest first."""
    refused: Mapping[WorkloadId, Mapping[str, str]]
    """Layers that a workload's policy is made without, and why."""
    _found: dict[str, frozenset[WorkloadId]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def by(self, selector: PolicySelector) -> frozenset[WorkloadId]:
        """The workloads that a selector means; looked for once, as each layer is compared with all others."""
        key = selector.model_dump_json()
        if key not in self._found:
            meant = (id_ for id_ in self.ids if matches(selector, id_, self.labels.get(id_, NO_LABELS)))
            self._found[key] = frozenset(meant)
        return self._found[key]


def policy_status(policy: PolicyResource, fleet: Selected, before: PolicyStatus, now: datetime) -> PolicyStatus:
    """Return the status of a PredictivePolicy from the facts about the fleet."""
    selected = fleet.by(policy.selector)
    ready = condition_after("Ready", _ready(policy, selected, fleet), policy.generation, before.condition("Ready"), now)
    return PolicyStatus(policy.generation, len(selected), (ready,))


def _ready(policy: PolicyResource, selected: frozenset[WorkloadId], fleet: Selected) -> ConditionState:
    """Return whether its policy is in force for the selected workloads."""
    if policy.fault:
        return ConditionState("False", "PolicyRefused", policy.fault)
    if not selected:
        unknown = bool(policy.selector.labels) and not fleet.labels
        why = "; labels of workloads are not known without live facts" if unknown else ""
        return ConditionState("False", "MatchesNothing", f"It selects no workload{why}.")
    origin = policy.layer.origin
    refused = {id_: whys[origin] for id_ in selected if origin in (whys := fleet.refused.get(id_, {}))}
    if refused:
        first = min(refused)
        why = f"It is left out of {counted(len(refused), 'workload')}, {first} among them: {refused[first]}."
        return ConditionState("False", "PolicyRefused", why)
    over = list(_stated_otherwise(policy, selected, fleet))
    if over:
        more = [f"and {len(over) - WORKLOADS_SHOWN} more"] if len(over) > WORKLOADS_SHOWN else []
        stated = "; ".join([*over[:WORKLOADS_SHOWN], *more])
        return ConditionState("True", "PartlyOverridden", f"Stated otherwise: {stated}.")
    return ConditionState("True", "PolicyInForce", "It is in force, as far as owners of workloads state nothing else.")


def _stated_otherwise(policy: PolicyResource, selected: frozenset[WorkloadId], fleet: Selected) -> Iterator[str]:
    """Each setting that a layer above it gives another value, with the workloads that both select."""
    own = dict(leaves(policy.layer.policy))
    places = [place for place, (_, layer) in enumerate(fleet.layers) if layer.origin == policy.layer.origin]
    for selector, layer in fleet.layers[places[-1] + 1 if places else len(fleet.layers) :]:
        clashes = {path: value for path, value in leaves(layer.policy) if path in own and own[path] != value}
        common = len(selected & fleet.by(selector)) if clashes else 0
        if common:
            for path, value in clashes.items():
                yield f"{path} {value} by {layer.origin} for {counted(common, 'workload')}"
