"""ResourceQuotas: the charge of a pod, values that must be stated, and the limits (§6.8)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from forecaster.vertical.cluster_rules.pod import Pod, pod_limits, pod_requests
from forecaster.vertical.cluster_rules.qos import QosClass, qos_of
from forecaster.vertical.cluster_rules.resource_list import MILLI, Amounts, added, is_huge_pages, text_of
from forecaster.vertical.cluster_rules.server import LATEST_SERVER, Server
from forecaster.vertical.cluster_rules.validation import Refusal

_RULE = "quota"
MUST_STATE = frozenset({"cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"})
"""If a quota tracks one of these, every container must set it; other resources may be left out."""
_PODS = (
    frozenset({"count/pods", "pods", "ephemeral-storage", "requests.ephemeral-storage", "limits.ephemeral-storage"})
    | MUST_STATE
)
_STORAGE = "ephemeral-storage"


@dataclass(frozen=True, slots=True)
class Scope:
    """Selection of the pods that a quota covers."""

    name: str
    operator: str = "Exists"
    values: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Quota:
    """One object of a namespace, its amounts in milli-units as its status has them."""

    hard: Amounts
    used: Amounts = field(default_factory=dict)
    scopes: tuple[Scope, ...] = ()
    name: str = ""

    @property
    def tracked(self) -> frozenset[str]:
        """The resources of pods among those it limits."""
        return frozenset(name for name in self.hard if name in _PODS or _is_extended(name))


@dataclass(frozen=True, slots=True)
class Charge:
    """Effect of one change of a pod on one quota."""

    refusals: tuple[Refusal, ...] = ()
    growth: Amounts = field(default_factory=dict)
    """Growth of `used`; empty where the change is refused."""

    @property
    def admitted(self) -> bool:
        """Whether the quota admits the charge."""
        return not self.refusals


def charge(quota: Quota, new: Pod, old: Pod | None = None, server: Server = LATEST_SERVER) -> Charge:
    """Rules §6.8: create `new`, or resize `old` into it.

    Only growth is charged, and only what grows is compared: a pod that is over already may still shrink.
    """
    if not matches(quota, new, server):
        return Charge()
    if missing := unstated(quota, new, server):
        names = ", ".join(f"{name} for {', '.join(without)}" for name, without in missing.items())
        return Charge((Refusal(_RULE, quota.name, f"must specify {names}"),))
    if uncounted := sorted(quota.tracked - quota.used.keys()):
        return Charge((Refusal(_RULE, quota.name, f"not counted yet: {', '.join(uncounted)}"),))
    growth = _growth(quota, new, old, server)
    if refused := tuple(_exceeded(quota, growth)):
        return Charge(refused)
    return Charge(growth=growth)


def times_fitting(quota: Quota, growth: Amounts, count: int) -> int:
    """Return how many of `count` equal changes with this growth fit one after the other."""
    return min([count, *((quota.hard[name] - quota.used.get(name, 0)) // milli for name, milli in growth.items())])


def charged_with(quota: Quota, growth: Amounts, times: int) -> Quota:
    """Return the quota after `times` changes with this growth."""
    return replace(quota, used=added(quota.used, {name: times * milli for name, milli in growth.items()}))


def _growth(quota: Quota, new: Pod, old: Pod | None, server: Server) -> dict[str, int]:
    """Growth of `used`; all of the new pod where the old one did not count."""
    charged = usage(new, server)
    before = usage(old, server) if old is not None and matches(quota, old, server) else {}
    grown = {name: max(milli - before.get(name, 0), 0) for name, milli in charged.items() if name in quota.hard}
    return {name: milli for name, milli in grown.items() if milli}


def _exceeded(quota: Quota, growth: Amounts) -> Iterator[Refusal]:
    for name, milli in growth.items():
        used, hard = quota.used.get(name, 0), quota.hard[name]
        if used + milli > hard:
            amounts = ", ".join(
                f"{word} {text_of(amount, name)}" for word, amount in (("more", milli), ("used", used), ("hard", hard))
            )
            yield Refusal(_RULE, quota.name, f"{name} would exceed the quota: {amounts}")


def usage(pod: Pod, server: Server = LATEST_SERVER) -> dict[str, int]:
    """Rules §6.8: return the charge of one living pod, under every name that a quota may use."""
    requests, limits = pod_requests(pod, server, status=True), pod_limits(pod, server, status=True)
    return {"count/pods": MILLI, "pods": MILLI, **_named(requests, limits)}


def _named(requests: Amounts, limits: Amounts) -> dict[str, int]:
    charged: dict[str, int] = {}
    for name, milli in requests.items():
        if name in {"cpu", "memory", _STORAGE} or is_huge_pages(name):
            charged[name] = charged[f"requests.{name}"] = milli
        elif "/" in name:
            charged[f"requests.{name}"] = milli
    charged |= {f"limits.{name}": milli for name, milli in limits.items() if name in {"cpu", "memory", _STORAGE}}
    return charged


def unstated(quota: Quota, pod: Pod, server: Server = LATEST_SERVER) -> dict[str, list[str]]:
    """Rules §6.8: tracked resources that must be set on every container, and the containers that do not."""
    if pod.has_pod_level and server.has_pod_level_resources:
        return {}
    missing: dict[str, list[str]] = {}
    for name in sorted(quota.tracked & MUST_STATE):
        blocks = ((container.name, container.resources) for container in pod.every_container())
        if without := [other for other, block in blocks if name not in _named(block.requests, block.limits)]:
            missing[name] = without
    return missing


def matches(quota: Quota, pod: Pod, server: Server = LATEST_SERVER) -> bool:
    """Whether this quota covers this pod."""
    return bool(quota.tracked) and all(_in_scope(scope, pod, server) for scope in quota.scopes)


def _in_scope(scope: Scope, pod: Pod, server: Server) -> bool:
    """A scope that is not known holds for no pod."""
    holds = _SCOPES.get(scope.name)
    return holds is not None and holds(scope, pod, server)


def _is_best_effort(_scope: Scope, pod: Pod, server: Server) -> bool:
    return qos_of(pod, server) is QosClass.BEST_EFFORT


def _ends(_scope: Scope, pod: Pod, _server: Server) -> bool:
    return pod.active_deadline_seconds is not None and pod.active_deadline_seconds >= 0


def _reaches_out(_scope: Scope, pod: Pod, _server: Server) -> bool:
    return any(term.namespaces is not None for term in (*pod.placement.pod_affinity, *pod.placement.pod_anti_affinity))


def _of_priority_class(scope: Scope, pod: Pod, _server: Server) -> bool:
    name = pod.priority_class
    match scope.operator:
        case "Exists":
            return bool(name)
        case "DoesNotExist":
            return not name
        case "In":
            return name in scope.values
        case _:
            return name not in scope.values


def _is_extended(name: str) -> bool:
    bare = name.removeprefix("requests.")
    return is_huge_pages(bare) or (name.startswith("requests.") and "/" in bare)


_SCOPES: Mapping[str, Callable[[Scope, Pod, Server], bool]] = {
    "BestEffort": _is_best_effort,
    "CrossNamespacePodAffinity": _reaches_out,
    "NotBestEffort": lambda *scoped: not _is_best_effort(*scoped),
    "NotTerminating": lambda *scoped: not _ends(*scoped),
    "PriorityClass": _of_priority_class,
    "Terminating": _ends,
}
