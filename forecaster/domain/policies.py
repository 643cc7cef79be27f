"""The policy of a workload: the defaults and every layer that selects the workload, later layers taking precedence.

From the lowest: `policy` of the settings, PredictivePolicies of the cluster by name, `overrides` of the settings, the
workload's PredictiveAutoscaler, annotations of its objects. Layers nearer to the workload are higher. Overrides are
above PredictivePolicies, because both select workloads and the settings belong to the service itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import reduce
from types import MappingProxyType
from typing import NamedTuple

from pydantic import ValidationError

from forecaster.domain.event import NAMESPACE_EVENTS
from forecaster.domain.layers import (
    NOTHING_STATED,
    PAUSED_POLICY,
    ClusterPolicies,
    Layer,
    OwnerCeiling,
    ceiling_of,
    excess_of,
    merged,
)
from forecaster.domain.policy import Mode, Policy, PolicySelector
from forecaster.domain.settings import sentences
from forecaster.domain.signal import BUILT_IN, Signals
from forecaster.domain.workload import WorkloadId


class CombinedPolicy(NamedTuple):
    """A policy, and the layers that it is made without, by their position, each with why."""

    policy: Policy
    refused: tuple[tuple[int, str], ...] = ()


CHANGES_AT_ONCE, CHANGES_EACH = 10, 10
"""Number of changes in a row that one workload's stated policy may have, and cycles until one more is allowed."""


@dataclass(slots=True)
class ChangePace:
    """Cycles that each workload has to wait for its next policy change; few workloads have any.

    Changes of workloads that change all the time are taken over in the same cycle, because each change regroups the
    fleet.
    """

    owed: dict[WorkloadId, int] = field(default_factory=dict)
    cycles: int = 0

    def waiting(self, changed: Collection[WorkloadId]) -> frozenset[WorkloadId]:
        """The workloads that have changed too often to be taken over in this cycle; asked once a cycle."""
        self.cycles += 1
        self.owed = {id_: owed - 1 for id_, owed in self.owed.items() if owed > 1}
        most = (CHANGES_AT_ONCE - 1) * CHANGES_EACH
        late = frozenset(id_ for id_ in changed if self.cycles % CHANGES_EACH and self.owed.get(id_, 0) > most)
        self.owed |= {id_: min(self.owed.get(id_, 0), most) + CHANGES_EACH for id_ in changed if id_ not in late}
        return late


