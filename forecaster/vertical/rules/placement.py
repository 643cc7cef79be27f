"""Where a pod may run, as its owner wrote it. `taints`, `node_affinity`, `spread` and `neighbours` read it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from forecaster.vertical.rules.label_selector import NOTHING, LabelSelector

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Taint:
    """What keeps pods off a node; only NoSchedule and NoExecute do."""

    key: str
    value: str = ""
    effect: str = "NoSchedule"


@dataclass(frozen=True, slots=True)
class Toleration:
    """Which taints a pod does not mind."""

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
class Spread:
    """A topology spread constraint that refuses (DoNotSchedule)."""

    max_skew: int
    topology_key: str
    selector: LabelSelector = NOTHING
    min_domains: int = 1
    honours_affinity: bool = True
    honours_taints: bool = False


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """A required pod (anti-)affinity term."""

    topology_key: str
    selector: LabelSelector = NOTHING
    namespaces: frozenset[str] | None = None
    """None: the pod's own. Empty: all of them."""


@dataclass(frozen=True, slots=True)
class Placement:
    """Everything that narrows down the nodes of a pod, and the labels that others see it by."""

    labels: Mapping[str, str] = field(default_factory=dict)
    namespace: str = ""
    node_selector: Mapping[str, str] = field(default_factory=dict)
    node_terms: tuple[NodeTerm, ...] | None = None
    """Required node affinity: at least one of these; None where there is none."""
    tolerations: tuple[Toleration, ...] = ()
    spread: tuple[Spread, ...] = ()
    near: tuple[Neighbourhood, ...] = ()
    apart: tuple[Neighbourhood, ...] = ()


ANYWHERE = Placement()
