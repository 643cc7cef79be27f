"""Which policy a workload has: the defaults, then every override that selects it, the later one winning."""

from __future__ import annotations

from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from forecaster.domain.policy import Policy
from forecaster.domain.signal import BUILT_IN, Signals

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from forecaster.domain.policy import Mode, PolicySelector
    from forecaster.domain.workload import WorkloadId


@dataclass(slots=True)
class Policies:
    """Looks policies up, each combination of overrides built once."""

    defaults: Policy
    overrides: tuple[tuple[PolicySelector, Mapping[str, object]], ...] = ()
    signals: Signals = field(default=BUILT_IN, kw_only=True)
    """What is measured; every policy knows it."""
    built: dict[tuple[tuple[int, ...], Mode | None], Policy] = field(default_factory=dict)
    chosen: dict[WorkloadId, Policy] = field(default_factory=dict)
    modes: Mapping[WorkloadId, Mode] = field(default_factory=dict, kw_only=True)
    """By annotation of the HPA; it stands over every override."""

    def of(self, id_: WorkloadId) -> Policy:
        """The policy of one workload that is in force."""
        return self.stated(id_)

    def stated(self, id_: WorkloadId) -> Policy:
        """The policy of one workload as its owner states it."""
        if id_ not in self.chosen:
            matching = tuple(i for i, (selector, _) in enumerate(self.overrides) if matches(selector, id_))
            self.chosen[id_] = self._combined(matching, self.modes.get(id_))
        return self.chosen[id_]

    def without_a_workload(self, ids: Iterable[WorkloadId]) -> list[str]:
        """A sentence for each override that selects none of these workloads, and so says nothing."""
        idle = dict(enumerate(selector for selector, _ in self.overrides))
        for id_ in ids:
            idle = {i: selector for i, selector in idle.items() if not matches(selector, id_)}
            if not idle:
                break
        return [f"overrides[{i}] matches no workload: {_stated(selector)}" for i, selector in idle.items()]

    def annotate(self, modes: Mapping[WorkloadId, Mode]) -> None:
        """Take over the modes that annotations state, from the next look on."""
        for id_ in {id_ for id_, _ in modes.items() ^ self.modes.items()}:
            self.chosen.pop(id_, None)
        self.modes = modes

    def forget_others(self, here: Collection[WorkloadId]) -> None:
        """Forget which policy other workloads have, where they are as many as these: it is found again."""
        if len(self.chosen) > 2 * len(here):
            for id_ in [id_ for id_ in self.chosen if id_ not in here]:
                del self.chosen[id_]

    def _combined(self, matching: tuple[int, ...], mode: Mode | None) -> Policy:
        key = (matching, mode)
        if key not in self.built:
            value = self.defaults.model_dump()
            for i in matching:
                value = merged(value, self.overrides[i][1])
            policy = Policy.model_validate(value if mode is None else merged(value, {"mode": mode}))
            self.built[key] = policy.model_copy(update={"horizontal": policy.horizontal.reading(self.signals)})
        return self.built[key]


def matches(selector: PolicySelector, id_: WorkloadId) -> bool:
    """Whether the selector means this workload."""
    pairs = ((id_.namespace, selector.namespace), (id_.kind, selector.kind), (id_.name, selector.name))
    return all(fnmatchcase(value, pattern) for value, pattern in pairs)


def _stated(selector: PolicySelector) -> str:
    """What a selector asks for, without what it leaves open."""
    return ", ".join(f"{name} {value!r}" for name, value in selector if value != "*") or "every workload"


def overlap(first: PolicySelector, second: PolicySelector) -> bool:
    """Whether both may mean one workload; of two patterns it is assumed."""
    pairs = ((first.namespace, second.namespace), (first.kind, second.kind), (first.name, second.name))
    return all(fnmatchcase(a, b) or fnmatchcase(b, a) or (_is_pattern(a) and _is_pattern(b)) for a, b in pairs)


def _is_pattern(text: str) -> bool:
    return any(sign in text for sign in "*?[")


def merged(base: Mapping[str, object], over: Mapping[str, object]) -> dict[str, object]:
    """`base` with the leaves of `over` put in; neither is changed."""
    result = dict(base)
    for key, value in over.items():
        old = result.get(key)
        result[key] = merged(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return result
