"""Placement of a pod, as its owner wrote it, and the label selectors in it; read by `node_filters`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

Labels = Mapping[str, str]
_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
"""Text that the scheduler reads as an integer; int() also reads `1_000` and digits of other scripts."""


@dataclass(frozen=True, slots=True)
class LabelCondition:
    """One condition on one label; of a node also on its name, as `metadata.name`."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def holds(self, labels: Labels) -> bool:
        """Rules §6.13: NotIn holds without the label; Gt and Lt compare integers; an unknown operator never holds."""
        value = labels.get(self.key)
        match self.operator:
            case "In":
                return value in self.values
            case "NotIn":
                return value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
            case "Gt" | "Lt":
                return self._compares(value)
            case _:
                return False

    def _compares(self, value: str | None) -> bool:
        sides = [value or "", *self.values]
        if len(sides) != 2 or not all(map(_INTEGER.fullmatch, sides)):  # noqa: PLR2004  a label and its bound
            return False
        number, bound = map(int, sides)
        return number > bound if self.operator == "Gt" else number < bound


def conditions_of(expressions: Iterable[Mapping[str, Any]] | None) -> tuple[LabelCondition, ...]:
    """Conditions of the expressions of a selector or of a node selector term, as an object has them."""
    return tuple(
        LabelCondition(term["key"], term["operator"], tuple(term.get("values") or ())) for term in expressions or ()
    )


def conditions_on(labels: Labels) -> tuple[LabelCondition, ...]:
    """Return conditions that only these values of these labels meet."""
    return tuple(LabelCondition(key, "In", (value,)) for key, value in sorted(labels.items()))


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
        return LabelSelector((*self.conditions, *conditions_on(labels)))


NO_SELECTOR = LabelSelector(absent=True)


def selector_of(wire: Mapping[str, Any] | None) -> LabelSelector:
    """The selector of an object's `labelSelector`; None is one that is absent."""
    if wire is None:
        return NO_SELECTOR
    return LabelSelector((*conditions_on(wire.get("matchLabels") or {}), *conditions_of(wire.get("matchExpressions"))))


@dataclass(frozen=True, slots=True)
class Taint:
    """A taint that excludes pods from a node: NoSchedule and NoExecute do."""

    key: str
    value: str = ""
    effect: str = "NoSchedule"


@dataclass(frozen=True, slots=True)
class Toleration:
    """Taints that a pod tolerates."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


@dataclass(frozen=True, slots=True)
class NodeTerm:
    """Conditions that must hold together; a term without any matches no node."""

    labels: tuple[LabelCondition, ...] = ()
    fields: tuple[LabelCondition, ...] = ()


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
    """Required node affinity: at least one of these terms; None without node affinity."""
    tolerations: tuple[Toleration, ...] = ()
    spread: tuple[TopologySpread, ...] = ()
    pod_affinity: tuple[PodAffinityTerm, ...] = ()
    pod_anti_affinity: tuple[PodAffinityTerm, ...] = ()


ANYWHERE = Placement()