@dataclass(slots=True)
class Policies:
    """Looks policies up, each combination of layers built once."""

    defaults: Policy
    overrides: tuple[tuple[PolicySelector, Mapping[str, object]], ...] = ()
    signals: Signals = field(default=BUILT_IN, kw_only=True)
    """Measured signals, which every policy knows."""
    built: dict[tuple[str, ...], CombinedPolicy] = field(default_factory=dict)
    chosen: dict[WorkloadId, CombinedPolicy] = field(default_factory=dict)
    modes: Mapping[WorkloadId, Mode] = field(default_factory=dict, kw_only=True)
    """Modes from annotations of HPAs, read by what writes to HPAs; where these are watched, `cluster` has them."""
    cluster: ClusterPolicies = field(default=NOTHING_STATED, kw_only=True)
    ceilings: tuple[OwnerCeiling, ...] = field(default=(), kw_only=True)
    """Bounds on owners, by namespace."""
    changes: tuple[tuple[PolicySelector, Layer], ...] = field(default=(), kw_only=True)
    """Trial changes, above all other layers."""
    _overrides: tuple[tuple[PolicySelector, Layer], ...] = field(init=False, repr=False)
    _pace: ChangePace = field(default_factory=ChangePace, init=False)
    _waiting: Mapping[WorkloadId, tuple[Layer, ...]] = field(default_factory=dict, init=False)
    """Newly stated layers of workloads whose previous layers are still in force."""
    _crowded: frozenset[WorkloadId] = field(default=frozenset(), init=False)
    """Workloads without the events that their owners state, because their namespace states too many."""

    def __post_init__(self) -> None:
        numbered = enumerate(self.overrides)
        self._overrides = tuple((selector, Layer(f"overrides[{i}]", policy)) for i, (selector, policy) in numbered)

    def of(self, id_: WorkloadId) -> Policy:
        """The policy of one workload that is in force."""
        return self.stated(id_)

    def stated(self, id_: WorkloadId) -> Policy:
        """The policy of one workload as its owner states it."""
        return self._chosen(id_).policy

    def layers(self, id_: WorkloadId) -> list[Layer]:
        """Return the layers that apply to a workload above the defaults, the lowest first."""
        below, owners, on_trial = self._parts(id_)
        return [*below, *owners, *on_trial]

    def _parts(self, id_: WorkloadId) -> tuple[list[Layer], list[Layer], list[Layer]]:
        """Return the layers of the platform, those of the owner above them, and the trial changes above both."""
        labels = self.cluster.labels.get(id_, NO_LABELS)
        selected = [layer for selector, layer in self.selecting() if matches(selector, id_, labels)]
        mode = self.modes.get(id_)
        annotated = [Layer("annotation forecaster.dev/mode of its HPA", {"mode": mode})] if mode else []
        on_trial = [layer for selector, layer in self.changes if matches(selector, id_, labels)]
        own = self.cluster.own.get(id_, ())
        own = tuple(layer.without_events() for layer in own) if id_ in self._crowded else own
        return selected, [*annotated, *own], on_trial

    def effective_layers(self, id_: WorkloadId) -> list[Layer]:
        """The layers without those that are refused."""
        refused = {position for position, _ in self._chosen(id_).refused}
        return [layer for position, layer in enumerate(self.layers(id_)) if position not in refused]

    def refused(self, id_: WorkloadId) -> list[tuple[Layer, str]]:
        """The layers that a workload's policy is made without, and why: with them it would contradict itself."""
        refusals = self._chosen(id_).refused
        layers = self.layers(id_) if refusals else []
        late = [(layer, CHANGES_TOO_OFTEN) for layer in self._waiting.get(id_, ())]
        own = self.cluster.own[id_] if id_ in self._crowded else ()
        crowded = [(layer, EVENTS_TOO_MANY) for layer in own if layer.events]
        return [(layers[position], why) for position, why in refusals] + late + crowded

    def without_a_workload(self, ids: Iterable[WorkloadId]) -> list[str]:
        """Return a sentence for each override or object that matches none of these workloads."""
        ids = list(ids)
        idle = {layer.origin: selector for selector, layer in self.selecting()}
        for id_ in ids:
            labels = self.cluster.labels.get(id_, NO_LABELS)
            idle = {name: selector for name, selector in idle.items() if not matches(selector, id_, labels)}
            if not idle:
                break
        lonely = [layer for id_ in self.cluster.own.keys() - set(ids) for layer in self.cluster.own[id_]]
        unknown = "" if self.cluster.labels else "; labels are not known without live facts"
        sentences = [
            f"{name} matches no workload: {_stated(selector)}{unknown if selector.labels else ''}"
            for name, selector in idle.items()
        ]
        return sentences + sorted(f"{layer.origin}: its workload is not there" for layer in lonely)

    def restate(self, defaults: Policy, overrides: tuple[tuple[PolicySelector, Mapping[str, object]], ...]) -> None:
        """Other defaults and overrides from now on."""
        self.defaults, self.overrides = defaults, overrides
        self.built.clear()
        self.chosen.clear()
        self.__post_init__()

    def annotate(self, modes: Mapping[WorkloadId, Mode]) -> None:
        """Take over the modes that annotations state, until the objects of the cluster are read again."""
        for id_ in {id_ for id_, _ in modes.items() ^ self.modes.items()}:
            self.chosen.pop(id_, None)
        self.modes = modes

    def take_over(self, cluster: ClusterPolicies) -> None:
        """Replace the layers that come from objects of the cluster."""
        self._forget_unused()
        if cluster.defaults != self.cluster.defaults:
            self.chosen.clear()
        if any(selector.labels for selector, _ in (*cluster.defaults, *self._overrides, *self.changes)):
            old, new = self.cluster.labels, cluster.labels
            for id_ in [id_ for id_ in self.chosen if old.get(id_, NO_LABELS) != new.get(id_, NO_LABELS)]:
                del self.chosen[id_]
        before = self.cluster.own
        changed = {id_ for id_ in (*before, *cluster.own) if before.get(id_) != cluster.own.get(id_)}
        self._waiting = {id_: cluster.own.get(id_, ()) for id_ in self._pace.waiting(changed)}
        deferred = {id_: _still(before.get(id_, ()), stated) for id_, stated in self._waiting.items()}
        self.cluster = replace(cluster, own={**cluster.own, **deferred}) if deferred else cluster
        crowded = self._crowded_in({id_.namespace for id_ in changed})
        for id_ in {id_ for id_ in changed if before.get(id_) != self.cluster.own.get(id_)} | (crowded ^ self._crowded):
            self.chosen.pop(id_, None)
        self._crowded = crowded
        self.annotate({})

    def _crowded_in(self, changed: Collection[str]) -> frozenset[WorkloadId]:
        """The workloads with too many events for their namespace, counted anew in those that have changed."""
        crowded, counts = {id_ for id_ in self._crowded if id_.namespace not in changed}, Counter[str]()
        for id_ in sorted(id_ for id_ in self.cluster.own if id_.namespace in changed):
            own = sum(layer.events for layer in self.cluster.own[id_])
            counts[id_.namespace] += own
            if own and counts[id_.namespace] > NAMESPACE_EVENTS:
                crowded.add(id_)
        return frozenset(crowded)

    def forget_others(self, ids: Collection[WorkloadId]) -> None:
        """Forget which policy other workloads have, where they are as many as these: it is found again."""
        if len(self.chosen) > 2 * len(ids):
            for id_ in [id_ for id_ in self.chosen if id_ not in ids]:
                del self.chosen[id_]
        self._forget_unused()

    def _forget_unused(self) -> None:
        """Forget combinations of layers that no workload has any more, where they are as many as those in use."""
        if self.chosen and len(self.built) > 2 * len(self.chosen):
            used = set(map(id, self.chosen.values()))
            self.built = {key: combined for key, combined in self.built.items() if id(combined) in used}

    def selecting(self) -> Iterator[tuple[PolicySelector, Layer]]:
        """Layers that name workloads by a selector, the lowest first."""
        yield from self.cluster.defaults
        yield from self._overrides

    def _chosen(self, id_: WorkloadId) -> CombinedPolicy:
        combined = self.chosen.get(id_)
        if not combined:
            below, owners, on_trial = self._parts(id_)
            layers, owned = [*below, *owners, *on_trial], range(len(below), len(below) + len(owners))
            ceiling = ceiling_of(self.ceilings, id_.namespace) if owned else None
            key = (*((ceiling.model_dump_json(), str(owned)) if ceiling else ()), *(layer.text for layer in layers))
            if key not in self.built:
                self.built[key] = self._combined(layers, owned, ceiling)
            combined = self.chosen[id_] = self.built[key]
        return combined

    def _combined(self, layers: Sequence[Layer], owned: range, ceiling: OwnerCeiling | None) -> CombinedPolicy:
        """All layers together; where these make no policy, or `owned` ones may not be all there is, each that fits."""
        base = self.defaults.model_dump()
        policy = self._policy(reduce(merged, (layer.policy for layer in layers), base))
        if isinstance(policy, Policy) and ceiling is None:
            return CombinedPolicy(policy)
        value, refused, sound = base, [], self._policy(base)
        for position, layer in enumerate(layers):
            tried = merged(value, layer.policy)
            verdict = self._policy(tried)
            if ceiling and position in owned and isinstance(verdict, Policy) and isinstance(sound, Policy):
                verdict = excess_of(sound, verdict, ceiling) or verdict
            if isinstance(verdict, Policy):
                value, sound = tried, verdict
            else:
                refused.append((position, verdict))
        return CombinedPolicy(sound if isinstance(sound, Policy) else self.defaults, tuple(refused))

    def _policy(self, value: Mapping[str, object]) -> Policy | str:
        """Return the policy of these values, or their faults."""
        try:
            policy = Policy.model_validate(value)
        except ValidationError as error:
            return "; ".join(sentences(error))
        return policy.model_copy(update={"horizontal": policy.horizontal.reading(self.signals)})


