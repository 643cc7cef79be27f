"""Where a pod may run, as its owner wrote it, and the label selectors in it. `node_filters` reads it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Labels = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class LabelCondition:
    """One condition on one label."""

    key: str
    operator: str
    values: frozenset[str] = frozenset()

    def holds(self, labels: Labels) -> bool:
        """A label that is absent satisfies NotIn; an operator that is not known, nothing."""
        match self.operator:
            case "In":
                return labels.get(self.key) in self.values
            case "NotIn":
                return labels.get(self.key) not in self.values
            case "Exists":
                return self.key in labels
            case "DoesNotExist":
                return self.key not in labels
            case _:
                return False


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """All conditions together. None at all matches everything; a selector that is absent matches nothing."""

    conditions: tuple[LabelCondition, ...] = ()
    absent: bool = False

    @property
    def is_empty(self) -> bool:
        """Present and without conditions."""
        return not self.conditions and not self.absent

    def matches(self, labels: Labels) -> bool:
        """Whether these labels are meant."""
        return not self.absent and all(condition.holds(labels) for condition in self.conditions)

    def narrowed(self, labels: Labels) -> LabelSelector:
        """Return the selector with these labels added; one that is absent stays so."""
        if self.absent:
            return self
        more = tuple(LabelCondition(key, "In", frozenset({value})) for key, value in sorted(labels.items()))
        return LabelSelector((*self.conditions, *more))


NO_SELECTOR = LabelSelector(absent=True)


def selector_of(wire: Mapping[str, Any] | None) -> LabelSelector:
    """The selector of an object's `labelSelector`; None is one that is absent."""
    if wire is None:
        return NO_SELECTOR
    labels = wire.get("matchLabels") or {}
    expressions = wire.get("matchExpressions") or ()
    return LabelSelector(
        (
            *(LabelCondition(key, "In", frozenset({value})) for key, value in labels.items()),
            *(LabelCondition(one["key"], one["operator"], frozenset(one.get("values") or ())) for one in expressions),
        )
    )


@dataclass(frozen=True, slots=True)
class Taint:
    """What keeps pods off a node; only NoSchedule and NoExecute do."""

    key: str
    value: str = ""
    effect: str = "NoSchedule"


@dataclass(frozen=True, slots=True)
class Toleration:
    """Which taints a pod tolerates."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


@dataclass(frozen=True, slots=True)
class NodeCondition:
    """One expression on a node's labels or, for `metadata.name`, on its name."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeTerm:
    """All of these together; a term without any matches no node."""

    labels: tuple[NodeCondition, ...] = ()
    fields: tuple[NodeCondition, ...] = ()


@dataclass(frozen=True, slots=True)
class TopologySpread:
    """A topology spread constraint that refuses (DoNotSchedule)."""

    max_skew: int
    topology_key: str
    selector: LabelSelector = NO_SELECTOR
    min_domains: int = 1
    honours_affinity: bool = True
    honours_taints: bool = False


@dataclass(frozen=True, slots=True)
class PodAffinityTerm:
    """A required pod (anti-)affinity term."""

    topology_key: str
    selector: LabelSelector = NO_SELECTOR
    namespaces: frozenset[str] | None = None
    """None: the pod's own. Empty: all of them."""


@dataclass(frozen=True, slots=True)
class Placement:
    """Constraints on the nodes of a pod, and the labels that other pods select it by."""

    labels: Mapping[str, str] = field(default_factory=dict)
    namespace: str = ""
    node_selector: Mapping[str, str] = field(default_factory=dict)
    node_terms: tuple[NodeTerm, ...] | None = None
    """Required node affinity: at least one of these; None where there is none."""
    tolerations: tuple[Toleration, ...] = ()
    spread: tuple[TopologySpread, ...] = ()
    pod_affinity: tuple[PodAffinityTerm, ...] = ()
    pod_anti_affinity: tuple[PodAffinityTerm, ...] = ()


ANYWHERE = Placement()