def _still(before: Sequence[Layer], after: Sequence[Layer]) -> tuple[Layer, ...]:
    """Return the earlier layers, paused where the new ones pause: a pause does not wait for its turn."""
    observing = [Layer(layer.origin, PAUSED_POLICY) for layer in after if layer.observes]
    there = [layer for layer in before if layer.observes and layer.policy == PAUSED_POLICY]
    return (*(layer for layer in before if layer not in there), *(observing or there))


EVENTS_TOO_MANY = (
    f"the namespace states more than {NAMESPACE_EVENTS:,} events, counted by the names of workloads; those of this one "
    "have no effect: state fewer, with lists in their cron expressions"
)
CHANGES_TOO_OFTEN = (
    f"it changes again and again; a change is taken over once in {CHANGES_EACH} cycles, and the earlier one is in "
    "force until then"
)
NO_LABELS: Mapping[str, str] = MappingProxyType({})


def matches(selector: PolicySelector, id_: WorkloadId, labels: Mapping[str, str] = NO_LABELS) -> bool:
    """Whether the selector means this workload, which has these labels; one that is not known matches no pattern."""
    pairs = ((id_.namespace, selector.namespace), (id_.kind, selector.kind), (id_.name, selector.name))
    return all(fnmatchcase(value, pattern) for value, pattern in pairs) and all(
        key in labels and fnmatchcase(labels[key], pattern) for key, pattern in selector.labels.items()
    )


def _stated(selector: PolicySelector) -> str:
    """Describe the stated parts of a selector."""
    return ", ".join(f"{name} {value!r}" for name, value in selector if value not in ("*", {})) or "every workload"


def overlap(first: PolicySelector, second: PolicySelector) -> bool:
    """Whether both may mean one workload; of two patterns it is assumed."""
    labels = ((first.labels[key], second.labels[key]) for key in first.labels.keys() & second.labels.keys())
    pairs = ((first.namespace, second.namespace), (first.kind, second.kind), (first.name, second.name), *labels)
    return all(fnmatchcase(a, b) or fnmatchcase(b, a) or (_is_pattern(a) and _is_pattern(b)) for a, b in pairs)


def _is_pattern(text: str) -> bool:
    return any(sign in text for sign in "*?[")
